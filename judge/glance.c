/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/glance.h"

#include "base/cleanup.h"
#include "dump/dump.h"
#include "judge/rest.h"
#include "judge/threads.h"

void prb_glances_deinit(struct prb_glances *glances)
{
	prb_number_map_deinit(&glances->places);
	prb_number_map_deinit(&glances->servers);
	prb_vec_free(&glances->list);
	prb_vec_free(&glances->memory);
}

static struct prb_glance *find(const struct prb_glances *glances, pid_t pid)
{
	size_t place;

	return prb_number_map_get(&glances->places, (uint64_t)pid, &place)
		       ? &glances->list.items[place]
		       : NULL;
}

static struct prb_error *add(struct prb_glances *glances, struct prb_glance glance)
{
	struct prb_glance *slot = prb_vec_push(&glances->list);

	if (!slot)
		return prb_error_nomem();
	*slot = glance;
	return prb_number_map_put(&glances->places, (uint64_t)glance.pid, glances->list.count - 1)
		       ? NULL
		       : prb_error_nomem();
}

static void judge(const struct prb_case *c, struct prb_glance *ret)
{
	const struct prb_dump_thread *thread, *main = c->dump->threads.items;

	ret->waits =
		c->dump->threads.count && prb_thread_waits_inside(main) && main->enders.endless;
	ret->polls = c->dump->threads.count &&
		     (prb_thread_sleeps(main) || prb_thread_is(main, "running"));
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
	PRB_TRY(prb_dump_create_stackless(target, false, NULL, &dump));
	judge(&(const struct prb_case){.target = target, .dump = dump}, ret);
	return NULL;
}

struct prb_error *prb_glances_at(struct prb_glances *glances, pid_t pid, struct prb_glance *ret)
{
	struct prb_glance *known = find(glances, pid);

	*ret = known ? *known : (struct prb_glance){.pid = pid};
	if (ret->seen)
		return NULL;
	ret->seen = true;
	PRB_TRY(prb_error_tolerate(look(pid, ret), NULL));
	if (!known)
		return add(glances, *ret);
	*known = *ret;
	return NULL;
}

static struct prb_error *look_at_sharers(struct prb_glances *glances, struct prb_sharers *sharers,
					 bool *ret)
{
	const pid_t *pid;
	bool all;

	*ret = false;
	PRB_TRY(prb_sharers_find(sharers, 1, &all));
	/* So many can never be told to wait all: hundreds of a pool need not be read. */
	*ret = sharers->pids.list.count > PRB_MOST_ENDERS;
	if (*ret)
		return NULL;
	prb_vec_each (pid, &sharers->pids.list) {
		struct prb_glance glance;

		PRB_TRY(prb_glances_at(glances, *pid, &glance));
		*ret = *ret || glance.moves;
		if (*ret)
			break;
	}
	return NULL;
}

struct prb_error *prb_glances_at_memory(struct prb_glances *glances,
					const struct prb_shared_word *word, bool *ret)
{
	struct prb_sharers sharers = {.word = *word};
	struct prb_glance_memory *memory;
	struct prb_error *err;

	prb_vec_each (memory, &glances->memory)
		if (prb_shared_word_same(&memory->word, word)) {
			*ret = memory->moves;
			return NULL;
		}
	err = look_at_sharers(glances, &sharers, ret);
	prb_pids_deinit(&sharers.pids);
	PRB_TRY(err);
	memory = prb_vec_push(&glances->memory);
	if (!memory)
		return prb_error_nomem();
	*memory = (struct prb_glance_memory){*word, *ret};
	return NULL;
}

struct prb_error *prb_glances_note_idle(struct prb_glances *glances, pid_t pid)
{
	struct prb_glance *known = find(glances, pid);

	if (!known)
		return add(glances, (struct prb_glance){.pid = pid, .idle = true});
	known->idle = true;
	return NULL;
}

struct prb_error *prb_glances_note_server(struct prb_glances *glances, pid_t pid, pid_t owner)
{
	return prb_number_map_put(&glances->servers, (uint64_t)pid, (size_t)owner)
		       ? NULL
		       : prb_error_nomem();
}

bool prb_glances_judged_elsewhere(const struct prb_glances *glances, pid_t pid)
{
	size_t owner;

	return prb_number_map_get(&glances->servers, (uint64_t)pid, &owner) && owner != (size_t)pid;
}
