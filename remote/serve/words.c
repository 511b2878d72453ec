/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/serve/words.h"

#include <string.h>

#include "command/command.h"
#include "command/options.h"
#include "remote/wire.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"

enum { MAX_VERBOSE = 3 };

static struct prb_error *not_served(const char *command)
{
	prb_auto_str struct prb_str names = {};

	for (const struct prb_command *const *c = prb_commands; *c; c++)
		if ((*c)->for_clients)
			prb_str_printf(&names, "%s%s", names.length ? ", " : "", (*c)->name);
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "'%.100s' is not a command that is run for clients",
					       command),
			      "these are: %s", prb_str_text(&names));
}

static bool has_places(const struct prb_core_places *places)
{
	return places->exe || places->sysroot || places->library_path;
}

/** An option that is not said to be for clients is refused. */
static struct prb_error *check_options(const struct prb_command *command, const void *settings)
{
	for (const struct prb_option *o = command->options; o && o->name; o++) {
		if (!prb_option_is_set(o, settings))
			continue;
		if (!o->for_clients)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_USAGE,
						 "'%s --%s' is not for clients: it is about files "
						 "or processes of the server",
						 command->name, o->name),
				"run it there, or with an ssh:// target");
		/* A file that a client names is the client's, which gets what would be in it. */
		if (o->complete == PRB_COMPLETE_FILE &&
		    strcmp(*(char *const *)((const char *)settings + o->place), "-") != 0)
			return prb_error_create(PRB_ERROR_USAGE,
						"'%s --%s' writes no file at the server",
						command->name, o->name);
	}
	return NULL;
}

/** Options and words after the command's name. */
static struct prb_error *put(const struct prb_command *command, const void *settings,
			     unsigned verbose, char *const *words, size_t count, const char *target,
			     struct prb_words *ret)
{
	PRB_TRY(prb_words_add(ret, "probing"));
	if (command->target_use != PRB_TARGET_NONE) {
		PRB_TRY(prb_words_add(ret, "--target=%s", target));
	}
	for (unsigned i = 0; i < verbose && i < MAX_VERBOSE; i++)
		PRB_TRY(prb_words_add(ret, "-v"));
	PRB_TRY(prb_words_add(ret, "%s", command->name));
	PRB_TRY(prb_words_add_options(ret, command->options, settings));
	PRB_TRY(prb_words_add(ret, "--"));
	for (size_t i = 0; i < count; i++)
		PRB_TRY(prb_words_add(ret, "%s", words[i]));
	return NULL;
}

static struct prb_error *understand(const struct prb_command *command, char **words, size_t count,
				    const char *target, struct prb_words *ret)
{
	prb_auto_free void *settings = calloc(1, command->settings_size + 1);
	struct prb_global_settings global = {};
	size_t positional;

	if (!settings)
		return prb_error_nomem();
	PRB_TRY(prb_options_parse(
		&(struct prb_option_scopes){
			(const struct prb_option_scope[]){
				{command->options, settings}, {prb_global_options, &global}, {}},
			command->name},
		words, count, &positional));
	if (global.targets.count || global.pid || has_places(&global.places) || global.token_file ||
	    global.help || global.version)
		return prb_error_create(PRB_ERROR_USAGE,
					"a client's command has no option of the program but "
					"'--verbose'");
	PRB_TRY(check_options(command, settings));
	if (positional > command->max_arguments)
		return prb_error_create(PRB_ERROR_USAGE, "unexpected word '%.100s'",
					words[command->max_arguments]);
	if (command->client_word && (!positional || strcmp(words[0], command->client_word) != 0))
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "clients may run only '%s %s'",
						       command->name, command->client_word),
				      "it is about the served process alone; other processes of "
				      "that machine are reached through ssh://");
	return put(command, settings, global.verbose, words, positional, target, ret);
}

struct prb_error *prb_serve_words(const char *const *words, size_t count, const char *target,
				  struct prb_words *ret)
{
	char *rest[PRB_REMOTE_MAX_WORDS];

	if (!count || count > PRB_REMOTE_MAX_WORDS)
		return prb_error_create(PRB_ERROR_USAGE, "a command has 1 to %d words",
					PRB_REMOTE_MAX_WORDS);
	/* They are moved about, not changed. */
	for (size_t i = 1; i < count; i++)
		rest[i - 1] = (char *)words[i];

	const struct prb_command *command = prb_command_find(words[0]);
	if (!command || !command->for_clients || strcmp(words[0], command->name) != 0)
		return not_served(words[0]);
	return understand(command, rest, count - 1, target, ret);
}
