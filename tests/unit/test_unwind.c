/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The unwinder on live processes: this one, compared with glibc's backtrace(), and sleeping
 * children. The expected stack always has an independent source.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/elf/module.h"
#include "target/mem/view.h"
#include "target/target.h"
#include "dwarf/unwind/unwind.h"
#include "tests/unit/in_range.h"
#include "tests/unit/skip.h"

enum { MAX_FRAMES = 200 };

#define NOINLINE __attribute__((noinline))

struct walk {
	uint64_t pc[MAX_FRAMES];
	bool signal[MAX_FRAMES]; /* the frame is a signal trampoline */
	size_t count;
	bool end;
	char reason[256]; /* "" for a complete stack */
};

struct fixture {
	struct prb_target *target;
	struct prb_modules *modules;
	struct prb_unwinder *unwinder;
};

static struct fixture self;

static void open_fixture(struct fixture *f, pid_t pid)
{
	assert_null(prb_target_open_process(pid, &f->target));
	assert_null(prb_modules_create(f->target, &f->modules));
	assert_null(prb_unwinder_create(f->modules, &f->unwinder));
}

static void close_fixture(struct fixture *f)
{
	prb_unwinder_destroy(f->unwinder);
	prb_modules_destroy(f->modules);
	prb_target_destroy(f->target);
}

/* glibc's own function: a sanitizer's wrapper adds a frame. */
static int (*real_backtrace)(void **, int);

static int set_up(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);

	(void)state;
	assert_non_null(libc);
	real_backtrace = (int (*)(void **, int))dlsym(libc, "backtrace");
	open_fixture(&self, getpid());
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close_fixture(&self);
	return 0;
}

/* True if @pc lies in the function @name (or a copy that the compiler made of it). */
static bool lies_in(struct fixture *f, uint64_t pc, const char *name)
{
	prb_auto_str struct prb_str symbol = {};
	struct prb_module *module = prb_modules_find(f->modules, pc);

	struct prb_error *err = module ? prb_module_symbol_at(module, pc, &symbol, NULL) : NULL;

	prb_error_destroy(err);
	return strncmp(prb_str_text(&symbol), name, strlen(name)) == 0;
}

static void walk_from(struct fixture *f, struct prb_mem *mem, struct prb_regs *regs,
		      struct walk *walk)
{
	struct prb_unwind_step step;
	bool exact = true;

	memset(walk, 0, sizeof(*walk));
	while (walk->count < MAX_FRAMES) {
		walk->pc[walk->count] = regs->pc;
		assert_null(prb_unwind_step(f->unwinder, mem, exact, regs, &step));
		walk->signal[walk->count++] = step.signal_frame;
		if (step.end || step.reason) {
			assert_true(!step.end || !step.reason);
			walk->end = step.end;
			snprintf(walk->reason, sizeof(walk->reason), "%s",
				 step.reason ? step.reason : "");
			return;
		}
		exact = step.signal_frame;
	}
}

#if defined(__x86_64__)
static void regs_from_context(const ucontext_t *context, struct prb_regs *regs)
{
	static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				    REG_RBP, REG_RSP, REG_R8,  REG_R9,	REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15};

	*regs = (struct prb_regs){.machine = EM_X86_64};
	for (unsigned i = 0; i < 16; i++)
		prb_regs_set(regs, i, (uint64_t)context->uc_mcontext.gregs[order[i]]);
	regs->pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
}

static void regs_from_ptrace(pid_t pid, struct prb_regs *regs)
{
	struct user_regs_struct user;
	unsigned long long *values[] = {&user.rax, &user.rdx, &user.rcx, &user.rbx,
					&user.rsi, &user.rdi, &user.rbp, &user.rsp,
					&user.r8,  &user.r9,  &user.r10, &user.r11,
					&user.r12, &user.r13, &user.r14, &user.r15};

	assert_int_equal(ptrace(PTRACE_GETREGS, pid, NULL, &user), 0);
	*regs = (struct prb_regs){.machine = EM_X86_64};
	for (unsigned i = 0; i < 16; i++)
		prb_regs_set(regs, i, *values[i]);
	regs->pc = user.rip;
}
#else
static void regs_from_context(const ucontext_t *context, struct prb_regs *regs)
{
	*regs = (struct prb_regs){.machine = EM_AARCH64};
	for (unsigned i = 0; i < 31; i++)
		prb_regs_set(regs, i, context->uc_mcontext.regs[i]);
	prb_regs_set(regs, PRB_REG_AARCH64_SP, context->uc_mcontext.sp);
	regs->pc = context->uc_mcontext.pc;
}

static void regs_from_ptrace(pid_t pid, struct prb_regs *regs)
{
	struct user_regs_struct user;
	struct iovec iov = {&user, sizeof(user)};

	assert_int_equal(ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &iov), 0);
	*regs = (struct prb_regs){.machine = EM_AARCH64};
	for (unsigned i = 0; i < 31; i++)
		prb_regs_set(regs, i, user.regs[i]);
	prb_regs_set(regs, PRB_REG_AARCH64_SP, user.sp);
	regs->pc = user.pc;
}
#endif

/* Two views of one stack, taken in one function. */
struct pair {
	struct walk ours;
	void *theirs[MAX_FRAMES];
	int theirs_count;
};

/*
 * Registers of the caller of take(): those that getcontext() saves do not change until both are
 * done.
 */
#define TAKE(pair)                                                                 \
	do {                                                                       \
		struct prb_regs take_regs;                                         \
		ucontext_t take_context;                                           \
		(pair)->theirs_count = real_backtrace((pair)->theirs, MAX_FRAMES); \
		getcontext(&take_context);                                         \
		regs_from_context(&take_context, &take_regs);                      \
		walk_from(&self, self.target->mem, &take_regs, &(pair)->ours);     \
	} while (0)

/* All frames but the innermost, whose pc has moved between the two calls, must agree. */
static void check_pair(const struct pair *pair)
{
	const struct walk *ours = &pair->ours;

	if (!ours->end)
		fail_msg("the walk stopped after %zu frames: %s", ours->count, ours->reason);
	/* glibc's outermost frame is our last one. */
	assert_int_equal(ours->count, pair->theirs_count);
	for (size_t i = 1; i < ours->count; i++)
		assert_int_equal(ours->pc[i], (uint64_t)(uintptr_t)pair->theirs[i]);
}

static NOINLINE int nested(int depth, struct pair *pair)
{
	volatile char frame[64 + depth];

	memset((char *)frame, 0, sizeof(frame));
	if (depth > 0)
		return nested(depth - 1, pair) + frame[depth];
	TAKE(pair);
	return frame[0];
}

static void test_nested(void **state)
{
	static struct pair pair;

	(void)state;
	nested(40, &pair);
	check_pair(&pair);
	assert_true(pair.ours.count > 42);
}

static struct pair in_thread;

static void *thread_main(void *arg)
{
	nested(5, arg);
	return NULL;
}

static void test_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, thread_main, &in_thread), 0);
	pthread_join(thread, NULL);
	check_pair(&in_thread);
	assert_uint_in_range(in_thread.ours.count, 9, 10);
}

static struct pair in_handler;

static void handler(int number)
{
	(void)number;
	TAKE(&in_handler);
}

static NOINLINE int raises(volatile int *depth)
{
	if (--*depth > 0)
		return raises(depth) + *depth;
	raise(SIGUSR1);
	return *depth;
}

/* On a stack of its own the frame address goes down at the signal frame or up; both must do. */
static void signal_walk(char *stack, size_t size)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK}, old;
	stack_t alternate = {.ss_sp = stack, .ss_size = size}, old_stack;
	volatile int depth = 6;
	size_t signals = 0;

	assert_int_equal(sigaltstack(&alternate, &old_stack), 0);
	assert_int_equal(sigaction(SIGUSR1, &action, &old), 0);
	raises(&depth);
	sigaction(SIGUSR1, &old, NULL);
	sigaltstack(&old_stack, NULL);

	check_pair(&in_handler);
	for (size_t i = 0; i < in_handler.ours.count; i++)
		signals += in_handler.ours.signal[i];
	assert_int_equal(signals, 1);
	assert_true(in_handler.ours.signal[1]);
}

static void test_signal_on_stack_below(void **state)
{
	char stack[65536];

	(void)state;
	signal_walk(stack, sizeof(stack));
}

static void test_signal_on_stack_elsewhere(void **state)
{
	prb_auto_free char *stack = malloc(65536);

	(void)state;
	signal_walk(stack, 65536);
}

/* Memory in which the modules cannot be read, as in a core without file pages. */
struct stack_only {
	struct prb_mem mem;
	struct prb_mem *base;
	size_t refused;
};

static struct prb_error *read_stack_only(struct prb_mem *mem, uint64_t address, void *buffer,
					 size_t length)
{
	struct stack_only *s = (struct stack_only *)mem;

	if (prb_modules_find(self.modules, address)) {
		s->refused++;
		return prb_error_fault(address, length);
	}
	return prb_mem_read(s->base, address, buffer, length);
}

static const struct prb_mem_ops stack_only_ops = {.read = read_stack_only};

/*
 * Walks the test's own stack, and again with a new unwinder whose modules are not in memory, with
 * the same result; returns the number of module reads from there.
 */
static size_t walk_without_modules(void (*prepare)(const struct walk *walk))
{
	struct stack_only mem = {.mem = {.ops = &stack_only_ops}, .base = self.target->mem};
	struct prb_unwinder *before = self.unwinder;
	struct walk first, second;
	struct prb_regs regs, again;
	ucontext_t context;

	getcontext(&context);
	regs_from_context(&context, &regs);
	again = regs;
	walk_from(&self, self.target->mem, &regs, &first);
	assert_true(first.end);

	assert_null(prb_unwinder_create(self.modules, &self.unwinder));
	if (prepare)
		prepare(&first);
	walk_from(&self, &mem.mem, &again, &second);
	prb_unwinder_destroy(self.unwinder);
	self.unwinder = before;
	assert_true(second.end);
	assert_int_equal(first.count, second.count);
	assert_memory_equal(first.pc, second.pc, sizeof(first.pc));
	return mem.refused;
}

static void test_file_instead_of_memory(void **state)
{
	(void)state;
	assert_true(walk_without_modules(NULL) > 0);
}

static void use_files(const struct walk *walk)
{
	assert_null(prb_unwinder_use_file(self.unwinder, 1)); /* no module is there */
	for (size_t i = 0; i < walk->count; i++)
		assert_null(prb_unwinder_use_file(self.unwinder, walk->pc[i]));
}

/* Modules set to use their files are not read from memory. */
static void test_file_beforehand(void **state)
{
	(void)state;
	assert_int_equal(walk_without_modules(use_files), 0);
}

/* A stack with one frame whose caller is itself, as a damaged or malicious one may be. */
struct circle {
	struct prb_mem mem;
	uint64_t address, words[2]; /* frame pointer, return address */
};

static struct prb_error *read_circle(struct prb_mem *mem, uint64_t address, void *buffer,
				     size_t length)
{
	struct circle *c = (struct circle *)mem;

	if (prb_modules_find(self.modules, address))
		return prb_mem_read(self.target->mem, address, buffer, length);
	for (size_t i = 0; i < length; i++)
		((uint8_t *)buffer)[i] = ((uint8_t *)c->words)[(address + i) % sizeof(c->words)];
	return NULL;
}

static const struct prb_mem_ops circle_ops = {.read = read_circle};

static void test_no_progress(void **state)
{
	struct circle circle = {.mem = {.ops = &circle_ops}, .address = 0x10000};
	static struct pair pair;
	struct prb_unwind_step step = {};
	struct prb_regs regs = {};
	unsigned steps;

	(void)state;
	nested(2, &pair);
	assert_true(lies_in(&self, pair.ours.pc[1], "nested"));
	circle.words[0] = circle.address;
	circle.words[1] = pair.ours.pc[1];
	regs.machine = self.target->machine;
	regs.pc = pair.ours.pc[1];
	prb_regs_set(&regs, prb_regs_sp(regs.machine), circle.address);
	prb_regs_set(&regs, regs.machine == EM_X86_64 ? 6 : 29, circle.address);
	for (steps = 0; steps < 1000 && !step.reason; steps++)
		assert_null(prb_unwind_step(self.unwinder, &circle.mem, false, &regs, &step));
	assert_uint_in_range(steps, 2, 20);
	assert_non_null(strstr(step.reason, "no progress"));
}

/* A walk that starts with only pc and sp, as of a sleeping thread. */
static void test_unknown_registers(void **state)
{
	struct prb_regs regs, few, again;
	struct walk walk, full;
	ucontext_t context;

	(void)state;
	getcontext(&context);
	regs_from_context(&context, &regs);
	few = (struct prb_regs){.machine = regs.machine, .pc = regs.pc};
	prb_regs_set(&few, prb_regs_sp(regs.machine), regs.value[prb_regs_sp(regs.machine)]);
	walk_from(&self, self.target->mem, &regs, &full);
	again = few;
	walk_from(&self, self.target->mem, &again, &walk);
	assert_true(walk.end || strstr(walk.reason, "a register that is not known is needed"));
	assert_memory_equal(walk.pc, full.pc, walk.count * sizeof(walk.pc[0]));

	few.known = 0;
	again = few;
	walk_from(&self, self.target->mem, &again, &walk);
	assert_int_equal(walk.count, 1);
	assert_non_null(strstr(walk.reason, "a register that is not known is needed"));
	assert_memory_equal(&again, &few, sizeof(few));
}

#if defined(__x86_64__)
/* push %rbp; call *%rdi; pop %rbp; ret */
static const uint8_t generated[] = {0x55, 0xff, 0xd7, 0x5d, 0xc3};
#else
/* stp x29, x30, [sp, #-16]!; blr x0; ldp x29, x30, [sp], #16; ret */
static const uint8_t generated[] = {0xfd, 0x7b, 0xbf, 0xa9, 0x00, 0x00, 0x3f, 0xd6,
				    0xfd, 0x7b, 0xc1, 0xa8, 0xc0, 0x03, 0x5f, 0xd6};
#endif

static struct walk from_generated;

static NOINLINE void called_by_generated(void)
{
	struct prb_regs regs;
	ucontext_t context;

	getcontext(&context);
	regs_from_context(&context, &regs);
	walk_from(&self, self.target->mem, &regs, &from_generated);
}

static void test_generated_code(void **state)
{
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char expected[128];

	(void)state;
	assert_true(code != MAP_FAILED);
	memcpy(code, generated, sizeof(generated));
	mprotect(code, 4096, PROT_READ | PROT_EXEC);
	__builtin___clear_cache((char *)code, (char *)code + sizeof(generated));
	((void (*)(void (*)(void)))(uintptr_t)code)(called_by_generated);
	assert_int_equal(from_generated.count, 2);
	assert_uint_in_range(from_generated.pc[1], (uintptr_t)code,
			     (uintptr_t)code + sizeof(generated));
	snprintf(expected, sizeof(expected),
		 "no unwind information for code at 0x%llx outside any module",
		 (unsigned long long)from_generated.pc[1]);
	assert_string_equal(from_generated.reason, expected);
	munmap(code, 4096);
}

static sigjmp_buf back;
static struct walk from_fault;

static void on_fault(int number, siginfo_t *info, void *context)
{
	struct prb_regs regs;

	(void)number;
	(void)info;
	regs_from_context(context, &regs);
	walk_from(&self, self.target->mem, &regs, &from_fault);
	siglongjmp(back, 1);
}

static void (*volatile bad_function)(void);

static NOINLINE int calls_bad_function(void)
{
	volatile int after = 1; /* so that the call is no tail call */

	bad_function();
	return after;
}

static void test_call_of_bad_pointer(void **state)
{
	struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO}, old;

	(void)state;
	sigaction(SIGSEGV, &action, &old);
	bad_function = NULL;
	if (!sigsetjmp(back, 1))
		calls_bad_function();
	sigaction(SIGSEGV, &old, NULL);
	assert_int_equal(from_fault.pc[0], 0);
	assert_true(lies_in(&self, from_fault.pc[1], "calls_bad_function"));
	assert_true(from_fault.end);
}

static NOINLINE void sleeps(int fd)
{
	char byte = 0;

	(void)!write(fd, &byte, 1);
	for (;;)
		pause();
}

/* A child that sleeps in pause(), stopped by ptrace. */
static pid_t start_child(void)
{
	int pipe_fds[2], status;
	char byte;
	pid_t pid;

	assert_int_equal(pipe(pipe_fds), 0);
	pid = fork();
	if (pid == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0)
		sleeps(pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], &byte, 1), 1);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	assert_int_equal(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return pid;
}

static void test_other_process(void **state)
{
	pid_t pid = start_child();
	struct prb_regs regs, copy;
	struct timespec start, stop;
	struct walk walk, in_view;
	struct prb_view *view;
	struct fixture f;
	bool found = false;

	(void)state;
	open_fixture(&f, pid);
	regs_from_ptrace(pid, &regs);
	copy = regs;
	walk_from(&f, f.target->mem, &regs, &walk);
	assert_true(walk.end);
	for (size_t i = 0; i < walk.count; i++)
		found |= lies_in(&f, walk.pc[i], "sleeps");
	assert_true(found);

	assert_null(prb_view_create(f.target->mem, &view));
	regs = copy;
	walk_from(&f, prb_view_mem(view), &regs, &in_view);
	assert_memory_equal(&walk, &in_view, sizeof(walk));
	clock_gettime(CLOCK_MONOTONIC, &start);
	for (int i = 0; i < 1000; i++) {
		regs = copy;
		walk_from(&f, prb_view_mem(view), &regs, &walk);
	}
	clock_gettime(CLOCK_MONOTONIC, &stop);
	prb_view_destroy(view);
	print_message("%zu frames, warm: %.3f us a step\n", walk.count,
		      ((double)(stop.tv_sec - start.tv_sec) * 1e6 +
		       (double)(stop.tv_nsec - start.tv_nsec) / 1e3) /
			      1000 / (double)walk.count);
	close_fixture(&f);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* A process that is gone is an error, not the end of a stack. */
static void test_process_gone(void **state)
{
	pid_t pid = start_child();
	struct prb_unwind_step step;
	struct prb_regs regs, before;
	struct prb_error *err;
	struct fixture f;

	(void)state;
	open_fixture(&f, pid);
	regs_from_ptrace(pid, &regs);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	before = regs;
	err = prb_unwind_step(f.unwinder, f.target->mem, true, &regs, &step);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_NO_PROCESS);
	prb_error_destroy(err);
	assert_memory_equal(&before, &regs, sizeof(regs));
	close_fixture(&f);
}

typedef void callback(void *);
typedef void caller(callback *, void *);

/* A library made of one function that calls back, compiled with @flags. */
static caller *compile_library(const char *flags, char *path, size_t size)
{
	prb_auto_free char *command = NULL;
	void *handle;

	snprintf(path, size, "/tmp/probing-test-unwind-XXXXXX");
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	close(fd);
	command = prb_format("echo 'int calls(void (*f)(void *), void *x) {"
			     "volatile char room[200]; room[7] = 3; f(x); return room[7]; }' |"
			     " ${CC:-cc} -O2 -g -shared -fPIC %s -x c - -o %s 2>&1",
			     flags, path);
	if (system(command) != 0) {
		unlink(path);
		SKIP("no compiler for the sample");
	}
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(handle);
	return (caller *)dlsym(handle, "calls");
}

static void take_in_callback(void *data)
{
	struct pair *pair = data;
	struct fixture before = self;

	/* The library is new to the unwinder. */
	open_fixture(&self, getpid());
	TAKE(pair);
	close_fixture(&self);
	self = before;
}

static void check_library(const char *flags, bool glibc_can)
{
	static struct pair pair;
	char path[64];
	caller *calls = compile_library(flags, path, sizeof(path));

	calls(take_in_callback, &pair);
	unlink(path);
	if (glibc_can)
		check_pair(&pair);
	assert_string_equal(pair.ours.reason, "");
	assert_true(pair.ours.end);
	assert_uint_in_range(pair.ours.pc[1], (uintptr_t)calls, (uintptr_t)calls + 100);
	assert_true(lies_in(&self, pair.ours.pc[2], "check_library") ||
		    lies_in(&self, pair.ours.pc[2], "test_"));
}

static void test_debug_frame(void **state)
{
	(void)state;
	check_library("-fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions", false);
}

static void test_no_search_table(void **state)
{
	(void)state;
	check_library("-Wl,--no-eh-frame-hdr", false);
}

static void test_library(void **state)
{
	(void)state;
	check_library("", true);
}

static void test_nothing_known(void **state)
{
	static struct pair pair;
	char path[64], expected[160];
	caller *calls = compile_library(
		"-g0 -fno-asynchronous-unwind-tables -fno-unwind-tables -fno-exceptions", path,
		sizeof(path));

	(void)state;
	calls(take_in_callback, &pair);
	unlink(path);
	assert_int_equal(pair.ours.count, 2);
	snprintf(expected, sizeof(expected), "no unwind information for code at 0x%llx in %s",
		 (unsigned long long)pair.ours.pc[1], strrchr(path, '/') + 1);
	assert_string_equal(pair.ours.reason, expected);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_signal_on_stack_below),
		cmocka_unit_test(test_signal_on_stack_elsewhere),
		cmocka_unit_test(test_file_instead_of_memory),
		cmocka_unit_test(test_file_beforehand),
		cmocka_unit_test(test_no_progress),
		cmocka_unit_test(test_unknown_registers),
		cmocka_unit_test(test_generated_code),
		cmocka_unit_test(test_call_of_bad_pointer),
		cmocka_unit_test(test_other_process),
		cmocka_unit_test(test_process_gone),
		cmocka_unit_test(test_library),
		cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_no_search_table),
		cmocka_unit_test(test_nothing_known),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
