/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The core of the unwinder alone, on this process, in place and in a signal handler, as an agent
 * would use it. Runs on both machines (also under emulation, where pointers are signed if it is
 * compiled so); glibc's backtrace() gives the expected result.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <execinfo.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "dwarf/unwind/cfi.h"
#include "tests/unit/skip.h"

enum { MAX_FRAMES = 128, MAX_MODULES = 64 };

#define NOINLINE __attribute__((noinline))

struct module {
	uint64_t start, end;
	struct prb_cfi_index index;
	struct prb_cfi_section section;
};

static struct module modules[MAX_MODULES];
static unsigned module_count;
static int (*real_backtrace)(void **, int); /* not a sanitizer's */

static bool read_own(void *context, uint64_t address, void *buffer, size_t length)
{
	(void)context;
	if (address < 65536)
		return false;
	memcpy(buffer, (const void *)(uintptr_t)address, length);
	return true;
}

static const struct prb_cfi_memory reader = {.read = read_own};

static int add_module(struct dl_phdr_info *info, size_t size, void *data)
{
	struct module *m = &modules[module_count];
	struct prb_cfi_section header = {};

	(void)size;
	(void)data;
	m->start = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *s = &info->dlpi_phdr[i];
		uint64_t address = info->dlpi_addr + s->p_vaddr;

		if (s->p_type == PT_GNU_EH_FRAME) {
			header.address = address;
			header.size = s->p_memsz;
			header.data = (const void *)(uintptr_t)address;
		} else if (s->p_type == PT_LOAD) {
			m->start = address < m->start ? address : m->start;
			m->end = address + s->p_memsz > m->end ? address + s->p_memsz : m->end;
		}
	}
	if (!header.size || module_count + 1 == MAX_MODULES)
		return 0;
	m->section = (struct prb_cfi_section){.address = m->start,
					      .size = m->end - m->start,
					      .data = (const void *)(uintptr_t)m->start};
	if (prb_cfi_index_read(&header, &reader, &m->index) == PRB_CFI_OK)
		module_count++;
	return 0;
}

static enum prb_cfi_status step(struct prb_regs *regs, bool exact, bool *signal_frame)
{
	uint64_t pc = exact ? regs->pc : regs->pc - 1;

	for (unsigned i = 0; i < module_count; i++) {
		const struct module *m = &modules[i];
		struct prb_cfi_fde fde = {};
		struct prb_cfi_row row;
		enum prb_cfi_status status;
		uint64_t cfa, address;

		if (pc < m->start || pc >= m->end)
			continue;
		status = prb_cfi_index_find(&m->index, &reader, pc, &address);
		if (status == PRB_CFI_OK)
			status = prb_cfi_fde_read(&m->section, &reader, address, &fde);
		if (status == PRB_CFI_OK)
			status =
				prb_cfi_row_at(&m->section, &reader, &fde, regs->machine, pc, &row);
		if (status == PRB_CFI_NOT_FOUND)
			break;
		*signal_frame = row.signal_frame;
		return status == PRB_CFI_OK ? prb_cfi_apply(&m->section, &reader, &row,
							    0xff7f000000000000, regs, &cfa)
					    : status;
	}
	if (exact && prb_cfi_leave_stub(&reader, regs) == PRB_CFI_OK)
		return step(regs, true, signal_frame);
	uint64_t cfa;
	*signal_frame = true;
	return prb_cfi_sigreturn(&reader, regs, &cfa);
}

struct walk {
	uint64_t pc[MAX_FRAMES];
	unsigned count, signals;
	enum prb_cfi_status status;
	void *expected[MAX_FRAMES];
	int expected_count;
};

static void walk_from(const ucontext_t *context, struct walk *walk)
{
	struct prb_regs regs = {};
	bool exact = true;

#if defined(__x86_64__)
	static const int order[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
				    REG_RBP, REG_RSP, REG_R8,  REG_R9,	REG_R10, REG_R11,
				    REG_R12, REG_R13, REG_R14, REG_R15};

	regs.machine = EM_X86_64;
	for (unsigned i = 0; i < 16; i++)
		prb_regs_set(&regs, i, (uint64_t)context->uc_mcontext.gregs[order[i]]);
	regs.pc = (uint64_t)context->uc_mcontext.gregs[REG_RIP];
#else
	regs.machine = EM_AARCH64;
	for (unsigned i = 0; i < 31; i++)
		prb_regs_set(&regs, i, context->uc_mcontext.regs[i]);
	prb_regs_set(&regs, PRB_REG_AARCH64_SP, context->uc_mcontext.sp);
	regs.pc = context->uc_mcontext.pc;
#endif
	walk->count = walk->signals = 0;
	do {
		walk->pc[walk->count++] = regs.pc;
		walk->status = step(&regs, exact, &exact);
		walk->signals += walk->status == PRB_CFI_OK && exact;
	} while (walk->status == PRB_CFI_OK && regs.pc && walk->count < MAX_FRAMES);
}

static void check(const struct walk *walk)
{
	/* A stack ends at its marked end, or with a return address of zero. */
	if (walk->status != PRB_CFI_OK && walk->status != PRB_CFI_END)
		fail_msg("%u frames, then %s at %#lx", walk->count,
			 prb_cfi_status_text(walk->status), (long)walk->pc[walk->count - 1]);
	assert_int_equal(walk->count, walk->expected_count);
	for (unsigned i = 1; i < walk->count; i++)
		assert_int_equal(walk->pc[i], (uint64_t)(uintptr_t)walk->expected[i]);
}

static struct walk result;

static NOINLINE void take(void)
{
	ucontext_t context;

	result.expected_count = real_backtrace(result.expected, MAX_FRAMES);
	getcontext(&context);
	walk_from(&context, &result);
}

static NOINLINE int nested(int depth, void (*leaf)(void))
{
	volatile char room[32 + depth * 8];

	memset((char *)room, depth, sizeof(room));
	if (depth == 0)
		leaf();
	else
		return nested(depth - 1, leaf) + room[depth];
	return room[3];
}

static void test_nested(void **state)
{
	(void)state;
	nested(20, take);
	check(&result);
	assert_true(result.count > 22);
}

static void *thread_main(void *arg)
{
	nested(3, take);
	return arg;
}

static void test_thread(void **state)
{
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, thread_main, NULL), 0);
	pthread_join(thread, NULL);
	check(&result);
	assert_true(result.count < 12);
}

static void on_signal(int number)
{
	(void)number;
	take();
}

static void raise_signal(void)
{
	raise(SIGUSR1);
}

static void test_signal_frame(void **state)
{
	struct sigaction action = {.sa_handler = on_signal}, old;

	(void)state;
	sigaction(SIGUSR1, &action, &old);
	nested(3, raise_signal);
	sigaction(SIGUSR1, &old, NULL);
	check(&result);
	assert_int_equal(result.signals, 1);
}

/* A signal that interrupts anywhere: in the middle of qsort(), its callback, or this function. */
static struct walk interrupted;

static void on_timer(int number, siginfo_t *info, void *context)
{
	(void)number;
	(void)info;
	walk_from(context, &interrupted);
}

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void test_any_instruction(void **state)
{
	struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct itimerspec once = {};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	struct sigaction old;
	unsigned walks = 0;
	timer_t timer;
	int numbers[512];

	(void)state;
	result.count = 0;
	take();
	sigaction(SIGUSR2, &action, &old);
	if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0)
		SKIP("the kernel makes no timer");
	while (walks < 500) {
		/* Interrupts another place each time, and only after the last walk was checked. */
		once.it_value.tv_nsec = 5000 + walks * 7919 % 60000;
		interrupted.count = 0;
		timer_settime(timer, 0, &once, NULL);
		while (!__atomic_load_n(&interrupted.count, __ATOMIC_ACQUIRE)) {
			for (int i = 0; i < 512; i++)
				numbers[i] = i * 7919 % 512;
			qsort(numbers, 512, sizeof(numbers[0]), compare);
		}
		walks++;
		/* Wherever the interruption was, the outermost frames are this function's. */
		if (interrupted.status != PRB_CFI_OK && interrupted.status != PRB_CFI_END)
			fail_msg("%u frames, then %s at %#lx", interrupted.count,
				 prb_cfi_status_text(interrupted.status),
				 (long)interrupted.pc[interrupted.count - 1]);
		assert_int_equal(interrupted.pc[interrupted.count - 1],
				 result.pc[result.count - 1]);
		assert_int_equal(interrupted.pc[interrupted.count - 2],
				 result.pc[result.count - 2]);
	}
	timer_delete(timer);
	sigaction(SIGUSR2, &old, NULL);
}

static int set_up(void **state)
{
	void *libc = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	void *frame;

	(void)state;
	assert_non_null(libc);
	real_backtrace = (int (*)(void **, int))dlsym(libc, "backtrace");
	real_backtrace(&frame, 1); /* loads what it needs */
	dl_iterate_phdr(add_module, NULL);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nested),
		cmocka_unit_test(test_thread),
		cmocka_unit_test(test_signal_frame),
		cmocka_unit_test(test_any_instruction),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
