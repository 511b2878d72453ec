/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/mcp/answer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"

/** Skips @p count lines; the rest. */
static const char *skip(const char *at, const char *end, size_t count)
{
	for (; count && at < end; count--) {
		const char *line = memchr(at, '\n', (size_t)(end - at));

		at = line ? line + 1 : end;
	}
	return at;
}

/** The length of the line at @p at, with its line feed. */
static size_t line_length(const char *at, const char *end)
{
	const char *line = memchr(at, '\n', (size_t)(end - at));

	return (size_t)((line ? line + 1 : end) - at);
}

/** No byte of a character is left behind. */
static size_t whole_characters(const char *text, size_t length)
{
	while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
		length--;
	return length;
}

static void put_lines(const struct prb_str *output, const struct prb_answer_part *part, bool more,
		      struct prb_str *text)
{
	const char *end = prb_str_text(output) + output->length;
	const char *at = skip(prb_str_text(output), end, part->first);
	size_t next = part->first, used = 0;

	for (; at < end; next++) {
		size_t length = line_length(at, end);

		if (used + length > part->most && used)
			break;
		/* A single line that is too long is cut, and says so. */
		size_t taken = length > part->most ? whole_characters(at, part->most) : length;

		prb_str_append(text, at, taken);
		if (taken < length)
			prb_str_printf(text, "… [%zu more bytes]\n", length - taken);
		used += taken;
		at += length;
	}
	if (at >= end && !more)
		return;
	if (part->pages)
		prb_str_printf(text, "[more after line %zu: cursor=\"%zu\"]\n", next, next);
	else
		prb_str_printf(text, "[more after line %zu: allow more by max_bytes]\n", next);
}

static void put_cursor(struct prb_json *json, bool more, size_t next)
{
	prb_auto_free char *cursor = more ? prb_format("%zu", next) : NULL;

	prb_json_text(json, "next_cursor", cursor);
}

static void put_rows(const struct prb_str *output, const struct prb_answer_part *part, bool more,
		     struct prb_str *structured)
{
	const char *end = prb_str_text(output) + output->length;
	const char *at = skip(prb_str_text(output), end, part->first);
	struct prb_json json = {structured};
	size_t next = part->first;

	prb_json_open(&json, NULL, '{');
	prb_json_open(&json, "rows", '[');
	for (; at < end && next < part->first + part->rows; next++) {
		size_t length = line_length(at, end), row = length - (at[length - 1] == '\n');

		if (structured->length + row > part->most && next > part->first)
			break;
		prb_str_puts(structured, next > part->first ? "," : "");
		if (row > part->most)
			prb_str_printf(structured,
				       "{\"left_out\":\"a row of %zu bytes: select less of it, by "
				       "substr() or fewer columns\"}",
				       row);
		else
			prb_str_append(structured, at, row);
		at += length;
	}
	prb_json_close(&json, ']');
	json.comma = true;
	put_cursor(&json, at < end || more, next);
	prb_json_close(&json, '}');
}

/** The name of the longest list of an object; NULL if it has none. */
static const char *longest_list(json_t *object)
{
	const char *name, *found = NULL;
	size_t most = 0;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		char *text = json_is_array(value) ? json_dumps(value, JSON_COMPACT) : NULL;

		if (text && strlen(text) > most) {
			most = strlen(text);
			found = name;
		}
		free(text);
	}
	return found;
}

static struct prb_error *put_value(const json_t *value, struct prb_str *ret)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII);

	if (!text)
		return prb_error_nomem();
	prb_str_puts(ret, text);
	free(text);
	return NULL;
}

/** Keeps the items of the list from the first on that there is room for. */
static struct prb_error *cut(json_t *object, const char *name, const struct prb_answer_part *part)
{
	json_t *list = json_object_get(object, name), *kept = json_array();
	prb_auto_str struct prb_str size = {};
	size_t next = part->first;

	for (; kept && next < json_array_size(list); next++) {
		PRB_TRY(put_value(json_array_get(list, next), &size));
		if (size.length > part->most && next > part->first)
			break;
		json_array_append(kept, json_array_get(list, next));
	}
	bool more = next < json_array_size(list);
	prb_auto_free char *cursor = prb_format("%zu", next);

	if (!kept || !cursor || json_object_set_new(object, name, kept) ||
	    json_object_set_new(object, "next_cursor",
				more && part->pages ? json_string(cursor) : json_null()))
		return prb_error_nomem();
	return NULL;
}

/** The name of the longest text of an object; NULL if it has none. */
static const char *longest_text(json_t *object)
{
	const char *name, *found = NULL;
	size_t most = 0;
	json_t *value;

	json_object_foreach(object, name, value) if (json_string_length(value) > most)
	{
		most = json_string_length(value);
		found = name;
	}
	return found;
}

/** Keeps as much of the longest text as there is room for, and says how much that leaves out. */
static struct prb_error *cut_text(json_t *object, size_t most)
{
	const char *name = longest_text(object);
	prb_auto_free char *whole =
		name ? strdup(json_string_value(json_object_get(object, name))) : NULL;

	if (!whole)
		return name ? prb_error_nomem() : NULL;
	for (size_t all = strlen(whole), kept = all; kept;) {
		prb_auto_str struct prb_str now = {}, text = {};

		PRB_TRY(put_value(object, &now));
		if (now.length <= most)
			return NULL;
		/* Of characters that are escaped, fewer are too many. */
		kept = whole_characters(whole, PRB_MIN(kept * most / now.length, kept - 1));
		prb_str_append(&text, whole, kept);
		prb_str_printf(&text, "… [%zu more bytes: allow more by max_bytes]", all - kept);
		if (text.failed ||
		    json_object_set_new(object, name, json_string(prb_str_text(&text))))
			return prb_error_nomem();
	}
	return NULL;
}

static struct prb_error *put_json(const struct prb_str *output, const struct prb_answer_part *part,
				  struct prb_str *structured)
{
	json_t *value = json_loadb(prb_str_text(output), output->length, JSON_ALLOW_NUL, NULL);
	struct prb_error *err = NULL;

	if (json_is_array(value))
		value = json_pack("{s:o}", "items", value);
	if (!json_is_object(value)) {
		json_decref(value);
		return prb_error_create(PRB_ERROR_BAD_DATA, "the output of the tool is no JSON");
	}
	const char *list = longest_list(value);

	if (list && (part->first || output->length > part->most))
		err = cut(value, list, part);
	if (!err && output->length > part->most)
		err = cut_text(value, part->most);
	if (!err)
		err = put_value(value, structured);
	json_decref(value);
	return err;
}

struct prb_error *prb_answer_part(enum prb_tool_output kind, const struct prb_str *output,
				  const struct prb_answer_part *part, bool more,
				  struct prb_str *text, struct prb_str *structured)
{
	if (kind == PRB_TOOL_LINES) {
		put_lines(output, part, more, text);
		return NULL;
	}
	if (kind == PRB_TOOL_ROWS)
		put_rows(output, part, more, structured);
	else
		PRB_TRY(put_json(output, part, structured));
	prb_str_append(text, prb_str_text(structured), structured->length);
	return NULL;
}
