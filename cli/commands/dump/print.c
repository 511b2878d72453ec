/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "control/place.h"
#include "cli/commands/script/extensions.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"
#include "dump/inspect.h"
#include "target/spec/command_line.h"
#include "target/spec/target_spec.h"
#include "values/limits.h"

/* A single value is shown in more detail than in a list of variables. */
enum { ITEMS = 100, TEXT = 2000 };

struct print_settings {
	int tid;
	struct prb_value_limits values;
	const char *frame, *function;
	bool type, json, names;
	struct prb_texts scripts;
};

static struct prb_error *put_json(const struct prb_cli *cli, const struct prb_inspected *found)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {.out = &text};

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "expression", cli->arguments[0]);
	prb_json_text(&json, "type", prb_str_text(&found->type));
	prb_json_bytes(&json, "value", prb_str_text(&found->value), found->value.length);
	if (found->address)
		prb_json_integer(&json, "address", (int64_t)found->address);
	else
		prb_json_text(&json, "address", NULL);
	prb_json_bool(&json, "changed", found->changed);
	prb_json_text(&json, "found_in",
		      found->found_in.length ? prb_str_text(&found->found_in) : NULL);
	if (*found->computed_by)
		prb_json_text(&json, "computed_by", found->computed_by);
	prb_json_close(&json, '}');
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

static struct prb_error *put_text(const struct print_settings *s, const struct prb_inspected *found)
{
	prb_auto_str struct prb_str text = {};

	if (s->type && found->address)
		prb_str_printf(&text, "(%s at %#llx) ", prb_str_text(&found->type),
			       (unsigned long long)found->address);
	else if (s->type)
		prb_str_printf(&text, "(%s) ", prb_str_text(&found->type));
	prb_text_escape(&text, prb_str_text(&found->value));
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

static int compare(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Prints the names sorted, each once. */
static struct prb_error *put_names(const struct prb_inspected *found)
{
	prb_auto_str struct prb_str text = {};
	PRB_VEC(const char *) names = {};
	prb_auto_str struct prb_str copy = {};
	char *rest;
	const char **slot, *last = "";

	prb_str_append(&copy, found->value.data, found->value.length);
	for (char *name = copy.failed ? NULL : strtok_r(copy.data, "\n", &rest); name;
	     name = strtok_r(NULL, "\n", &rest)) {
		slot = prb_vec_push(&names);
		if (!slot)
			break;
		*slot = name;
	}
	if (names.count)
		qsort(names.items, names.count, sizeof(*names.items), compare);
	prb_vec_each (slot, &names) {
		if (strcmp(*slot, last) != 0)
			prb_str_printf(&text, "%s\n", *slot);
		last = *slot;
	}
	prb_vec_free(&names);
	return prb_output(&text);
}

/* Says where a name was found that the innermost frame does not have. */
static void put_place(const struct prb_cli *cli, const struct prb_inspected *found)
{
	prb_auto_str struct prb_str text = {};

	if (!found->found_in.length)
		return;
	prb_str_puts(&text, "probing: ");
	prb_text_escape(&text, cli->arguments[0]);
	prb_str_puts(&text, " is that of ");
	prb_text_escape(&text, prb_str_text(&found->found_in));
	prb_str_putc(&text, '\n');
	fputs(prb_str_text(&text), stderr);
}

static void warn_computed(const struct prb_inspected *found)
{
	prb_auto_str struct prb_str text = {};

	prb_str_puts(&text, "this is what the object stores; the __getattribute__ of ");
	prb_text_escape(&text, found->computed_by);
	prb_str_puts(&text, ", which is not run, may answer otherwise");
	prb_warn(prb_str_text(&text));
}

static struct prb_error *show(const struct prb_cli *cli, const struct print_settings *s,
			      const struct prb_inspected *found)
{
	if (s->names)
		return put_names(found);
	if (s->json)
		return put_json(cli, found);
	put_place(cli, found);
	PRB_TRY(put_text(s, found));
	if (*found->computed_by)
		warn_computed(found);
	if (found->changed)
		prb_warn("this was changing all the time while it was read: its parts may be of "
			 "different moments ('probing debug --pause' holds the process)");
	return NULL;
}

static struct prb_error *check(const struct prb_cli *cli, const struct print_settings *s)
{
	if (cli->targets.count != 1)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 cli->target ? "a value is looked up in one target"
						     : "no target given"),
			"for example 'probing 4242 print self.step'");
	if (!cli->argument_count && !s->names)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no expression given"),
				      "for example 'probing 4242 print self.step'");
	if (s->frame && s->function)
		return prb_error_create(PRB_ERROR_USAGE,
					"a frame is named by --frame or by --function");
	return prb_value_check(&s->values);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct print_settings *s = settings;
	struct prb_inspected found = {};
	prb_auto_target struct prb_target *target = NULL;
	unsigned frame;
	struct prb_repr_options options = prb_value_options(
		&s->values, &(struct prb_repr_options){.max_objects = 1,
						       .objects_alone = true,
						       .max_attributes = ITEMS,
						       .max_items = ITEMS,
						       .max_text = TEXT,
						       .max_total = PRB_VALUE_TOTAL});

	PRB_TRY(check(cli, s));
	PRB_TRY(prb_frame_number(s->frame, &frame));

	const struct prb_inspect_place place = {
		.tid = s->tid,
		.depth = frame,
		.outwards = !s->frame && !s->function,
		.function = s->function,
	};

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));

	const char *text = cli->argument_count ? cli->arguments[0] : "";
	struct prb_error *err = NULL;
	if (!s->names)
		err = prb_extensions_load(cli, &s->scripts, PRB_EXTENSION_PRINTERS, target,
					  &target->custom);
	if (!err)
		err = s->names ? prb_inspect_names(target, s->tid, frame, text, &found)
			       : prb_inspect(target, &place, text, &options, &found);
	if (err)
		err = prb_command_line_name(target, err);
	if (!err)
		err = show(cli, s, &found);
	prb_inspected_deinit(&found);
	return err;
}

#define NUMBER(name, value, help, member)                                            \
	{                                                                            \
		name, 0, PRB_OPTION_NUMBER, value, help, PRB_COMPLETE_NOTHING,       \
			offsetof(struct print_settings, member), .for_clients = true \
	}

const struct prb_command prb_command_print = {
	.rank = 25,
	.for_clients = true,
	.name = "print",
	.summary = "Print a value, read from outside",
	.description =
		"Finds what an expression means in a Python frame and prints its repr(), without "
		"running any code in the process: names of the frame, globals, builtins and "
		"imported modules, with attributes and constant indexes, and len(), type(), "
		"vars() and dir() of them. A name that the innermost frame does not have is that "
		"of the next caller that has it, or of __main__; then stderr says so.\n\n"
		"Instances show their attributes. What only code could tell (a property, "
		"__getattr__, __getitem__ of a class of the program) is said to be so: 'probing "
		"eval' runs code.",
	.options =
		(const struct prb_option[]){
			{"tid", 0, PRB_OPTION_NUMBER, "TID", "In this thread, not the main one",
			 PRB_COMPLETE_NOTHING, offsetof(struct print_settings, tid),
			 .for_clients = true},
			{"frame", 0, PRB_OPTION_TEXT, "N",
			 "In this Python frame only: 0 is the innermost", PRB_COMPLETE_NOTHING,
			 offsetof(struct print_settings, frame), .for_clients = true},
			{"function", 0, PRB_OPTION_TEXT, "NAME",
			 "In the innermost frame of this function, as EXPRESSION@NAME",
			 PRB_COMPLETE_NOTHING, offsetof(struct print_settings, function),
			 .for_clients = true},
			NUMBER("depth", "N", "Levels of instances that show their attributes [1]",
			       values.depth),
			NUMBER("max-value", "N",
			       "Characters of a text, and at least of the whole [2000]",
			       values.max_value),
			NUMBER("max-items", "N", "Items and attributes of each object [100]",
			       values.max_items),
			{"secrets", 0, PRB_OPTION_FLAG, NULL,
			 "What the class of an object hides, too", PRB_COMPLETE_NOTHING,
			 offsetof(struct print_settings, values.secrets), .for_clients = true},
			{"type", 't', PRB_OPTION_FLAG, NULL,
			 "Print its type and where it lies as well", PRB_COMPLETE_NOTHING,
			 offsetof(struct print_settings, type), .for_clients = true},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct print_settings, json), .for_clients = true},
			PRB_EXTENSION_OPTION(struct print_settings, scripts),
			{"names", 0, PRB_OPTION_FLAG, NULL,
			 "Print what EXPRESSION may be completed to, for shells",
			 PRB_COMPLETE_NOTHING, offsetof(struct print_settings, names),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct print_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "EXPRESSION",
	.complete = PRB_COMPLETE_VALUE,
	.max_arguments = 1,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 print self", "The object whose method runs"},
			{"probing 4242 print \"self.queue[0].name\"", "What lies further in"},
			{"probing 4242 print --frame 2 'len(rows)'", "In the caller's caller"},
			{"probing 4242 print loss@train",
			 "In the frame of train(), wherever it is"},
			{"probing 4242 print threading._active", "Of an imported module"},
			{}},
	.run = run,
};
