/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifdef __x86_64__

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "injector/arch/x86_64.h"
#include "injector/arch/scratch.h"
#include "target/ptrace/fault_step.h"
#include "target/ptrace/gpregs.h"
#include "target/restarted_call.h"

/*
 * The code that runs in the target; rbx is the mailbox, whose offsets these are.
 *
 * hijack: makes what lies behind the code writable, calls pthread_create(&thread, NULL, entry,
 * mailbox), notes the result, says that it leaves, and sleeps in the C library's code until we
 * come. Where nothing was made writable it notes why on its own stack, and sleeps at once. ppoll()
 * is the one sleep that leaves the kernel's note of how to restart an earlier call alone. If we
 * never come, the call returns to the frame that leads back, with all of this unmapped if there is
 * no new thread to do that.
 *
 * thread: detaches itself, then serves the mailbox: makes calls, one after the other, until one
 * that the next depends on has returned 0, or there is no next. At its end it jumps to munmap(),
 * which returns to the C library's own code; not if the hijacked thread may still be in here.
 */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"prb_x86_64_code:\n"
	"prb_x86_64_hijack:\n"
	"	endbr64\n"
	"	movq	48(%rbx), %rdi\n"
	"	movq	56(%rbx), %rsi\n"
	"	addq	$4096, %rdi\n"
	"	subq	$4096, %rsi\n"
	"	movl	$3, %edx\n"  /* PROT_READ | PROT_WRITE */
	"	movl	$10, %eax\n" /* mprotect */
	"	syscall\n"
	"	testq	%rax, %rax\n"
	"	jne	3f\n"
	"	leaq	24(%rbx), %rdi\n"
	"	xorl	%esi, %esi\n"
	"	movq	120(%rbx), %rdx\n"
	"	movq	%rbx, %rcx\n"
	"	xorl	%ebp, %ebp\n"
	"	call	*8(%rbx)\n"
	"	movslq	%eax, %rax\n"
	"	movq	%rax, 16(%rbx)\n"
	"	movq	32(%rbx), %rsp\n"
	"	testl	%eax, %eax\n"
	"	cmovneq	152(%rbx), %rsp\n"
	"1:	xorl	%edi, %edi\n"
	"	xorl	%esi, %esi\n"
	"	movq	80(%rbx), %rdx\n"
	"	xorl	%r10d, %r10d\n"
	"	movl	$8, %r8d\n"
	"	movl	$271, %eax\n" /* ppoll */
	"	movq	160(%rbx), %r11\n"
	"	cmpq	$0, 16(%rdx)\n"
	"	jne	2f\n"
	"	movl	$1, 4(%rbx)\n"
	"2:	jmp	*%r11\n"
	"3:	movq	80(%rbx), %rdx\n"
	"	movq	152(%rbx), %rsp\n"
	"	movq	%rax, 16(%rdx)\n"
	"	jmp	1b\n"
	"prb_x86_64_hijack_end:\n"
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
	"	call	*136(%rbx)\n"
	"	movq	%rax, %rdi\n"
	"	call	*144(%rbx)\n"
	"	movl	$186, %eax\n" /* gettid: from here on it is in this code only */
	"	syscall\n"
	"	movq	%rax, 128(%rbx)\n"
	"	xorl	%ebp, %ebp\n"
	"1:	movl	(%rbx), %eax\n"
	"	cmpl	$1, %eax\n"
	"	je	3f\n"
	"	cmpl	$3, %eax\n"
	"	je	4f\n"
	"	incl	%ebp\n"
	"	cmpl	$1000, %ebp\n"
	"	ja	4f\n"
	"	leaq	88(%rbx), %rdi\n"
	"	cmpl	$500, %ebp\n"
	"	jbe	2f\n"
	"	leaq	104(%rbx), %rdi\n"
	"2:	xorl	%esi, %esi\n"
	"	movl	$35, %eax\n" /* nanosleep */
	"	syscall\n"
	"	jmp	1b\n"
	"3:	xorl	%ebp, %ebp\n"
	"	leaq	168(%rbx), %r12\n"
	"7:	movq	8(%r12), %rdi\n"
	"	movq	16(%r12), %rsi\n"
	"	movq	24(%r12), %rdx\n"
	"	movq	32(%r12), %rcx\n"
	"	movq	40(%r12), %r8\n"
	"	movq	48(%r12), %r9\n"
	"	xorl	%eax, %eax\n"
	"	call	*(%r12)\n"
	"	movq	%rax, 56(%r12)\n"
	"	movq	64(%r12), %rcx\n"
	"	movq	%rax, (%rcx)\n"
	"	movq	72(%r12), %rcx\n"
	"	movq	%rax, (%rcx)\n"
	"	orq	80(%r12), %rax\n"
	"	cmovneq	88(%r12), %rax\n"
	"	movq	%rax, %r12\n"
	"	testq	%rax, %rax\n"
	"	jne	7b\n"
	"	movl	$2, (%rbx)\n"
	"	jmp	1b\n"
	"4:	movq	64(%rbx), %rdi\n"
	"	testq	%rdi, %rdi\n"
	"	js	5f\n"
	"	movl	$3, %eax\n" /* close */
	"	syscall\n"
	"5:	cmpl	$1, 4(%rbx)\n"
	"	jne	6f\n"
	"	movq	48(%rbx), %rdi\n"
	"	movq	56(%rbx), %rsi\n"
	"	movq	40(%rbx), %rax\n"
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

extern const uint8_t prb_x86_64_code[], prb_x86_64_hijack[], prb_x86_64_hijack_end[],
	prb_x86_64_thread[], prb_x86_64_raw_syscall[], prb_x86_64_code_end[];

_Static_assert(PRB_SCRATCH_CODE == 4096, "as the code has it");

enum {
	SYSCALL_BYTES = 2,
	CODE_SEGMENT_64 = 0x33,
	NT_X86_SHADOW_STACK = 0x204,
};

static struct prb_error *save(pid_t tid, struct prb_thread_state *ret)
{
	struct iovec io = {ret->extended, sizeof(ret->extended)};

	PRB_TRY(prb_gpregs_read(tid, prb_x86_64_general(ret)));
	if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &io))
		return prb_error_os(errno, "cannot read the vector registers of thread %d", tid);
	if (io.iov_len < PRB_XSAVE_LEGACY + PRB_XSAVE_HEADER || io.iov_len >= sizeof(ret->extended))
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
	return prb_gpregs_write(tid, prb_x86_64_general(state));
}

static void registers(const struct prb_thread_state *state, struct prb_regs *ret)
{
	const struct user_regs_struct *r = prb_x86_64_general(state);
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

	if (prb_x86_64_general(state)->cs != CODE_SEGMENT_64)
		return "it runs 32-bit code";
	if (!ptrace(PTRACE_GETREGSET, tid, NT_X86_SHADOW_STACK, &io) && shadow)
		return "it has a shadow stack; GLIBC_TUNABLES=glibc.cpu.hwcaps=-SHSTK starts it "
		       "without";
	return NULL;
}

static long call(const struct prb_thread_state *state, uint64_t arguments[6])
{
	const struct user_regs_struct *r = prb_x86_64_general(state);
	const uint64_t values[6] = {r->rdi, r->rsi, r->rdx, r->r10, r->r8, r->r9};

	memcpy(arguments, values, sizeof(values));
	return (long)r->orig_rax;
}

static bool read_memory(void *context, uint64_t address, void *buffer, size_t length)
{
	struct prb_error *err = prb_mail_read(*(const int *)context, address, buffer, length);

	prb_error_destroy(err);
	return !err;
}

/* As C libraries make calls: mov $NUMBER, %eax; syscall. Or with the number from the stack. */
static long resumed_call(const struct prb_thread_state *state, const uint8_t code[PRB_CODE_BEFORE],
			 int memory)
{
	const struct user_regs_struct *r = prb_x86_64_general(state);
	const uint8_t *at = code + PRB_CODE_BEFORE - SYSCALL_BYTES - 5;
	uint32_t number;

	if (r->orig_rax != SYS_restart_syscall)
		return 0;
	memcpy(&number, at + 1, sizeof(number));
	if (at[0] == 0xb8 && at[5] == 0x0f && at[6] == 0x05)
		return number;
	long found = prb_restarted_call_on_stack(r->rip, r->rsp, read_memory, &memory);
	return found > 0 ? found : 0;
}

static struct prb_error *set_syscall(pid_t tid, const struct prb_thread_state *state,
				     uint64_t gadget, const struct prb_return_frame *way_back,
				     long number, const uint64_t arguments[6])
{
	struct user_regs_struct r = *prb_x86_64_general(state);

	r.rip = gadget;
	r.rsp = way_back->next;
	r.rax = (unsigned long long)number;
	r.orig_rax = (unsigned long long)-1;
	r.rdi = arguments[0];
	r.rsi = arguments[1];
	r.rdx = arguments[2];
	r.r10 = arguments[3];
	r.r8 = arguments[4];
	r.r9 = arguments[5];
	if (way_back->next == way_back->store)
		prb_x86_64_set_store(way_back, &r);
	return prb_gpregs_write(tid, &r);
}

static struct prb_error *syscall_result(pid_t tid, int64_t *ret)
{
	struct user_regs_struct r;

	PRB_TRY(prb_gpregs_read(tid, &r));
	*ret = (int64_t)r.rax;
	return NULL;
}

static struct prb_error *set_hijack(pid_t tid, const struct prb_thread_state *state, uint64_t code,
				    uint64_t stack, uint64_t mailbox)
{
	struct user_regs_struct r = *prb_x86_64_general(state);

	r.rip = code;
	r.rsp = stack & ~UINT64_C(15);
	r.rbx = mailbox;
	r.rax = 0;
	r.orig_rax = (unsigned long long)-1;
	r.eflags &= ~UINT64_C(0x400); /* functions expect the direction flag to be clear */
	return prb_gpregs_write(tid, &r);
}

static uint64_t thread_pointer(const struct prb_thread_state *state)
{
	return prb_x86_64_general(state)->fs_base;
}

const struct prb_inject_arch *prb_inject_arch(void)
{
	static const uint8_t syscall_code[] = {0x0f, 0x05, 0xc3};
	static const struct prb_inject_arch arch = {
		.machine = &prb_machine_x86_64,
		.syscall_code = syscall_code,
		.syscall_length = sizeof(syscall_code),
		.find_store = prb_x86_64_find_store,
		.code = prb_x86_64_code,
		.code_end = prb_x86_64_code_end,
		.hijack_code = prb_x86_64_hijack,
		.hijack_end = prb_x86_64_hijack_end,
		.mailbox_register = PRB_X86_64_RBX,
		.thread_code = prb_x86_64_thread,
		.raw_syscall_code = prb_x86_64_raw_syscall,
		.sys_mmap = SYS_mmap,
		.sys_mprotect = SYS_mprotect,
		.sys_munmap = SYS_munmap,
		.sys_memfd_create = SYS_memfd_create,
		.sys_write = SYS_write,
		.breakpoints = true,
		.obstacle = obstacle,
		.save = save,
		.restore_extended = restore_extended,
		.restore_general = restore_general,
		.registers = registers,
		.call = call,
		.resumed_call = resumed_call,
		.frame = prb_x86_64_frame,
		.set_syscall = set_syscall,
		.syscall_result = syscall_result,
		.set_hijack = set_hijack,
		.thread_pointer = thread_pointer,
	};

	return &arch;
}

#endif
