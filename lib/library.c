/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: the public face of a session. */
#include "lib/probing.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "lib/library_private.h"
#include "sql/engine/settings.h"
#include "target/spec/target_spec.h"

static const struct prb_error *private_error(const struct probing_error *error)
{
	return (const struct prb_error *)error;
}

enum probing_code probing_error_code(const struct probing_error *error)
{
	switch (private_error(error)->code) {
	case PRB_ERROR_NOMEM:
		return PROBING_NO_MEMORY;
	case PRB_ERROR_UNSUPPORTED:
		return PROBING_UNSUPPORTED;
	case PRB_ERROR_PERMISSION:
		return PROBING_PERMISSION;
	case PRB_ERROR_TIMEOUT:
		return PROBING_TIMEOUT;
	case PRB_ERROR_CANCELLED:
		return PROBING_CANCELLED;
	case PRB_ERROR_USAGE:
		return PROBING_USAGE;
	case PRB_ERROR_NO_PROCESS:
		return PROBING_NO_PROCESS;
	case PRB_ERROR_FAILED:
	case PRB_ERROR_OS:
	case PRB_ERROR_FAULT:
	case PRB_ERROR_BAD_DATA:
	case PRB_ERROR_NOT_FOUND:
		break;
	}
	return PROBING_FAILED;
}

const char *probing_error_message(const struct probing_error *error)
{
	return private_error(error)->message;
}

const char *probing_error_hint(const struct probing_error *error)
{
	return private_error(error)->hint;
}

void probing_error_destroy(struct probing_error *error)
{
	prb_error_destroy((struct prb_error *)error);
}

const char *probing_version(void)
{
	return PRB_VERSION;
}

struct probing_error *probing_create(struct probing **ret)
{
	struct probing *p = calloc(1, sizeof(*p));
	struct prb_error *err = p ? prb_session_create(&p->session) : prb_error_nomem();

	if (err)
		free(p);
	else
		*ret = p;
	return prb_public_error(err);
}

void probing_destroy(struct probing *p)
{
	if (!p)
		return;
	while (p->statements)
		probing_finish(p->statements);
	prb_library_pause_destroy(p->pause);
	prb_library_objects_destroy(p->objects);
	prb_session_destroy(p->session);
	prb_library_debuggers_destroy(p->debuggers);
	prb_library_extension_destroy(p->extension);
	free(p);
}

struct probing_error *probing_open(struct probing *p, const char *target, const char *exe)
{
	struct prb_target *opened = NULL;
	bool left;
	struct prb_error *err =
		prb_spec_open_rows(target, &(struct prb_core_places){.exe = exe}, &opened, &left);

	return prb_public_error(err ? err : prb_session_add_target(p->session, target, opened));
}

struct probing_error *probing_set(struct probing *p, const char *key, const char *value)
{
	return prb_public_error(prb_settings_set(p->session, key, value, true));
}

void probing_on_warning(struct probing *p, probing_warning_handler *handler, void *context)
{
	prb_session_on_warning(p->session, handler, context);
}

struct probing_error *probing_prepare(struct probing *p, const char *sql, const char **rest,
				      struct probing_statement **ret)
{
	struct probing_statement *s = calloc(1, sizeof(*s));
	struct prb_error *err;
	size_t at = 0;

	*ret = NULL;
	err = s ? prb_session_prepare(p->session, sql, strlen(sql), &at, &s->statement)
		: prb_error_nomem();
	if (rest)
		*rest = sql + at;
	if (err || !s->statement) {
		free(s);
		return prb_public_error(err);
	}
	s->owner = p;
	s->next = p->statements;
	s->place = &p->statements;
	if (s->next)
		s->next->place = &s->next;
	p->statements = s;
	*ret = s;
	return NULL;
}

void probing_finish(struct probing_statement *s)
{
	if (!s)
		return;
	*s->place = s->next;
	if (s->next)
		s->next->place = s->place;
	prb_statement_destroy(s->statement);
	free(s);
}

struct probing_error *probing_next(struct probing_statement *s, int *row)
{
	bool found = false;
	struct prb_error *err = prb_statement_next(s->statement, &found);

	*row = found;
	return prb_public_error(err);
}

void probing_reset(struct probing_statement *s)
{
	prb_statement_reset(s->statement);
}

/** Runs one statement to its end; *stop is set when the handler wants no more. */
static struct probing_error *run(struct probing_statement *s, probing_row_handler *handler,
				 void *context, int *stop)
{
	int row = 0;

	do {
		struct probing_error *err = probing_next(s, &row);

		if (err)
			return err;
		if (row && handler)
			*stop = handler(context, s);
	} while (row && !*stop);
	return NULL;
}

struct probing_error *probing_query(struct probing *p, const char *sql,
				    probing_row_handler *handler, void *context)
{
	int stop = 0;

	while (*sql && !stop) {
		struct probing_statement *s;
		struct probing_error *err = probing_prepare(p, sql, &sql, &s);

		if (!err && !s)
			break;
		if (!err)
			err = run(s, handler, context, &stop);
		probing_finish(s);
		if (err)
			return err;
	}
	return NULL;
}

unsigned probing_columns(const struct probing_statement *s)
{
	return prb_statement_columns(s->statement);
}

const char *probing_column_name(const struct probing_statement *s, unsigned column)
{
	return prb_statement_name(s->statement, column);
}

const char *probing_column_description(const struct probing_statement *s, unsigned column)
{
	const struct prb_column *origin = prb_statement_origin(s->statement, column);

	return origin ? origin->doc : NULL;
}

const char *probing_column_unit(const struct probing_statement *s, unsigned column)
{
	const struct prb_column *origin = prb_statement_origin(s->statement, column);

	return origin ? origin->unit : NULL;
}

enum probing_kind probing_value_kind(struct probing_statement *s, unsigned column)
{
	struct prb_value value;

	prb_statement_value(s->statement, column, &value);
	return (enum probing_kind)value.kind;
}

int64_t probing_value_integer(struct probing_statement *s, unsigned column)
{
	return prb_statement_integer(s->statement, column);
}

double probing_value_real(struct probing_statement *s, unsigned column)
{
	return prb_statement_real(s->statement, column);
}

const char *probing_value_text(struct probing_statement *s, unsigned column, size_t *length)
{
	return prb_statement_text(s->statement, column, length);
}

void probing_cancel(struct probing *p)
{
	prb_session_cancel(p->session);
}
