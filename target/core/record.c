/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Crash records: cores that the process wrote itself (agent/crash/crash.h). Notes of the owner
 * "PROBING" hold texts of /proc as they were, each with its name and a NUL in front.
 */
#include <limits.h>
#include <string.h>

#include "target/core/file.h"

enum { MAX_FACTS = 1 << 16 };

struct prb_error *core_take_fact(struct core *core, const char *data, size_t length)
{
	const char *nul = memchr(data, '\0', length);
	struct core_fact *fact;

	if (!nul || core->facts.count == MAX_FACTS)
		return NULL;
	fact = prb_vec_push(&core->facts);
	if (!fact)
		return prb_error_nomem();
	*fact = (struct core_fact){data, nul + 1, length - (size_t)(nul + 1 - data)};
	return NULL;
}

const struct core_fact *core_fact(const struct core *core, const char *name)
{
	const struct core_fact *fact;

	prb_vec_each (fact, &core->facts)
		if (!strcmp(fact->name, name))
			return fact;
	return NULL;
}

/* "key=NUMBER" on a line of its own; 0 if it is not there. */
static uint64_t number_of(const struct core_fact *fact, const char *key)
{
	size_t length = strlen(key);

	for (const char *at = fact->text, *end = at + fact->length; at < end;) {
		const char *line = memchr(at, '\n', (size_t)(end - at));
		uint64_t number = 0;

		if (!line)
			return 0;
		if ((size_t)(line - at) > length && !memcmp(at, key, length) && at[length] == '=') {
			for (at += length + 1; at < line && *at >= '0' && *at <= '9'; at++)
				number = number * 10 + (uint64_t)(*at - '0');
			return number;
		}
		at = line + 1;
	}
	return 0;
}

void core_understand_record(struct core *core)
{
	const struct core_fact *crash = core_fact(core, "crash");
	const struct core_fact *exception = core_fact(core, "exception");
	struct prb_core_info *info = &core->info;
	uint64_t tid;

	if (!crash)
		return;
	info->recorded = true;
	info->left_out = number_of(crash, "left_out");
	info->without_registers = (unsigned)number_of(crash, "without_registers");
	core->target.time = (double)number_of(crash, "seconds") +
			    (double)number_of(crash, "microseconds") / 1e6;
	tid = number_of(crash, "tid");
	if (!exception)
		return;
	info->exception = exception->text;
	info->exception_length = exception->length;
	info->signal_tid = tid <= INT_MAX ? (pid_t)tid : 0;
}

bool core_list_facts(const struct core *core, const char *folder, struct prb_str *ret)
{
	size_t length = strlen(folder);
	const struct core_fact *fact;
	bool any = false;

	prb_vec_each (fact, &core->facts) {
		const char *name = fact->name;

		if (strncmp(name, folder, length) != 0 || name[length] != '/' ||
		    strspn(name + length + 1, "0123456789") != strlen(name + length + 1))
			continue;
		prb_str_printf(ret, "%s\n", name + length + 1);
		any = true;
	}
	return any;
}
