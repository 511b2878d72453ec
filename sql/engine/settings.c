/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/engine/settings.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/words.h"
#include "control/config.h"
#include "sql/engine/changes.h"
#include "sql/engine/session_private.h"

enum { MAX_MEMORY = 1 << 20 };

static const char *const modes[] = {
	[PRB_DUMP_DEFAULT] = "default",
	[PRB_DUMP_NONBLOCKING] = "nonblocking",
	[PRB_DUMP_FREEZE] = "freeze",
};

static void get_mode(const struct prb_session *session, struct prb_str *ret)
{
	prb_str_puts(ret, modes[session->mode]);
}

static struct prb_error *set_mode(struct prb_session *session, const char *value)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(modes); i++) {
		if (!strcasecmp(value, modes[i])) {
			session->mode = (enum prb_dump_mode)i;
			return NULL;
		}
	}
	return prb_error_create(PRB_ERROR_USAGE, "default, nonblocking or freeze");
}

static void get_timeout(const struct prb_session *session, struct prb_str *ret)
{
	prb_str_printf(ret, "%g", session->timeout);
}

static struct prb_error *set_timeout(struct prb_session *session, const char *value)
{
	char *end;
	double seconds = strtod(value, &end);

	if (end == value || *end || !isfinite(seconds) || seconds < 0)
		return prb_error_create(PRB_ERROR_USAGE, "a number of seconds, or 0 for none");
	session->timeout = seconds;
	return NULL;
}

static void get_memory(const struct prb_session *session, struct prb_str *ret)
{
	prb_str_printf(ret, "%llu", (unsigned long long)(session->memory_limit >> 20));
}

static struct prb_error *set_memory(struct prb_session *session, const char *value)
{
	char *end;
	unsigned long long mib = strtoull(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || mib < 1 || mib > MAX_MEMORY)
		return prb_error_create(PRB_ERROR_USAGE, "a number of MiB from 1 to %d",
					MAX_MEMORY);
	session->memory_limit = mib << 20;
	return NULL;
}

static void get_text_max(const struct prb_session *session, struct prb_str *ret)
{
	prb_str_printf(ret, "%zu", session->text_max);
}

static struct prb_error *set_text_max(struct prb_session *session, const char *value)
{
	char *end;
	unsigned long long bytes = strtoull(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || bytes < 1 || bytes > PRB_TEXT_MAX)
		return prb_error_create(PRB_ERROR_USAGE, "a number of bytes from 1 to %d",
					PRB_TEXT_MAX);
	session->text_max = (size_t)bytes;
	return NULL;
}

/* Sets the value limit at @p offset in struct prb_value_limits. */
static struct prb_error *set_limit(struct prb_session *session, size_t offset, const char *value)
{
	struct prb_value_limits limits = session->values;
	char *end;
	unsigned long long number = strtoull(value, &end, 10);

	if (*value < '0' || *value > '9' || *end || number > PRB_VALUE_MOST)
		return prb_error_create(PRB_ERROR_USAGE,
					"a number up to %d, or 0 for the usual one",
					PRB_VALUE_MOST);
	*(int *)((char *)&limits + offset) = (int)number;
	prb_session_set_values(session, &limits);
	return NULL;
}

static void get_depth(const struct prb_session *session, struct prb_str *ret)
{
	prb_str_printf(ret, "%d", session->values.depth);
}

static struct prb_error *set_depth(struct prb_session *session, const char *value)
{
	return set_limit(session, offsetof(struct prb_value_limits, depth), value);
}

static void get_items(const struct prb_session *session, struct prb_str *ret)
{
	prb_str_printf(ret, "%d", session->values.max_items);
}

static struct prb_error *set_items(struct prb_session *session, const char *value)
{
	return set_limit(session, offsetof(struct prb_value_limits, max_items), value);
}

static void get_value(const struct prb_session *session, struct prb_str *ret)
{
	prb_str_printf(ret, "%d", session->values.max_value);
}

static struct prb_error *set_value(struct prb_session *session, const char *value)
{
	return set_limit(session, offsetof(struct prb_value_limits, max_value), value);
}

static void get_secrets(const struct prb_session *session, struct prb_str *ret)
{
	prb_str_puts(ret, session->values.secrets ? "1" : "0");
}

static struct prb_error *set_secrets(struct prb_session *session, const char *value)
{
	struct prb_value_limits limits = session->values;

	if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
		return prb_error_create(PRB_ERROR_USAGE, "0 or 1");
	limits.secrets = *value == '1';
	prb_session_set_values(session, &limits);
	return NULL;
}

const struct prb_setting prb_settings[] = {
	{"probing.query.memory", "MiB of our own memory that a query may collect rows in",
	 get_memory, set_memory},
	{"probing.query.mode",
	 "How threads are read: default (stop who runs), nonblocking (stop nobody), freeze (all at "
	 "one instant)",
	 get_mode, set_mode},
	{"probing.query.timeout", "Seconds after which a query ends; 0: never", get_timeout,
	 set_timeout},
	{"probing.text.max", "Bytes of a cell's text; what is longer is cut, and ends in …",
	 get_text_max, set_text_max},
	{"probing.values.depth", "Levels of instances that show their attributes; 0: as usual",
	 get_depth, set_depth},
	{"probing.values.max_items", "Items and attributes of each value; 0: as usual", get_items,
	 set_items},
	{"probing.values.max_value", "Characters of a text in a value; 0: as usual", get_value,
	 set_value},
	{"probing.values.secrets", "1: also what the class of an object hides", get_secrets,
	 set_secrets, .reveals = true},
	{},
};

/** Changes a setting of the targets; loads the agent where it is missing. */
static struct prb_error *change_targets(struct prb_session *session, const char *key,
					const char *value, bool asked)
{
	prb_auto_free char *what = prb_format("SET %s would change the process", key);
	struct prb_session_target *t;

	if (!what)
		return prb_error_nomem();
	PRB_TRY(prb_changes_check(session, asked, what));
	if (!session->targets.count)
		return prb_error_create(PRB_ERROR_USAGE, "%s is a setting of a process: no target",
					key);
	prb_vec_each (t, &session->targets) {
		__attribute__((cleanup(prb_config_deinit))) struct prb_config config = {};

		PRB_TRY(prb_error_prefix(prb_config_change(t->target, key, value, true, &config),
					 "%s", t->name));
	}
	return NULL;
}

static struct prb_error *unknown(const char *key)
{
	struct prb_error *err =
		prb_error_create(PRB_ERROR_USAGE, "there is no setting '%.100s'", key);
	prb_auto_str struct prb_str near = {};

	for (const struct prb_setting *s = prb_settings; s->name; s++)
		if (prb_word_resembles(key, s->name) ||
		    prb_word_resembles(key, strrchr(s->name, '.') + 1))
			prb_str_printf(&near, "%s'%s'", near.length ? " or " : "", s->name);
	prb_config_near(key, &near);
	if (near.length)
		return prb_error_hint(err, "did you mean %s?", prb_str_text(&near));
	return prb_error_hint(err, "'SHOW ALL' lists them");
}

struct prb_error *prb_settings_set(struct prb_session *session, const char *key, const char *value,
				   bool asked)
{
	unsigned index;

	for (const struct prb_setting *s = prb_settings; s->name; s++) {
		if (strcasecmp(s->name, key) != 0)
			continue;
		if (s->reveals)
			PRB_TRY(prb_changes_check(session, asked,
						  "SET probing.values.secrets would show what is "
						  "hidden"));
		return prb_error_prefix(s->set(session, value), "%s cannot be '%.100s', it is",
					s->name, value);
	}
	prb_auto_error struct prb_error *none = prb_config_key_find(key, &index);
	return none ? unknown(key) : change_targets(session, key, value, asked);
}
