/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The kernel's texts about threads, honest and hostile, and the tables of system calls. */
#include <elf.h>
#include <sys/syscall.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/text.h"
#include "tests/unit/sleeper.h"

/* A target with made-up answers. */

struct made_up {
	struct prb_target target;
	const char *stat, *syscall;
};

static struct prb_error *answer(struct prb_target *t, const char *name, struct prb_str *ret)
{
	struct made_up *made_up = (struct made_up *)t;
	const char *text = strstr(name, "/stat") ? made_up->stat : made_up->syscall;

	if (!text)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "no %s", name);
	prb_str_puts(ret, text);
	return NULL;
}

static const struct prb_target_ops made_up_ops = {.read_file = answer};

static struct prb_error *read_made_up(const char *stat, const char *syscall, struct prb_task *ret)
{
	struct made_up made_up = {.target = {.ops = &made_up_ops, .machine = EM_X86_64},
				  .stat = stat,
				  .syscall = syscall};

	return prb_task_read(&made_up.target, 42, ret);
}

#define STAT(comm, state) \
	"42 (" comm ") " state " 1 42 42 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 3 0 12345 8 9 0 0 0\n"

static void test_names(void **state)
{
	static const struct {
		const char *line, *name;
	} cases[] = {
		{STAT("python3", "S"), "python3"},
		{STAT("", "S"), ""},
		{STAT(") R (", "S"), ") R ("},
		{STAT("a)) D 1 2 3", "S"), "a)) D 1 2 3"},
		{STAT("two\\nlines", "S"), "two\\nlines"},
		{STAT("back\\\\slash", "S"), "back\\slash"},
		{STAT("\033[2J\a", "S"), "\\x1b[2J\\x07"},
		{STAT("naïve", "S"), "naïve"},
		{STAT("cut \xc3", "S"), "cut \\xc3"},
		{STAT("\xe2\x80\xae"
		      "evil",
		      "S"),
		 "\\u202eevil"},
	};
	struct prb_task task;

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		ok(read_made_up(cases[i].line, "running\n", &task));
		assert_string_equal(task.name, cases[i].name);
		assert_int_equal(task.state, 'S');
		assert_false(task.in_syscall);
	}
}

static void test_bad_stat(void **state)
{
	static const char *const lines[] = {
		"",
		"42",
		"42 (",
		"42 )x(",
		"42 (name)",
		"42 (name) S",
		"42 (name) S 1 2 3 4 5 x",
		") S 1 42 42 0 -1 4194304 1 0 0 0 5 6 0 0 20 0 3 0 12345 8 9 (",
	};
	struct prb_task task;

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(lines); i++) {
		struct prb_error *err = read_made_up(lines[i], "running\n", &task);

		assert_non_null(err);
		assert_int_equal(err->code, PRB_ERROR_BAD_DATA);
		prb_error_destroy(err);
	}
}

static void test_syscall_text(void **state)
{
	struct prb_task task;

	(void)state;
	ok(read_made_up(STAT("x", "S"), "0 0x3 0x7f 0x1 0x4 0x5 0xffffffffffffffff 0x7ffe 0x7f00\n",
			&task));
	assert_true(task.in_syscall);
	assert_int_equal(task.syscall, 0);
	assert_true(task.args[0] == 3 && task.args[5] == UINT64_MAX);
	assert_true(task.sp == 0x7ffe && task.pc == 0x7f00);

	ok(read_made_up(STAT("x", "D"), "-1 0x7ffe 0x7f00\n", &task));
	assert_false(task.in_syscall);
	assert_int_equal(task.syscall, -1);
	assert_true(task.sp == 0x7ffe && task.pc == 0x7f00);

	static const char *const bad[] = {
		NULL,
		"",
		"running\n",
		"0\n",
		"0 0x1 0x2\n",
		"0 1 2 3 4 5 6 7 8\n",
		"0 0x1 0x2 0x3 0x4 0x5 0x6 0x7\n",
		"0 0x1ffffffffffffffff 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",
		"99999999999999999999 0x1 0x2 0x3 0x4 0x5 0x6 0x7 0x8\n",
	};
	for (size_t i = 0; i < PRB_ARRAY_SIZE(bad); i++) {
		ok(read_made_up(STAT("x", "S"), bad[i], &task));
		assert_false(task.in_syscall);
		assert_int_equal(task.syscall, -1);
		assert_true(!task.sp && !task.pc && !task.args[0]);
	}
}

static void test_gone(void **state)
{
	struct prb_task task;
	struct prb_error *err = read_made_up(NULL, NULL, &task);

	(void)state;
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_NO_PROCESS);
	prb_error_destroy(err);
}

static void sleep_under_a_name(void *name)
{
	prctl(PR_SET_NAME, name);
	for (;;)
		pause();
}

static void test_real_child(void **state)
{
	static char name[] = "a) R\\\n(\033[1m";
	struct child child;

	(void)state;
	start(&child, sleep_under_a_name, name);
	await(&child, 'S',
#ifdef SYS_pause
	      "pause"
#else
	      "ppoll"
#endif
	);
	assert_string_equal(child.task.name, "a) R\\\\n(\\x1b[1m");
	assert_true(child.task.pc && child.task.sp);

	struct prb_task none;
	struct prb_error *err = prb_task_read(child.target, 1, &none);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_NO_PROCESS);
	prb_error_destroy(err);
	finish(&child);
}

static void test_call_names(void **state)
{
	(void)state;
	assert_string_equal(prb_syscall_name(EM_X86_64, 0), "read");
	assert_string_equal(prb_syscall_name(EM_X86_64, 45), "recvfrom");
	assert_string_equal(prb_syscall_name(EM_X86_64, 202), "futex");
	assert_string_equal(prb_syscall_name(EM_X86_64, 455), "futex_wait");
	assert_string_equal(prb_syscall_name(EM_AARCH64, 63), "read");
	assert_string_equal(prb_syscall_name(EM_AARCH64, 98), "futex");
	assert_string_equal(prb_syscall_name(EM_AARCH64, 207), "recvfrom");
	assert_string_equal(prb_syscall_name(EM_AARCH64, 115), "clock_nanosleep");
	assert_string_equal(prb_syscall_name(EM_AARCH64, 22), "epoll_pwait");
	assert_string_equal(prb_syscall_name(EM_AARCH64, 128), "restart_syscall");
	assert_null(prb_syscall_name(EM_X86_64, -1));
	assert_null(prb_syscall_name(EM_X86_64, 400));
	assert_null(prb_syscall_name(EM_X86_64, 1L << 40));
	assert_null(prb_syscall_name(EM_AARCH64, 1 << 20));
	assert_null(prb_syscall_name(EM_386, 0));

	/* For our own machine the table agrees with our headers. */
	assert_string_equal(prb_syscall_name(
#ifdef __x86_64__
				    EM_X86_64,
#else
				    EM_AARCH64,
#endif
				    SYS_process_vm_readv),
			    "process_vm_readv");
}

/* Memory with equal pages. */

struct made_up_memory {
	struct prb_mem mem;
	unsigned char page[4096];
};

static struct prb_error *read_memory(struct prb_mem *mem, uint64_t address, void *buffer,
				     size_t length)
{
	const struct made_up_memory *memory = (const struct made_up_memory *)mem;

	for (size_t i = 0; i < length; i++)
		((unsigned char *)buffer)[i] = memory->page[(address + i) % 4096];
	return NULL;
}

static const struct prb_mem_ops memory_ops = {.read = read_memory};

/*
 * Describes a thread that sleeps in restart_syscall after this code, with these @words on its
 * stack: RETURNS is an address after a call.
 */
enum { STACK = 0x20400, RETURNS = 0x20205 };

static void assert_restarted_on(uint16_t machine, const void *code, size_t length,
				const uint64_t words[8], const char *call, const char *what)
{
	struct made_up_memory memory = {.mem = {&memory_ops}};
	struct made_up made_up = {.target = {.ops = &made_up_ops,
					     .local = true,
					     .machine = machine,
					     .mem = &memory.mem}};
	struct prb_task task = {.tid = 42,
				.state = 'S',
				.in_syscall = true,
				.syscall = machine == EM_X86_64 ? 219 : 128,
				.args = {0x10000},
				.sp = STACK,
				.pc = 0x20800};
	struct prb_wait wait;

	memcpy(memory.page, (int64_t[]){90, 0}, 16);
	memory.page[RETURNS % 4096 - 5] = (char)0xe8;
	memcpy(memory.page + STACK % 4096, words, 64);
	memcpy(memory.page + 0x800 - length, code, length);
	ok(prb_task_wait(&made_up.target, &task, &wait));
	assert_string_equal(wait.call, call);
	assert_string_equal(wait.what, what);
	prb_wait_deinit(&wait);
}

static void assert_restarted(uint16_t machine, const void *code, size_t length, const char *call,
			     const char *what)
{
	assert_restarted_on(machine, code, length, (uint64_t[8]){0}, call, what);
}

/* Cancellation points as in glibc 2.41. */
static void test_restarted_calls_by_the_stack(void **state)
{
	/* mov 0x10(%rsp), %rax; syscall */
	static const char by_sp[] = "\x48\x8b\x44\x24\x10\x0f\x05";
	/* mov 0x10(%rbp), %rax; syscall */
	static const char by_frame[] = "\x48\x8b\x45\x10\x0f\x05";
	/* mov %r11, 8(%rsp); syscall */
	static const char in_arch[] = "\x4c\x89\x5c\x24\x08\x0f\x05";
	/* mov %rbx, %rax; syscall */
	static const char other[] = "\x90\x90\x48\x89\xd8\x0f\x05";
	const uint64_t near[8] = {35, RETURNS, 35},
		       far[8] = {RETURNS, 7, 0, 35, RETURNS + 1, 35, RETURNS, 35};
	const uint64_t none[8] = {RETURNS, 39, 35, RETURNS - 1, 35};
	const char *sleeps = "sleep of 90 s", *unknown = "a call that was interrupted";

	(void)state;
	assert_restarted_on(EM_X86_64, by_sp, 7, near, "nanosleep", sleeps);
	assert_restarted_on(EM_X86_64, by_frame, 6, near, "nanosleep", sleeps);
	assert_restarted_on(EM_X86_64, in_arch, 7, near, "nanosleep", sleeps);
	assert_restarted_on(EM_X86_64, in_arch, 7, far, "poll", "sleep of 0 s");
	assert_restarted_on(EM_X86_64, in_arch, 7, none, "restart_syscall", unknown);
	assert_restarted_on(EM_X86_64, other, 7, near, "restart_syscall", unknown);
}

static void test_restarted_calls(void **state)
{
	/* mov $35, %eax; mov %rsp, %rdi; syscall */
	static const char x86_64[] = "\xb8\x23\0\0\0\x48\x89\xe7\x0f\x05";
	static const char no_syscall[] = "\xb8\x23\0\0\0\x48\x89\xe7\x90\x90";
	static const char other_call[] = "\xb8\x01\0\0\0\x48\x89\xe7\x0f\x05";
	/* mov x8, #101; mov x0, x1; svc #0 */
	static const uint32_t aarch64[] = {0xd2800ca8, 0xaa0103e0, 0xd4000001};
	static const uint32_t other_register[] = {0xd2800ca9, 0xaa0103e0, 0xd4000001};

	(void)state;
	assert_restarted(EM_X86_64, x86_64, 10, "nanosleep", "sleep of 90 s");
	assert_restarted(EM_X86_64, no_syscall, 10, "restart_syscall",
			 "a call that was interrupted");
	assert_restarted(EM_X86_64, other_call, 10, "restart_syscall",
			 "a call that was interrupted");
	assert_restarted(EM_AARCH64, aarch64, 12, "nanosleep", "sleep of 90 s");
	assert_restarted(EM_AARCH64, other_register, 12, "restart_syscall",
			 "a call that was interrupted");
}

static void assert_seconds(double seconds, const char *expected)
{
	prb_auto_str struct prb_str s = {};

	prb_put_seconds(&s, seconds);
	assert_string_equal(prb_str_text(&s), expected);
}

static void test_seconds(void **state)
{
	(void)state;
	assert_seconds(0, "0 s");
	assert_seconds(3600, "3600 s");
	assert_seconds(0.25, "0.25 s");
	assert_seconds(2.5, "2.5 s");
	assert_seconds(100, "100 s");
	assert_seconds(0.00005, "50 µs");
	assert_seconds(1e18, "for ever");
	assert_seconds(__builtin_nan(""), "for ever");
}

static void test_fields(void **state)
{
	static const char text[] = "Name:\tNSpid:\nNSpidder: 1\nNSpid:\t4\t2\nlast: x";

	(void)state;
	assert_string_equal(prb_text_field(text, "NSpid"), "4\t2\nlast: x");
	assert_string_equal(prb_text_field(text, "last"), "x");
	assert_null(prb_text_field(text, "x"));
	assert_null(prb_text_field("", "x"));
	assert_string_equal(prb_text_field("\n\nx:", "x"), "");
}

static void test_last_number(void **state)
{
	static const char *const none[] = {"", "a:\n7", "a:\t \t\n7", "a: x 7", "b: 7"};
	int64_t number = -1;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_false(prb_text_last_number(none[i], "a", &number));
	assert_int_equal(number, -1);
	assert_true(prb_text_last_number("b: 1\na:\t4242\t7 \n8", "a", &number));
	assert_int_equal(number, 7);
	assert_true(prb_text_last_number("a: 4242 7x", "a", &number));
	assert_int_equal(number, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_bad_stat),
		cmocka_unit_test(test_syscall_text),
		cmocka_unit_test(test_gone),
		cmocka_unit_test(test_real_child),
		cmocka_unit_test(test_call_names),
		cmocka_unit_test(test_restarted_calls),
		cmocka_unit_test(test_restarted_calls_by_the_stack),
		cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_fields),
		cmocka_unit_test(test_last_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
