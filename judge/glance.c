/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/glance.h"

#include <string.h>

#include "base/cleanup.h"
#include "dump/dump.h"
#include "judge/rest.h"
#include "judge/threads.h"

void prb_glances_deinit(struct prb_glances *glances)
{
	prb_vec_free(&glances->list);
}

/** The place of @p pid, or where it belongs. */
static size_t place_of(const struct prb_glances *glances, pid_t pid)
{
	size_t low = 0, high = glances->list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (glances->list.items[middle].pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct prb_glance *find(const struct prb_glances *glances, pid_t pid)
{
	size_t place = place_of(glances, pid);

	return place < glances->list.count && glances->list.items[place].pid == pid
		       ? &glances->list.items[place]
		       : NULL;
}

static struct prb_error *insert(struct prb_glances *glances, struct prb_glance glance)
{
	size_t place = place_of(glances, glance.pid), count = glances->list.count;

	if (!prb_vec_push(&glances->list))
		return prb_error_nomem();
	memmove(glances->list.items + place + 1, glances->list.items + place,
		(count - place) * sizeof(glance));
	glances->list.items[place] = glance;
	return NULL;
}

static void judge(const struct prb_case *c, struct prb_glance *ret)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &c->dump->threads) {
		ret->moves = ret->moves || prb_thread_moves(thread);
		ret->idle = ret->idle || prb_case_goes_on(c, thread);
	}
}

static struct prb_error *look(pid_t pid, struct prb_glance *ret)
{
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;

	PRB_TRY(prb_target_open_process(pid, &target));
	PRB_TRY(prb_dump_create_stackless(target, false, &dump));
	judge(&(const struct prb_case){.target = target, .dump = dump}, ret);
	return NULL;
}

struct prb_error *prb_glances_at(struct prb_glances *glances, pid_t pid, struct prb_glance *ret)
{
	const struct prb_glance *known = find(glances, pid);

	*ret = known ? *known : (struct prb_glance){.pid = pid};
	if (known)
		return NULL;
	PRB_TRY(prb_error_tolerate(look(pid, ret), NULL));
	return insert(glances, *ret);
}

struct prb_error *prb_glances_note_idle(struct prb_glances *glances, pid_t pid)
{
	struct prb_glance *known = find(glances, pid);

	if (!known)
		return insert(glances, (struct prb_glance){.pid = pid, .idle = true});
	known->idle = true;
	return NULL;
}
