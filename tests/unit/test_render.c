/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "dump/text/render.h"
#include "base/checked.h"
#include "base/cleanup.h"

#define ITEMS(array)                                             \
	{                                                        \
		.items = (array), .count = PRB_ARRAY_SIZE(array) \
	}
#define PYTHON(name, path, at)                                                                \
	{                                                                                     \
		.kind = PRB_FRAME_PYTHON, .func = (name), .qualname = (name), .file = (path), \
		.line = (at), .end_line = (at), .col = -1, .end_col = -1                      \
	}

static char *argv[] = {"python3", "train.py", "--epochs", "3"};

static char *render(const struct prb_dump *dump, const struct prb_render_options *options,
		    struct prb_error *(*renderer)(const struct prb_dump *,
						  const struct prb_render_options *, FILE *))
{
	char *text = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&text, &length);

	assert_non_null(out);

	struct prb_error *err = renderer(dump, options, out);
	fclose(out);
	assert_null(err);
	return text;
}

static struct prb_dump dump_of(struct prb_dump_thread *threads, size_t count)
{
	return (struct prb_dump){
		.kind = PRB_TARGET_PROCESS,
		.pid = 4242,
		.exe = "/usr/bin/python3.12",
		.argv = ITEMS(argv),
		.python_version = "3.12.1",
		.gil_known = true,
		.layout = PRB_LAYOUT_DWARF,
		.build_id = "c0ffee",
		.timestamp = 1700000000.25,
		.threads = {.items = threads, .count = count},
	};
}

static void expect_text(const struct prb_dump *dump, struct prb_render_options options,
			const char *expected)
{
	prb_auto_free char *text = render(dump, &options, prb_render_text);

	assert_string_equal(text, expected);
}

static void expect_contains(const struct prb_dump *dump, struct prb_render_options options,
			    const char *expected)
{
	prb_auto_free char *text = render(dump, &options, prb_render_text);

	if (!strstr(text, expected))
		fail_msg("'%s' is not in:\n%s", expected, text);
}

static void expect_missing(const struct prb_dump *dump, struct prb_render_options options,
			   const char *unexpected)
{
	prb_auto_free char *text = render(dump, &options, prb_render_text);

	if (strstr(text, unexpected))
		fail_msg("'%s' is in:\n%s", unexpected, text);
}

/* The example output. */

static struct prb_dump_frame main_frames[] = {
	PYTHON("recv", "/usr/lib/python3.12/socket.py", 706),
	PYTHON("<module>", "/srv/train.py", 40),
};

static struct prb_dump_frame wait_frames[] = {
	PYTHON("Condition.wait", "/usr/lib/python3.12/threading.py", 355),
	PYTHON("Thread.run", "/usr/lib/python3.12/threading.py", 1010),
};

static struct prb_dump_frame busy_frames[] = {
	PYTHON("leaf", "/srv/target.py", 22),
	PYTHON("spin", "/srv/target.py", 14),
	PYTHON("rec_busy", "/srv/target.py", 27),
	PYTHON("rec_busy", "/srv/target.py", 27),
	PYTHON("rec_busy", "/srv/target.py", 27),
	PYTHON("Thread.run", "/usr/lib/python3.12/threading.py", 1010),
};

static struct prb_dump_thread waiting(pid_t tid)
{
	return (struct prb_dump_thread){.tid = tid,
					.name = "pool",
					.os_name = "python3",
					.state = "idle",
					.idle_seconds = tid,
					.waits_for = "futex: waiting for a lock",
					.read = PRB_READ_IDLE,
					.frames = ITEMS(wait_frames)};
}

static void test_sample(void **state)
{
	struct prb_dump_thread threads[] = {
		{.tid = 4242,
		 .name = "MainThread",
		 .os_name = "python3",
		 .state = "idle",
		 .idle_seconds = 130.2,
		 .waits_for = "recvfrom: socket 7 → 10.0.0.3:29500",
		 .frames = ITEMS(main_frames)},
		{.tid = 4250,
		 .name = "worker-0",
		 .os_name = "python3",
		 .state = "running",
		 .gil = "holds",
		 .read = PRB_READ_STOPPED,
		 .pause_us = 38,
		 .frames = ITEMS(busy_frames)},
		waiting(4251),
		waiting(4252),
		waiting(4253),
		waiting(4257),
	};
	struct prb_dump dump = dump_of(threads, PRB_ARRAY_SIZE(threads));

	(void)state;
	dump.pause_us = 38;
	dump.paused_threads = 1;
	expect_text(&dump, (struct prb_render_options){.fold = true},
		    "4242  python3 train.py --epochs 3\n"
		    "Python 3.12.1 · 6 threads · GIL held by 4250 · 1 thread paused 38 µs\n"
		    "\n"
		    "4250 worker-0    running, holds the GIL\n"
		    "    leaf              target.py:22\n"
		    "    spin              target.py:14\n"
		    "    rec_busy          target.py:27   (3 calls deep)\n"
		    "    Thread.run        threading.py:1010\n"
		    "\n"
		    "4242 MainThread  idle 2 m 10 s in recvfrom: socket 7 → 10.0.0.3:29500\n"
		    "    recv              socket.py:706\n"
		    "    <module>          train.py:40\n"
		    "\n"
		    "4 threads        idle in futex: waiting for a lock"
		    "                      4251–4253, 4257\n"
		    "    Condition.wait    threading.py:355\n"
		    "    Thread.run        threading.py:1010\n");
}

/** The calls that start each thread are one line, unless they have details. */
static void test_start_of_threads(void **state)
{
	static struct prb_dump_local locals[] = {{.name = "self", .type = "T", .value = "<T>"}};
	struct prb_dump_frame frames[] = {
		PYTHON("work", "/srv/target.py", 22),
		PYTHON("Thread.run", "/usr/lib/python3.12/threading.py", 1010),
		PYTHON("Thread._bootstrap_inner", "/usr/lib/python3.12/threading.py", 1073),
		PYTHON("Thread._bootstrap", "/usr/lib/python3.12/threading.py", 1030),
	};
	struct prb_dump_thread threads[] = {{.tid = 1, .state = "idle", .frames = ITEMS(frames)}};
	struct prb_dump dump = dump_of(threads, 1);
	const struct prb_render_options fold = {.fold = true};

	(void)state;
	frames[1].func = "run";
	frames[2].func = "_bootstrap_inner";
	frames[3].func = "_bootstrap";
	expect_contains(&dump, fold, "threading.py:1010   (and 2 calls that start the thread)\n");
	expect_missing(&dump, fold, "_bootstrap\n");
	expect_missing(&dump, fold, "_bootstrap ");
	expect_contains(&dump, (struct prb_render_options){}, "threading.py:1030\n");
	expect_missing(&dump, (struct prb_render_options){}, "start");

	frames[1].file = "/srv/target.py"; /* run() of the program's own class */
	expect_contains(&dump, fold, "threading.py:1073   (and 1 call that starts the thread)\n");
	frames[2].file =
		"/srv/threading.py"; /* a file of the program with the same name as CPython's */
	expect_missing(&dump, fold, "start");
	frames[2].file = frames[3].file;
	frames[3].error = "its name is unreadable";
	expect_missing(&dump, fold, "start");
	frames[3].error = NULL;
	frames[3].locals.items = locals;
	frames[3].locals.count = 1;
	expect_missing(&dump, fold, "start");
}

static void test_no_fold(void **state)
{
	struct prb_dump_thread threads[] = {waiting(1), waiting(2), waiting(3)};
	struct prb_dump dump = dump_of(threads, 3);

	(void)state;
	expect_contains(&dump, (struct prb_render_options){.fold = true}, "\n1 pool");
	expect_contains(&dump, (struct prb_render_options){.fold = true}, "\n2 threads");
	expect_contains(&dump, (struct prb_render_options){}, "\n2 pool");
	expect_contains(&dump, (struct prb_render_options){}, "\n3 pool");
	expect_contains(&dump, (struct prb_render_options){}, " · GIL free · no thread paused\n");
	expect_missing(&dump, (struct prb_render_options){.partial = true}, "GIL");
	expect_contains(&dump, (struct prb_render_options){.partial = true}, "3 threads shown");
}

/** Threads with any visible difference are not folded. */
static void test_fold_differences(void **state)
{
	struct prb_dump_frame other[] = {wait_frames[0], wait_frames[1]};
	struct prb_dump_thread threads[] = {waiting(1), waiting(2), waiting(3)};
	struct prb_dump dump = dump_of(threads, 3);
	const struct prb_render_options fold = {.fold = true};

	(void)state;
	threads[2].frames.items = other;
	expect_contains(&dump, fold, "2 threads  ");
	other[1].line = 1011;
	expect_missing(&dump, fold, "2 threads  ");
	other[1].line = 1010;
	other[0].error = "its name is unreadable";
	expect_missing(&dump, fold, "2 threads  ");
	other[0].error = NULL;
	threads[2].waits_for = "sleep: 3 s left";
	expect_missing(&dump, fold, "2 threads  ");
	threads[2].waits_for = threads[1].waits_for;
	threads[2].gil = "waits";
	expect_missing(&dump, fold, "2 threads  ");
	threads[1].gil = "waits";
	expect_contains(&dump, fold, "waiting for the GIL ");
	threads[1].waits_for = threads[2].waits_for = "futex: waiting for the GIL";
	expect_missing(&dump, fold, "GIL, waiting for the GIL");
	threads[1].waits_for = threads[2].waits_for = NULL;
	threads[1].read = threads[2].read = PRB_READ_UNSTABLE;
	expect_missing(&dump, fold, "2 threads  ");
	expect_contains(&dump, fold, "waiting for the GIL, unstable\n    Condition.wait");
	threads[1].error = "it runs";
	expect_contains(&dump, fold, "unstable\n    incomplete: it runs\n    Condition.wait");
	threads[1].read = PRB_READ_IDLE;
	expect_contains(&dump, fold, "1010\n    incomplete: it runs\n");
}

static void test_colour(void **state)
{
	struct prb_dump_frame frames[] = {{.kind = PRB_FRAME_NATIVE, .func = "c", .line = -1},
					  PYTHON("f", "/a.py", 1)};
	struct prb_dump_thread threads[] = {
		{.tid = 1,
		 .name = "MainThread",
		 .state = "running",
		 .gil = "holds",
		 .gc = true,
		 .interpreter = 2,
		 .error = "memory at 0x10 is unreadable"},
	};
	struct prb_dump dump = dump_of(threads, 1);

	(void)state;
	expect_contains(&dump, (struct prb_render_options){.colour = true},
			"1 MainThread  \033[32mrunning\033[0m, \033[1;33mholds the GIL\033[0m, "
			"collecting garbage, interpreter 2\n"
			"    \033[31munreadable: \033[0m\033[31mmemory at 0x10 is unreadable");
	threads[0].frames.items = frames;
	threads[0].frames.count = 2;
	threads[0].in_c = "dgemm_\033";
	expect_contains(&dump, (struct prb_render_options){.colour = true},
			"\033[32mrunning\033[0m in C: dgemm_\\x1b, ");
	expect_contains(&dump, (struct prb_render_options){.colour = true},
			"    c                 ?\n    \033[36mf               \033[0m  a.py:1\n");
	expect_missing(&dump, (struct prb_render_options){}, "\033");
	threads[0].frames.count = 0;
	threads[0].frames.items = NULL;
	expect_contains(&dump, (struct prb_render_options){},
			"    unreadable: memory at 0x10 is unreadable\n");
	expect_missing(&dump, (struct prb_render_options){}, "\033");
}

/** No text from a target may control the terminal. */
static void test_hostile_text(void **state)
{
	static struct prb_dump_local locals[] = {
		{.name = "a\033[2J", .type = "str", .value = "'\r\x9b'\n\xe2\x80\xae\xff"}};
	struct prb_dump_frame frames[] = {PYTHON("f\033]0;x\a", "/tmp/\033.py", 1)};
	struct prb_dump_thread threads[] = {{.tid = 1,
					     .name = "\033[31m",
					     .os_name = "\n",
					     .state = "idle",
					     .waits_for = "\033",
					     .error = "\033",
					     .frames = ITEMS(frames)}};
	struct prb_dump dump = dump_of(threads, 1);
	char *evil_argv[] = {"py\033thon", "a b", ""};

	(void)state;
	frames[0].locals.items = locals;
	frames[0].locals.count = 1;
	frames[0].error = "\033";
	frames[0].source = "x\033 = 1";
	dump.argv.items = evil_argv;
	dump.argv.count = 3;
	dump.python_version = "\033";

	prb_auto_free char *text =
		render(&dump, &(struct prb_render_options){.locals = true}, prb_render_text);
	for (const char *p = text; *p; p++)
		assert_true(*p == '\n' || (unsigned char)*p >= 0x20);
	assert_non_null(strstr(text, "4242  py\\x1bthon 'a b' ''\n"));
	assert_non_null(strstr(text, "        argument a\\x1b[2J = '\\r\\x9b'\\n\\u202e\\xff\n"));
	assert_non_null(strstr(text, "    f\\x1b]0;x\\x07     \\x1b.py:1   unreadable: \\x1b\n"));
}

static void test_recursion(void **state)
{
	const struct prb_dump_frame a = PYTHON("a", "/x.py", 1), b = PYTHON("b", "/x.py", 2),
				    c = {.kind = PRB_FRAME_NATIVE, .func = "c", .line = -1};
	struct prb_dump_frame frames[] = {a, b, c, b, c, b, c, b, a, a, b, a, b, c};
	struct prb_dump_thread threads[] = {{.tid = 1, .state = "idle", .frames = ITEMS(frames)}};
	struct prb_dump dump = dump_of(threads, 1);

	(void)state;
	expect_contains(&dump, (struct prb_render_options){.fold = true},
			"    a                 x.py:1\n"
			"    b                 x.py:2   (3 times this and the next 1)\n"
			"    c                 ?\n"
			"    b                 x.py:2\n"
			"    a                 x.py:1   (2 calls deep)\n"
			"    b                 x.py:2\n"
			"    a                 x.py:1\n"
			"    b                 x.py:2\n"
			"    c                 ?\n");
	expect_missing(&dump, (struct prb_render_options){}, "(");
}

static void test_paths(void **state)
{
	struct prb_dump_frame frames[] = {
		PYTHON("a", "/lib/torch/__init__.py", 1),
		PYTHON("b", "/lib/nn/module.py", 2),
		PYTHON("c", "/lib/autograd/module.py", 3),
		PYTHON("d", "<string>", 4),
		PYTHON("e", "module.py", 5),
		PYTHON("f", "/lib/nn/linear.py", 6),
		PYTHON("g", NULL, 7),
	};
	struct prb_dump_thread threads[] = {{.tid = 1, .state = "idle", .frames = ITEMS(frames)}};
	struct prb_dump dump = dump_of(threads, 1);

	(void)state;
	expect_contains(&dump, (struct prb_render_options){.fold = true},
			"    a                 torch/__init__.py:1\n"
			"    b                 nn/module.py:2\n"
			"    c                 autograd/module.py:3\n"
			"    d                 <string>:4\n"
			"    e                 module.py:5\n"
			"    f                 linear.py:6\n"
			"    g                 ?\n");
	expect_contains(&dump, (struct prb_render_options){.full_paths = true},
			"    f                 /lib/nn/linear.py:6\n");
}

static void test_native(void **state)
{
	struct prb_dump_frame frames[] = {
		{.kind = PRB_FRAME_NATIVE,
		 .ip = 0x7f12,
		 .module = "/usr/lib/libfoo.so",
		 .line = -1},
		{.kind = PRB_FRAME_INLINE, .func = "fast", .file = "/src/foo.c", .line = 3},
		{.kind = PRB_FRAME_NATIVE, .func = "slow(int)", .file = "/src/foo.c", .line = 9},
		{.kind = PRB_FRAME_NATIVE,
		 .func = "main",
		 .module = "/usr/bin/python3",
		 .line = -1},
	};
	struct prb_dump_thread threads[] = {
		{.tid = 1, .os_name = "pt_main_thread", .state = "idle", .frames = ITEMS(frames)}};
	struct prb_dump dump = dump_of(threads, 1);

	(void)state;
	dump.python_version = NULL;
	dump.gil_known = false;
	dump.partial = true;
	expect_text(&dump, (struct prb_render_options){.fold = true},
		    "4242  python3 train.py --epochs 3\n"
		    "no Python · 1 thread\n"
		    "\n"
		    "1 pt_main_thread  idle\n"
		    "    0x7f12            libfoo.so\n"
		    "    fast              foo.c:3   (inlined)\n"
		    "    slow(int)         foo.c:9\n"
		    "    main              python3\n");
}

static void test_locals(void **state)
{
	static struct prb_dump_local locals[] = {
		{.name = "self", .type = "Net", .value = "<Net object>"},
		{.name = "n", .type = "int", .value = "3", .kind = PRB_LOCAL_LOCAL},
		{.name = "fn", .kind = PRB_LOCAL_CELL},
		{.name = "naïve", .type = "str", .value = "'漢字'", .kind = PRB_LOCAL_FREE},
	};
	struct prb_dump_frame frames[] = {PYTHON("f", "/a.py", 1), PYTHON("f", "/a.py", 1)};
	struct prb_dump_thread threads[] = {{.tid = 1, .state = "idle", .frames = ITEMS(frames)}};
	struct prb_dump dump = dump_of(threads, 1);

	(void)state;
	frames[0].locals.items = locals;
	frames[0].locals.count = 4;
	expect_contains(&dump, (struct prb_render_options){.fold = true, .locals = true},
			"    f                 a.py:1\n"
			"        argument self  = <Net object>\n"
			"        local    n     = 3\n"
			"        cell     fn    = (unbound)\n"
			"        free     naïve = '漢字'\n"
			"    f                 a.py:1\n");
}

static void source_case(const char *source, int32_t lines, int32_t col, int32_t end_col,
			const char *expected)
{
	struct prb_dump_frame frames[] = {PYTHON("f", "/a.py", 7)};
	struct prb_dump_thread threads[] = {{.tid = 1, .state = "idle", .frames = ITEMS(frames)}};
	struct prb_dump dump = dump_of(threads, 1);
	prb_auto_str struct prb_str whole = {};

	frames[0].source = (char *)source;
	frames[0].end_line = 7 + lines - 1;
	frames[0].col = col;
	frames[0].end_col = end_col;
	prb_str_printf(&whole, "    f                 a.py:7\n%s", expected);

	prb_auto_free char *text =
		render(&dump, &(struct prb_render_options){.source = true}, prb_render_text);
	const char *frame = strstr(text, "    f ");
	assert_non_null(frame);
	assert_string_equal(frame, prb_str_text(&whole));
}

static void test_source(void **state)
{
	(void)state;
	source_case("    x = g(1) + h(2)\n", 1, 8, 12,
		    "        x = g(1) + h(2)\n"
		    "            ^^^^\n");
	/* Columns are bytes: é has 2 of them and 1 column, 漢 3 and 2, a tab goes to column 8. */
	source_case("  é漢 = g(1)", 1, 10, 14,
		    "        é漢 = g(1)\n"
		    "              ^^^^\n");
	source_case("\tx =\tg()", 1, 5, 8,
		    "        x =     g()\n"
		    "                ^^^\n");
	source_case("  y = g(\n      1,\n  )", 3, 6, 3,
		    "        y = g(\n"
		    "            ^^\n"
		    "            1,\n"
		    "            ^^\n"
		    "        )\n"
		    "        ^\n");
	source_case("x = 1", 1, -1, -1, "        x = 1\n");
	source_case("x = 1", 1, 4, 1000, "        x = 1\n            ^\n");
	source_case("x = 1", 1, 900, 1000, "        x = 1\n");
	source_case("f(\n1,\n2,\n3,\n4,\n5,\n6)", 7, -1, -1,
		    "        f(\n        1,\n        2,\n        3,\n        4,\n"
		    "        … (2 more lines)\n");
	source_case("", 1, 0, 0, "");
	source_case("a\xff\xe6\xbc", 1, 1, 4,
		    "        a\\xff\\xe6\\xbc\n"
		    "         ^^^^^^^^^^^^\n");
}

/* JSON. */

static void test_json(void **state)
{
	static struct prb_dump_local locals[] = {
		{.name = "n", .type = "int", .value = "3", .kind = PRB_LOCAL_LOCAL}};
	struct prb_dump_frame frames[] = {PYTHON("f", "/a.py", 1), PYTHON("g", "/a.py", 2)};
	char *warnings[] = {"the map of \xff is unreadable"};
	struct prb_dump_thread threads[] = {{.tid = 7,
					     .name = "Main\"Thread\n",
					     .os_name = "py\xff",
					     .state = "idle",
					     .idle_seconds = -1,
					     .pause_us = 38.1239,
					     .read = PRB_READ_STOPPED,
					     .frames = ITEMS(frames)}};
	struct prb_dump dump = dump_of(threads, 1);

	(void)state;
	frames[0].locals.items = locals;
	frames[0].locals.count = 1;
	frames[0].col = 0;
	frames[1].ip = UINT64_MAX;
	dump.warnings.items = warnings;
	dump.warnings.count = 1;

	const struct prb_render_options options = {.locals = true, .fold = true};
	prb_auto_free char *text = render(&dump, &options, prb_render_json);
	json_error_t error;
	json_t *json = json_loads(text, 0, &error), *python, *thread, *list;

	if (!json)
		fail_msg("%s at %d: %s", error.text, error.position, text);
	python = json_object_get(json_object_get(json, "target"), "python");
	assert_string_equal(json_string_value(json_object_get(python, "layout")), "dwarf");
	assert_string_equal(json_string_value(json_array_get(json_object_get(json, "warnings"), 0)),
			    "the map of \\udcff is unreadable");
	thread = json_array_get(json_object_get(json, "threads"), 0);
	assert_string_equal(json_string_value(json_object_get(thread, "name")), "Main\"Thread\n");
	assert_string_equal(json_string_value(json_object_get(thread, "os_name")), "py\\udcff");
	assert_string_equal(json_string_value(json_object_get(thread, "read")), "stopped");
	assert_true(json_is_null(json_object_get(thread, "idle_seconds")));
	assert_true(json_is_null(json_object_get(thread, "gil")));
	assert_true(json_real_value(json_object_get(thread, "pause_us")) == 38.124);
	list = json_object_get(thread, "frames");
	assert_int_equal(json_array_size(list), 2);
	assert_int_equal(json_integer_value(json_object_get(json_array_get(list, 0), "col")), 0);
	assert_true(json_is_null(json_object_get(json_array_get(list, 1), "col")));
	assert_true(json_is_null(json_object_get(json_array_get(list, 1), "ip")));
	assert_null(json_object_get(json_array_get(list, 1), "source"));
	assert_int_equal(json_array_size(json_object_get(json_array_get(list, 0), "locals")), 1);
	json_decref(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),	  cmocka_unit_test(test_start_of_threads),
		cmocka_unit_test(test_no_fold),	  cmocka_unit_test(test_fold_differences),
		cmocka_unit_test(test_colour),	  cmocka_unit_test(test_hostile_text),
		cmocka_unit_test(test_recursion), cmocka_unit_test(test_paths),
		cmocka_unit_test(test_native),	  cmocka_unit_test(test_locals),
		cmocka_unit_test(test_source),	  cmocka_unit_test(test_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
