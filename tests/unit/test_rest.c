/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What can end a wait, by the words for it (judge/rest.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/checked.h"
#include "judge/rest.h"

static const struct {
	const char *words;
	enum prb_rest_kind kind;
	pid_t pid;
} rows[] = {
	{NULL, PRB_REST_INSIDE, 0},
	{"", PRB_REST_INSIDE, 0},
	{"accept4: socket 3 listening on 127.0.0.1:80", PRB_REST_OUTSIDE, 0},
	{"accept: unix socket 3 listening on /tmp/pymp-x1/listener-2", PRB_REST_INSIDE, 0},
	{"epoll_wait: epoll 4 watching 2 descriptors: unix socket 5 → itself, socket 6 listening "
	 "on 0.0.0.0:80",
	 PRB_REST_OUTSIDE, 0},
	{"epoll_wait: epoll 4 watching unix socket 5 → itself", PRB_REST_INSIDE, 0},
	{"epoll_wait: epoll 4 watching unix socket 5 → itself, at most 2 s", PRB_REST_CLOCK, 0},
	{"read: terminal 0 /dev/pts/1", PRB_REST_OUTSIDE, 0},
	{"read: pipe 5 ← 4711 (cat)", PRB_REST_PROCESS, 4711},
	{"read: pipe 5 ← 4711 (cat) and 2 more", PRB_REST_PROCESS, 4711},
	{"read: pipe 5 ← itself", PRB_REST_INSIDE, 0},
	{"write: pipe 1 → 4711 (tee)", PRB_REST_PROCESS, 4711},
	{"recvfrom: unix socket 7 → 4711 (server)", PRB_REST_PROCESS, 4711},
	{"recvfrom: socket 7 → 10.0.0.3:29500", PRB_REST_INSIDE, 0},
	{"recvfrom: UDP socket 7 on 0.0.0.0:53", PRB_REST_OUTSIDE, 0},
	{"recvfrom: UDP socket 7 → 10.0.0.3:53", PRB_REST_INSIDE, 0},
	{"wait4: child 4711 (sh)", PRB_REST_PROCESS, 4711},
	{"wait4: any of 3 children", PRB_REST_CHILDREN, 0},
	{"waitid: any child", PRB_REST_CHILDREN, 0},
	{"poll: pidfd 5 of process 4711 (sh)", PRB_REST_PROCESS, 4711},
	{"flock: file 3 /x held by 4711 (sh)", PRB_REST_PROCESS, 4711},
	{"clock_nanosleep: sleep, 99 s left", PRB_REST_CLOCK, 0},
	{"nanosleep: sleep of 0.5 s", PRB_REST_CLOCK, 0},
	{"read: timerfd 4, fires in 5 s", PRB_REST_CLOCK, 0},
	{"pause: any signal", PRB_REST_OUTSIDE, 0},
	{"rt_sigtimedwait: SIGTERM", PRB_REST_OUTSIDE, 0},
	{"read: inotify 5 watching 1 file", PRB_REST_OUTSIDE, 0},
	{"futex: waiting in Event.wait", PRB_REST_INSIDE, 0},
};

static void test_words(void **state)
{
	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(rows); i++) {
		struct prb_rest rest = prb_rest_of_words(rows[i].words);

		if (rest.kind != rows[i].kind || rest.pid != rows[i].pid)
			fail_msg("'%s': %d, %d", rows[i].words ? rows[i].words : "NULL", rest.kind,
				 (int)rest.pid);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_words)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
