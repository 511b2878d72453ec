/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/table_sources.h"

#include "base/cleanup.h"

const struct prb_table_source *const prb_table_sources[] = {
	&prb_own_source,	&prb_ring_source,   &prb_extension_source,
	&prb_expression_source, &prb_global_source, NULL,
};

const struct prb_table *prb_session_find_table(const struct prb_session *session,
					       const char *schema, const char *name)
{
	const struct prb_table *table = NULL;

	for (const struct prb_table_source *const *s = prb_table_sources; *s && !table; s++)
		if ((*s)->find)
			table = (*s)->find(session, schema, name);
	return table;
}

const struct prb_table *prb_session_find_listed(const struct prb_session *session,
						const char *schema, const char *name)
{
	const struct prb_table *table = NULL;

	for (const struct prb_table_source *const *s = prb_table_sources; *s && !table; s++)
		if ((*s)->count)
			table = (*s)->find(session, schema, name);
	return table;
}

const struct prb_table *prb_session_table(const struct prb_session *session, size_t index)
{
	for (const struct prb_table_source *const *s = prb_table_sources; *s; s++) {
		size_t count = (*s)->count ? (*s)->count(session) : 0;

		if (index < count)
			return (*s)->at(session, index);
		index -= count;
	}
	return NULL;
}

struct prb_error *prb_session_look_for_tables(struct prb_session *session)
{
	for (const struct prb_table_source *const *s = prb_table_sources; *s; s++)
		if ((*s)->look)
			PRB_TRY((*s)->look(session));
	return NULL;
}

struct prb_error *prb_session_make_table(struct prb_session *session, const char *sql,
					 const char *word, bool *ret)
{
	*ret = false;
	for (const struct prb_table_source *const *s = prb_table_sources; *s && !*ret; s++)
		if ((*s)->make)
			PRB_TRY((*s)->make(session, sql, word, ret));
	return NULL;
}

void prb_session_drop_tables(struct prb_session *session)
{
	for (const struct prb_table_source *const *s = prb_table_sources; *s; s++)
		if ((*s)->drop)
			(*s)->drop(session);
}

void prb_session_deinit_tables(struct prb_session *session)
{
	for (const struct prb_table_source *const *s = prb_table_sources; *s; s++)
		if ((*s)->deinit)
			(*s)->deinit(session);
}
