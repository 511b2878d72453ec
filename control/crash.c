/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/crash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "injector/inject.h"

enum {
	SECONDS = 10,	     /* for an answer */
	MIN_SIZE = 16 << 20, /* with 8M, `sys` or frames were left out of most programs */
	MAX_SIZE = 1 << 30,
	MAX_COUNT = 1000,
	LOOK_MS = 10,
	HOOK_LOOKS = 50, /* the main thread comes by within half a second, or rests */
};

static const double max_hold = 86400;

/* "64M", "1G", "4096". */
static bool take_size(const char *text, uint64_t *ret)
{
	static const char units[] = "KMG";
	char *end;
	const char *unit;

	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (errno || *text < '0' || *text > '9')
		return false;
	unit = *end ? strchr(units, *end & ~0x20) : NULL;
	if (unit) {
		unsigned shift = 10 * (unsigned)(unit - units + 1);

		if (*ret > UINT64_MAX >> shift)
			return false;
		*ret <<= shift;
		end++;
		end += *end == 'i';
	}
	end += *end == 'B';
	return !*end;
}

static struct prb_error *wrong(const char *key, const char *value, const char *must)
{
	return prb_error_create(PRB_ERROR_USAGE, "%s=%.100s: it must be %s", key, value, must);
}

struct prb_error *prb_crash_set(struct prb_crash_settings *s, const char *word)
{
	const char *value = strchr(word, '=');
	size_t length = value ? (size_t)(value++ - word) : strlen(word);
	char *end;

	if (!value)
		return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no KEY=VALUE", word);
	if (!strncmp(word, "crash.size", PRB_MAX(length, 10u)))
		return take_size(value, &s->size) && s->size >= MIN_SIZE && s->size <= MAX_SIZE
			       ? NULL
			       : wrong("crash.size", value, "from 16M to 1G");
	if (!strncmp(word, "crash.count", PRB_MAX(length, 11u)))
		return take_size(value, &s->count) && s->count && s->count <= MAX_COUNT
			       ? NULL
			       : wrong("crash.count", value, "from 1 to 1000");
	if (!strncmp(word, "crash.folder", PRB_MAX(length, 12u))) {
		s->folder = value;
		return *value == '/' && strlen(value) < 4096 && !strchr(value, '\n')
			       ? NULL
			       : wrong("crash.folder", value, "an absolute path");
	}
	if (!strncmp(word, "crash.hold", PRB_MAX(length, 10u))) {
		s->hold = strtod(value, &end);
		end += *end == 's';
		return value != end && !*end && s->hold >= 0 && s->hold <= max_hold
			       ? NULL
			       : wrong("crash.hold", value, "a number of seconds up to a day");
	}
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "there is no setting '%.*s'",
					       (int)PRB_MIN(length, 100u), word),
			      "settings are crash.size, crash.count, crash.folder, crash.hold");
}

static struct prb_error *has_hooks(struct prb_agent *agent, bool *ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_wire_frame frame;

	PRB_TRY(prb_agent_ask(agent, PRB_WIRE_STATUS, PRB_WIRE_STATUS_REPLY, SECONDS, &frame));
	prb_str_append(&text, frame.payload, frame.length);
	*ret = strstr(prb_str_text(&text), "\ncrash_hooks=1\n");
	return NULL;
}

static struct prb_error *refused(const struct prb_wire_frame *frame)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED, "the agent refused: %.*s",
					       (int)PRB_MIN(frame->length, 400u),
					       (const char *)frame->payload),
			      "'-D crash.folder=PATH' names a folder as the process sees it");
}

static struct prb_error *ask(struct prb_agent *agent, const struct prb_str *config,
			     struct prb_str *ret)
{
	struct prb_wire_frame frame;

	double by = prb_agent_deadline(SECONDS);

	PRB_TRY(prb_agent_request(agent, SECONDS, PRB_WIRE_CRASH, config->data, config->length,
				  NULL, 0));
	do {
		PRB_TRY(prb_agent_await(agent, prb_agent_left(by), &frame));
	} while (frame.request != prb_agent_last_request(agent));
	if (frame.type != PRB_WIRE_CRASH_REPLY)
		return refused(&frame);
	prb_str_append(ret, frame.payload, frame.length);
	return ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_crash_allowed(struct prb_target *t)
{
	return prb_inject_allowed(t, PRB_CALL_LOADS | PRB_CALL_SERVES | PRB_CALL_CRASHES);
}

struct prb_error *prb_crash_install(struct prb_agent *agent, const struct prb_crash_settings *s,
				    struct prb_str *ret, bool *ret_hooks)
{
	const struct timespec nap = {.tv_nsec = LOOK_MS * 1000000L};
	prb_auto_str struct prb_str config = {};

	*ret_hooks = false;
	PRB_TRY(prb_agent_requires(agent, PRB_WIRE_CAN_CRASH, "record crashes"));
	prb_str_printf(&config, "hold=%lld\n", (long long)(s->hold * 1000));
	if (s->size)
		prb_str_printf(&config, "size=%llu\n", (unsigned long long)s->size);
	if (s->count)
		prb_str_printf(&config, "count=%llu\n", (unsigned long long)s->count);
	if (s->folder)
		prb_str_printf(&config, "folder=%s\n", s->folder);
	if (config.failed)
		return prb_error_nomem();
	PRB_TRY(ask(agent, &config, ret));
	for (int i = 0; i < HOOK_LOOKS && !*ret_hooks; i++) {
		if (i)
			nanosleep(&nap, NULL);
		PRB_TRY(has_hooks(agent, ret_hooks));
	}
	return NULL;
}
