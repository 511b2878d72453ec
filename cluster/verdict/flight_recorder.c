/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Judges a job by the numbers of its collectives, which torch's flight recorders have. In each
 * process group the first collective that some rank cannot end decides: members that have not
 * called it are late; if all have called it, but not the same one, they do not match.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/looks/flight.h"
#include "cluster/looks/thread_text.h"
#include "cluster/verdict/verdict_private.h"
#include "cluster/verdict/waiters.h"
#include "cluster/looks/why.h"

/** A process group of one rank. */
struct entry {
	const struct prb_flight_group *group;
	size_t index; /* of the rank in the round */
};

/** The entries of all ranks for one group: [from, to). */
struct together {
	size_t from, to;
	long stuck; /* number of the first collective that some rank cannot end; 0: none */
	const struct entry *first;	    /* a rank that is in there */
	const struct prb_flight_call *call; /* its */
	const struct entry *other;	    /* a rank that called a different collective, or NULL */
	bool *late;			    /* by the index in the round: has not called it */
	size_t late_count;
	bool complete; /* the recorders of all members were read */
};

struct flights {
	const struct prb_evidence *e;
	PRB_VEC(struct entry) entries; /* by group, then by rank */
};

static int compare_texts(const char *a, const char *b)
{
	return !a || !b ? !b - !a : strcmp(a, b);
}

static int by_group(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->group->name, y->group->name);

	if (!order)
		order = compare_texts(x->group->members, y->group->members);
	return order ? order : (x->index > y->index) - (x->index < y->index);
}

static bool same_group(const struct entry *a, const struct entry *b)
{
	return !strcmp(a->group->name, b->group->name) &&
	       !compare_texts(a->group->members, b->group->members);
}

static struct prb_error *collect(struct flights *f)
{
	for (size_t i = 0; i < f->e->round->list.count; i++) {
		const struct prb_flight *flight = prb_evidence_seen(f->e, i)->flight;
		const struct prb_flight_group *group;

		if (!flight)
			continue;
		prb_vec_each (group, &flight->groups) {
			struct entry *entry = prb_vec_push(&f->entries);

			if (!entry)
				return prb_error_nomem();
			*entry = (struct entry){group, i};
		}
	}
	if (f->entries.count)
		qsort(f->entries.items, f->entries.count, sizeof(*f->entries.items), by_group);
	return NULL;
}

/** True if the rank has called a collective that has not ended, or waits for one other rank. */
static bool is_stuck(const struct prb_seen *seen)
{
	const struct prb_flight_group *group;

	if (prb_evidence_waits(seen) && prb_waits_for_one(seen))
		return true;
	prb_vec_each (group, &seen->flight->groups)
		if (group->open.count)
			return true;
	return false;
}

/** Ranks of the group, as far as they are known: by the index in the round. */
static struct prb_error *find_members(const struct flights *f, const struct together *t, bool **ret)
{
	size_t count = f->e->round->list.count;

	*ret = calloc(count + 1, sizeof(**ret));
	if (!*ret)
		return prb_error_nomem();
	if (f->entries.items[t->from].group->members)
		prb_waits_note_members(f->e->round, f->entries.items[t->from].group->members, *ret);
	else
		for (size_t i = t->from; i < t->to; i++)
			(*ret)[f->entries.items[i].index] = true;
	return NULL;
}

/** True if the two have called different things, which no rank can then end. */
static bool is_other(const struct prb_flight_call *a, const struct prb_flight_call *b)
{
	return strcmp(a->operation, b->operation) != 0 ||
	       (a->data && b->data && prb_waits_is_uniform(a->operation) &&
		strcmp(a->data, b->data) != 0);
}

/** Finds the first collective of the group that a rank called and cannot end, and that rank. */
static void find_stuck(const struct flights *f, struct together *t)
{
	for (size_t i = t->from; i < t->to; i++) {
		const struct entry *entry = &f->entries.items[i];
		const struct prb_flight_call *call =
			entry->group->open.count ? entry->group->open.items : NULL;

		if (!call || (t->stuck && call->seq >= t->stuck))
			continue;
		t->stuck = call->seq;
		t->first = entry;
		t->call = call;
	}
}

static struct prb_error *judge_group(const struct flights *f, struct together *t)
{
	prb_auto_free bool *members = NULL;

	find_stuck(f, t);
	if (!t->stuck)
		return NULL;
	PRB_TRY(find_members(f, t, &members));
	t->late = calloc(f->e->round->list.count + 1, sizeof(*t->late));
	if (!t->late)
		return prb_error_nomem();
	/* Recorders of members that know nothing of the group: they have called nothing. */
	t->complete = f->entries.items[t->from].group->members && f->e->job->complete;
	for (size_t i = 0; i < f->e->round->list.count; i++) {
		t->late[i] = members[i] && prb_evidence_seen(f->e, i)->flight;
		t->complete &= !members[i] || t->late[i];
	}
	for (size_t i = t->from; i < t->to; i++) {
		const struct entry *entry = &f->entries.items[i];
		const struct prb_flight_call *call = prb_flight_find(entry->group, t->stuck);

		if (entry->group->entered >= t->stuck)
			t->late[entry->index] = false;
		if (call && !t->other && is_other(t->call, call))
			t->other = entry;
	}
	for (size_t i = 0; i < f->e->round->list.count; i++)
		t->late_count += t->late[i];
	return NULL;
}

/** Appends the number of the last collective that the rank has called in the group. */
static void put_last(const struct flights *f, const struct together *t, size_t index,
		     struct prb_str *s)
{
	for (size_t i = t->from; i < t->to; i++)
		if (f->entries.items[i].index == index && f->entries.items[i].group->entered) {
			prb_str_printf(s, "its last one there is #%ld",
				       f->entries.items[i].group->entered);
			return;
		}
	prb_str_puts(s, "it has called none there");
}

/** "flight recorder: ranks 0-2 have called all_reduce #57 of group default_pg ((4,) float32)". */
static struct prb_error *tell(const struct flights *f, const struct together *t)
{
	struct prb_str *s = &f->e->verdict->evidence;
	struct prb_rank_set set = {};
	struct prb_error *err = NULL;

	for (size_t i = t->from; i < t->to && !err; i++) {
		const struct entry *entry = &f->entries.items[i];
		const struct prb_flight_call *call = prb_flight_find(entry->group, t->stuck);
		long *place = call && !is_other(t->call, call) ? prb_vec_push(&set.list) : NULL;

		if (place)
			*place = prb_evidence_seen(f->e, entry->index)->rank->rank;
		else if (call && !is_other(t->call, call))
			err = prb_error_nomem();
	}
	prb_str_puts(s, "flight recorder: ");
	prb_verdict_put_ranks(s, &set);
	prb_str_puts(s, set.list.count == 1 ? " has called " : " have called ");
	prb_flight_put_call(s, t->first->group, t->call);
	if (t->call->data) {
		prb_str_puts(s, " (");
		prb_text_escape(s, t->call->data);
		prb_str_putc(s, ')');
	}
	prb_vec_free(&set.list);
	return err;
}

static struct prb_error *sign(const struct flights *f, const struct together *t, const char *what)
{
	struct prb_str *s;

	PRB_TRY(prb_signs_add(&f->e->verdict->signs, PRB_SIGN_RECORDER, -1, &s));
	prb_str_printf(s, "%s ", what);
	prb_flight_put_call(s, t->first->group, t->call);
	return NULL;
}

static struct prb_error *tell_late(const struct flights *f, const struct together *t)
{
	struct prb_str *s = &f->e->verdict->evidence;
	size_t told = 0;

	PRB_TRY(tell(f, t));
	for (size_t i = 0; i < f->e->round->list.count; i++) {
		if (!t->late[i] || told++ >= 4)
			continue;
		prb_str_printf(s, "; rank %ld has not: ", prb_evidence_seen(f->e, i)->rank->rank);
		put_last(f, t, i, s);
	}
	if (told > 4)
		prb_str_printf(s, "; and %zu more have not", told - 4);
	prb_str_putc(s, '\n');
	return NULL;
}

/** Members that have not made the call that others wait in, and that wait for no rank. */
static struct prb_error *judge_late(const struct flights *f, const struct together *t)
{
	struct prb_verdict *v = f->e->verdict;
	const struct prb_seen *late = NULL;

	for (size_t i = 0; i < f->e->round->list.count; i++) {
		const struct prb_seen *seen = prb_evidence_seen(f->e, i);

		if (!t->late[i] || is_stuck(seen))
			continue;
		late = late ? late : seen;
		PRB_TRY(prb_verdict_blame(v, seen->rank->rank));
	}
	if (!late)
		return prb_error_create(PRB_ERROR_FAILED, "no rank is late");
	v->kind = PRB_VERDICT_LATE;
	v->confidence = late->movement == PRB_STILL && !late->guessed ? "high" : "medium";
	PRB_TRY(sign(f, t, "the named ranks have not called"));
	PRB_TRY(prb_verdict_sign_stack(f->e, late));
	PRB_TRY(prb_verdict_sign_still(f->e, late));
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	if (v->ranks.list.count == 1)
		prb_verdict_put_process(&v->sentence, late->rank);
	prb_str_puts(&v->sentence,
		     late->movement == PRB_STILL ? " never entered " : " has not yet entered ");
	prb_flight_put_call(&v->sentence, t->first->group, t->call);
	prb_str_puts(&v->sentence, v->ranks.list.count == 1 ? "; it " : "; the first of them ");
	prb_why_put_reason(&v->sentence, late);
	prb_str_puts(&v->refuted_by, "it is only slow, and goes on: look again");
	return tell_late(f, t);
}

static void put_called(struct prb_str *s, const struct prb_seen *seen, const struct together *t,
		       const struct prb_flight_group *group)
{
	const struct prb_flight_call *call = prb_flight_find(group, t->stuck);

	prb_str_puts(s, "called ");
	prb_text_escape(s, call->operation);
	if (call->data) {
		prb_str_puts(s, " of ");
		prb_text_escape(s, call->data);
	}
	if (seen->collective && seen->caller) {
		prb_str_puts(s, " at ");
		prb_put_caller(s, seen->main, seen->caller);
	}
}

/** The numbers, and the stacks if these show two different calls, too. */
static struct prb_error *sign_mismatch(const struct flights *f, const struct together *t,
				       const struct entry *few, const struct entry *most)
{
	const struct prb_seen *a = prb_evidence_seen(f->e, few->index);
	const struct prb_seen *b = prb_evidence_seen(f->e, most->index);

	PRB_TRY(sign(f, t, "not all members have called"));
	if (!prb_evidence_waits(a) || !prb_evidence_waits(b) ||
	    prb_waits_compare(a, b) == PRB_SAME_CALL)
		return NULL;
	PRB_TRY(prb_verdict_sign_stack(f->e, a));
	return prb_verdict_sign_stack(f->e, b);
}

/** Members that have called something else under the same number than most have. */
static struct prb_error *judge_mismatch(const struct flights *f, const struct together *t)
{
	struct prb_verdict *v = f->e->verdict;
	size_t like[2] = {};
	const struct entry *most = t->first, *few = t->other;

	for (size_t pass = 0; pass < 2; pass++) {
		const struct prb_flight_call *usual = prb_flight_find(most->group, t->stuck);

		for (size_t i = t->from; i < t->to; i++) {
			const struct entry *entry = &f->entries.items[i];
			const struct prb_flight_call *call =
				prb_flight_find(entry->group, t->stuck);
			bool odd = call && is_other(usual, call);

			if (call && !pass)
				like[odd]++;
			else if (call && odd)
				PRB_TRY(prb_verdict_blame(
					v, prb_evidence_seen(f->e, entry->index)->rank->rank));
		}
		if (!pass && like[1] > like[0]) {
			most = t->other;
			few = t->first;
		}
	}
	v->kind = PRB_VERDICT_MISMATCH;
	v->confidence = "high";
	PRB_TRY(sign_mismatch(f, t, few, most));
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	prb_str_putc(&v->sentence, ' ');
	put_called(&v->sentence, prb_evidence_seen(f->e, few->index), t, few->group);
	prb_str_printf(&v->sentence, ", as #%ld of group ", t->stuck);
	prb_text_escape(&v->sentence, few->group->about ? few->group->about : few->group->name);
	prb_str_printf(&v->sentence, ", where rank %ld ",
		       prb_evidence_seen(f->e, most->index)->rank->rank);
	put_called(&v->sentence, prb_evidence_seen(f->e, most->index), t, most->group);
	prb_str_puts(&v->refuted_by,
		     "a program that calls one collective from several threads: then the order of "
		     "the numbers says nothing");
	PRB_TRY(tell(f, t));
	prb_str_putc(&v->evidence, '\n');
	return NULL;
}

/** All members have called the same, and not all of them can end it. */
static struct prb_error *judge_device(const struct flights *f, const struct together *t)
{
	struct prb_verdict *v = f->e->verdict;
	size_t ended = 0;

	for (size_t i = t->from; i < t->to; i++) {
		const struct entry *entry = &f->entries.items[i];

		if (!prb_flight_find(entry->group, t->stuck))
			ended++;
		else
			PRB_TRY(prb_verdict_blame(
				v, prb_evidence_seen(f->e, entry->index)->rank->rank));
	}
	v->kind = PRB_VERDICT_DEVICE;
	v->confidence = "medium";
	PRB_TRY(sign(f, t, "all members have called"));
	prb_verdict_put_ranks(&v->sentence, &v->ranks);
	prb_str_puts(&v->sentence, " cannot end ");
	prb_flight_put_call(&v->sentence, t->first->group, t->call);
	prb_str_puts(&v->sentence, ended ? ", which the other members have ended"
					 : ", which all members have called in the same way");
	prb_str_puts(&v->sentence, ": device or network, the host cannot see the culprit");
	prb_str_puts(&v->refuted_by, "the collective is slow, not stuck: look again");
	PRB_TRY(tell(f, t));
	prb_str_putc(&v->evidence, '\n');
	if (!ended)
		v->ranks.list.count = 0;
	return NULL;
}

/** The number of late members that wait for no rank. */
static size_t count_free(const struct flights *f, const struct together *t)
{
	size_t count = 0;

	for (size_t i = 0; i < f->e->round->list.count; i++)
		count += t->late[i] && !is_stuck(prb_evidence_seen(f->e, i));
	return count;
}

/** How well a finding explains the others; 0: it is none. */
enum finding { NOTHING, ALL_CALLED, SOME_FREE, ALL_FREE, OTHER_CALL };

static enum finding find(const struct flights *f, const struct together *t)
{
	size_t free_count = t->stuck ? count_free(f, t) : 0;

	if (!t->stuck)
		return NOTHING;
	if (t->other)
		return OTHER_CALL;
	if (t->late_count)
		return !free_count ? NOTHING : free_count == t->late_count ? ALL_FREE : SOME_FREE;
	return t->complete ? ALL_CALLED : NOTHING;
}

/** True if a rank waits in a collective, and none for one other rank. */
static bool waits_together(const struct prb_evidence *e)
{
	bool any = false;

	for (size_t i = 0; i < e->round->list.count; i++) {
		const struct prb_seen *seen = prb_evidence_seen(e, i);

		if (prb_evidence_waits(seen) && prb_waits_for_one(seen))
			return false;
		any |= prb_evidence_waits(seen);
	}
	return any;
}

static struct prb_error *judge(const struct flights *f, const struct together *t,
			       enum finding finding)
{
	return finding == OTHER_CALL   ? judge_mismatch(f, t)
	       : finding == ALL_CALLED ? judge_device(f, t)
				       : judge_late(f, t);
}

/** Finds the group that explains most. */
static struct prb_error *find_worst(const struct flights *f, struct together *worst,
				    enum finding *found)
{
	for (size_t from = 0, to; from < f->entries.count; from = to) {
		struct together t = {.from = from};
		struct prb_error *err;

		for (to = from + 1; to < f->entries.count &&
				    same_group(&f->entries.items[from], &f->entries.items[to]);)
			to++;
		t.to = to;
		err = judge_group(f, &t);
		if (!err && find(f, &t) > *found) {
			free(worst->late);
			*found = find(f, &t);
			*worst = t;
			t.late = NULL;
		}
		free(t.late);
		PRB_TRY(err);
	}
	return NULL;
}

struct prb_error *prb_verdict_find_flight(const struct prb_evidence *e, bool *found)
{
	struct flights f = {.e = e};
	struct together worst = {};
	enum finding finding = NOTHING;
	struct prb_error *err = collect(&f);

	if (!err)
		err = find_worst(&f, &worst, &finding);
	/* If no rank is late, the stacks show which ranks wait in something else. */
	*found = finding > ALL_CALLED || (finding == ALL_CALLED && waits_together(e));
	if (!err && *found)
		err = judge(&f, &worst, finding);
	free(worst.late);
	prb_vec_free(&f.entries);
	return err;
}
