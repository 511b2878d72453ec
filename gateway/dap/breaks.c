/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Breakpoints of the client. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "gateway/dap/private.h"

enum { MAX_BREAKS = 500 };

/** Removes those of that kind, of lines only those of that path. */
static void remove_breaks(struct prb_dap *d, enum prb_dap_breaks of, const char *path)
{
	size_t kept = 0;

	for (size_t i = 0; i < d->breaks.count; i++) {
		struct prb_dap_break each = d->breaks.items[i];
		struct prb_drive_breaks gone = {};

		if (each.of != of || (path && each.path && strcmp(path, each.path) != 0)) {
			d->breaks.items[kept++] = each;
			continue;
		}
		/* One that stopped once is gone already. */
		prb_error_destroy(prb_drive_delete(d->drive, each.number, &gone));
		prb_drive_breaks_deinit(&gone);
		free(each.path);
		free(each.log);
	}
	d->breaks.count = kept;
}

/** "5", ">= 5" or "% 5", as the client's users write it, as Python. */
static char *hits_of(const char *condition)
{
	const char *at = condition ? condition + strspn(condition, " ") : "";

	if (!*at)
		return NULL;
	if (isdigit((unsigned char)*at))
		return prb_format("hits == (%s)", at);
	if (*at == '%')
		return prb_format("hits %% (%s) == 0", at + 1);
	return prb_format("hits %s", at);
}

static json_t *refused(const char *why)
{
	return json_pack("{s:b, s:o}", "verified", 0, "message", prb_dap_string(why));
}

/** The breakpoint as the protocol describes it, from what the agent says now. */
static json_t *told_of(struct prb_dap_break *kept, const struct prb_drive_break *made)
{
	prb_auto_free char *text =
		kept->asked && made->places && made->line != kept->asked
			? prb_format("%s (line %u has no code that can be reached any more)",
				     made->words, kept->asked)
			: NULL;
	json_t *told;

	kept->verified = made->places || kept->of == PRB_DAP_EXCEPTIONS;
	kept->line = made->line;
	told = json_pack("{s:i, s:b, s:o}", "id", (int)kept->number, "verified", kept->verified,
			 "message", prb_dap_string(text ? text : made->words));
	if (told && kept->line)
		json_object_set_new(told, "line", json_integer(kept->line));
	return told;
}

/** Sets one breakpoint, and returns its description. */
static json_t *set(struct prb_dap *d, struct prb_dap_break kept, struct prb_drive_place *place,
		   const json_t *asked)
{
	prb_auto_free char *hits =
		hits_of(json_string_value(json_object_get(asked, "hitCondition")));
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks made = {};
	const char *log = json_string_value(json_object_get(asked, "logMessage"));
	struct prb_dap_break *slot;
	struct prb_error *err;
	json_t *told;

	log = log ? log : "";
	place->condition = json_string_value(json_object_get(asked, "condition"));
	place->hits = hits;
	place->waits = true;
	err = prb_drive_add(d->drive, place, &made);
	if (!err && !made.list.count)
		err = prb_error_create(PRB_ERROR_FAILED, "the agent did not say what it set");
	if (err) {
		told = refused(err->message);
		prb_error_destroy(err);
		return told;
	}
	slot = prb_vec_push(&d->breaks);
	if (!slot)
		return refused("out of memory");
	kept.number = made.list.items[0].number;
	kept.path = place->line ? strdup(place->file) : NULL;
	kept.log = *log ? strdup(log) : NULL;
	kept.uncaught = place->uncaught;
	*slot = kept;
	return told_of(slot, &made.list.items[0]);
}

/** What an item of the request asks for; false: nothing that there is. */
static bool place_of(enum prb_dap_breaks of, const char *path, const json_t *asked,
		     struct prb_drive_place *ret)
{
	const char *name = of == PRB_DAP_EXCEPTIONS
				   ? json_string_value(asked)
				   : json_string_value(json_object_get(asked, "name"));
	json_int_t line = json_integer_value(json_object_get(asked, "line"));

	switch (of) {
	case PRB_DAP_LINES:
		ret->file = path;
		ret->line = line > 0 && line < INT32_MAX ? (unsigned)line : 0;
		return path && ret->line;
	case PRB_DAP_FUNCTIONS:
		ret->name = name;
		return name;
	case PRB_DAP_EXCEPTIONS:
		ret->catches = true;
		ret->name = "";
		ret->uncaught = name && !strcmp(name, "uncaught");
		return name;
	}
	return false;
}

/** Those of that kind are these from now on. */
static struct prb_error *set_all(struct prb_dap *d, const struct prb_dap_request *r,
				 enum prb_dap_breaks of, const char *path, const json_t *asked)
{
	json_t *each, *list = json_array();
	size_t i;

	if (d->drive && (path || of != PRB_DAP_LINES))
		remove_breaks(d, of, path);
	json_array_foreach(asked, i, each)
	{
		struct prb_drive_place place = {};
		json_t *told;

		if (!d->drive)
			told = refused("nothing runs here");
		else if (i >= MAX_BREAKS || !place_of(of, path, each, &place))
			told = refused(i < MAX_BREAKS ? "this is no place" : "too many");
		else
			told = set(d, (struct prb_dap_break){.of = of, .asked = place.line}, &place,
				   each);
		json_array_append_new(list, told);
	}
	return prb_dap_answer(d, r, json_pack("{s:o}", "breakpoints", list));
}

struct prb_error *prb_dap_set_lines(struct prb_dap *d, const struct prb_dap_request *r)
{
	const json_t *source = json_object_get(r->arguments, "source");
	const char *path = json_string_value(json_object_get(source, "path"));

	prb_auto_free char *here = NULL;

	if (!path)
		path = json_string_value(json_object_get(source, "name"));
	here = path ? prb_dap_path_here(d, path) : NULL;
	return set_all(d, r, PRB_DAP_LINES, here, json_object_get(r->arguments, "breakpoints"));
}

struct prb_error *prb_dap_set_functions(struct prb_dap *d, const struct prb_dap_request *r)
{
	return set_all(d, r, PRB_DAP_FUNCTIONS, NULL, json_object_get(r->arguments, "breakpoints"));
}

struct prb_error *prb_dap_set_exceptions(struct prb_dap *d, const struct prb_dap_request *r)
{
	return set_all(d, r, PRB_DAP_EXCEPTIONS, NULL, json_object_get(r->arguments, "filters"));
}

struct prb_error *prb_dap_tell_breaks(struct prb_dap *d)
{
	__attribute__((cleanup(prb_drive_breaks_deinit))) struct prb_drive_breaks now = {};
	struct prb_dap_break *each;
	struct prb_error *err;

	if (!d->drive || !d->breaks.count)
		return NULL;
	/* If the process has ended, another event says so. */
	err = prb_drive_list(d->drive, &now);
	prb_error_destroy(err);
	prb_vec_each (each, &d->breaks) {
		const struct prb_drive_break *made;

		prb_vec_each (made, &now.list) {
			bool verified = made->places || each->of == PRB_DAP_EXCEPTIONS;

			if (made->number == each->number &&
			    (each->verified != verified || each->line != made->line))
				PRB_TRY(prb_dap_event(d, "breakpoint",
						      json_pack("{s:s, s:o}", "reason", "changed",
								"breakpoint",
								told_of(each, made))));
		}
	}
	return NULL;
}
