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
	LONGEST = 1 << 19, /* bytes of a variable: four times what execve() allows */
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

/** Appends the bytes of an object; false if it is of another class, too long, or unreadable. */
static bool put_bytes(const struct prb_inside *inside, uint64_t object, struct prb_str *out)
{
	const struct prb_layout *l = &inside->py->layout;
	prb_auto_str struct prb_str type = {};
	uint64_t length;

	prb_auto_error struct prb_error *err =
		prb_object_type_name(inside->py, inside->mem, object, &type);
	if (!err && strcmp(prb_str_text(&type), "bytes") != 0)
		return false;
	if (!err)
		err = prb_mem_read_u64(inside->mem, object + (uint64_t)l->var_size, &length);
	if (err || length > LONGEST)
		return false;
	prb_auto_free char *bytes = malloc(length + 1);
	if (bytes)
		err = prb_mem_read(inside->mem, object + (uint64_t)l->bytes_data, bytes, length);
	if (bytes && !err)
		prb_str_append(out, bytes, length);
	return bytes && !err;
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
