/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/limits.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char VARIABLE[] = "PROBING_LIMITS";

const struct prb_limit_key prb_limit_keys[PRB_LIMITS] = {
	[PRB_LIMIT_WAIT] = {"wait", 1, 86400, "s",
			    "shorter waits for a lock, a device or the GIL are ordinary"},
	[PRB_LIMIT_LONG] = {"long", 10, 86400, "s",
			    "a single wait for a lock or connection counts from here on"},
	[PRB_LIMIT_WAITERS] = {"waiters", 2, 100000, NULL,
			       "so many waits for locks or connections count before that"},
	[PRB_LIMIT_GIL_WAITERS] = {"gil_waiters", 4, 100000, NULL,
				   "so many threads wait for the GIL"},
	[PRB_LIMIT_PROCESSES] = {"processes", 5, 86400, "s",
				 "shorter waits for another process are ordinary"},
	[PRB_LIMIT_STILL] = {"still", 20, 86400, "s", "nothing has run for so long"},
	[PRB_LIMIT_MEMORY] = {"memory", 90, 100, "%", "of its limit a control group uses"},
	[PRB_LIMIT_SWAPPED] = {"swapped", 100, 1e9, "MB", "so much is swapped out"},
	[PRB_LIMIT_ROOM] = {"room", 64, 1e9, "kB", "a file system with less is full"},
	[PRB_LIMIT_THROTTLED] = {"throttled", 50, 100, "%",
				 "of the periods a control group was throttled"},
	[PRB_LIMIT_ZOMBIES] = {"zombies", 16, 1e6, NULL, "so many children are not reaped"},
	[PRB_LIMIT_NAN] = {"nan", 5, 1e6, NULL, "a value is NaN for so many steps"},
	[PRB_LIMIT_LEAK] = {"leak", 10, 1e9, "MB",
			    "memory that grows evenly, but by less in a minute, is ordinary"},
	[PRB_LIMIT_LEAK_FOR] = {"leak_for", 60, 86400, "s", "rows of less time say nothing"},
	[PRB_LIMIT_READY] = {"ready", 50, 100, "%",
			     "of its time a thread that computes waits for a processor"},
	[PRB_LIMIT_JOB] = {"job", 60, 86400, "s",
			   "a rank that waits for so long has its job judged"},
	[PRB_LIMIT_PEER] = {"peer", 600, 86400, "s", "the main thread has waited for a server"},
	[PRB_LIMIT_ANSWER] = {"answer", 30, 86400, "s",
			      "shorter waits for a result, or for its own process, are ordinary"},
	[PRB_LIMIT_GIL_HELD] = {"gil_held", 80, 100, "%",
				"of the looks one function holds the GIL, and others wait for it"},
	[PRB_LIMIT_GIL_FOR] = {"gil_for", 20, 86400, "s", "looks of less time say nothing of that"},
	[PRB_LIMIT_REQUEST] = {"request", 10, 86400, "s",
			       "younger requests of an inference server raise no suspicion"},
	[PRB_LIMIT_TOKEN] = {"token", 5, 86400, "s",
			     "a server with a younger token serves its requests"},
	[PRB_LIMIT_LOOP] = {"loop", 1, 86400, "s",
			    "what keeps a server's event loop, or compiles, for less is ordinary"},
	[PRB_LIMIT_TRANSFER] = {"transfer", 60, 86400, "s",
				"a KV transfer or a grammar of a request may take so long"},
	[PRB_LIMIT_LOADING] = {"loading", 600, 86400, "s",
			       "a server may load weights or an adapter for so long"},
	[PRB_LIMIT_GPU_BUSY] = {"gpu_busy", 98, 100, "%",
				"of its time at least a GPU is busy on which a kernel spins"},
	[PRB_LIMIT_GPU_POWER] = {"gpu_power", 35, 100, "%",
				 "of its limit at most such a GPU draws"},
	[PRB_LIMIT_GPU_MEMORY] = {"gpu_memory", 1, 100, "%",
				  "of its time at most such a GPU's memory moves"},
	[PRB_LIMIT_STEP_PART] = {"step_part", 15, 100, "%",
				 "of training steps that wait for data, evaluate or the like"},
};

static double values[PRB_LIMITS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Sets one to what is written for it; false if there is none, or it cannot be so. */
static bool set(const char *name, size_t length, const char *text, const char *end)
{
	for (unsigned i = 0; i < PRB_LIMITS; i++) {
		const struct prb_limit_key *key = &prb_limit_keys[i];
		char *stop;
		double value;

		if (strlen(key->name) != length || strncmp(key->name, name, length) != 0)
			continue;
		value = strtod(text, &stop);
		if (stop == text || stop != end || !(value >= 0 && value <= key->most))
			return false;
		values[i] = value;
		return true;
	}
	return false;
}

/* The first part that makes no sense; NULL: all do. */
static const char *read_variable(void)
{
	const char *at = getenv(VARIABLE);

	while (at && *at) {
		size_t length = strcspn(at, ",");
		const char *equals = memchr(at, '=', length);

		if (!equals || !set(at, (size_t)(equals - at), equals + 1, at + length))
			return at;
		at += length + (at[length] == ',');
	}
	return NULL;
}

static void begin(void)
{
	for (unsigned i = 0; i < PRB_LIMITS; i++)
		values[i] = prb_limit_keys[i].initial;
	(void)read_variable();
}

double prb_limit(enum prb_limit limit)
{
	pthread_once(&once, begin);
	return values[limit];
}

struct prb_error *prb_limits_check(void)
{
	const char *wrong;

	pthread_once(&once, begin);
	wrong = read_variable();
	if (!wrong)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "%s: '%.*s' is no limit", VARIABLE,
				 (int)strcspn(wrong, ","), wrong),
		"'probing config --limits' lists all, as for %s=still=60,swapped=1000", VARIABLE);
}
