/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/environment.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "python/repr/core/repr.h"
#include "values/interpreters.h"

enum {
	FEW = 2,	   /* variables that a title's text may look like; a program has more */
	LONGEST = 1 << 19, /* a variable of the 128 KiB that execve() allows, all of it escaped */
};

/** True if the text begins as a variable does: "NAME=". */
static bool is_variable(const char *text)
{
	const char *end = strchr(text, '=');

	if (!end || end == text || isdigit((unsigned char)*text))
		return false;
	for (; text < end; text++)
		if (!isalnum((unsigned char)*text) && *text != '_')
			return false;
	return true;
}

bool prb_environment_is_blank(const struct prb_str *environment)
{
	unsigned count = 0;

	for (size_t at = 0; at < environment->length && count < FEW;) {
		const char *text = environment->data + at;

		count += is_variable(text);
		at += strlen(text) + 1;
	}
	/* One that was started with an empty environment has nothing to write over. */
	return environment->length && count < FEW;
}

static char escaped(const char **text)
{
	static const char letters[] = "nrt", means[] = "\n\r\t";
	const char c = *(*text)++;
	const char *letter = c ? strchr(letters, c) : NULL;

	if (letter)
		return means[letter - letters];
	if (c == 'x' && isxdigit((unsigned char)(*text)[0]) &&
	    isxdigit((unsigned char)(*text)[1])) {
		const char digits[] = {(*text)[0], (*text)[1], 0};

		*text += 2;
		return (char)strtoul(digits, NULL, 16);
	}
	return c;
}

/** Appends the bytes of an object; false if it is of another class, or cannot be read. */
static bool put_bytes(const struct prb_inside *inside, uint64_t object, struct prb_str *out)
{
	const struct prb_repr_options options = {.max_text = LONGEST, .max_total = LONGEST};
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err =
		prb_object_repr(inside->py, inside->mem, object, &options, &text);
	const char *at = prb_str_text(&text);

	if (err || text.failed || text.length < 3 || at[0] != 'b' || !strchr("'\"", at[1]) ||
	    at[text.length - 1] != at[1])
		return false;
	const char *end = at + text.length - 1;

	for (at += 2; at < end;) {
		char c = *at++;

		prb_str_putc(out, c == '\\' ? escaped(&at) : c);
	}
	return true;
}

struct reading {
	const struct prb_inside *inside;
	struct prb_str *out;
};

static bool note_variable(void *context, uint64_t key, uint64_t value)
{
	struct reading *reading = context;
	prb_auto_str struct prb_str name = {}, text = {};

	if (!put_bytes(reading->inside, key, &name) || !put_bytes(reading->inside, value, &text))
		return true;
	prb_str_append(reading->out, name.data, name.length);
	prb_str_putc(reading->out, '=');
	prb_str_append(reading->out, text.data, text.length);
	prb_str_putc(reading->out, '\0');
	return !name.failed && !text.failed;
}

static struct prb_error *read_variables(void *context, const struct prb_inside *inside)
{
	struct reading *reading = context;
	uint64_t data;

	reading->inside = inside;
	PRB_TRY(prb_inside_find(inside, "sys.modules['os'].environ._data", &data));
	return data ? prb_object_dict_each(inside->py, inside->mem, data, note_variable, reading)
		    : NULL;
}

struct prb_error *prb_environment_inside(struct prb_target *target, struct prb_str *ret)
{
	struct reading reading = {.out = ret};

	PRB_TRY(prb_inside_each(target, NULL, read_variables, &reading));
	return ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_environment_read(struct prb_target *target, struct prb_str *ret, bool *inside)
{
	prb_auto_str struct prb_str file = {};
	bool blank;

	PRB_TRY(prb_target_read_file(target, &file, "environ"));
	blank = prb_environment_is_blank(&file);
	if (inside)
		*inside = blank;
	if (blank)
		return prb_environment_inside(target, ret);
	prb_str_append(ret, file.data, file.length);
	return ret->failed ? prb_error_nomem() : NULL;
}
