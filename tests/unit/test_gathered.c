/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recordings of several machines as one: processes, stacks, times, and untrusted values. */
#include "tests/unit/profile_made.h"

#include "base/checked.h"
#include "base/cleanup.h"
#include "cli/commands/perf/gathered.h"

/** One process, as from a host with one rank: its stacks have no root. */
static struct prb_recording *make_alone(void)
{
	struct prb_recording *r;

	assert_null(prb_recording_create(&r));
	r->pid = 42;
	r->process_cpu = 5000000;
	r->command = strdup("rank 2");
	r->python = strdup("3.12.1");
	r->rate = 100;
	made_run(r, made_thread(r, 42, "python3"), made_stack(r, "main/load", 5), 5);
	return r;
}

/** Two processes: each is the outermost frame of its stacks. */
static struct prb_recording *make_two(void)
{
	struct prb_recording *r = make_alone();
	uint32_t roots[2], stack;
	struct prb_profile_process *other = prb_vec_push(&r->others);

	assert_non_null(other);
	*other = (struct prb_profile_process){
		.pid = 43, .command = strdup("rank 1"), .cpu = 7000000};
	free(r->command);
	r->command = strdup("rank 0");
	r->runs.count = 0;
	assert_null(prb_tree_note(r->tree, "42 rank 0", &roots[0]));
	assert_null(prb_tree_note(r->tree, "43 rank 1", &roots[1]));
	r->threads.items[made_thread(r, 43, "python3")].process = 1;
	for (uint32_t i = 0; i < 2; i++) {
		const struct prb_profile_wait wait = {
			.kind = PRB_WAIT_LOCK, .what = (char[]){"a lock"}, .owner = i + 1};

		/* The frame of "main", the first frame. */
		assert_null(prb_tree_call(r->tree, roots[i], 0, &stack));
		made_run(r, i, stack, 10);
		assert_null(prb_recording_wait(r, &wait, &r->runs.items[i].wait));
		r->runs.items[i].begin = 0;
	}
	/* At an instant when nothing of it was known. */
	made_run(r, 1, 0, 1);
	return r;
}

static void destroy(struct prb_gathered *gathered)
{
	prb_recording_destroy(gathered->all);
}

/** "43 rank 1 (a)/main" */
static void expect_stack(const struct prb_recording *r, uint32_t stack, const char *expected)
{
	prb_auto_str struct prb_str text = {};
	const char *names[8];
	size_t count = 0;

	for (; stack && count < PRB_ARRAY_SIZE(names); stack = r->tree->stacks.items[stack].parent)
		names[count++] = prb_tree_function_of(r->tree, stack)->name;
	while (count-- > 0)
		prb_str_printf(&text, "%s%s", text.length ? "/" : "", names[count]);
	assert_string_equal(prb_str_text(&text), expected);
}

static void test_processes_of_all(void **state)
{
	static const char *const commands[] = {"rank 0 (a)", "rank 1 (a)", "rank 2 (b)"};
	static const pid_t pids[] = {42, 43, 42};
	__attribute__((cleanup(destroy))) struct prb_gathered gathered = {};
	prb_auto_recording struct prb_recording *two = make_two(), *alone = make_alone();
	const struct prb_recording *all;

	(void)state;
	assert_null(prb_recording_create(&gathered.all));
	assert_null(prb_gathered_add(&gathered, two, " (a)", 1000000));
	assert_null(prb_gathered_add(&gathered, alone, " (b)", 0));
	prb_gathered_settle(&gathered);
	all = gathered.all;
	assert_int_equal(all->others.count, 2);
	for (uint32_t i = 0; i < 3; i++) {
		assert_string_equal(prb_recording_command_line(all, i), commands[i]);
		assert_int_equal(prb_recording_pid(all, i), pids[i]);
		assert_int_equal(all->threads.items[i].process, i);
	}
	/* Runs are in the order of time; the process is the root, also where there was none. */
	assert_int_equal(all->runs.count, 4);
	expect_stack(all, all->runs.items[0].stack, "42 rank 2 (b)/main/load");
	assert_int_equal(all->runs.items[0].thread, 2);
	for (size_t i = 1; i < 3; i++) {
		const struct prb_run *run = &all->runs.items[i];

		assert_int_equal(run->begin, 1000000);
		expect_stack(all, run->stack,
			     run->thread ? "43 rank 1 (a)/main" : "42 rank 0 (a)/main");
		assert_string_equal(all->waits.items[run->wait].what, "a lock");
		assert_int_equal(all->waits.items[run->wait].owner, run->thread + 1);
	}
	expect_stack(all, all->runs.items[3].stack, "43 rank 1 (a)");
	assert_int_equal(all->process_cpu + all->others.items[0].cpu + all->others.items[1].cpu,
			 2 * 5000000 + 7000000);
	assert_int_equal(all->duration, two->duration + 1000000);
}

static void add_line(struct prb_recording *r, const char *file, int32_t line, const char *text)
{
	struct prb_profile_line *slot = prb_vec_push(&r->lines);

	assert_non_null(slot);
	*slot = (struct prb_profile_line){file, line, strdup(text)};
}

static void test_lines_are_there_once(void **state)
{
	__attribute__((cleanup(destroy))) struct prb_gathered gathered = {};
	prb_auto_recording struct prb_recording *one = make_alone(), *two = make_alone();

	(void)state;
	add_line(one, "/src/b.py", 3, "three");
	add_line(one, "/src/b.py", 5, "five");
	add_line(two, "/src/a.py", 9, "nine");
	add_line(two, "/src/b.py", 3, "three");
	add_line(two, "/src/b.py", 4, "four");
	assert_null(prb_recording_create(&gathered.all));
	assert_null(prb_gathered_add(&gathered, one, "", 0));
	assert_null(prb_gathered_add(&gathered, two, "", 0));
	prb_gathered_settle(&gathered);
	assert_int_equal(gathered.all->lines.count, 4);
	assert_string_equal(gathered.all->lines.items[0].text, "nine");
	assert_string_equal(gathered.all->lines.items[1].text, "three");
	assert_string_equal(gathered.all->lines.items[2].text, "four");
	assert_string_equal(gathered.all->lines.items[3].text, "five");
}

/** Sums would overflow: such a part is refused, and the other parts stay. */
static void test_impossible_times(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 7; i++) {
		__attribute__((cleanup(destroy))) struct prb_gathered gathered = {};
		prb_auto_recording struct prb_recording *good = make_two(), *bad = make_two();
		int64_t *const numbers[] = {&bad->duration,
					    &bad->process_cpu,
					    &bad->cost.own_cpu,
					    &bad->runs.items[0].begin,
					    &bad->runs.items[1].wall,
					    &bad->others.items[0].cpu,
					    &bad->threads.items[0].cpu};

		*numbers[i] = INT64_MAX - 5;
		assert_null(prb_recording_create(&gathered.all));
		assert_null(prb_gathered_add(&gathered, good, "", 7));

		prb_auto_error struct prb_error *err = prb_gathered_add(&gathered, bad, "", 7);

		assert_non_null(err);
		assert_int_equal(err->code, PRB_ERROR_BAD_DATA);
		assert_int_equal(gathered.all->runs.count, good->runs.count);
		/* Later parts are still accepted. */
		assert_null(prb_gathered_add(&gathered, good, "", 7));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_processes_of_all),
		cmocka_unit_test(test_lines_are_there_once),
		cmocka_unit_test(test_impossible_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
