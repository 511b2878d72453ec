/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing memory --diff`: what grew between two snapshots or cores of one process. */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/commands/memory/report/memory.h"

/* When the process began, in ticks since boot; 0: the file does not say. */
static unsigned long long started(struct prb_target *target)
{
	enum { SPACES = 20 }; /* between the name and the field */
	prb_auto_str struct prb_str text = {};
	struct prb_error *err = prb_target_read_file(target, &text, "stat");
	const char *at = err ? NULL : strrchr(prb_str_text(&text), ')');

	prb_error_destroy(err);
	for (int i = 0; at && i < SPACES; i++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

static struct prb_error *check(struct prb_target *before, struct prb_target *after)
{
	unsigned long long one = started(before), other = started(after);

	if (before->pid != after->pid || (one && other && one != other))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 "these are of two processes, %d and %d, whose objects "
					 "have nothing to do with each other",
					 (int)before->pid, (int)after->pid),
			"both have to be of one process: 'probing PID snapshot --heap -o FILE'");
	if (before->time > after->time)
		return prb_error_create(PRB_ERROR_USAGE,
					"the first one is the later one: what grew is seen the "
					"other way round");
	return NULL;
}

/* Without all objects there is no growth to be seen, but differences of what was looked at. */
static struct prb_error *need_all(const struct prb_memory *m, const char *name)
{
	const struct prb_memory_interpreter *i;

	PRB_TRY(prb_error_prefix(prb_memory_need_census(m), "%s", name));
	prb_vec_each (i, &m->interpreters)
		if (m->target->replayed && prb_census_doubt(i->census))
			return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED, "%.200s: %s",
							       name, prb_census_doubt(i->census)),
					      "'probing PID snapshot --heap' saves all objects");
	return NULL;
}

struct prb_error *prb_memory_diff(struct prb_target *first, struct prb_target *second,
				  const struct prb_memory_settings *s, struct prb_str *out)
{
	prb_auto_memory struct prb_memory before = {}, after = {};

	PRB_TRY(check(first, second));
	PRB_TRY(prb_error_prefix(prb_memory_read(first, s, &before), "%s", s->diff));
	PRB_TRY(need_all(&before, s->diff));
	PRB_TRY(prb_memory_read(second, s, &after));
	PRB_TRY(need_all(&after, "the second one"));
	return prb_memory_compare(&before, &after, s, second->time - first->time, out);
}
