/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The source of the program's own tables, the files of sql/tables/. */
#include "sql/engine/table_sources.h"

static const struct prb_table *find(const struct prb_session *session, const char *schema,
				    const char *name)
{
	(void)session;
	return prb_table_find(schema, name);
}

static size_t count(const struct prb_session *session)
{
	(void)session;
	return prb_table_count;
}

static const struct prb_table *at(const struct prb_session *session, size_t index)
{
	(void)session;
	return prb_tables[index];
}

const struct prb_table_source prb_own_source = {.find = find, .count = count, .at = at};
