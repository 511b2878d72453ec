/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Weighs a verdict by what NCCL's RAS service says: which ranks it cannot reach, and which have
 * launched fewer collectives than the other ranks of a communicator. Counts that grow between two
 * answers are not judged: NCCL is faster than RAS.
 */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/reach/ras.h"
#include "cluster/verdict/verdict_private.h"
#include "cluster/looks/why.h"

enum { MOST_TOLD = 4 }; /* communicators */

/** A rank of the round, by its process. */
struct process {
	long pid;
	const char *host;
	size_t index;
};

struct weighing {
	const struct prb_evidence *e;
	const struct prb_ras *before, *after;
	PRB_VEC(struct process) processes; /* by pid */
	bool *behind, *beyond;		   /* by the index in the round: launched too few; not
					      reached by RAS */
	size_t same, grown, told;	   /* communicators */
	/* The first communicator of which a rank is behind. */
	const struct prb_ras_communicator *odd;
	int operation;
};

static int by_pid(const void *a, const void *b)
{
	const struct process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static struct prb_error *note_processes(struct weighing *w)
{
	const struct prb_round *round = w->e->round;

	for (size_t i = 0; i < round->list.count; i++) {
		const struct prb_rank *rank = round->list.items[i].rank;
		struct process *place = rank->pid ? prb_vec_push(&w->processes) : NULL;

		if (place)
			*place = (struct process){rank->pid, rank->host, i};
		else if (rank->pid)
			return prb_error_nomem();
	}
	if (w->processes.count)
		qsort(w->processes.items, w->processes.count, sizeof(struct process), by_pid);
	w->behind = calloc(round->list.count + 1, sizeof(bool));
	w->beyond = calloc(round->list.count + 1, sizeof(bool));
	return w->behind && w->beyond ? NULL : prb_error_nomem();
}

/** The index in the round of a rank of a communicator; -1 if it is not known which it is. */
static long index_of(const struct weighing *w, const struct prb_ras_communicator *communicator,
		     const struct prb_ras_rank *rank)
{
	const struct prb_round *round = w->e->round;
	size_t from = 0, to = w->processes.count;

	while (from < to) {
		size_t middle = from + (to - from) / 2;

		if (w->processes.items[middle].pid < rank->pid)
			from = middle + 1;
		else
			to = middle;
	}
	for (; from < w->processes.count && w->processes.items[from].pid == rank->pid; from++)
		if (rank->host && w->processes.items[from].host &&
		    !strcmp(rank->host, w->processes.items[from].host))
			return (long)w->processes.items[from].index;
	/* A communicator of all ranks counts them as the job does. */
	if (communicator->size == w->e->job->world_size && rank->rank >= 0 &&
	    (size_t)rank->rank < round->list.count &&
	    round->list.items[rank->rank].rank->rank == rank->rank &&
	    !round->list.items[rank->rank].rank->pid)
		return rank->rank;
	return -1;
}

static void put_communicator(struct prb_str *s, const struct prb_ras_communicator *communicator)
{
	prb_str_printf(s, "communicator %s (%ld ranks)", communicator->name, communicator->size);
}

/** Ranks of a communicator, in words. */
struct named {
	struct prb_rank_set job, own; /* numbers of the job; of the communicator, if not known */
	int64_t least, most;	      /* of their counts */
};

static size_t named_count(const struct named *named)
{
	return named->job.list.count + named->own.list.count;
}

static void named_deinit(struct named *named)
{
	prb_vec_free(&named->job.list);
	prb_vec_free(&named->own.list);
}

static int by_number(const void *a, const void *b)
{
	const long *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void put_set(struct prb_str *s, struct prb_rank_set *set, const char *what)
{
	if (!set->list.count)
		return;
	qsort(set->list.items, set->list.count, sizeof(long), by_number);
	prb_verdict_put_ranks(s, set);
	prb_str_puts(s, what);
}

static void put_named(struct prb_str *s, struct named *named)
{
	put_set(s, &named->job, "");
	if (named->job.list.count && named->own.list.count)
		prb_str_puts(s, " and ");
	put_set(s, &named->own, " of it");
}

static void put_counts(struct prb_str *s, const struct named *named)
{
	prb_str_printf(s, " %lld", (long long)named->least);
	if (named->most != named->least)
		prb_str_printf(s, " to %lld", (long long)named->most);
	prb_str_puts(s, named->most == 1 ? " time" : " times");
}

static struct prb_error *add_named(const struct weighing *w,
				   const struct prb_ras_communicator *communicator,
				   const struct prb_ras_rank *rank, int64_t count,
				   struct named *ret)
{
	long index = index_of(w, communicator, rank);
	struct prb_rank_set *set = index >= 0 ? &ret->job : &ret->own;
	bool first = !named_count(ret);
	long *place = prb_vec_push(&set->list);

	if (!place)
		return prb_error_nomem();
	*place = index >= 0 ? prb_evidence_seen(w->e, (size_t)index)->rank->rank : rank->rank;
	ret->least = first ? count : PRB_MIN(ret->least, count);
	ret->most = first ? count : PRB_MAX(ret->most, count);
	return NULL;
}

/** How often the ranks that answered have launched an operation, at most. */
static int64_t highest_count(const struct prb_ras_communicator *communicator, int operation)
{
	const struct prb_ras_rank *rank;
	int64_t highest = INT64_MIN;

	prb_vec_each (rank, &communicator->ranks)
		if (!rank->missing)
			highest = PRB_MAX(highest, rank->counts[operation]);
	return highest;
}

/** Splits the ranks that answered: those with the highest count, and those with a lower one. */
static struct prb_error *divide(const struct weighing *w,
				const struct prb_ras_communicator *communicator, int operation,
				struct named *most, struct named *fewer)
{
	const int64_t highest = highest_count(communicator, operation);
	const struct prb_ras_rank *rank;

	prb_vec_each (rank, &communicator->ranks) {
		int64_t count = rank->counts[operation];

		if (!rank->missing)
			PRB_TRY(add_named(w, communicator, rank, count,
					  count == highest ? most : fewer));
	}
	return NULL;
}

/** "ranks 0-2 have launched AllReduce 57 times, rank 3 56 times in communicator 0x1 (4 ranks)". */
static struct prb_error *put_division(const struct weighing *w,
				      const struct prb_ras_communicator *communicator,
				      int operation, struct prb_str *s)
{
	__attribute__((cleanup(named_deinit))) struct named most = {}, fewer = {};

	PRB_TRY(divide(w, communicator, operation, &most, &fewer));
	put_named(s, &most);
	prb_str_puts(s, named_count(&most) == 1 ? " has launched " : " have launched ");
	prb_text_escape(s, communicator->operations[operation]);
	put_counts(s, &most);
	prb_str_puts(s, ", ");
	put_named(s, &fewer);
	put_counts(s, &fewer);
	prb_str_puts(s, " in ");
	put_communicator(s, communicator);
	return NULL;
}

static void begin_line(struct weighing *w)
{
	prb_str_puts(&w->e->verdict->evidence, "NCCL's RAS service: ");
}

/** Ranks that RAS could not reach. */
static struct prb_error *weigh_missing(struct weighing *w,
				       const struct prb_ras_communicator *communicator)
{
	__attribute__((cleanup(named_deinit))) struct named missing = {};
	struct prb_str *s = &w->e->verdict->evidence;
	const struct prb_ras_rank *rank;
	bool dead = true;

	prb_vec_each (rank, &communicator->ranks) {
		long index = rank->missing ? index_of(w, communicator, rank) : -1;

		if (index >= 0)
			w->beyond[index] = true;
		dead &= !rank->missing || rank->dead;
		if (rank->missing)
			PRB_TRY(add_named(w, communicator, rank, 0, &missing));
	}
	if (!named_count(&missing) || w->told++ >= MOST_TOLD)
		return NULL;
	begin_line(w);
	put_named(s, &missing);
	prb_str_puts(s, named_count(&missing) == 1
				? dead ? " is considered dead in " : " does not answer it in "
			: dead ? " are considered dead in "
			       : " do not answer it in ");
	put_communicator(s, communicator);
	prb_str_putc(s, '\n');
	return NULL;
}

/** Marks the ranks that have launched the operation less often than others; false: there are none.
 */
static bool note_behind(struct weighing *w, const struct prb_ras_communicator *communicator,
			int operation)
{
	const int64_t highest = highest_count(communicator, operation);
	const struct prb_ras_rank *rank;
	bool any = false;

	prb_vec_each (rank, &communicator->ranks) {
		long index;

		if (rank->missing || rank->counts[operation] == highest)
			continue;
		any = true;
		index = index_of(w, communicator, rank);
		if (index >= 0)
			w->behind[index] = true;
	}
	return any;
}

static struct prb_error *weigh_counts(struct weighing *w,
				      const struct prb_ras_communicator *communicator)
{
	struct prb_str *s = &w->e->verdict->evidence;

	for (int i = 0; i < PRB_RAS_OPERATIONS && communicator->operations[i]; i++) {
		if (!note_behind(w, communicator, i))
			continue;
		if (!w->odd) {
			w->odd = communicator;
			w->operation = i;
		}
		if (w->told++ >= MOST_TOLD)
			continue;
		begin_line(w);
		PRB_TRY(put_division(w, communicator, i, s));
		prb_str_printf(s, ", unchanged for %.1f s\n",
			       w->after->seconds - w->before->seconds);
	}
	return NULL;
}

static const struct prb_ras_communicator *find_same(const struct prb_ras *ras,
						    const struct prb_ras_communicator *like)
{
	const struct prb_ras_communicator *communicator;

	prb_vec_each (communicator, &ras->list)
		if (prb_ras_is_same(communicator, like))
			return communicator;
	return NULL;
}

static struct prb_error *weigh_all(struct weighing *w)
{
	struct prb_str *s = &w->e->verdict->evidence;
	const struct prb_ras_communicator *communicator;

	prb_vec_each (communicator, &w->after->list) {
		PRB_TRY(weigh_missing(w, communicator));
		if (!find_same(w->before, communicator)) {
			w->grown++;
			continue;
		}
		w->same++;
		PRB_TRY(weigh_counts(w, communicator));
	}
	if (w->told > MOST_TOLD) {
		begin_line(w);
		prb_str_printf(s, "and %zu more such\n", w->told - MOST_TOLD);
	}
	if (w->grown) {
		begin_line(w);
		prb_str_printf(s,
			       "in %zu of %zu communicators ranks have launched more meanwhile\n",
			       w->grown, w->grown + w->same);
	} else if (!w->told && w->same) {
		begin_line(w);
		prb_str_printf(s,
			       "in each of %zu communicators all ranks have launched the same "
			       "collectives\n",
			       w->same);
	}
	return NULL;
}

static bool is_blamed(const struct prb_verdict *v, long rank)
{
	const long *blamed;

	prb_vec_each (blamed, &v->ranks.list)
		if (*blamed == rank)
			return true;
	return false;
}

/** Blames the ranks with a mark and nobody else; the first of them, or NULL. */
static struct prb_error *blame_marked(const struct weighing *w, const bool *marks,
				      const struct prb_seen **ret)
{
	struct prb_verdict *v = w->e->verdict;

	*ret = NULL;
	v->ranks.list.count = 0;
	for (size_t i = 0; i < w->e->round->list.count; i++) {
		long *place = marks[i] ? prb_vec_push(&v->ranks.list) : NULL;

		if (!place && marks[i])
			return prb_error_nomem();
		if (!place)
			continue;
		*place = prb_evidence_seen(w->e, i)->rank->rank;
		*ret = *ret ? *ret : prb_evidence_seen(w->e, i);
	}
	if (!*ret)
		return NULL;
	prb_str_truncate(&v->sentence, 0);
	prb_str_truncate(&v->refuted_by, 0);
	prb_signs_deinit(&v->signs);
	v->confidence = "medium";
	return NULL;
}

static struct prb_error *sign(const struct weighing *w, const char *text)
{
	struct prb_str *s;

	PRB_TRY(prb_signs_add(&w->e->verdict->signs, PRB_SIGN_RAS, -1, &s));
	prb_str_puts(s, text);
	return NULL;
}

/** RAS names a rank where the stacks name none. */
static struct prb_error *judge_by_ras(const struct weighing *w)
{
	struct prb_verdict *v = w->e->verdict;
	const struct prb_seen *first;

	PRB_TRY(blame_marked(w, w->beyond, &first));
	if (first) {
		v->kind = PRB_VERDICT_ABSENT;
		prb_verdict_put_ranks(&v->sentence, &v->ranks);
		prb_str_puts(&v->sentence, " cannot be reached by NCCL's RAS service");
		prb_str_puts(&v->refuted_by, "the network of RAS is broken, and not the rank");
		return sign(w, "it cannot reach the named ranks");
	}
	PRB_TRY(blame_marked(w, w->behind, &first));
	if (!first)
		return NULL;
	v->kind = PRB_VERDICT_LATE;
	PRB_TRY(put_division(w, w->odd, w->operation, &v->sentence));
	prb_str_printf(&v->sentence, "; rank %ld ", first->rank->rank);
	prb_why_put_reason(&v->sentence, first);
	prb_str_puts(&v->refuted_by, "that rank waits in another communicator, as it should");
	PRB_TRY(sign(w, "the named ranks have launched fewer collectives"));
	return prb_verdict_sign_stack(w->e, first);
}

/** Ranks that others wait for, by their stacks: have they launched less? */
static struct prb_error *confirm_late(const struct weighing *w)
{
	struct prb_verdict *v = w->e->verdict;
	bool all = true, none = true, gpu = false;

	for (size_t i = 0; i < w->e->round->list.count; i++) {
		gpu |= prb_evidence_seen(w->e, i)->gpu;
		if (!is_blamed(v, prb_evidence_seen(w->e, i)->rank->rank))
			continue;
		all &= w->behind[i];
		none &= !w->behind[i] && !w->beyond[i];
	}
	if (all) {
		v->confidence = "high";
		PRB_TRY(sign(w, "the named ranks have launched fewer collectives"));
	}
	if (!none || !gpu || w->grown || !w->same)
		return NULL;
	/* The GPUs of the others wait for a collective that this rank has launched, too. */
	v->confidence = "low";
	prb_str_truncate(&v->refuted_by, 0);
	prb_str_puts(&v->refuted_by,
		     "the others wait for a collective of NCCL: that rank has launched "
		     "all of them");
	return NULL;
}

static void weighing_deinit(struct weighing *w)
{
	prb_vec_free(&w->processes);
	free(w->behind);
	free(w->beyond);
}

struct prb_error *prb_verdict_weigh_ras(const struct prb_evidence *e, const struct prb_ras *before,
					const struct prb_ras *after)
{
	__attribute__((cleanup(weighing_deinit))) struct weighing w = {
		.e = e, .before = before, .after = after};
	struct prb_verdict *v = e->verdict;

	PRB_TRY(note_processes(&w));
	PRB_TRY(weigh_all(&w));
	if (v->kind == PRB_VERDICT_DEVICE || v->kind == PRB_VERDICT_UNKNOWN)
		return judge_by_ras(&w);
	return v->kind == PRB_VERDICT_LATE ? confirm_late(&w) : NULL;
}
