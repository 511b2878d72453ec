/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifdef __x86_64__

#include <cpuid.h>
#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"
#include "injector/fault_step.h"
#include "injector/general.h"
#include "injector/inject_arch.h"
#include "injector/mailbox.h"

/*
 * The code that runs in the target; rbx is the mailbox, whose offsets these are.
 *
 * borrow: calls pthread_create(&thread, NULL, entry, mailbox), notes the result and sleeps until
 * we come. ppoll() is the one sleep that leaves the kernel's note of how to restart an earlier
 * call alone. If nobody comes, it says that it leaves and returns as if from a signal handler.
 *
 * thread: detaches itself, then serves the mailbox. At its end it jumps to munmap(), which
 * returns to the C library's own code; not if the borrowed thread may still be in here.
 */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"prb_x86_64_code:\n"
	"prb_x86_64_borrow:\n"
	"	endbr64\n"
	"	leaq	88(%rbx), %rdi\n"
	"	xorl	%esi, %esi\n"
	"	movq	184(%rbx), %rdx\n"
	"	movq	%rbx, %rcx\n"
	"	xorl	%ebp, %ebp\n"
	"	call	*72(%rbx)\n"
	"	movslq	%eax, %rax\n"
	"	movq	%rax, 80(%rbx)\n"
	"	movl	$1, 4(%rbx)\n"
	"	xorl	%edi, %edi\n"
	"	xorl	%esi, %esi\n"
	"	leaq	136(%rbx), %rdx\n"
	"	xorl	%r10d, %r10d\n"
	"	movl	$8, %r8d\n"
	"	movl	$271, %eax\n" /* ppoll */
	"	syscall\n"
	"	movl	$2, 4(%rbx)\n"
	"	movq	96(%rbx), %rsp\n"
	"	movl	$15, %eax\n" /* rt_sigreturn */
	"	syscall\n"
	"	hlt\n"
	"prb_x86_64_borrow_end:\n"
	"	.balign 16\n"
	"prb_x86_64_thread:\n"
	"	endbr64\n"
	"	pushq	%rbx\n"
	"	pushq	%rbp\n"
	"	pushq	%r12\n"
	"	movq	%rdi, %rbx\n"
	"	movl	$157, %eax\n" /* prctl(PR_SET_TIMERSLACK, 1): sleeps as short as asked for
				       */
	"	movl	$29, %edi\n"
	"	movl	$1, %esi\n"
	"	syscall\n"
	"	call	*200(%rbx)\n"
	"	movq	%rax, %rdi\n"
	"	call	*208(%rbx)\n"
	"	movl	$186, %eax\n" /* gettid: from here on it is in this code only */
	"	syscall\n"
	"	movq	%rax, 192(%rbx)\n"
	"	xorl	%ebp, %ebp\n"
	"1:	movl	(%rbx), %eax\n"
	"	cmpl	$1, %eax\n"
	"	je	3f\n"
	"	cmpl	$3, %eax\n"
	"	je	4f\n"
	"	incl	%ebp\n"
	"	cmpl	$7000, %ebp\n"
	"	ja	4f\n"
	"	leaq	152(%rbx), %rdi\n"
	"	cmpl	$2000, %ebp\n"
	"	jbe	2f\n"
	"	leaq	168(%rbx), %rdi\n"
	"2:	xorl	%esi, %esi\n"
	"	movl	$35, %eax\n" /* nanosleep */
	"	syscall\n"
	"	jmp	1b\n"
	"3:	xorl	%ebp, %ebp\n"
	"	movq	16(%rbx), %rdi\n"
	"	movq	24(%rbx), %rsi\n"
	"	movq	32(%rbx), %rdx\n"
	"	movq	40(%rbx), %rcx\n"
	"	movq	48(%rbx), %r8\n"
	"	movq	56(%rbx), %r9\n"
	"	xorl	%eax, %eax\n"
	"	call	*8(%rbx)\n"
	"	movq	%rax, 64(%rbx)\n"
	"	movl	$2, (%rbx)\n"
	"	jmp	1b\n"
	"4:	movq	128(%rbx), %rdi\n"
	"	testq	%rdi, %rdi\n"
	"	js	5f\n"
	"	movl	$3, %eax\n" /* close */
	"	syscall\n"
	"5:	cmpl	$2, 4(%rbx)\n"
	"	jne	6f\n"
	"	movq	112(%rbx), %rdi\n"
	"	movq	120(%rbx), %rsi\n"
	"	movq	104(%rbx), %rax\n"
	"	popq	%r12\n"
	"	popq	%rbp\n"
	"	popq	%rbx\n"
	"	jmp	*%rax\n"
	"6:	xorl	%eax, %eax\n"
	"	popq	%r12\n"
	"	popq	%rbp\n"
	"	popq	%rbx\n"
	"	ret\n"
	"	.balign 16\n"
	"prb_x86_64_raw_syscall:\n"
	"	endbr64\n"
	"	movq	%rdi, %rax\n"
	"	movq	%rsi, %rdi\n"
	"	movq	%rdx, %rsi\n"
	"	movq	%rcx, %rdx\n"
	"	movq	%r8, %r10\n"
	"	movq	%r9, %r8\n"
	"	xorl	%r9d, %r9d\n"
	"	syscall\n"
	"	ret\n"
	"prb_x86_64_code_end:\n"
	".popsection\n");

extern const uint8_t prb_x86_64_code[], prb_x86_64_borrow[], prb_x86_64_borrow_end[],
	prb_x86_64_thread[], prb_x86_64_raw_syscall[], prb_x86_64_code_end[];

enum {
	RED_ZONE = 128,
	SYSCALL_BYTES = 2,
	CODE_SEGMENT_64 = 0x33,
	NT_X86_SHADOW_STACK = 0x204,
	XSAVE_LEGACY = 512,
	XSAVE_HEADER = 64,
	XSAVE_SOFTWARE = 464, /* where the kernel keeps notes in the legacy area */
};

/* Results of system calls that the kernel turns into a restart. */
enum {
	ERESTARTSYS = 512,
	ERESTARTNOINTR = 513,
	ERESTARTNOHAND = 514,
	ERESTART_RESTARTBLOCK = 516,
};

static struct user_regs_struct *general(const struct prb_thread_state *state)
{
	return (struct user_regs_struct *)state->general;
}

_Static_assert(sizeof(struct user_regs_struct) <= PRB_THREAD_GENERAL_MAX, "room for registers");

static struct prb_error *save(pid_t tid, struct prb_thread_state *ret)
{
	struct iovec io = {ret->extended, sizeof(ret->extended)};

	PRB_TRY(prb_general_read(tid, general(ret)));
	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io))
		return prb_error_os(errno, "cannot read the vector registers of thread %d", tid);
	if (io.iov_len < XSAVE_LEGACY + XSAVE_HEADER || io.iov_len >= sizeof(ret->extended))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"thread %d has %zu bytes of vector registers", tid,
					io.iov_len);
	ret->extended_size = io.iov_len;
	return NULL;
}

static struct prb_error *restore_extended(pid_t tid, const struct prb_thread_state *state)
{
	struct iovec io = {(void *)state->extended, state->extended_size};

	prb_fault_step();
	if (ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &io))
		return prb_error_os(errno, "cannot set the vector registers of thread %d", tid);
	return NULL;
}

static struct prb_error *restore_general(pid_t tid, const struct prb_thread_state *state)
{
	return prb_general_write(tid, general(state));
}

static void registers(const struct prb_thread_state *state, struct prb_regs *ret)
{
	const struct user_regs_struct *r = general(state);
	/* DWARF numbers of the psABI. */
	const uint64_t values[] = {r->rax, r->rdx, r->rcx, r->rbx, r->rsi, r->rdi, r->rbp, r->rsp,
				   r->r8,  r->r9,  r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

	*ret = (struct prb_regs){.machine = EM_X86_64, .pc = r->rip};
	for (unsigned i = 0; i < PRB_ARRAY_SIZE(values); i++)
		prb_regs_set(ret, i, values[i]);
}

static const char *obstacle(pid_t tid, const struct prb_thread_state *state)
{
	uint64_t shadow = 0;
	struct iovec io = {&shadow, sizeof(shadow)};

	if (general(state)->cs != CODE_SEGMENT_64)
		return "it runs 32-bit code";
	if (!ptrace(PTRACE_GETREGSET, tid, NT_X86_SHADOW_STACK, &io) && shadow)
		return "it has a shadow stack; GLIBC_TUNABLES=glibc.cpu.hwcaps=-SHSTK starts it "
		       "without";
	return NULL;
}

static long call(const struct prb_thread_state *state, uint64_t arguments[6])
{
	const struct user_regs_struct *r = general(state);
	const uint64_t values[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};

	memcpy(arguments, values, sizeof(values));
	return (long)r->orig_rax;
}

/* Is it in a call that the kernel will start again when it goes on from here? */
static bool restarts(const struct user_regs_struct *r)
{
	if ((long)r->orig_rax < 0)
		return false;
	switch (-(long)r->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
	case ERESTART_RESTARTBLOCK:
		return true;
	}
	return false;
}

/* As C libraries make calls: mov $NUMBER, %eax; syscall. */
static long resumed_call(const struct prb_thread_state *state, const uint8_t code[PRB_CODE_BEFORE])
{
	const uint8_t *at = code + PRB_CODE_BEFORE - SYSCALL_BYTES - 5;
	uint32_t number;

	memcpy(&number, at + 1, sizeof(number));
	if (general(state)->orig_rax != SYS_restart_syscall || at[0] != 0xb8 || at[5] != 0x0f ||
	    at[6] != 0x05)
		return 0;
	return number;
}

/* struct rt_sigframe of the kernel, as far as it is read on the way back. */
struct signal_frame {
	uint64_t trampoline;
	uint64_t flags, link, stack;
	uint32_t stack_flags, pad;
	uint64_t stack_size;
	uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, eflags;
	uint16_t cs, gs, fs, ss;
	uint64_t err, trapno, oldmask, cr2, extended, reserved[8];
	uint64_t mask;
};

/* The kernel's note in the vector registers of a signal frame. */
struct software_bytes {
	uint32_t magic, extended_size;
	uint64_t features;
	uint32_t size, padding[7];
};

enum {
	FLAG_EXTENDED = 1,
	FLAG_SEGMENT = 2,
	FLAG_STRICT_SEGMENT = 4,
	STACK_UNCHANGED = 0x7f, /* flags that make no sense: the alternate stack stays what it is */
};
static const uint32_t magic_begin = 0x46505853, magic_end = 0x46505845;

/*
 * Bytes of the vector registers that this thread may have in a frame: the kernel refuses what is
 * larger than the thread's own. Tile registers need a permission, which shows when they are used.
 */
static size_t frame_extended_size(uint64_t *features, uint64_t used)
{
	const uint64_t tiles = UINT64_C(3) << 17;
	size_t size = XSAVE_LEGACY + XSAVE_HEADER;

	*features &= ~tiles | used;
	for (unsigned i = 2; i < 63; i++) {
		unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;

		if (!(*features >> i & 1))
			continue;
		__cpuid_count(0xd, i, eax, ebx, ecx, edx);
		size = PRB_MAX(size, (size_t)eax + ebx);
	}
	return size;
}

static void frame(const struct prb_thread_state *state, uint64_t trampoline,
		  struct prb_return_frame *ret)
{
	struct user_regs_struct r = *general(state);
	uint64_t features, used;

	memcpy(&features, state->extended + XSAVE_SOFTWARE, sizeof(features));
	memcpy(&used, state->extended + XSAVE_LEGACY, sizeof(used));

	size_t size = PRB_MIN(frame_extended_size(&features, used), state->extended_size);
	uint64_t extended = (r.rsp - RED_ZONE - size - sizeof(magic_end)) & ~UINT64_C(63);
	struct software_bytes note = {.magic = magic_begin,
				      .extended_size = (uint32_t)(size + sizeof(magic_end)),
				      .features = features,
				      .size = (uint32_t)size};

	ret->address = ((extended - sizeof(struct signal_frame)) & ~UINT64_C(15)) - 8;
	ret->stack = ret->address + sizeof(trampoline);
	ret->trampoline = trampoline;
	if (restarts(&r)) {
		r.rax = state->resumed ? (unsigned long long)state->resumed : r.orig_rax;
		r.rip -= SYSCALL_BYTES;
	}
	struct signal_frame f = {
		.trampoline = trampoline,
		.flags = FLAG_EXTENDED | FLAG_SEGMENT | FLAG_STRICT_SEGMENT,
		.stack_flags = STACK_UNCHANGED,
		.r8 = r.r8,
		.r9 = r.r9,
		.r10 = r.r10,
		.r11 = r.r11,
		.r12 = r.r12,
		.r13 = r.r13,
		.r14 = r.r14,
		.r15 = r.r15,
		.di = r.rdi,
		.si = r.rsi,
		.bp = r.rbp,
		.bx = r.rbx,
		.dx = r.rdx,
		.ax = r.rax,
		.cx = r.rcx,
		.sp = r.rsp,
		.ip = r.rip,
		.eflags = r.eflags,
		.cs = (uint16_t)r.cs,
		.ss = (uint16_t)r.ss,
		.extended = extended,
		.mask = state->mask,
	};
	uint8_t *at = ret->bytes + (extended - ret->address);

	memset(ret->bytes, 0, extended - ret->address);
	memcpy(ret->bytes, &f, sizeof(f));
	memcpy(at, state->extended, size);
	memcpy(at + XSAVE_SOFTWARE, &note, sizeof(note));
	memcpy(at + size, &magic_end, sizeof(magic_end));
	ret->size = extended - ret->address + size + sizeof(magic_end);
}

static struct prb_error *set_syscall(pid_t tid, const struct prb_thread_state *state,
				     uint64_t gadget, const struct prb_return_frame *way_back,
				     long number, const uint64_t arguments[6])
{
	struct user_regs_struct r = *general(state);

	r.rip = gadget;
	r.rsp = way_back->address;
	r.rax = (unsigned long long)number;
	r.orig_rax = (unsigned long long)-1;
	r.rdi = arguments[0];
	r.rsi = arguments[1];
	r.rdx = arguments[2];
	r.r10 = arguments[3];
	r.r8 = arguments[4];
	r.r9 = arguments[5];
	return prb_general_write(tid, &r);
}

static struct prb_error *syscall_result(pid_t tid, int64_t *ret)
{
	struct user_regs_struct r;

	PRB_TRY(prb_general_read(tid, &r));
	*ret = (int64_t)r.rax;
	return NULL;
}

static struct prb_error *set_borrow(pid_t tid, const struct prb_thread_state *state, uint64_t code,
				    uint64_t stack, uint64_t mailbox)
{
	struct user_regs_struct r = *general(state);

	r.rip = code;
	r.rsp = stack & ~UINT64_C(15);
	r.rbx = mailbox;
	r.rax = 0;
	r.orig_rax = (unsigned long long)-1;
	r.eflags &= ~UINT64_C(0x400); /* functions expect the direction flag to be clear */
	return prb_general_write(tid, &r);
}

/* The thread pointer of both C libraries points to itself; raw threads have none of their own. */
static struct prb_error *thread(const struct prb_thread_state *state, struct prb_mem *mem,
				bool musl, uint64_t *ret)
{
	uint64_t pointer = general(state)->fs_base, self = 0;
	struct prb_error *err = prb_mem_read_u64(mem, pointer, &self);

	(void)musl;
	*ret = !err && self == pointer ? pointer : 0;
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
}

const struct prb_inject_arch *prb_inject_arch(void)
{
	static const uint8_t syscall_code[] = {0x0f, 0x05, 0xc3};
	static const uint8_t sigreturn_code[] = {0x48, 0xc7, 0xc0, 0x0f, 0x00,
						 0x00, 0x00, 0x0f, 0x05};
	static const struct prb_inject_arch arch = {
		.syscall_code = syscall_code,
		.syscall_length = sizeof(syscall_code),
		.sigreturn_code = sigreturn_code,
		.sigreturn_length = sizeof(sigreturn_code),
		.code = prb_x86_64_code,
		.code_end = prb_x86_64_code_end,
		.borrow_code = prb_x86_64_borrow,
		.borrow_end = prb_x86_64_borrow_end,
		.thread_code = prb_x86_64_thread,
		.raw_syscall_code = prb_x86_64_raw_syscall,
		.sys_mmap = SYS_mmap,
		.sys_mprotect = SYS_mprotect,
		.sys_munmap = SYS_munmap,
		.sys_memfd_create = SYS_memfd_create,
		.breakpoints = true,
		.obstacle = obstacle,
		.save = save,
		.restore_extended = restore_extended,
		.restore_general = restore_general,
		.registers = registers,
		.sys_futex = SYS_futex,
		.call = call,
		.resumed_call = resumed_call,
		.frame = frame,
		.set_syscall = set_syscall,
		.syscall_result = syscall_result,
		.set_borrow = set_borrow,
		.thread = thread,
		.musl_neighbours = 16,
	};

	return &arch;
}

#endif
