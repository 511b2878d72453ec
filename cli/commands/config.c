/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/str.h"
#include "base/text.h"
#include "command/command.h"
#include "command/output.h"
#include "control/config.h"
#include "judge/limits.h"
#include "target/spec/target_spec.h"

struct config_settings {
	bool json, no_inject, keys, limits;
};

static void put_json(struct prb_json *json, unsigned index, const struct prb_str *value)
{
	const struct prb_config_key *key = &prb_config_keys[index];
	static const char *const types[] = {"number", "size", "text"};

	prb_json_open(json, NULL, '{');
	prb_json_text(json, "key", key->name);
	if (value)
		prb_json_text(json, "value", prb_str_text(value));
	prb_json_text(json, "type", types[key->type]);
	prb_json_text(json, "unit", key->unit);
	if (key->type == PRB_CONFIG_TEXT) {
		prb_json_text(json, "default", "");
	} else {
		prb_json_real(json, "default", key->initial, 6);
		prb_json_real(json, "least", key->least, 6);
		prb_json_real(json, "most", key->most, 6);
	}
	prb_json_text(json, "variable", key->environment);
	prb_json_text(json, "variable_also", key->environment_also);
	prb_json_text(json, "effect", key->when);
	prb_json_text(json, "description", key->doc);
	prb_json_text(json, "details", key->more);
	prb_json_close(json, '}');
}

static struct prb_error *show_json(const struct prb_config *config, unsigned only)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};

	prb_json_open(&json, NULL, '[');
	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++)
		if (only == PRB_CONFIG_KEYS || only == i)
			put_json(&json, i, config ? &config->values[i] : NULL);
	prb_json_close(&json, ']');
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

static struct prb_error *show_all(const struct prb_config *config)
{
	prb_auto_str struct prb_str text = {};
	size_t name = 0, value = 0;

	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++) {
		name = PRB_MAX(name, strlen(prb_config_keys[i].name));
		value = PRB_MAX(value, prb_text_width(prb_str_text(&config->values[i])));
	}
	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++) {
		const struct prb_config_key *key = &prb_config_keys[i];

		prb_text_column(&text, key->name, name + 2);
		prb_text_column(&text, prb_str_text(&config->values[i]), value + 2);
		prb_str_printf(&text, "%-7s%s\n", key->unit ? key->unit : "", key->doc);
	}
	return prb_output_lines(&text, false);
}

static struct prb_error *show_value(const struct prb_config *config, unsigned index)
{
	prb_auto_str struct prb_str text = {};

	prb_text_escape(&text, prb_str_text(&config->values[index]));
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

static struct prb_error *tell_change(const struct prb_config *config, unsigned index)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%s = ", prb_config_keys[index].name);
	prb_text_escape(&text, prb_str_text(&config->values[index]));
	prb_str_printf(&text, " (has effect %s)\n", prb_config_keys[index].when);
	if (config->told.length) {
		/* One line of the process's own. */
		prb_str_truncate(&text, text.length - 1);
		prb_str_puts(&text, ": ");
		prb_text_escape_bytes(&text, config->told.data,
				      config->told.length -
					      (config->told.data[config->told.length - 1] == '\n'));
		prb_str_putc(&text, '\n');
	}
	return prb_output(&text);
}

/** Shows all settings or one, or changes one. */
static struct prb_error *work(struct prb_target *target, const char *word,
			      const struct config_settings *s)
{
	__attribute__((cleanup(prb_config_deinit))) struct prb_config config = {};
	const char *equals = word ? strchr(word, '=') : NULL;
	prb_auto_free char *key = word ? strndup(word, strcspn(word, "=")) : NULL;
	unsigned index = PRB_CONFIG_KEYS;

	if (word && !key)
		return prb_error_nomem();
	if (key)
		PRB_TRY(prb_config_key_find(key, &index));
	if (equals)
		PRB_TRY(prb_config_change(target, key, equals + 1, !s->no_inject, &config));
	else
		PRB_TRY(prb_config_read(target, &config));
	if (!config.loaded)
		fputs("probing: the process has no agent: these are the values that one would "
		      "begin with\n",
		      stderr);
	if (s->json)
		return show_json(&config, index);
	return equals ? tell_change(&config, index)
	       : word ? show_value(&config, index)
		      : show_all(&config);
}

static struct prb_error *show_limits(bool as_json)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};

	PRB_TRY(prb_limits_check());
	if (as_json)
		prb_json_open(&json, NULL, '[');
	for (unsigned i = 0; i < PRB_LIMITS; i++) {
		const struct prb_limit_key *key = &prb_limit_keys[i];

		if (!as_json) {
			prb_text_column(&text, key->name, 13);
			prb_str_printf(&text, "%-8g%-4s%s\n", prb_limit(i),
				       key->unit ? key->unit : "", key->doc);
			continue;
		}
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "key", key->name);
		prb_json_real(&json, "value", prb_limit(i), 6);
		prb_json_real(&json, "default", key->initial, 6);
		prb_json_real(&json, "most", key->most, 6);
		prb_json_text(&json, "unit", key->unit);
		prb_json_text(&json, "description", key->doc);
		prb_json_close(&json, '}');
	}
	if (as_json) {
		prb_json_close(&json, ']');
		prb_str_putc(&text, '\n');
	}
	return prb_output_lines(&text, as_json);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct config_settings *s = settings;
	prb_auto_target struct prb_target *target = NULL;

	if (s->limits)
		return show_limits(s->json);
	if (s->keys)
		return show_json(NULL, PRB_CONFIG_KEYS);
	if (cli->targets.count != 1)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       cli->target ? "settings are of one process"
								   : "no target given"),
				      "for example 'probing 4242 config'");
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	return work(target, cli->argument_count ? cli->arguments[0] : NULL, s);
}

const struct prb_command prb_command_config = {
	.rank = 95,
	.for_clients = true,
	.name = "config",
	.aliases = {"cfg", "c"},
	.summary = "Read and change settings of the target",
	.description = "Without KEY, lists all settings of the process with their values. KEY "
		       "prints one, KEY=VALUE changes it, in the running process and for as long "
		       "as it runs. To change one, the agent is loaded if necessary.\n\n"
		       "Environment variables give the values that a process begins with: "
		       "docs/configuration.md has all of them.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct config_settings, json), .for_clients = true},
			{"keys", 0, PRB_OPTION_FLAG, NULL,
			 "Print the keys there are as JSON, without a target", PRB_COMPLETE_NOTHING,
			 offsetof(struct config_settings, keys)},
			{"limits", 0, PRB_OPTION_FLAG, NULL,
			 "Print the limits of 'probing why'; $PROBING_LIMITS changes them",
			 PRB_COMPLETE_NOTHING, offsetof(struct config_settings, limits)},
			{"no-inject", 0, PRB_OPTION_FLAG, NULL,
			 "Fail if the target has no agent, instead of loading it",
			 PRB_COMPLETE_NOTHING, offsetof(struct config_settings, no_inject),
			 .for_clients = true},
			{}},
	.settings_size = sizeof(struct config_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[KEY[=VALUE]]",
	.max_arguments = 1,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 config", "All settings"},
			{"probing 4242 config probing.sample_rate=0.05",
			 "Record every twentieth event and outermost span"},
			{"probing 4242 config probing.max_memory=1GB", "Let rings take more"},
			{"PROBING_LIMITS=still=60 probing why 4242",
			 "Nothing has to move for a minute"},
			{}},
	.run = run,
};
