/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The handlers of crash records: installing them, and what they do on the thread that crashed. */
#include "agent/crash/crash.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "agent/crash/private.h"
#include "agent/inside/python_table.h"

enum {
	SIGNALS = 65,
	SIGSET_BYTES = 8,
	DEFAULT_SIZE = 64 << 20,
	DEFAULT_COUNT = 16,
	MEMORY_MS = 600,  /* for choosing pages */
	HELPER_MS = 5000, /* for all of it, on a machine that is very busy */
	SECOND_MS = 8000, /* another thread that crashes waits for the first */
	NAP_MS = 2,
	RECORDS = 4, /* of exceptions, for one process */
};

static const int crashes[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGFPE};
enum { CRASHES = sizeof(crashes) / sizeof(*crashes) };

static struct prba_crash *crash; /* NULL until the first start; never unmapped */
static struct sigaction before[SIGNALS];
static atomic_bool on, installed[SIGNALS];
static _Atomic uint32_t busy; /* the thread that records */
static _Atomic uint32_t done; /* a crash was recorded: this process dies */
static _Atomic int exceptions;

/* ---- on the thread that crashes: nothing but system calls ---- */

static void copy_registers(const ucontext_t *context)
{
	elf_gregset_t *to = &crash->registers;
#if defined(__x86_64__)
	/* In the order of user_regs_struct. */
	static const int from[] = {REG_R15, REG_R14, REG_R13, REG_R12, REG_RBP, REG_RBX, REG_R11,
				   REG_R10, REG_R9,  REG_R8,  REG_RAX, REG_RCX, REG_RDX, REG_RSI,
				   REG_RDI, -1,	     REG_RIP, -2,      REG_EFL, REG_RSP};
	const greg_t *regs = context->uc_mcontext.gregs;
	enum { FS_BASE = 21, CODE_BITS = 16, GET_FS = 0x1003 };
	unsigned long base = 0;

	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++)
		(*to)[i] = from[i] == -1   ? (unsigned long long)-1
			   : from[i] == -2 ? (unsigned long long)regs[REG_CSGSFS] & 0xffff
					   : (unsigned long long)regs[from[i]];
	prba_raw(SYS_arch_prctl, GET_FS, &base);
	(*to)[FS_BASE] = base;
#else
	const mcontext_t *regs = &context->uc_mcontext;

	for (size_t i = 0; i < 31; i++)
		(*to)[i] = regs->regs[i];
	(*to)[31] = regs->sp;
	(*to)[32] = regs->pc;
	(*to)[33] = regs->pstate;
#endif
}

/** Of the caller, which waits until the record is written. */
static inline __attribute__((always_inline)) void take_registers(void)
{
	elf_gregset_t *to = &crash->registers;

	memset(to, 0, sizeof(*to));
#if defined(__x86_64__)
	__asm__ volatile("movq %%r15, 0(%0)\n\tmovq %%r14, 8(%0)\n\tmovq %%r13, 16(%0)\n\t"
			 "movq %%r12, 24(%0)\n\tmovq %%rbp, 32(%0)\n\tmovq %%rbx, 40(%0)\n\t"
			 "leaq 0(%%rip), %%rax\n\tmovq %%rax, 128(%0)\n\tmovq %%rsp, 152(%0)"
			 :
			 : "r"(to)
			 : "rax", "memory");
	(*to)[15] = (elf_greg_t)-1; /* in no system call */
#else
	__asm__ volatile("stp x19, x20, [%0, #152]\n\tstp x21, x22, [%0, #168]\n\t"
			 "stp x23, x24, [%0, #184]\n\tstp x25, x26, [%0, #200]\n\t"
			 "stp x27, x28, [%0, #216]\n\tstp x29, x30, [%0, #232]\n\t"
			 "mov x9, sp\n\tadr x10, .\n\tstp x9, x10, [%0, #248]"
			 :
			 : "r"(to)
			 : "x9", "x10", "memory");
#endif
}

static void nap(_Atomic uint32_t *word, uint32_t value, long ms)
{
	struct timespec timeout = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

	prba_raw(SYS_futex, word, FUTEX_WAIT, value, &timeout);
}

/** Waits until the helper has ended; kills it when its time is over. */
static void wait_for_helper(int pid)
{
	int64_t deadline = prba_crash_clock() + HELPER_MS * 1000000LL;
	uint32_t running;

	while ((running = __atomic_load_n((uint32_t *)&crash->helper, __ATOMIC_SEQ_CST))) {
		if (__atomic_load_n((uint32_t *)&crash->asks, __ATOMIC_SEQ_CST) &&
		    !__atomic_exchange_n((uint32_t *)&crash->answered, 1, __ATOMIC_SEQ_CST)) {
			/* Yama lets it trace us if we say so. A process that goes on keeps what it
			 * has said itself. */
			if (crash->signal)
				prba_raw(SYS_prctl, PR_SET_PTRACER, pid);
			prba_raw(SYS_futex, &crash->answered, FUTEX_WAKE, 1L);
		}
		if (prba_crash_clock() > deadline) {
			prba_raw(SYS_kill, pid, SIGKILL);
			break;
		}
		nap(&crash->helper, running, NAP_MS);
	}
	while (prba_raw(SYS_wait4, pid, 0L, __WALL, 0L) == -EINTR)
		;
}

static void clear(void)
{
	crash->thread_count = crash->map_count = crash->run_count = crash->page_count = 0;
	crash->failed = 0;
	crash->left_out = 0;
	crash->unreached = 0;
	for (size_t i = 0; i < sizeof(crash->places) / sizeof(*crash->places); i++)
		if (crash->places[i])
			crash->places[i] = 0;
	atomic_store(&crash->asks, 0);
	atomic_store(&crash->answered, 0);
	atomic_store(&crash->written, 0);
}

/** prba_crash_write() on the helper's stack: a signal handler's own stack may be small. */
static void write_here(void)
{
	char *top = crash->stack + sizeof(crash->stack);
#if defined(__x86_64__)
	void *argument = crash;

	__asm__ volatile("movq %%rsp, %%rbx\n\tmovq %1, %%rsp\n\tcall *%2\n\tmovq %%rbx, %%rsp"
			 : "+D"(argument)
			 : "r"(top), "r"(prba_crash_write)
			 : "rbx", "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "memory",
			   "cc");
#else
	register void *argument __asm__("x0") = crash;

	__asm__ volatile("mov x19, sp\n\tmov sp, %1\n\tblr %2\n\tmov sp, x19"
			 : "+r"(argument)
			 : "r"(top), "r"(prba_crash_write)
			 : "x19", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10",
			   "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x30", "memory", "cc");
#endif
}

/** One attempt: true if the record was written. */
static bool attempt(bool traces)
{
	long pid;

	clear();
	crash->traces = traces;
	crash->own_files = true;
	atomic_store(&crash->helper, 1);
	pid = clone(prba_crash_write, crash->stack + sizeof(crash->stack),
		    CLONE_VM | CLONE_FS | CLONE_UNTRACED | CLONE_CHILD_CLEARTID, crash, NULL, NULL,
		    &crash->helper);
	if (pid > 0) {
		wait_for_helper((int)pid);
	} else {
		crash->own_files = false;
		crash->traces = false;
		write_here();
	}
	return atomic_load(&crash->written);
}

/** The caller has made itself `busy`, and has said in `crash` what for. */
static bool record(void)
{
	struct timespec now = {};

	prba_raw(SYS_clock_gettime, CLOCK_REALTIME, &now);
	crash->pid = (int32_t)prba_raw(SYS_getpid);
	crash->tid = (int32_t)prba_raw(SYS_gettid);
	crash->seconds = now.tv_sec;
	crash->microseconds = now.tv_nsec / 1000;
	crash->deadline = prba_crash_clock() + MEMORY_MS * 1000000LL;
	if (attempt(true))
		return true;
	/* A filter of system calls may have killed it. */
	crash->deadline = prba_crash_clock() + MEMORY_MS * 1000000LL;
	return attempt(false);
}

static void say(struct prba_text *t)
{
	prba_raw(SYS_write, STDERR_FILENO, t->data, t->used);
}

static const char *signal_name(int signal)
{
	switch (signal) {
	case SIGSEGV:
		return "SIGSEGV";
	case SIGBUS:
		return "SIGBUS";
	case SIGABRT:
		return "SIGABRT";
	case SIGILL:
		return "SIGILL";
	default:
		return "SIGFPE";
	}
}

static void tell(bool written)
{
	struct prba_text t = {crash->said, 0, sizeof(crash->said)};

	prba_text_puts(&t, "probing: ");
	prba_text_puts(&t, crash->signal ? signal_name(crash->signal) : "uncaught exception");
	prba_text_puts(&t, " in process ");
	prba_text_number(&t, (uint64_t)crash->pid);
	if (written) {
		prba_text_puts(&t, ": crash record ");
		prba_text_puts(&t, crash->folder);
		prba_text_puts(&t, "/");
		prba_text_puts(&t, crash->name);
	} else {
		prba_text_puts(&t, ": no crash record could be written: error ");
		prba_text_number(&t, (uint64_t)-crash->failed);
	}
	prba_text_puts(&t, "\n");
	say(&t);
}

/** For a debugger or a person. Signals that the program does not block end it, or are handled. */
static void hold(const ucontext_t *context, int signal)
{
	int64_t until = prba_crash_clock() + (int64_t)crash->hold_ms * 1000000;
	uint64_t blocked;
	char text[256];
	struct prba_text t = {text, 0, sizeof(text)};

	if (!crash->hold_ms)
		return;
	prba_text_puts(&t, "probing: process ");
	prba_text_number(&t, (uint64_t)crash->pid);
	prba_text_puts(&t, " is held for ");
	prba_text_number(&t, crash->hold_ms / 1000);
	prba_text_puts(&t, " s before it ends\n");
	say(&t);
	memcpy(&blocked, &context->uc_sigmask, sizeof(blocked));
	blocked |= 1ull << (signal - 1);
	prba_raw(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, 0L, (long)SIGSET_BYTES);
	for (int64_t now; (now = prba_crash_clock()) < until;) {
		struct timespec left = {.tv_sec = (until - now) / 1000000000,
					.tv_nsec = (until - now) % 1000000000};

		prba_raw(SYS_nanosleep, &left, 0L);
	}
}

/**
 * Passes the signal to the previous handler: the instruction is run again, or the signal is sent
 * again.
 */
static void pass_on(int signal, siginfo_t *info)
{
	sigaction(signal, &before[signal], NULL);
	if (info->si_code <= 0)
		prba_raw(SYS_rt_tgsigqueueinfo, prba_raw(SYS_getpid), prba_raw(SYS_gettid), signal,
			 info);
}

static void crashed(int signal, siginfo_t *info, void *context)
{
	uint32_t tid = (uint32_t)prba_raw(SYS_gettid), nobody = 0;
	int error = errno;
	bool written;

	if (info->si_code <= 0 && before[signal].sa_handler == SIG_IGN)
		return;
	if (!atomic_compare_exchange_strong(&busy, &nobody, tid)) {
		/* Another thread records, and then dies; or we crashed while we did. */
		if (nobody != tid && !atomic_load(&done))
			nap(&done, 0, SECOND_MS);
	} else if (!atomic_load(&done)) {
		crash->signal = signal;
		crash->info = *info;
		crash->words = NULL;
		copy_registers(context);
		written = record();
		tell(written);
		hold(context, signal);
		atomic_store(&done, 1);
		prba_raw(SYS_futex, &done, FUTEX_WAKE, (long)SIGNALS);
		atomic_store(&busy, 0);
	}
	pass_on(signal, info);
	errno = error;
}

/* ---- in a process that goes on ---- */

int prba_crash_record(const char *text, size_t length)
{
	uint32_t tid = (uint32_t)prba_raw(SYS_gettid), nobody = 0;
	uint64_t all = ~0ull, blocked = 0;
	bool written;

	if (!atomic_load(&on))
		return -ENODEV;
	if (atomic_load(&exceptions) >= RECORDS ||
	    !atomic_compare_exchange_strong(&busy, &nobody, tid))
		return -EBUSY;
	atomic_fetch_add(&exceptions, 1);
	prba_raw(SYS_rt_sigprocmask, SIG_SETMASK, &all, &blocked, (long)SIGSET_BYTES);
	crash->signal = 0;
	take_registers();
	crash->words = text;
	crash->words_length = length > PRBA_CRASH_WORDS ? PRBA_CRASH_WORDS : length;
	written = record();
	tell(written);
	atomic_store(&busy, 0);
	prba_raw(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, 0L, (long)SIGSET_BYTES);
	return written ? 0 : crash->failed ? crash->failed : -EIO;
}

static bool take_number(const char *value, uint64_t least, uint64_t most, uint64_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoull(value, &end, 10);
	return !errno && *value >= '0' && *value <= '9' && (!*end || *end == '\n') &&
	       *ret >= least && *ret <= most;
}

/** One word "key=value" of the configuration. */
static bool take_word(const char *word, char folder[PRBA_CRASH_PATH])
{
	enum { DAY_MS = 86400000 };
	const struct {
		const char *key;
		uint64_t least, most, *place;
	} numbers[] = {
		{"hold=", 0, DAY_MS, &crash->hold_ms},
		{"size=", 16 << 20, 1 << 30, &crash->max_bytes},
		{"count=", 1, 1000, &crash->max_files},
	};
	size_t length;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (prba_text_begins(word, numbers[i].key))
			return take_number(word + strlen(numbers[i].key), numbers[i].least,
					   numbers[i].most, numbers[i].place);
	if (!prba_text_begins(word, "folder="))
		return false;
	word += strlen("folder=");
	length = strcspn(word, "\n");
	if (length >= PRBA_CRASH_PATH)
		return false;
	memcpy(folder, word, length);
	folder[length] = '\0';
	return true;
}

static bool take_config(const char *config, char folder[PRBA_CRASH_PATH])
{
	if (!crash)
		return false;
	for (const char *word = config ? config : ""; *word;) {
		if (*word != '\n' && !take_word(word, folder))
			return false;
		word += strcspn(word, "\n");
		word += *word == '\n';
	}
	return true;
}

static int prepare(void)
{
	void *memory;

	if (crash)
		return 0;
	memory = mmap(NULL, sizeof(*crash), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	/* A mapping beside it must not become one with it: see is_wanted(). */
	madvise(memory, sizeof(*crash), MADV_DONTDUMP);
	crash = memory;
	crash->max_bytes = DEFAULT_SIZE;
	crash->max_files = DEFAULT_COUNT;
	return 0;
}

static bool is_ours(int signal)
{
	struct sigaction now;

	return !sigaction(signal, NULL, &now) && now.sa_flags & SA_SIGINFO &&
	       now.sa_sigaction == crashed;
}

static void install(int signal)
{
	struct sigaction action = {.sa_sigaction = crashed, .sa_flags = SA_SIGINFO | SA_ONSTACK};

	if (is_ours(signal))
		return;
	sigfillset(&action.sa_mask);
	if (!sigaction(signal, &action, &before[signal]))
		atomic_store(&installed[signal], true);
}

static int start(const char *config, char ret[PRBA_CRASH_PATH])
{
	char folder[PRBA_CRASH_PATH] = "";
	int rc = prepare();

	if (rc)
		return rc;
	if (!take_config(config, folder))
		return -EINVAL;
	rc = prba_crash_find_folder(folder, ret);
	if (rc)
		return rc;
	memcpy(crash->folder, ret, PRBA_CRASH_PATH);
	crash->own = (uintptr_t)prba_crash_start;
	crash->python = (uintptr_t)prba_python.Py_IsInitialized;
	atomic_store(&on, true);
	for (size_t i = 0; i < CRASHES; i++)
		install(crashes[i]);
	if (prba_python.Py_IsInitialized)
		prba_crash_prepare_main();
	return 0;
}

int prba_crash_start(const char *config, char ret[PRBA_CRASH_PATH])
{
	static atomic_flag starting = ATOMIC_FLAG_INIT;
	int rc;

	if (atomic_flag_test_and_set(&starting))
		return -EBUSY;
	rc = start(config, ret);
	atomic_flag_clear(&starting);
	return rc;
}

bool prba_crash_stop(void)
{
	if (!crash)
		return true;
	atomic_store(&on, false);
	prba_crash_leave_main();
	for (size_t i = 0; i < CRASHES; i++) {
		int signal = crashes[i];

		if (atomic_load(&installed[signal]) && is_ours(signal)) {
			sigaction(signal, &before[signal], NULL);
			atomic_store(&installed[signal], false);
		}
	}
	/* Objects of ours are in sys, and a handler of the program may know ours. */
	return false;
}

const char *prba_crash_folder(void)
{
	return atomic_load(&on) ? crash->folder : NULL;
}

void prba_crash_forked(void)
{
	atomic_store(&busy, 0);
	atomic_store(&done, 0);
	atomic_store(&exceptions, 0);
}
