/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/censuses.h"

#include <stdlib.h>

#include "base/cleanup.h"

static void destroy(void *memo)
{
	struct prb_table_censuses *all = memo;
	struct prb_table_census *c;

	prb_vec_each (c, &all->list) {
		prb_torch_modules_deinit(&c->modules);
		prb_census_destroy(c->census);
	}
	prb_vec_free(&all->list);
	free(all);
}

static struct prb_error *create(struct prb_instant *instant __attribute__((unused)), void **ret)
{
	*ret = calloc(1, sizeof(struct prb_table_censuses));
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *take(struct prb_scan *scan, const struct prb_interpreter *i,
			      struct prb_table_censuses *all)
{
	struct prb_table_census *c = prb_vec_push(&all->list);

	if (!c)
		return prb_error_nomem();
	*c = (struct prb_table_census){.interpreter = i};
	PRB_TRY(prb_census_create(i->py, prb_interpreter_bulk(scan, i), i->state.address, NULL,
				  &c->census));
	return prb_torch_modules_read(c->census, &c->modules);
}

struct prb_error *prb_censuses_read(struct prb_scan *scan, const struct prb_table_censuses **ret)
{
	static const char key;
	const struct prb_interpreters *interpreters;
	const struct prb_interpreter *i;
	const struct prb_table_census *c;
	struct prb_table_censuses *all;
	void *memo;

	PRB_TRY(prb_interpreters_read(scan, &interpreters));
	PRB_TRY(prb_instant_memo(scan->instant, &key, create, destroy, &memo));
	all = memo;
	if (!all->list.count)
		prb_vec_each (i, &interpreters->list)
			PRB_TRY(take(scan, i, all));
	prb_vec_each (c, &all->list)
		if (prb_census_doubt(c->census))
			prb_scan_note(scan, "%s.%s: %s", scan->table->schema, scan->table->name,
				      prb_census_doubt(c->census));
	*ret = all;
	return NULL;
}

void prb_note_if_empty(struct prb_scan *scan, size_t rows, const char *what)
{
	if (!rows)
		prb_scan_note(scan, "%s.%s is empty: no %s was found", scan->table->schema,
			      scan->table->name, what);
}

struct prb_error *prb_put_holder(struct prb_scan *scan, unsigned column,
				 const struct prb_table_census *c, uint32_t object)
{
	prb_auto_str struct prb_str path = {};

	if (!prb_scan_wants(scan, column))
		return NULL;
	PRB_TRY(prb_torch_path(c->census, &c->modules, object, &path));
	prb_put_text(scan, column, prb_str_text(&path));
	return NULL;
}
