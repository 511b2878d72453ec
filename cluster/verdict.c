/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/why.h"

/** What the looks at a job show of each rank. */
struct evidence {
	const struct prb_job *job;
	const struct prb_round *round; /**< the last look */
	const char *bundle;	       /**< where it was saved, or NULL */
	const struct prb_reach *reach; /**< to its hosts, or NULL */
	struct prb_verdict *verdict;
};

const char *prb_verdict_name(enum prb_verdict_kind kind)
{
	static const char *const names[] = {
		[PRB_VERDICT_MOVES] = "moves",	     [PRB_VERDICT_ABSENT] = "absent",
		[PRB_VERDICT_MISMATCH] = "mismatch", [PRB_VERDICT_LATE] = "late",
		[PRB_VERDICT_CYCLE] = "cycle",	     [PRB_VERDICT_DEVICE] = "device",
		[PRB_VERDICT_UNKNOWN] = "unknown"};

	return names[kind];
}

void prb_verdict_deinit(struct prb_verdict *verdict)
{
	prb_vec_free(&verdict->ranks.list);
	prb_str_deinit(&verdict->sentence);
	prb_str_deinit(&verdict->evidence);
	prb_str_deinit(&verdict->refuted_by);
	prb_str_deinit(&verdict->next);
}

static const struct prb_seen *seen(const struct evidence *e, size_t i)
{
	return &e->round->list.items[i];
}

static size_t rank_count(const struct evidence *e)
{
	return e->round->list.count;
}

static struct prb_error *add_rank(struct prb_rank_set *set, long rank)
{
	long *place = prb_vec_push(&set->list);

	if (!place)
		return prb_error_nomem();
	*place = rank;
	return NULL;
}

/** "rank 3" or "ranks 0-2,5". */
static void put_ranks(struct prb_str *s, const struct prb_rank_set *set)
{
	prb_str_puts(s, set->list.count == 1 ? "rank " : "ranks ");
	prb_rank_set_text(s, set);
}

/** " (pid 4242)" or " (node-5, pid 4242)". */
static void put_process(struct prb_str *s, const struct prb_rank *rank)
{
	prb_str_puts(s, " (");
	if (rank->host) {
		prb_text_escape(s, rank->host);
		prb_str_puts(s, ", ");
	}
	prb_str_printf(s, "pid %d)", (int)rank->pid);
}

static void put_pid(const struct evidence *e, struct prb_str *s)
{
	for (size_t i = 0; i < rank_count(e); i++)
		if (e->verdict->ranks.list.count == 1 && seen(e, i)->rank->pid &&
		    seen(e, i)->rank->rank == e->verdict->ranks.list.items[0])
			put_process(s, seen(e, i)->rank);
}

/** One line for each collective that ranks wait in, with its ranks and the place of the call. */
static struct prb_error *tell_collectives(const struct evidence *e)
{
	prb_auto_free bool *told = calloc(rank_count(e) + 1, sizeof(*told));

	if (!told)
		return prb_error_nomem();
	for (size_t i = 0; i < rank_count(e); i++) {
		const struct prb_seen *first = seen(e, i);
		struct prb_rank_set set = {};
		struct prb_error *err = NULL;

		if (!first->collective || told[i])
			continue;
		for (size_t k = i; k < rank_count(e); k++) {
			if (told[k] || !prb_why_same_call(first, seen(e, k)))
				continue;
			told[k] = true;
			if (!err)
				err = add_rank(&set, seen(e, k)->rank->rank);
		}
		put_ranks(&e->verdict->evidence, &set);
		prb_str_puts(&e->verdict->evidence, set.list.count == 1 ? " is in " : " are in ");
		prb_why_put_call(&e->verdict->evidence, first);
		prb_str_putc(&e->verdict->evidence, '\n');
		prb_vec_free(&set.list);
		PRB_TRY(err);
	}
	return NULL;
}

/** True if nothing is known of the rank but why. */
static bool is_unread(const struct prb_seen *seen)
{
	return !seen->main && !seen->gone && seen->error;
}

/** Prints one line for all ranks that have the same reason as rank @p first, and marks them in @p
 * told. */
static struct prb_error *tell_unread(const struct evidence *e, size_t first, bool *told)
{
	struct prb_rank_set set = {};
	struct prb_error *err = NULL;

	for (size_t k = first; k < rank_count(e) && !err; k++)
		if (is_unread(seen(e, k)) && !strcmp(seen(e, k)->error, seen(e, first)->error)) {
			told[k] = true;
			err = add_rank(&set, seen(e, k)->rank->rank);
		}
	put_ranks(&e->verdict->evidence, &set);
	prb_str_puts(&e->verdict->evidence, " cannot be read: ");
	prb_text_escape(&e->verdict->evidence, seen(e, first)->error);
	prb_str_putc(&e->verdict->evidence, '\n');
	prb_vec_free(&set.list);
	return err;
}

/** One line for each rank that is in no collective, and those that could not be read together. */
static struct prb_error *tell_others(const struct evidence *e)
{
	prb_auto_free bool *told = calloc(rank_count(e) + 1, sizeof(*told));

	if (!told)
		return prb_error_nomem();
	for (size_t i = 0; i < rank_count(e); i++) {
		if (seen(e, i)->collective || told[i])
			continue;
		if (is_unread(seen(e, i))) {
			PRB_TRY(tell_unread(e, i, told));
			continue;
		}
		prb_str_printf(&e->verdict->evidence, "rank %ld ", seen(e, i)->rank->rank);
		prb_why_put_state(&e->verdict->evidence, seen(e, i));
		prb_str_putc(&e->verdict->evidence, '\n');
	}
	return NULL;
}

/** A rank that cannot go on whatever the others do. */
static bool is_absent(const struct evidence *e, size_t i)
{
	const struct prb_seen *now = seen(e, i);

	return now->gone || now->state == 'T' || now->state == 't' || now->state == 'Z' ||
	       (now->state == 'D' && now->state_before == 'D' && now->movement == PRB_STILL);
}

static struct prb_error *judge_absent(const struct evidence *e, bool *found)
{
	struct prb_verdict *v = e->verdict;

	for (size_t i = 0; i < rank_count(e); i++)
		if (is_absent(e, i))
			PRB_TRY(add_rank(&v->ranks, seen(e, i)->rank->rank));
	*found = v->ranks.list.count;
	if (!*found)
		return NULL;
	v->kind = PRB_VERDICT_ABSENT;
	v->confidence = "high";
	put_ranks(&v->sentence, &v->ranks);
	put_pid(e, &v->sentence);
	prb_str_putc(&v->sentence, ' ');
	for (size_t i = 0; i < rank_count(e); i++) {
		if (!is_absent(e, i))
			continue;
		if (v->ranks.list.count == 1 || seen(e, i)->gone)
			prb_why_put_absence(&v->sentence, seen(e, i), v->ranks.list.count > 1);
		else
			prb_str_puts(&v->sentence, "cannot go on");
		break;
	}
	prb_str_puts(&v->refuted_by, "the rank has ended as it should, and the others end soon");
	return NULL;
}

static size_t count_moving(const struct evidence *e)
{
	size_t count = 0;

	for (size_t i = 0; i < rank_count(e); i++)
		count += seen(e, i)->movement == PRB_MOVES;
	return count;
}

static size_t count_waiting(const struct evidence *e)
{
	size_t count = 0;

	for (size_t i = 0; i < rank_count(e); i++)
		count += seen(e, i)->collective && seen(e, i)->movement != PRB_MOVES;
	return count;
}

static size_t count_outside(const struct evidence *e)
{
	size_t count = 0;

	for (size_t i = 0; i < rank_count(e); i++)
		count += !seen(e, i)->entered && seen(e, i)->main;
	return count;
}

static bool judge_moves(const struct evidence *e)
{
	struct prb_verdict *v = e->verdict;
	size_t moving = count_moving(e);

	/* Ranks that stay in a collective wait for a rank that never enters one: it is late. */
	if (!moving || (count_waiting(e) && count_outside(e)))
		return false;
	v->kind = PRB_VERDICT_MOVES;
	v->confidence = "high";
	prb_str_printf(&v->sentence, "the job does not hang: %zu of %zu ranks moved within %.1f s",
		       moving, rank_count(e), e->round->span);
	prb_str_puts(&v->refuted_by, "the ranks repeat one step without ever finishing it");
	return true;
}

/** Ranks in a collective with another name than the others': nobody can finish. */
static struct prb_error *judge_mismatch(const struct evidence *e, bool *found)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_seen *first = NULL, *other = NULL;

	for (size_t i = 0; i < rank_count(e); i++) {
		const struct prb_seen *now = seen(e, i);

		if (!now->collective || seen(e, i)->movement == PRB_MOVES)
			continue;
		if (!first)
			first = now;
		else if (strcmp(first->collective, now->collective) && !other)
			other = now;
	}
	*found = other;
	if (!other)
		return NULL;
	for (size_t i = 0; i < rank_count(e); i++)
		if (seen(e, i)->collective && strcmp(seen(e, i)->collective, first->collective))
			PRB_TRY(add_rank(&v->ranks, seen(e, i)->rank->rank));
	v->kind = PRB_VERDICT_MISMATCH;
	v->confidence = "medium";
	put_ranks(&v->sentence, &v->ranks);
	prb_str_puts(&v->sentence, v->ranks.list.count == 1 ? " is in " : " are in ");
	prb_why_put_call(&v->sentence, other);
	prb_str_printf(&v->sentence, ", while rank %ld is in ", first->rank->rank);
	prb_why_put_call(&v->sentence, first);
	prb_str_puts(&v->refuted_by, "the two collectives belong to different process groups");
	return NULL;
}

/** Ranks outside of the collective that the others wait in. */
static struct prb_error *judge_late(const struct evidence *e, bool *found)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_seen *waiting = NULL, *late = NULL;

	for (size_t i = 0; i < rank_count(e); i++) {
		if (seen(e, i)->collective && seen(e, i)->movement != PRB_MOVES)
			waiting = seen(e, i);
		if (seen(e, i)->entered || !seen(e, i)->main)
			continue;
		late = late ? late : seen(e, i);
		PRB_TRY(add_rank(&v->ranks, seen(e, i)->rank->rank));
	}
	*found = waiting && late;
	if (!*found) {
		v->ranks.list.count = 0;
		return NULL;
	}
	v->kind = PRB_VERDICT_LATE;
	v->confidence = late->movement == PRB_STILL ? "high" : "medium";
	put_ranks(&v->sentence, &v->ranks);
	put_pid(e, &v->sentence);
	prb_str_puts(&v->sentence,
		     late->movement == PRB_STILL ? " never entered " : " has not yet entered ");
	prb_text_escape(&v->sentence, waiting->collective);
	prb_str_puts(&v->sentence, v->ranks.list.count == 1 ? "; it " : "; the first of them ");
	PRB_TRY(prb_why_put_reason(&v->sentence, &v->evidence, late));
	prb_str_puts(&v->refuted_by,
		     v->ranks.list.count == 1
			     ? "that rank is not a member of the group that waits"
			     : "those ranks are not members of the group that waits");
	return NULL;
}

static bool judge_cycle(const struct evidence *e)
{
	struct prb_verdict *v = e->verdict;

	for (size_t i = 0; i < rank_count(e); i++) {
		if (!seen(e, i)->cycle)
			continue;
		v->kind = PRB_VERDICT_CYCLE;
		v->confidence = "high";
		prb_str_printf(&v->sentence, "rank %ld", seen(e, i)->rank->rank);
		put_process(&v->sentence, seen(e, i)->rank);
		prb_str_puts(&v->sentence, " is deadlocked: ");
		prb_text_escape(&v->sentence, seen(e, i)->cycle);
		prb_str_puts(&v->refuted_by, "one of the locks is taken with a time limit");
		prb_auto_error struct prb_error *err = add_rank(&v->ranks, seen(e, i)->rank->rank);
		return !err;
	}
	return false;
}

/** True if that operation is between two ranks: whoever receives needs one that sends. */
static bool is_between_two(const char *collective)
{
	static const char *const names[] = {"recv", "send", "recv_object_list", "send_object_list"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		if (!strcmp(collective, names[i]))
			return true;
	return false;
}

static void judge_rest(const struct evidence *e)
{
	struct prb_verdict *v = e->verdict;
	size_t waiting = count_waiting(e);

	if (waiting && waiting == rank_count(e) && is_between_two(seen(e, 0)->collective)) {
		v->kind = PRB_VERDICT_MISMATCH;
		v->confidence = e->job->complete ? "high" : "low";
		prb_str_printf(&v->sentence, "all %zu ranks%s are in %s, so none does its part",
			       waiting, e->job->complete ? "" : " of this machine",
			       seen(e, 0)->collective);
		prb_str_puts(&v->refuted_by, "another thread of a rank does the other part");
		return;
	}
	if (waiting && waiting == rank_count(e)) {
		v->kind = PRB_VERDICT_DEVICE;
		v->confidence = e->job->complete ? "medium" : "low";
		prb_str_printf(&v->sentence,
			       "all %zu ranks%s are in %s and none of them goes on: device or "
			       "network, the host cannot see the culprit",
			       waiting, e->job->complete ? "" : " of this machine",
			       seen(e, 0)->collective);
		prb_str_puts(&v->refuted_by,
			     e->job->complete ? "the collective is slow, not stuck: look again"
					      : "a rank on another machine never entered it");
		return;
	}
	v->kind = PRB_VERDICT_UNKNOWN;
	v->confidence = "low";
	prb_str_puts(&v->sentence, "no rank moves, and none of them waits in a collective that is "
				   "known");
	prb_str_puts(&v->refuted_by, "the stacks say more: 'probing cluster dump'");
}

static struct prb_error *judge(const struct evidence *e)
{
	bool found = false;

	PRB_TRY(judge_absent(e, &found));
	if (found || judge_moves(e))
		return NULL;
	PRB_TRY(judge_mismatch(e, &found));
	if (found || judge_cycle(e))
		return NULL;
	PRB_TRY(judge_late(e, &found));
	if (!found)
		judge_rest(e);
	return NULL;
}

static void put_next(const struct evidence *e, const struct prb_rank *rank)
{
	struct prb_str *s = &e->verdict->next;

	if (e->bundle) {
		prb_str_puts(s, "probing ");
		prb_text_escape(s, e->bundle);
		prb_str_printf(s, "/%ld", rank->rank);
	} else if (rank->host) {
		prb_reach_suggest(e->reach, rank->host, (int)rank->pid, s);
		return;
	} else {
		prb_str_printf(s, "probing %d", (int)rank->pid);
	}
	prb_str_puts(s, " dump --locals");
}

static void suggest(const struct evidence *e)
{
	for (size_t i = 0; i < rank_count(e); i++)
		if (e->verdict->ranks.list.count && seen(e, i)->rank->pid &&
		    seen(e, i)->rank->rank == e->verdict->ranks.list.items[0] &&
		    !e->verdict->next.length)
			put_next(e, seen(e, i)->rank);
	if (e->verdict->next.length)
		return;
	prb_str_puts(&e->verdict->next, "probing ");
	if (e->bundle) {
		prb_text_escape(&e->verdict->next, e->bundle);
		prb_str_putc(&e->verdict->next, ' ');
	}
	prb_str_puts(&e->verdict->next, e->bundle ? "dump" : "cluster dump --native");
}

struct prb_error *prb_verdict_find(const struct prb_job *job, const struct prb_round *round,
				   const char *bundle, const struct prb_reach *reach,
				   struct prb_verdict *ret)
{
	const struct evidence e = {job, round, bundle, reach, ret};

	PRB_TRY(judge(&e));
	PRB_TRY(tell_collectives(&e));
	PRB_TRY(tell_others(&e));
	suggest(&e);
	return ret->sentence.failed || ret->evidence.failed ? prb_error_nomem() : NULL;
}
