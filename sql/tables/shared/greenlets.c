/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/greenlets.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dump/greenlet_stacks.h"

struct state {
	PRB_VEC(struct prb_greenlets_of) list;
};

static void end(void *pointer)
{
	struct state *s = pointer;
	struct prb_greenlets_of *of;

	prb_vec_each (of, &s->list)
		prb_greenlets_deinit(&of->greenlets);
	prb_vec_free(&s->list);
	free(s);
}

static struct prb_error *read_stacks(struct prb_scan *scan, const struct prb_interpreter *i,
				     struct prb_greenlets *greenlets)
{
	return prb_greenlet_stacks(prb_instant_target(scan->instant),
				   prb_instant_mode(scan->instant), i->py,
				   prb_interpreter_bulk(scan, i), greenlets);
}

static struct prb_error *read_all(struct prb_scan *scan, struct state *s, const char *table)
{
	const struct prb_interpreters *interpreters;
	const struct prb_interpreter *i;
	size_t count = 0;
	bool missing = false;

	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	prb_vec_each (i, &interpreters->list) {
		struct prb_greenlets_of *of = prb_vec_push(&s->list);

		if (!of)
			return prb_error_nomem();
		of->interpreter = i;
		PRB_TRY(prb_greenlets_read(i->py, prb_interpreter_bulk(scan, i), i->state.address,
					   0, &of->greenlets));
		PRB_TRY(read_stacks(scan, i, &of->greenlets));
		missing |= of->greenlets.doubt != NULL;
		if (of->greenlets.doubt)
			prb_scan_note(scan, "%s: %s", table, of->greenlets.doubt);
		count += of->greenlets.list.count;
	}
	if (!count && !missing)
		prb_scan_note(scan, "%s: this process has no greenlets", table);
	return NULL;
}

struct prb_error *prb_greenlets_scan(struct prb_scan *scan, const char *table,
				     struct prb_error *(*put)(struct prb_scan *scan,
							      const struct prb_greenlet *greenlet,
							      const struct prb_interpreter *of))
{
	const struct prb_greenlets_of *of;
	const struct prb_greenlet *greenlet;
	uint64_t place = 0;

	if (!scan->state) {
		scan->state = calloc(1, sizeof(struct state));
		if (!scan->state)
			return prb_error_nomem();
		scan->end = end;
		PRB_TRY(read_all(scan, scan->state, table));
	}
	struct state *s = scan->state;

	prb_vec_each (of, &s->list) {
		prb_vec_each (greenlet, &of->greenlets.list) {
			if (place++ < scan->position)
				continue;
			if (prb_scan_full(scan)) {
				scan->more = true;
				return NULL;
			}
			scan->position++;
			PRB_TRY(put(scan, greenlet, of->interpreter));
		}
	}
	return NULL;
}
