/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifdef __aarch64__

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "injector/arch/aarch64.h"
#include "injector/arch/scratch.h"
#include "target/ptrace/fault_step.h"
#include "target/ptrace/gpregs.h"

/*
 * The code that runs in the target; x19 is the mailbox, whose offsets these are. It works as
 * described in x86_64.c.
 */
__asm__(".pushsection .rodata\n"
	".balign 16\n"
	"prb_aarch64_code:\n"
	"prb_aarch64_hijack:\n"
	"	hint	#34\n" /* bti c */
	"	ldp	x0, x1, [x19, #48]\n"
	"	add	x0, x0, #16, lsl #12\n"
	"	sub	x1, x1, #16, lsl #12\n"
	"	mov	x2, #3\n"   /* PROT_READ | PROT_WRITE */
	"	mov	x8, #226\n" /* mprotect */
	"	svc	#0\n"
	"	cbnz	x0, 3f\n"
	"	add	x0, x19, #24\n"
	"	mov	x1, xzr\n"
	"	ldr	x2, [x19, #120]\n"
	"	mov	x3, x19\n"
	"	mov	x29, xzr\n"
	"	ldr	x16, [x19, #8]\n"
	"	blr	x16\n"
	"	sxtw	x0, w0\n"
	"	str	x0, [x19, #16]\n"
	"	ldr	x1, [x19, #32]\n"
	"	ldr	x2, [x19, #152]\n"
	"	cmp	x0, xzr\n"
	"	csel	x1, x1, x2, eq\n"
	"	mov	sp, x1\n"
	"1:	mov	x0, xzr\n"
	"	mov	x1, xzr\n"
	"	ldr	x2, [x19, #80]\n"
	"	mov	x3, xzr\n"
	"	mov	x4, #8\n"
	"	mov	x8, #73\n" /* ppoll */
	"	ldr	x30, [x19, #72]\n"
	"	ldr	x16, [x19, #160]\n"
	"	ldr	x5, [x2, #16]\n"
	"	cbnz	x5, 2f\n"
	"	add	x5, x19, #4\n"
	"	mov	w6, #1\n"
	"	stlr	w6, [x5]\n"
	"2:	ret	x16\n" /* no jump, which would have to meet a bti */
	"3:	ldr	x1, [x19, #152]\n"
	"	ldr	x2, [x19, #80]\n"
	"	mov	sp, x1\n"
	"	str	x0, [x2, #16]\n"
	"	b	1b\n"
	"prb_aarch64_hijack_end:\n"
	"	.balign 16\n"
	"prb_aarch64_thread:\n"
	"	hint	#34\n"
	"	stp	x29, x30, [sp, #-32]!\n"
	"	stp	x19, x20, [sp, #16]\n"
	"	mov	x29, sp\n"
	"	mov	x19, x0\n"
	"	mov	x0, #29\n" /* prctl(PR_SET_TIMERSLACK, 1): sleeps as short as asked for */
	"	mov	x1, #1\n"
	"	mov	x8, #167\n"
	"	svc	#0\n"
	"	ldr	x16, [x19, #136]\n"
	"	blr	x16\n"
	"	ldr	x16, [x19, #144]\n"
	"	blr	x16\n"
	"	mov	x8, #178\n" /* gettid: from here on it is in this code only */
	"	svc	#0\n"
	"	str	x0, [x19, #128]\n"
	"	mov	w20, wzr\n"
	"1:	ldar	w0, [x19]\n"
	"	cmp	w0, #1\n"
	"	b.eq	3f\n"
	"	cmp	w0, #3\n"
	"	b.eq	4f\n"
	"	add	w20, w20, #1\n"
	"	mov	w1, #1000\n"
	"	cmp	w20, w1\n"
	"	b.hi	4f\n"
	"	add	x0, x19, #88\n"
	"	mov	w1, #500\n"
	"	cmp	w20, w1\n"
	"	b.ls	2f\n"
	"	add	x0, x19, #104\n"
	"2:	mov	x1, xzr\n"
	"	mov	x8, #101\n" /* nanosleep */
	"	svc	#0\n"
	"	b	1b\n"
	"3:	add	x20, x19, #168\n"
	"7:	ldp	x0, x1, [x20, #8]\n"
	"	ldp	x2, x3, [x20, #24]\n"
	"	ldp	x4, x5, [x20, #40]\n"
	"	ldr	x16, [x20]\n"
	"	blr	x16\n"
	"	ldp	x1, x2, [x20, #64]\n"
	"	ldp	x3, x4, [x20, #80]\n"
	"	str	x0, [x20, #56]\n"
	"	str	x0, [x1]\n"
	"	str	x0, [x2]\n"
	"	orr	x0, x0, x3\n"
	"	cmp	x0, xzr\n"
	"	csel	x20, xzr, x4, eq\n"
	"	cbnz	x20, 7b\n"
	"	mov	w1, #2\n"
	"	stlr	w1, [x19]\n"
	"	b	1b\n"
	"4:	ldr	x0, [x19, #64]\n"
	"	tbnz	x0, #63, 5f\n"
	"	mov	x8, #57\n" /* close */
	"	svc	#0\n"
	"5:	add	x2, x19, #4\n"
	"	ldar	w3, [x2]\n"
	"	ldr	x0, [x19, #48]\n"
	"	ldr	x1, [x19, #56]\n"
	"	ldr	x16, [x19, #40]\n"
	"	ldp	x19, x20, [sp, #16]\n"
	"	ldp	x29, x30, [sp], #32\n"
	"	cmp	w3, #1\n"
	"	b.ne	6f\n"
	"	br	x16\n"
	"6:	mov	x0, xzr\n"
	"	ret\n"
	"	.balign 16\n"
	"prb_aarch64_raw_syscall:\n"
	"	hint	#34\n"
	"	mov	x8, x0\n"
	"	mov	x0, x1\n"
	"	mov	x1, x2\n"
	"	mov	x2, x3\n"
	"	mov	x3, x4\n"
	"	mov	x4, x5\n"
	"	mov	x5, xzr\n"
	"	svc	#0\n"
	"	ret\n"
	"prb_aarch64_code_end:\n"
	".popsection\n");

extern const uint8_t prb_aarch64_code[], prb_aarch64_hijack[], prb_aarch64_hijack_end[],
	prb_aarch64_thread[], prb_aarch64_raw_syscall[], prb_aarch64_code_end[];

_Static_assert(PRB_SCRATCH_CODE == 16 << 12, "as the code has it");

enum {
	MAILBOX = 19, /* what the code above has the mailbox in */
	INSTRUCTION = 4,
};

static const uint32_t code_svc = 0xd4000001;	     /* svc #0 */
static const uint32_t code_number = 0xd2800008;	     /* mov x8, #0 */
static const uint32_t code_number_mask = 0xffe0001f; /* all but that number */

/* Regsets by their numbers: headers of older systems lack some. */
enum { TLS = 0x401, SVE = 0x405, STREAMING = 0x40b, MATRIX = 0x40c, SHADOW_STACK = 0x410 };

static struct prb_error *save_vectors(pid_t tid, struct prb_thread_state *ret)
{
	struct prb_aarch64_vectors *v = prb_aarch64_vectors(ret);
	const size_t most = sizeof(ret->extended) - offsetof(struct prb_aarch64_vectors, scalable);
	struct iovec io = {&v->simd, sizeof(v->simd)};

	if (ptrace(PTRACE_GETREGSET, tid, NT_FPREGSET, &io))
		return prb_error_os(errno, "cannot read the vector registers of thread %d", tid);
	ret->extended_size = offsetof(struct prb_aarch64_vectors, scalable);
	v->scalable = (struct prb_aarch64_scalable){};
	io = (struct iovec){&v->scalable, most};
	if (ptrace(PTRACE_GETREGSET, tid, SVE, &io))
		return NULL; /* a machine without them */
	if (io.iov_len < sizeof(v->scalable) || v->scalable.size > most)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"thread %d has %zu bytes of vector registers", tid,
					io.iov_len);
	ret->extended_size += v->scalable.size;
	return NULL;
}

static struct prb_error *save(pid_t tid, struct prb_thread_state *ret)
{
	struct prb_aarch64_general *g = prb_aarch64_general(ret);
	struct iovec io = {&g->tls, sizeof(g->tls)};

	PRB_TRY(prb_gpregs_read(tid, &g->regs));
	if (ptrace(PTRACE_GETREGSET, tid, TLS, &io))
		return prb_error_os(errno, "cannot read the thread pointer of thread %d", tid);

	errno = 0;
	long code = ptrace(PTRACE_PEEKTEXT, tid, g->regs.pc - INSTRUCTION, NULL);
	if (errno)
		code = 0; /* at the beginning of a mapping, say: it makes no call */
	memcpy(g->code, &code, sizeof(g->code));
	return save_vectors(tid, ret);
}

static struct prb_error *restore_extended(pid_t tid, const struct prb_thread_state *state)
{
	struct prb_aarch64_vectors *v = prb_aarch64_vectors(state);
	struct iovec io = {&v->simd, sizeof(v->simd)};
	bool scalable = v->scalable.size;

	if (scalable)
		io = (struct iovec){&v->scalable, v->scalable.size};
	prb_fault_step();
	if (ptrace(PTRACE_SETREGSET, tid, scalable ? SVE : NT_FPREGSET, &io))
		return prb_error_os(errno, "cannot set the vector registers of thread %d", tid);
	return NULL;
}

static struct prb_error *restore_general(pid_t tid, const struct prb_thread_state *state)
{
	struct user_regs_struct r = prb_aarch64_general(state)->regs;

	if (state->resumed)
		r.regs[PRB_AARCH64_NUMBER] = SYS_restart_syscall;
	return prb_gpregs_write(tid, &r);
}

static void registers(const struct prb_thread_state *state, struct prb_regs *ret)
{
	const struct user_regs_struct *r = &prb_aarch64_general(state)->regs;

	*ret = (struct prb_regs){.machine = EM_AARCH64, .pc = r->pc};
	for (unsigned i = 0; i <= PRB_AARCH64_LINK; i++)
		prb_regs_set(ret, i, r->regs[i]);
	prb_regs_set(ret, PRB_REG_AARCH64_SP, r->sp);
}

static bool has_regset(pid_t tid, int which, struct prb_aarch64_scalable *header)
{
	struct iovec io = {header, sizeof(*header)};

	*header = (struct prb_aarch64_scalable){};
	return !ptrace(PTRACE_GETREGSET, tid, which, &io);
}

static const char *obstacle(pid_t tid, const struct prb_thread_state *state)
{
	struct prb_aarch64_scalable header;
	uint64_t shadow[3] = {};
	struct iovec io = {shadow, sizeof(shadow)};

	(void)state;
	if ((has_regset(tid, STREAMING, &header) && header.flags & PRB_AARCH64_LONG) ||
	    (has_regset(tid, MATRIX, &header) && header.size > sizeof(header)))
		return "it uses the matrix registers (SME)";
	if (!ptrace(PTRACE_GETREGSET, tid, SHADOW_STACK, &io) && shadow[0] & 1)
		return "it has a shadow stack (GCS)";
	return NULL;
}

/*
 * When a stopped thread is seen, the kernel has set it back already to the instruction of a call
 * that it will repeat, with all arguments.
 */
static bool at_call(const struct prb_thread_state *state)
{
	return prb_aarch64_general(state)->code[1] == code_svc;
}

static long call(const struct prb_thread_state *state, uint64_t arguments[6])
{
	const struct prb_aarch64_general *g = prb_aarch64_general(state);
	bool interrupted = g->code[0] == code_svc && (int64_t)g->regs.regs[0] == -EINTR;

	memcpy(arguments, g->regs.regs, 6 * sizeof(*arguments));
	return at_call(state) || interrupted ? (long)g->regs.regs[PRB_AARCH64_NUMBER] : -1;
}

/* Calls for which the kernel notes the remaining time. */
static long resumable_call(const struct prb_thread_state *state)
{
	const struct user_regs_struct *r = &prb_aarch64_general(state)->regs;

	if (!at_call(state))
		return 0;
	switch (r->regs[PRB_AARCH64_NUMBER]) {
	case SYS_nanosleep:
		return SYS_nanosleep;
	case SYS_clock_nanosleep:
		return r->regs[1] & TIMER_ABSTIME ? 0 : SYS_clock_nanosleep;
	case SYS_futex:
		return (r->regs[1] & FUTEX_CMD_MASK) == FUTEX_WAIT && r->regs[3] ? SYS_futex : 0;
	}
	return 0;
}

/* Compilers mostly put the number just before: mov x8, #PRB_AARCH64_NUMBER; svc #0. */
static long resumed_call(const struct prb_thread_state *state, const uint8_t code[PRB_CODE_BEFORE],
			 int memory)
{
	(void)memory;
	if (!at_call(state) ||
	    prb_aarch64_general(state)->regs.regs[PRB_AARCH64_NUMBER] != SYS_restart_syscall)
		return 0;
	for (size_t at = PRB_CODE_BEFORE; at >= INSTRUCTION; at -= INSTRUCTION) {
		uint32_t instruction;

		memcpy(&instruction, code + at - INSTRUCTION, sizeof(instruction));
		if ((instruction & code_number_mask) == code_number)
			return (instruction & ~code_number_mask) >> 5;
	}
	return SYS_restart_syscall;
}

static struct user_regs_struct redirected(const struct prb_thread_state *state, uint64_t pc,
					  uint64_t sp)
{
	struct user_regs_struct r = prb_aarch64_general(state)->regs;

	r.pc = pc;
	r.sp = sp;
	r.pstate = prb_aarch64_plain(r.pstate);
	return r;
}

static struct prb_error *set_syscall(pid_t tid, const struct prb_thread_state *state,
				     uint64_t gadget, const struct prb_return_frame *way_back,
				     long number, const uint64_t arguments[6])
{
	struct user_regs_struct r = redirected(state, gadget, way_back->next);
	const struct prb_store_code *store = &way_back->store_code;

	memcpy(r.regs, arguments, 6 * sizeof(*arguments));
	r.regs[PRB_AARCH64_NUMBER] = (unsigned long long)number;
	r.regs[PRB_AARCH64_LINK] = way_back->trampoline;
	if (way_back->next == way_back->store) {
		r.regs[PRB_AARCH64_LINK] = store->address;
		r.regs[store->base] = way_back->slot - (uint64_t)store->offset;
	}
	return prb_gpregs_write(tid, &r);
}

static struct prb_error *syscall_result(pid_t tid, int64_t *ret)
{
	struct user_regs_struct r;

	PRB_TRY(prb_gpregs_read(tid, &r));
	*ret = (int64_t)r.regs[0];
	return NULL;
}

static struct prb_error *set_hijack(pid_t tid, const struct prb_thread_state *state, uint64_t code,
				    uint64_t stack, uint64_t mailbox)
{
	struct user_regs_struct r = redirected(state, code, stack & ~UINT64_C(15));

	r.regs[0] = 0;
	r.regs[MAILBOX] = mailbox;
	r.regs[PRB_AARCH64_LINK] = 0;
	return prb_gpregs_write(tid, &r);
}

static uint64_t thread_pointer(const struct prb_thread_state *state)
{
	return prb_aarch64_general(state)->tls;
}

const struct prb_inject_arch *prb_inject_arch(void)
{
	/*
	 * getuid(): no thread of the program ever sleeps in it. (A thread that is moved away from a
	 * sleeping call must not be moved to the same instruction: if the kernel resumes that call,
	 * it would take the instruction for the resumed call. It does not resume the hijacked
	 * thread's ppoll().)
	 */
	static const uint32_t syscall_code[] = {0xd28015c8, 0xd4000001, 0xd65f03c0};
	static const struct prb_inject_arch arch = {
		.machine = &prb_machine_aarch64,
		.syscall_code = (const uint8_t *)syscall_code,
		.syscall_length = sizeof(syscall_code),
		.syscall_offset = INSTRUCTION,
		.find_store = prb_aarch64_find_store,
		.code = prb_aarch64_code,
		.code_end = prb_aarch64_code_end,
		.hijack_code = prb_aarch64_hijack,
		.hijack_end = prb_aarch64_hijack_end,
		.mailbox_register = MAILBOX,
		.thread_code = prb_aarch64_thread,
		.raw_syscall_code = prb_aarch64_raw_syscall,
		.sys_mmap = SYS_mmap,
		.sys_mprotect = SYS_mprotect,
		.sys_munmap = SYS_munmap,
		.sys_memfd_create = SYS_memfd_create,
		.sys_write = SYS_write,
		.obstacle = obstacle,
		.save = save,
		.restore_extended = restore_extended,
		.restore_general = restore_general,
		.registers = registers,
		.call = call,
		.resumable_call = resumable_call,
		.resumed_call = resumed_call,
		.frame = prb_aarch64_frame,
		.set_syscall = set_syscall,
		.syscall_result = syscall_result,
		.set_hijack = set_hijack,
		.thread_pointer = thread_pointer,
	};

	return &arch;
}

#endif
