/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/render/renderer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "sql/render/renderer_private.h"

enum {
	FLUSH_BYTES = 64 * 1024,
	/* A buffer that one huge cell needed is not kept. */
	KEEP_BYTES = 1024 * 1024,
};

const struct prb_renderer_format prb_renderer_formats[] = {
	{"table", "aligned columns, for people", true, &prb_renderer_table},
	{"json", "one array of objects for each result, on one line", false, &prb_renderer_json},
	{"ndjson", "one object on each line", false, &prb_renderer_ndjson},
	{"csv", "comma-separated values with a header", true, &prb_renderer_csv},
	{"tsv", "tab-separated values with a header", true, &prb_renderer_tsv},
	{},
};

const struct prb_renderer_format *prb_renderer_find(const char *name)
{
	for (const struct prb_renderer_format *f = prb_renderer_formats; f->name; f++)
		if (!strcmp(f->name, name))
			return f;
	return NULL;
}

struct prb_error *prb_renderer_create(const struct prb_renderer_format *format,
				      const struct prb_renderer_look *look, prb_renderer_sink *sink,
				      void *context, struct prb_renderer **ret)
{
	struct prb_renderer *r = calloc(1, sizeof(*r));

	if (!r)
		return prb_error_nomem();
	*r = (struct prb_renderer){
		.format = format, .look = *look, .sink = sink, .context = context};
	r->state = calloc(1, format->ops->state_size + 1);
	if (!r->state) {
		free(r);
		return prb_error_nomem();
	}
	*ret = r;
	return NULL;
}

static void forget_names(struct prb_renderer *renderer)
{
	for (size_t i = 0; i < renderer->columns; i++)
		free(renderer->names[i]);
	free(renderer->names);
	renderer->names = NULL;
	renderer->columns = 0;
}

void prb_renderer_destroy(struct prb_renderer *renderer)
{
	if (!renderer)
		return;
	if (renderer->format->ops->deinit)
		renderer->format->ops->deinit(renderer);
	forget_names(renderer);
	free(renderer->values);
	prb_str_deinit(&renderer->out);
	free(renderer->state);
	free(renderer);
}

static struct prb_error *copy_names(struct prb_renderer *renderer,
				    const struct prb_renderer_column *columns, size_t count)
{
	forget_names(renderer);
	renderer->names = calloc(count, sizeof(*renderer->names));
	if (!renderer->names)
		return prb_error_nomem();
	for (size_t i = 0; i < count; i++) {
		renderer->names[i] = strdup(columns[i].name);
		if (!renderer->names[i])
			return prb_error_nomem();
		renderer->columns++;
	}
	return NULL;
}

struct prb_error *prb_renderer_begin(struct prb_renderer *renderer,
				     const struct prb_renderer_column *columns, size_t count)
{
	renderer->rows = 0;
	PRB_TRY(copy_names(renderer, columns, count));
	PRB_TRY(renderer->format->ops->begin(renderer));
	renderer->begun = true;
	return NULL;
}

struct prb_error *prb_renderer_begin_statement(struct prb_renderer *renderer,
					       struct prb_statement *statement)
{
	unsigned count = prb_statement_columns(statement);
	prb_auto_free struct prb_renderer_column *columns = calloc(count, sizeof(*columns));

	free(renderer->values);
	renderer->values = calloc(count, sizeof(*renderer->values));
	if (!columns || !renderer->values)
		return prb_error_nomem();
	for (unsigned i = 0; i < count; i++)
		columns[i].name = prb_statement_name(statement, i);
	return prb_renderer_begin(renderer, columns, count);
}

struct prb_error *prb_renderer_row(struct prb_renderer *renderer, const struct prb_value *values)
{
	renderer->rows++;
	PRB_TRY(renderer->format->ops->row(renderer, values));
	return renderer->out.length < FLUSH_BYTES ? NULL : prb_renderer_flush(renderer);
}

struct prb_error *prb_renderer_row_statement(struct prb_renderer *renderer,
					     struct prb_statement *statement)
{
	for (size_t i = 0; i < renderer->columns; i++)
		prb_statement_value(statement, (unsigned)i, &renderer->values[i]);
	return prb_renderer_row(renderer, renderer->values);
}

struct prb_error *prb_renderer_end(struct prb_renderer *renderer)
{
	if (!renderer->begun)
		return NULL;
	renderer->begun = false;
	PRB_TRY(renderer->format->ops->end(renderer));
	return prb_renderer_flush(renderer);
}

uint64_t prb_renderer_rows(const struct prb_renderer *renderer)
{
	return renderer->rows;
}

void prb_renderer_left_out(const struct prb_renderer *renderer, struct prb_str *ret)
{
	if (renderer->format->ops->left_out)
		renderer->format->ops->left_out(renderer, ret);
}

struct prb_error *prb_renderer_flush(struct prb_renderer *renderer)
{
	struct prb_error *err;

	if (renderer->out.failed)
		return prb_error_nomem();
	if (!renderer->out.length)
		return NULL;
	err = renderer->sink(renderer->context, renderer->out.data, renderer->out.length);
	if (renderer->out.capacity > KEEP_BYTES)
		prb_str_deinit(&renderer->out);
	else
		prb_str_truncate(&renderer->out, 0);
	return err;
}

void prb_renderer_integer(struct prb_str *s, int64_t value)
{
	char text[20], *p = text + sizeof(text);
	uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;

	do {
		*--p = (char)('0' + rest % 10);
		rest /= 10;
	} while (rest);
	if (value < 0)
		*--p = '-';
	prb_str_append(s, p, (size_t)(text + sizeof(text) - p));
}

void prb_renderer_real(struct prb_str *s, double value)
{
	char text[40];

	if (!isfinite(value)) {
		prb_str_puts(s, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
		return;
	}
	/* 15 digits are always exact, so fewer are found by %g; few numbers need 17. */
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	prb_str_puts(s, text);
	if (!strpbrk(text, ".e"))
		prb_str_append(s, ".0", 2);
}

void prb_renderer_hex(struct prb_str *s, const char *bytes, size_t length)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < length; i++) {
		unsigned char byte = (unsigned char)bytes[i];

		prb_str_append(s, (char[]){digits[byte >> 4], digits[byte & 15]}, 2);
	}
}
