/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/rest.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "judge/sharing.h"
#include "judge/threads.h"

static bool begins(const char *text, const char *start)
{
	return !strncmp(text, start, strlen(start));
}

static bool ends(const char *text, const char *end)
{
	size_t length = strlen(text), wanted = strlen(end);

	return length >= wanted && !strcmp(text + length - wanted, end);
}

/** Calls that wait for nothing but a signal or a time. */
static const char *const signal_calls[] = {"pause: ", "rt_sigsuspend: ", "rt_sigtimedwait: "};
/* What somebody outside of the program may do at any time. */
static const char *const outside[] = {" listening on ", "terminal ", "inotify ", "signalfd ",
				      "netlink socket "};
/* Sockets by which multiprocessing's own helpers wait for this very program. */
static const char OWN_HELPERS[] = "/pymp-";

static bool is_timed(const char *words)
{
	return strstr(words, ", at most ") || ends(words, " left") || strstr(words, "fires in ") ||
	       strstr(words, "sleep: sleep") || strstr(words, ": sleep of ");
}

static bool is_outside(const char *words)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(signal_calls); i++)
		if (begins(words, signal_calls[i]))
			return true;
	if (strstr(words, " listening on ") && strstr(words, OWN_HELPERS))
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(outside); i++)
		if (strstr(words, outside[i]))
			return true;
	/* A datagram socket that is not connected: any sender. */
	return strstr(words, "UDP socket ") && !strstr(words, "→");
}

/** The process that is named behind @p mark: "pipe 5 ← 4711 (cat)". */
static pid_t named_behind(const char *words, const char *mark)
{
	const char *found = strstr(words, mark);
	char *end;
	long pid = found ? strtol(found + strlen(mark), &end, 10) : 0;

	return pid > 0 && begins(end, " (") ? (pid_t)pid : 0;
}

struct prb_rest prb_rest_of_words(const char *words)
{
	static const char *const marks[] = {"child ", "of process ", "← ",
					    "→ ",     " of ",	     " held by "};

	if (!words)
		return (struct prb_rest){PRB_REST_INSIDE};
	if (is_timed(words))
		return (struct prb_rest){PRB_REST_CLOCK};
	if (is_outside(words))
		return (struct prb_rest){PRB_REST_OUTSIDE};
	if (strstr(words, ": any of ") || strstr(words, ": any child"))
		return (struct prb_rest){PRB_REST_CHILDREN};
	for (size_t i = 0; i < PRB_ARRAY_SIZE(marks); i++) {
		pid_t pid = named_behind(words, marks[i]);

		if (pid)
			return (struct prb_rest){PRB_REST_PROCESS, pid};
	}
	return (struct prb_rest){PRB_REST_INSIDE};
}

struct prb_rest prb_case_rest(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	struct prb_rest rest;
	pid_t owner = prb_thread_owner(thread);

	if (prb_thread_is(thread, "stopped") || prb_thread_is(thread, "traced") ||
	    prb_thread_is(thread, "uninterruptible"))
		return (struct prb_rest){PRB_REST_INSIDE};
	if (!prb_thread_is(thread, "idle"))
		return (struct prb_rest){PRB_REST_RUNS};
	if (!prb_thread_waits_inside(thread) && !prb_thread_waits_for_gil(thread))
		return prb_rest_of_words(thread->waits_for);
	/* The words for Python's locks do not say whether the wait has a limit. */
	rest = prb_rest_of_words(thread->waits_for);
	if (rest.kind == PRB_REST_CLOCK || (c->target && prb_case_futex_call(c, thread).limited))
		return (struct prb_rest){PRB_REST_CLOCK};
	if (owner && prb_case_thread(c, owner))
		return (struct prb_rest){PRB_REST_THREAD, owner};
	return (struct prb_rest){PRB_REST_INSIDE};
}

bool prb_thread_moves(const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	return !prb_thread_is(thread, "idle") || !enders->endless ||
	       (!enders->kind && !prb_thread_waits_inside(thread));
}

/** A semaphore in memory that other processes have mapped, too: which one posts it, is not known.
 */
static bool may_be_of_others(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	static const char *const kinds[] = {"semaphore", "shared memory"};
	const char *kind = thread->enders.kind;
	struct prb_futex_call call = prb_case_futex_call(c, thread);

	if (kind && strcmp(kind, kinds[0]) != 0 && strcmp(kind, kinds[1]) != 0)
		return false;
	return (call.endless || call.limited) && !call.own && prb_case_shares(c, call.address);
}

bool prb_case_goes_on(const struct prb_case *c, const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	/* What a thread without a description waits for may be anything. */
	if (!thread->waits_for && prb_thread_is(thread, "idle"))
		return true;
	if (enders->kind && !strcmp(enders->kind, "socket") && !enders->endless)
		return true;
	if (may_be_of_others(c, thread))
		return true;
	switch (prb_case_rest(c, thread).kind) {
	case PRB_REST_RUNS:
	case PRB_REST_CLOCK:
	case PRB_REST_OUTSIDE:
		return true;
	case PRB_REST_CHILDREN:
	case PRB_REST_PROCESS:
	case PRB_REST_THREAD:
	case PRB_REST_INSIDE:
		break;
	}
	return false;
}
