/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/ranking.h"

#include <stdlib.h>
#include <string.h>

void prb_ranking_deinit(struct prb_ranking *ranking)
{
	prb_vec_free(&ranking->list);
}

struct prb_error *prb_ranking_add(struct prb_ranking *ranking, const struct prb_findings *findings,
				  const void *owner, pid_t pid)
{
	struct prb_finding *const *finding;

	prb_vec_each (finding, &findings->list) {
		struct prb_ranked *place = prb_vec_push(&ranking->list);

		if (!place)
			return prb_error_nomem();
		*place = (struct prb_ranked){*finding, owner, pid};
	}
	return NULL;
}

static int worst_first(const void *a, const void *b)
{
	const struct prb_ranked *x = a, *y = b;
	const struct prb_finding *f = x->finding, *g = y->finding;

	if (f->rank != g->rank)
		return f->rank < g->rank ? -1 : 1;
	if (f->confidence != g->confidence)
		return f->confidence > g->confidence ? -1 : 1;
	int words = strcmp(prb_str_text(&f->sentence), prb_str_text(&g->sentence));
	if (words)
		return words;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

void prb_ranking_sort(struct prb_ranking *ranking)
{
	if (ranking->list.count)
		qsort(ranking->list.items, ranking->list.count, sizeof(*ranking->list.items),
		      worst_first);
}

size_t prb_ranking_same(const struct prb_ranking *ranking, size_t first)
{
	const struct prb_ranked *a = &ranking->list.items[first];
	size_t count = 0;

	for (size_t i = first + 1; i < ranking->list.count; i++, count++) {
		const struct prb_ranked *b = &ranking->list.items[i];

		if (a->finding->rank != b->finding->rank || a->owner == b->owner ||
		    strcmp(prb_str_text(&a->finding->sentence),
			   prb_str_text(&b->finding->sentence)) != 0)
			break;
	}
	return count;
}
