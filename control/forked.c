/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/forked.h"

#include <stdbool.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "control/gil_locks.h"
#include "control/interpreters.h"
#include "dump/dump.h"
#include "target/proc/text.h"

/** True if the process was forked and has not executed a program since. */
static bool is_forked(struct prb_target *t)
{
	prb_auto_str struct prb_str line = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(t, &line, "stat");
	struct prb_stat stat;

	return !err && prb_stat_parse(prb_str_text(&line), &stat) && stat.forked;
}

/** True if Python has stacks of threads that the process does not have. */
static bool has_lost_threads(struct prb_target *t)
{
	const struct prb_dump_options options = {.mode = PRB_DUMP_NONBLOCKING,
						 .no_waits = true,
						 .no_command = true,
						 .max_frames = 1};
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_error struct prb_error *err = prb_dump_create(t, &options, &dump);
	const struct prb_dump_thread *thread;

	if (err)
		return false;
	prb_vec_each (thread, &dump->threads)
		if (!strcmp(thread->state, "threadless"))
			return true;
	return false;
}

/**
 * True if a condition variable of glibc may have waiters. The word that counts them has another
 * place since glibc 2.41. Both are looked at: the other one may make us refuse without need, but
 * not the other way round.
 */
static bool has_waiters(struct prb_mem *mem, uint64_t address)
{
	enum { NEW = 7, OLD = 9, WORDS = 12, ONE = 8 /* below it are flags */ };
	uint32_t words[WORDS];
	prb_auto_error struct prb_error *err = prb_mem_read(mem, address, words, sizeof(words));

	return err || words[NEW] >= ONE || words[OLD] >= ONE;
}

static bool is_locked(struct prb_mem *mem, uint64_t address)
{
	uint32_t lock;
	prb_auto_error struct prb_error *err = prb_mem_read_u32(mem, address, &lock);

	return err || lock;
}

struct copied_gils {
	struct prb_target *target;
	bool used; /**< one of them was being waited for, or is not known */
};

static void look_at_gils(void *context, struct prb_python *py, const struct prb_py_threads *threads)
{
	struct copied_gils *gils = context;
	struct prb_mem *mem = gils->target->mem;
	const struct prb_interp *interp;

	if (!threads || py->layout.free_threaded) {
		gils->used = true;
		return;
	}
	prb_vec_each (interp, &threads->interps) {
		struct prb_gil_locks gil = prb_gil_locks(py, interp);

		gils->used |= !gil.condition || has_waiters(mem, gil.condition) ||
			      has_waiters(mem, gil.switch_condition) || is_locked(mem, gil.mutex) ||
			      is_locked(mem, gil.switch_mutex);
	}
}

static bool has_used_gil(struct prb_target *t)
{
	struct copied_gils gils = {.target = t};

	prb_interpreters_look(t, look_at_gils, &gils);
	return gils.used;
}

struct prb_error *prb_forked_check(struct prb_target *t)
{
	if (!is_forked(t) || !has_lost_threads(t) || !has_used_gil(t))
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "process %d was forked while other threads used the GIL, and "
				 "Python was not told of it: waiting for the GIL could block the "
				 "program for ever",
				 (int)t->pid),
		"no code runs in it; 'probing %d debug --dump' reads it. C code that forks has to "
		"call PyOS_BeforeFork() and PyOS_AfterFork_Child()",
		(int)t->pid);
}
