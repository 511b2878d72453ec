/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Children that end after a recording found them, before anything was read. */
#include "tests/unit/sleeper.h"

#include "profile/sampler/sampler.h"

static void pauses(void *context)
{
	(void)context;
	for (;;)
		pause();
}

/* Returns a child that existed when children were listed. */
static struct prb_error *give(void *context, pid_t pid, pid_t **ret, size_t *ret_count)
{
	(void)pid;
	*ret = calloc(1, sizeof(**ret));
	assert_non_null(*ret);
	**ret = *(const pid_t *)context;
	*ret_count = 1;
	return NULL;
}

static pid_t gone(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

/* Records a process with @p child as its child; the recording has no row of the child. */
static struct prb_recording *record(pid_t child)
{
	struct prb_recording *recording = NULL;
	struct child parent;

	start(&parent, pauses, NULL);
	await(&parent, 'S', NULL);
	ok(prb_profile_record(parent.target,
			      &(struct prb_profile_options){.seconds = 0.2,
							    .rate = 100,
							    .native = true,
							    .children = give,
							    .context = &child},
			      &recording));
	assert_int_equal(recording->others.count, 0);
	finish(&parent);
	return recording;
}

static void test_gone(void **state)
{
	struct prb_recording *recording = record(gone());

	(void)state;
	assert_int_equal(recording->unseen_children, 0);
	prb_recording_destroy(recording);
}

/* A zombie: nothing to read either. */
static void test_zombie(void **state)
{
	pid_t child = fork();
	siginfo_t info;

	(void)state;
	assert_true(child >= 0);
	if (!child)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	prb_recording_destroy(record(child));
	assert_int_equal(waitpid(child, NULL, 0), child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_gone),
					   cmocka_unit_test(test_zombie)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
