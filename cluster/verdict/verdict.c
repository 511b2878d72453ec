/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/verdict/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "target/snapshot/bundle.h"
#include "cluster/looks/call.h"
#include "cluster/looks/operation.h"
#include "cluster/verdict/verdict_private.h"
#include "cluster/looks/why.h"

const char *prb_verdict_name(enum prb_verdict_kind kind)
{
	static const char *const names[] = {[PRB_VERDICT_MOVES] = "moves",
					    [PRB_VERDICT_ABSENT] = "absent",
					    [PRB_VERDICT_MISMATCH] = "mismatch",
					    [PRB_VERDICT_LATE] = "late",
					    [PRB_VERDICT_CYCLE] = "cycle",
					    [PRB_VERDICT_DEVICE] = "device",
					    [PRB_VERDICT_UNKNOWN] = "unknown",
					    [PRB_VERDICT_LEFT] = "left",
					    [PRB_VERDICT_UNREACHABLE] = "unreachable"};

	return names[kind];
}

void prb_verdict_deinit(struct prb_verdict *verdict)
{
	prb_vec_free(&verdict->ranks.list);
	prb_str_deinit(&verdict->sentence);
	prb_str_deinit(&verdict->evidence);
	prb_signs_deinit(&verdict->signs);
	prb_str_deinit(&verdict->rests_on);
	prb_str_deinit(&verdict->refuted_by);
	prb_str_deinit(&verdict->next);
}

static size_t rank_count(const struct prb_evidence *e)
{
	return e->round->list.count;
}

struct prb_error *prb_verdict_add(struct prb_rank_set *set, long rank)
{
	long *place = prb_vec_push(&set->list);

	if (!place)
		return prb_error_nomem();
	*place = rank;
	return NULL;
}

void prb_verdict_put_ranks(struct prb_str *s, const struct prb_rank_set *set)
{
	prb_str_puts(s, set->list.count == 1 ? "rank " : "ranks ");
	prb_rank_set_text(s, set);
}

void prb_verdict_put_process(struct prb_str *s, const struct prb_rank *rank)
{
	prb_str_puts(s, " (");
	if (rank->host) {
		prb_text_escape(s, rank->host);
		prb_str_puts(s, ", ");
	}
	prb_str_printf(s, "pid %d)", (int)rank->pid);
}

static int by_number(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

struct prb_error *prb_verdict_blame(struct prb_verdict *verdict, long rank)
{
	return prb_verdict_add(&verdict->ranks, rank);
}

void prb_verdict_sort(struct prb_verdict *verdict)
{
	qsort(verdict->ranks.list.items, verdict->ranks.list.count, sizeof(long), by_number);
}

void prb_verdict_put_pid(const struct prb_evidence *e, struct prb_str *s)
{
	for (size_t i = 0; i < rank_count(e); i++)
		if (e->verdict->ranks.list.count == 1 && prb_evidence_seen(e, i)->rank->pid &&
		    prb_evidence_seen(e, i)->rank->rank == e->verdict->ranks.list.items[0])
			prb_verdict_put_process(s, prb_evidence_seen(e, i)->rank);
}

/** One line for each collective that ranks wait in, with its ranks and the place of the call. */
static struct prb_error *tell_collectives(const struct prb_evidence *e)
{
	prb_auto_free bool *told = calloc(rank_count(e) + 1, sizeof(*told));

	if (!told)
		return prb_error_nomem();
	for (size_t i = 0; i < rank_count(e); i++) {
		const struct prb_seen *first = prb_evidence_seen(e, i);
		struct prb_rank_set set = {};
		struct prb_error *err = NULL;

		if (!first->collective || told[i])
			continue;
		for (size_t k = i; k < rank_count(e); k++) {
			if (told[k] || !prb_why_same_call(first, prb_evidence_seen(e, k)))
				continue;
			told[k] = true;
			if (!err)
				err = prb_verdict_add(&set, prb_evidence_seen(e, k)->rank->rank);
		}
		prb_verdict_put_ranks(&e->verdict->evidence, &set);
		prb_str_puts(&e->verdict->evidence, set.list.count == 1 ? " is in " : " are in ");
		prb_why_put_call(&e->verdict->evidence, first);
		prb_str_putc(&e->verdict->evidence, '\n');
		prb_vec_free(&set.list);
		PRB_TRY(err);
	}
	return NULL;
}

/** Appends what a rank is at, or why nothing of it was read; @p several ranks have that in common.
 */
static void put_state(struct prb_str *s, const struct prb_seen *seen, bool several)
{
	if (seen->main)
		prb_why_put_state(s, seen);
	else
		prb_why_put_absence(s, seen, several);
}

/** One line for all ranks that have the same to say as rank @p first; marks them in @p told. */
static struct prb_error *tell_alike(const struct prb_evidence *e, size_t first, bool *told)
{
	const struct prb_seen *seen = prb_evidence_seen(e, first);
	prb_auto_str struct prb_str line = {};
	struct prb_rank_set set = {};
	struct prb_error *err = NULL;

	put_state(&line, seen, false);
	for (size_t k = first; k < rank_count(e) && !err; k++) {
		prb_auto_str struct prb_str other = {};

		if (told[k] || prb_evidence_seen(e, k)->collective ||
		    (k != first && (seen->main || prb_evidence_seen(e, k)->main)))
			continue;
		put_state(&other, prb_evidence_seen(e, k), false);
		if (strcmp(prb_str_text(&other), prb_str_text(&line)) != 0)
			continue;
		told[k] = true;
		err = prb_verdict_add(&set, prb_evidence_seen(e, k)->rank->rank);
		if (seen->main)
			break;
	}
	prb_verdict_put_ranks(&e->verdict->evidence, &set);
	prb_str_putc(&e->verdict->evidence, ' ');
	put_state(&e->verdict->evidence, seen, set.list.count > 1);
	prb_str_putc(&e->verdict->evidence, '\n');
	prb_vec_free(&set.list);
	return err;
}

/** One line for each rank that is in no collective, and those that could not be read together. */
static struct prb_error *tell_others(const struct prb_evidence *e)
{
	prb_auto_free bool *told = calloc(rank_count(e) + 1, sizeof(*told));

	if (!told)
		return prb_error_nomem();
	for (size_t i = 0; i < rank_count(e); i++)
		if (!prb_evidence_seen(e, i)->collective && !told[i])
			PRB_TRY(tell_alike(e, i, told));
	return NULL;
}

static size_t count_moving(const struct prb_evidence *e)
{
	size_t count = 0;

	for (size_t i = 0; i < rank_count(e); i++)
		count += prb_evidence_seen(e, i)->movement == PRB_MOVES;
	return count;
}

size_t prb_evidence_waiting(const struct prb_evidence *e)
{
	size_t count = 0;

	for (size_t i = 0; i < rank_count(e); i++)
		count += prb_evidence_waits(prb_evidence_seen(e, i));
	return count;
}

static size_t count_outside(const struct prb_evidence *e)
{
	size_t count = 0;

	for (size_t i = 0; i < rank_count(e); i++)
		count += !prb_evidence_seen(e, i)->entered && prb_evidence_seen(e, i)->main;
	return count;
}

/**
 * True if the rank waits for the operation anew: it sleeps where it slept in the first look, but
 * not since then. Sleeps that a loop repeats, or that our own stops ended, do not count.
 */
static bool waits_anew(const struct prb_evidence *e, const struct prb_seen *seen)
{
	static const char futex[] = "futex";
	const struct prb_dump_frame *frame;

	if (seen->unnamed || seen->gpu || seen->main->idle_seconds < 0 ||
	    prb_evidence_slept(e, seen) || !seen->main->waits_for ||
	    strncmp(seen->main->waits_for, futex, strlen(futex)) != 0)
		return false;
	prb_vec_each (frame, &seen->main->frames)
		if (frame->kind != PRB_FRAME_PYTHON)
			return false;
	return true;
}

/** All ranks that wait in collectives have left them meanwhile, and come back: one is slow. */
static bool judge_slow(const struct prb_evidence *e)
{
	struct prb_verdict *v = e->verdict;
	size_t waiting = prb_evidence_waiting(e);

	for (size_t i = 0; i < rank_count(e); i++)
		if (prb_evidence_waits(prb_evidence_seen(e, i)) &&
		    !waits_anew(e, prb_evidence_seen(e, i)))
			return false;
	if (!waiting)
		return false;
	v->kind = PRB_VERDICT_MOVES;
	v->confidence = "medium";
	prb_str_printf(
		&v->sentence,
		"the job does not hang: all %zu ranks that wait in collectives have left them "
		"and come back within %.1f s",
		waiting, e->round->span);
	prb_str_puts(&v->refuted_by, "a loop with a time limit wakes them, and not the others");
	return true;
}

/** True if all ranks that move do so in loops that may ask for something that never comes. */
static bool only_poll(const struct prb_evidence *e)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &e->round->list)
		if (seen->movement == PRB_MOVES && !seen->polls)
			return false;
	return true;
}

static struct prb_error *judge_moves(const struct prb_evidence *e, bool *found)
{
	struct prb_verdict *v = e->verdict;
	size_t moving = count_moving(e);
	const struct prb_seen *seen;

	*found = judge_slow(e);
	if (*found)
		return NULL;
	/* Ranks that stay in a collective wait for a rank that never enters one: it is late. */
	*found = moving && !(prb_evidence_waiting(e) && count_outside(e));
	if (!*found)
		return NULL;
	v->kind = PRB_VERDICT_MOVES;
	v->confidence = only_poll(e) ? "low" : "high";
	prb_str_printf(&v->sentence, "%s: %zu of %zu ranks moved within %.1f s",
		       only_poll(e) ? "maybe the job does not hang" : "the job does not hang",
		       moving, rank_count(e), e->round->span);
	if (only_poll(e))
		prb_str_puts(&v->sentence,
			     ", but each repeats one function without using the processor, and no "
			     "number in it changes: it may ask for what never comes");
	prb_verdict_put_ends(e);
	prb_str_puts(&v->refuted_by, "the ranks repeat one step without ever finishing it");
	prb_vec_each (seen, &e->round->list)
		if (seen->movement == PRB_MOVES && v->signs.list.count < 2)
			PRB_TRY(prb_verdict_sign_stack(e, seen));
	return NULL;
}

/** The owners of the locks, and that all of them sleep: a wait with a time limit begins anew. */
static struct prb_error *sign_cycle(const struct prb_evidence *e, const struct prb_seen *seen)
{
	struct prb_str *s;

	PRB_TRY(prb_signs_add(&e->verdict->signs, PRB_SIGN_OWNER, seen->rank->rank, &s));
	prb_str_puts(s, "the locks say which threads hold them");
	return prb_evidence_slept(e, seen) ? prb_verdict_sign_still(e, seen) : NULL;
}

/** Threads that wait for each other's locks; with @p idle, only of ranks in no collective. */
static struct prb_error *judge_cycle(const struct prb_evidence *e, bool idle, bool *found)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_seen *seen;

	prb_vec_each (seen, &e->round->list) {
		if (!seen->cycle || (idle && seen->collective))
			continue;
		*found = true;
		v->kind = PRB_VERDICT_CYCLE;
		v->confidence = "high";
		prb_str_printf(&v->sentence, "rank %ld", seen->rank->rank);
		prb_verdict_put_process(&v->sentence, seen->rank);
		prb_str_puts(&v->sentence, " is deadlocked: ");
		prb_text_escape(&v->sentence, seen->cycle);
		prb_str_puts(&v->refuted_by, "one of the locks is taken with a time limit");
		PRB_TRY(sign_cycle(e, seen));
		return prb_verdict_add(&v->ranks, seen->rank->rank);
	}
	return NULL;
}

/** A rank that waits; *same: all that wait are in its operation. */
static const struct prb_seen *find_waiting(const struct prb_evidence *e, bool *same)
{
	const struct prb_seen *seen, *first = NULL;

	*same = true;
	prb_vec_each (seen, &e->round->list) {
		if (!prb_evidence_waits(seen))
			continue;
		first = first ? first : seen;
		*same &= !strcmp(seen->collective, first->collective);
	}
	return first;
}

/** A rank that did not move, which shows that the job does not go on; NULL: all of them compute. */
static const struct prb_seen *find_still(const struct prb_evidence *e)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &e->round->list)
		if (seen->movement == PRB_STILL)
			return seen;
	return NULL;
}

/** All ranks wait, and all of them in what fits together. */
static struct prb_error *judge_device(const struct prb_evidence *e, const struct prb_seen *first,
				      bool same)
{
	struct prb_verdict *v = e->verdict;
	const struct prb_seen *still = find_still(e);
	bool pairs = same && prb_operation_is_between_two(first->collective);

	PRB_TRY(prb_verdict_sign_waiter(e, first, false));
	if (still)
		PRB_TRY(prb_verdict_sign_still(e, still));
	v->kind = pairs ? PRB_VERDICT_MISMATCH : PRB_VERDICT_DEVICE;
	/* Ranks that wait by computing may have gone on, and come back to the same place. */
	v->confidence = !e->job->complete || !still ? "low" : pairs ? "high" : "medium";
	prb_str_printf(&v->sentence, "all %zu ranks%s are in ", rank_count(e),
		       e->job->complete ? "" : " of this machine");
	if (same)
		prb_why_put_operation(&v->sentence, first);
	else
		prb_str_puts(&v->sentence, "operations that fit together");
	prb_str_puts(&v->sentence, pairs ? ", so none does its part"
					 : " and none of them goes on: device or network, the host "
					   "cannot see the culprit");
	prb_str_puts(&v->refuted_by, pairs ? "another thread of a rank does the other part"
				     : e->job->complete
					     ? "the collective is slow, not stuck: look again"
					     : "a rank on another machine never entered it");
	return NULL;
}

static struct prb_error *judge_rest(const struct prb_evidence *e)
{
	struct prb_verdict *v = e->verdict;
	bool same;
	const struct prb_seen *first = find_waiting(e, &same);

	if (first && prb_evidence_waiting(e) == rank_count(e))
		return judge_device(e, first, same);
	v->kind = PRB_VERDICT_UNKNOWN;
	v->confidence = "low";
	prb_str_puts(&v->sentence, first ? "ranks wait in collectives, and nothing says for whom"
					 : "no rank moves, and none of them waits in a collective "
					   "that is known");
	prb_str_puts(&v->refuted_by, "the stacks say more: 'probing cluster dump'");
	return NULL;
}

static struct prb_error *judge(const struct prb_evidence *e)
{
	bool found = false;

	PRB_TRY(prb_verdict_find_held(e, &found));
	if (!found)
		PRB_TRY(prb_verdict_find_ended(e, true, &found));
	if (!found)
		PRB_TRY(judge_moves(e, &found));
	if (found)
		return NULL;
	PRB_TRY(judge_cycle(e, true, &found));
	if (!found)
		PRB_TRY(prb_verdict_find_flight(e, &found));
	if (!found)
		PRB_TRY(prb_verdict_find_waits(e, &found));
	if (!found)
		PRB_TRY(judge_cycle(e, false, &found));
	if (!found)
		PRB_TRY(prb_verdict_find_ended(e, false, &found));
	if (!found)
		PRB_TRY(prb_verdict_find_left(e, &found));
	if (!found)
		PRB_TRY(prb_verdict_find_closed(e, &found));
	if (!found)
		PRB_TRY(prb_verdict_find_unreachable(e, &found));
	if (!found)
		PRB_TRY(prb_verdict_find_unasked(e, &found));
	return found ? NULL : judge_rest(e);
}

/** True if the bundle has a snapshot of that rank: a host may have sent its looks only. */
static bool is_saved(const char *path, long rank)
{
	prb_auto_bundle struct prb_bundle bundle = PRB_NO_BUNDLE;
	prb_auto_error struct prb_error *err = prb_bundle_open(path, &bundle);

	return !err && prb_bundle_find(&bundle, PRB_BUNDLE_SNAPSHOT, rank);
}

/** Suggests to look at a rank, or at the process that it waits for in the end. */
static void put_next(const struct prb_evidence *e, const struct prb_seen *seen)
{
	const struct prb_rank *rank = seen->rank;
	int pid = (int)(seen->keeper ? seen->keeper : rank->pid);
	struct prb_str *s = &e->verdict->next;

	if (e->bundle && is_saved(e->bundle, rank->rank)) {
		prb_str_puts(s, "probing ");
		prb_text_escape(s, e->bundle);
		prb_str_printf(s, "/%ld", rank->rank);
	} else if (rank->host) {
		prb_reach_suggest(e->reach, rank->host, pid, s);
		return;
	} else {
		prb_str_printf(s, "probing %d", pid);
	}
	prb_str_puts(s, " dump --locals");
}

/** Appends the command that runs @p action on the same job. */
static void put_action(const struct prb_evidence *e, const char *action)
{
	struct prb_str *s = &e->verdict->next;
	size_t i = 0;

	prb_str_printf(s, "probing cluster %s", action);
	if (e->reach && prb_reach_is_far(e->reach)) {
		prb_reach_put_options(e->reach, s);
		return;
	}
	while (i < rank_count(e) && !prb_evidence_seen(e, i)->rank->pid)
		i++;
	if (i < rank_count(e))
		prb_str_printf(s, " %d", (int)prb_evidence_seen(e, i)->rank->pid);
}

/** The first rank that is named, if it has a process. */
static const struct prb_seen *find_named(const struct prb_evidence *e)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &e->round->list)
		if (e->verdict->ranks.list.count && seen->rank->pid &&
		    seen->rank->rank == e->verdict->ranks.list.items[0])
			return seen;
	return NULL;
}

/** True if the job runs on other machines, too, which were not asked. */
static bool is_part(const struct prb_evidence *e)
{
	return !e->bundle && !e->job->complete && !(e->reach && prb_reach_is_far(e->reach)) &&
	       e->job->world_size > (long)rank_count(e);
}

/** The command that asks all machines of the job. Only Slurm knows which they are. */
static void put_others(const struct prb_evidence *e)
{
	struct prb_str *s = &e->verdict->next;

	prb_str_puts(s, "probing cluster hang ");
	if (e->job->slurm) {
		prb_str_puts(s, "--slurm ");
		prb_text_escape(s, e->job->slurm);
	} else {
		prb_str_printf(s,
			       "--hosts HOSTS, all hosts of the job: %zu of its %ld ranks are here",
			       rank_count(e), e->job->world_size);
	}
}

static void suggest(const struct prb_evidence *e)
{
	const struct prb_seen *named = find_named(e);
	bool moves =
		e->verdict->kind == PRB_VERDICT_MOVES ||
		(e->verdict->kind == PRB_VERDICT_LATE && named && named->movement == PRB_MOVES);

	if (moves && !e->bundle) {
		put_action(e, "slow");
	} else if (e->verdict->kind == PRB_VERDICT_UNREACHABLE && !e->bundle) {
		put_action(e, "hang --timeout 60s");
	} else if (named) {
		put_next(e, named);
	} else if (is_part(e)) {
		put_others(e);
	} else if (e->bundle) {
		prb_str_puts(&e->verdict->next, "probing ");
		prb_text_escape(&e->verdict->next, e->bundle);
		prb_str_puts(&e->verdict->next, " dump");
	} else {
		put_action(e, "dump --native");
	}
}

/** Prints what was read of how many ranks, and why there are no flight recorders. */
static struct prb_error *tell_grounds(const struct prb_evidence *e)
{
	struct prb_str *s = &e->verdict->rests_on;
	const struct prb_seen *seen;
	const char *why = NULL;
	size_t stacks = 0, asked = 0;
	struct prb_rank_set with = {};
	struct prb_error *err = NULL;

	prb_vec_each (seen, &e->round->list) {
		stacks += seen->main != NULL;
		asked += seen->flight || seen->no_flight;
		why = why ? why : seen->no_flight;
		if (seen->flight && !err)
			err = prb_verdict_add(&with, seen->rank->rank);
	}
	prb_str_printf(s, "the stacks of %zu of %zu ranks, seen for %.1f s", stacks, rank_count(e),
		       e->round->span);
	if (with.list.count) {
		prb_str_puts(s, with.list.count == 1 ? "; the flight recorder of "
						     : "; the flight recorders of ");
		prb_verdict_put_ranks(s, &with);
	}
	if (asked > with.list.count) {
		prb_str_puts(s,
			     with.list.count ? ", not of the others: " : "; no flight recorder: ");
		prb_text_escape(s, why);
	}
	prb_vec_free(&with.list);
	return err;
}

struct prb_error *prb_verdict_find(const struct prb_job *job, const struct prb_round *round,
				   const char *bundle, const struct prb_reach *reach,
				   const struct prb_ras *ras, struct prb_verdict *ret)
{
	const struct prb_evidence e = {job, round, bundle, reach, ret};

	PRB_TRY(judge(&e));
	if (ras && reach->ras_said)
		PRB_TRY(prb_verdict_weigh_ras(&e, reach->ras_said, ras));
	ret->confidence = prb_signs_confidence(&ret->signs, ret->confidence);
	PRB_TRY(tell_collectives(&e));
	PRB_TRY(tell_others(&e));
	PRB_TRY(tell_grounds(&e));
	suggest(&e);
	return ret->sentence.failed || ret->evidence.failed || ret->rests_on.failed
		       ? prb_error_nomem()
		       : NULL;
}
