/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/words.h"
#include "control/client.h"
#include "control/load.h"
#include "control/eval.h"

static const double SECONDS = 5; /* that an agent may take for all that a command asks */
static const double LEAST_SECONDS = 0.1;
static const char prefix[] = "probing.";

void prb_config_deinit(struct prb_config *config)
{
	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++)
		prb_str_deinit(&config->values[i]);
	prb_str_deinit(&config->told);
}

static const char *without_prefix(const char *key)
{
	return strncasecmp(key, prefix, strlen(prefix)) ? key : key + strlen(prefix);
}

struct prb_error *prb_config_key_find(const char *key, unsigned *ret)
{
	const char *word = without_prefix(key);
	prb_auto_str struct prb_str near = {};
	struct prb_error *err;

	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++) {
		if (!strcasecmp(prb_config_keys[i].name + strlen(prefix), word)) {
			*ret = i;
			return NULL;
		}
	}
	err = prb_error_create(PRB_ERROR_USAGE, "there is no setting '%.100s'", key);
	prb_config_near(key, &near);
	if (near.length)
		return prb_error_hint(err, "did you mean %s?", prb_str_text(&near));
	return prb_error_hint(err, "'probing PID config' lists them");
}

void prb_config_near(const char *key, struct prb_str *ret)
{
	const char *word = without_prefix(key);

	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++) {
		const char *name = prb_config_keys[i].name;

		if (prb_word_resembles(word, name + strlen(prefix)) ||
		    prb_word_resembles(word, strrchr(name, '.') + 1))
			prb_str_printf(ret, "%s'%s'", ret->length ? " or " : "", name);
	}
}

void prb_config_describe(const struct prb_config_key *key, struct prb_str *ret)
{
	if (key->type == PRB_CONFIG_TEXT)
		prb_str_printf(ret, "a text of up to %d bytes", PRB_CONFIG_TEXT_SIZE - 1);
	else if (key->type == PRB_CONFIG_SIZE)
		prb_str_printf(ret, "a number of bytes from %.0f to %.0f, such as 500MB or 1GiB",
			       key->least, key->most);
	else
		prb_str_printf(ret, "a number%s%s from %g to %g", key->unit ? " of " : "",
			       key->unit ? key->unit : "", key->least, key->most);
}

/** "KEY=VALUE" as the agent takes it. */
static struct prb_error *make_request(const struct prb_config_key *key, const char *value,
				      struct prb_str *ret)
{
	prb_auto_str struct prb_str what = {};
	double number;

	if (key->type == PRB_CONFIG_TEXT && strlen(value) < PRB_CONFIG_TEXT_SIZE &&
	    !strchr(value, '\n'))
		prb_str_printf(ret, "%s=%s", key->name, value);
	else if (key->type != PRB_CONFIG_TEXT && prb_config_parse(key, value, &number))
		prb_str_printf(ret, "%s=%.15g", key->name, number);
	if (ret->failed)
		return prb_error_nomem();
	if (ret->length)
		return NULL;
	prb_config_describe(key, &what);
	return prb_error_create(PRB_ERROR_USAGE, "%s cannot be '%.100s', it is %s", key->name,
				value, prb_str_text(&what));
}

/** Parses the answer's lines; keys of a later agent's version are left out. */
static struct prb_error *parse(const struct prb_wire_frame *frame, struct prb_config *ret)
{
	const char *at = (const char *)frame->payload, *end = at + frame->length;

	while (at < end) {
		const char *line_end = memchr(at, '\n', (size_t)(end - at));
		const char *equals;
		unsigned index;

		line_end = line_end ? line_end : end;
		equals = memchr(at, '=', (size_t)(line_end - at));
		index = equals ? prb_config_find(at, (size_t)(equals - at)) : PRB_CONFIG_KEYS;
		if (index < PRB_CONFIG_KEYS) {
			struct prb_str *value = &ret->values[index];

			prb_str_truncate(value, 0);
			prb_str_append(value, equals + 1, (size_t)(line_end - equals - 1));
			if (value->failed)
				return prb_error_nomem();
		}
		at = line_end + 1;
	}
	ret->loaded = true;
	return NULL;
}

static struct prb_error *ask(struct prb_agent *agent, const struct prb_str *request,
			     double deadline, struct prb_config *ret)
{
	struct prb_wire_frame frame;

	PRB_TRY(prb_agent_requires(agent, PRB_WIRE_CAN_CONFIG, "keep settings"));
	PRB_TRY(prb_agent_request(agent, prb_agent_left(deadline), PRB_WIRE_CONFIG,
				  prb_str_text(request), request->length, NULL, 0));
	for (;;) {
		PRB_TRY(prb_agent_await(agent, prb_agent_left(deadline), &frame));
		if (frame.request != prb_agent_last_request(agent))
			continue;
		if (frame.type == PRB_WIRE_CONFIG_REPLY)
			return parse(&frame, ret);
		if (frame.type == PRB_WIRE_ERROR)
			return prb_error_create(PRB_ERROR_USAGE, "%.*s", (int)frame.length,
						(const char *)frame.payload);
	}
}

static void put_initial(struct prb_config *ret)
{
	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++)
		if (prb_config_keys[i].type != PRB_CONFIG_TEXT)
			prb_str_printf(&ret->values[i], "%.15g", prb_config_keys[i].initial);
}

struct prb_error *prb_config_read(struct prb_target *t, struct prb_config *ret)
{
	const struct prb_str all = {};
	struct prb_agent *agent;
	struct prb_error *err = t->loadable ? prb_agent_connect(t, &agent)
					    : prb_error_create(PRB_ERROR_NOT_FOUND, "no agent");

	put_initial(ret);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return NULL;
	if (err)
		return err;
	err = ask(agent, &all, prb_agent_deadline(SECONDS), ret);
	prb_agent_close(agent);
	return err;
}

/** Has code of the agent in Python do what the changed setting says. */
static struct prb_error *apply(struct prb_agent *agent, double deadline, const char *request,
			       struct prb_config *ret)
{
	/* It has answered in time, so some is left. */
	struct prb_eval how = {.flags = PRB_WIRE_TORCH,
			       .timeout = PRB_MAX(prb_agent_left(deadline), LEAST_SECONDS)};
	struct prb_eval_result result = {};
	prb_auto_str struct prb_str code = {};
	struct prb_target *t = prb_agent_target(agent);
	struct prb_error *err;

	if (!(prb_agent_hello(agent)->capabilities & PRB_WIRE_CAN_TORCH))
		return NULL;
	prb_str_puts(&code, request);
	err = code.failed ? prb_error_nomem()
			  : prb_eval_run(agent, &how, "<probing>", &code, &result);
	if (!err && result.outcome == PRB_WIRE_RAISED)
		err = prb_error_create(PRB_ERROR_FAILED, "%.400s", prb_str_text(&result.traceback));
	if (!err)
		err = prb_eval_judge(t, t ? t->pid : 0, &how, &result);
	if (!err)
		prb_str_append(&ret->told, result.out.data, result.out.length);
	prb_eval_result_deinit(&result);
	return prb_error_prefix(err, "the setting is changed, but not in effect");
}

struct prb_error *prb_config_change(struct prb_target *t, const char *key, const char *value,
				    bool may_load, struct prb_config *ret)
{
	prb_auto_str struct prb_str request = {};
	struct prb_agent *agent;
	struct prb_error *err;
	unsigned index;
	double deadline;

	PRB_TRY(prb_config_key_find(key, &index));
	PRB_TRY(make_request(&prb_config_keys[index], value, &request));
	PRB_TRY(prb_agent_reach(t, may_load, &agent));
	deadline = prb_agent_deadline(SECONDS);
	err = ask(agent, &request, deadline, ret);
	if (!err && (index == PRB_CONFIG_TORCH_PROFILING || index == PRB_CONFIG_TORCH_NAN ||
		     index == PRB_CONFIG_WATCH))
		err = apply(agent, deadline, "apply", ret);
	prb_agent_close(agent);
	return err;
}

static struct prb_error *set(struct prb_agent *agent, unsigned index, const char *value,
			     double deadline, struct prb_config *ret)
{
	prb_auto_str struct prb_str request = {};

	PRB_TRY(make_request(&prb_config_keys[index], value, &request));
	return ask(agent, &request, deadline, ret);
}

/* "probing.torch.profiling=off" and the like in its environment is an answer already. */
static bool has_chosen(struct prb_target *t)
{
	const char *name = prb_config_keys[PRB_CONFIG_TORCH_PROFILING].environment;
	prb_auto_str struct prb_str environment = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(t, &environment, "environ");

	for (size_t at = 0; !err && at < environment.length;
	     at += strlen(environment.data + at) + 1)
		if (!strncmp(environment.data + at, name, strlen(name)) &&
		    environment.data[at + strlen(name)] == '=')
			return true;
	return false;
}

bool prb_target_has_torch(const struct prb_target *t)
{
	const struct prb_map *map;

	prb_vec_each (map, &t->maps.list)
		if (strstr(map->path, "/libtorch_python.so"))
			return true;
	return false;
}

struct prb_error *prb_config_record_torch(struct prb_target *t, bool *begun)
{
	__attribute__((cleanup(prb_config_deinit))) struct prb_config config = {};
	double deadline = prb_agent_deadline(SECONDS);
	struct prb_agent *agent;
	char request[32];

	*begun = false;
	if (!prb_target_has_torch(t) || has_chosen(t))
		return NULL;
	snprintf(request, sizeof(request), "begin\n%d", PRB_CONFIG_FIRST_STEPS);
	PRB_TRY(prb_agent_connect(t, &agent));

	struct prb_error *err = set(agent, PRB_CONFIG_TORCH_PROFILING, "on", deadline, &config);

	if (!err)
		err = apply(agent, deadline, request, &config);
	if (err)
		prb_error_destroy(set(agent, PRB_CONFIG_TORCH_PROFILING, "off",
				      prb_agent_deadline(LEAST_SECONDS), &config));
	if (!err && !atof(prb_str_text(&config.values[PRB_CONFIG_MEMORY_INTERVAL])))
		err = set(agent, PRB_CONFIG_MEMORY_INTERVAL, "1", deadline, &config);
	prb_agent_close(agent);
	*begun = !err;
	return err;
}
