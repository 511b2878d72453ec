/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Makes a dump: finds Python and its threads, reads their stacks, and describes each. */
#include "dump/dump.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/threads.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/pool.h"
#include "target/core/core.h"
#include "target/task.h"
#include "target/snapshot/snapshot.h"
#include "dump/plan.h"
#include "dump/native/cython.h"
#include "dump/read/extensions.h"
#include "dump/read/process.h"
#include "dump/read/python_locks.h"
#include "dump/read/reader.h"
#include "dump/read/source_text.h"
#include "dump/read/thread_names.h"
#include "dump/read/thread_state.h"

static struct prb_error *read_live(struct prb_reader *r)
{
	struct prb_reader_thread *thread;

	if (r->options->mode == PRB_DUMP_FREEZE)
		return prb_read_frozen(r);
	PRB_TRY(prb_read_sleeping(r, r->view));
	prb_vec_each (thread, &r->threads)
		if (!thread->done && thread->task)
			PRB_TRY(prb_read_running(r, thread));
	return prb_read_threadless(r);
}

/* Reads the state, names and waits of threads, and the process. */
static struct prb_error *read_rest(struct prb_reader *r)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads)
		PRB_TRY(prb_read_thread_state(r, thread));
	PRB_TRY(prb_read_gc_thread(r));

	struct prb_python **py;
	prb_vec_each (py, &r->pythons->list)
		PRB_TRY(prb_read_thread_names(r, *py, r->view));
	if (!r->options->no_waits)
		PRB_TRY(prb_python_locks_explain(r, r->view));
	return prb_read_process(r);
}

static int compare_threads(const void *a, const void *b, void *pid)
{
	const struct prb_dump_thread *x = a, *y = b;
	pid_t main_tid = *(pid_t *)pid;

	if ((x->tid == main_tid) != (y->tid == main_tid))
		return x->tid == main_tid ? -1 : 1;
	if (!x->tid != !y->tid) /* states without a thread come last */
		return x->tid ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->interpreter < y->interpreter ? -1 : x->interpreter > y->interpreter;
}

/* A thread of the agent that has ended: of no interest to the user. */
static bool is_ended_helper(const struct prb_dump_thread *thread)
{
	return thread->ended && thread->os_name && prb_is_agent_thread(thread->os_name);
}

static void drop_ended_helpers(struct prb_dump *dump)
{
	size_t kept = 0;

	for (size_t i = 0; i < dump->threads.count; i++) {
		struct prb_dump_thread *thread = &dump->threads.items[i];

		if (is_ended_helper(thread))
			prb_dump_thread_deinit(thread);
		else
			dump->threads.items[kept++] = *thread;
	}
	dump->threads.count = kept;
}

static void finish(struct prb_reader *r)
{
	struct prb_dump *dump = r->dump;
	struct prb_dump_thread *thread;

	drop_ended_helpers(dump);
	prb_vec_each (thread, &dump->threads) {
		dump->own_frames += thread->own_frames;
		/* Frozen threads are stopped at the same time. */
		if (r->options->mode == PRB_DUMP_FREEZE)
			dump->pause_us = PRB_MAX(dump->pause_us, thread->pause_us);
		else
			dump->pause_us += thread->pause_us;
		dump->paused_threads += thread->tid && thread->read == PRB_READ_STOPPED;
	}
	if (dump->threads.count)
		qsort_r(dump->threads.items, dump->threads.count, sizeof(*dump->threads.items),
			compare_threads, &dump->main_tid);
}

static bool is_said(const struct prb_dump *dump, const char *text)
{
	char *const *warning;

	prb_vec_each (warning, &dump->warnings)
		if (!strncmp(*warning, text, strlen(text)))
			return true;
	return false;
}

/* Warns of files whose contents a core lacks. */
static struct prb_error *warn_missing(struct prb_dump *dump, const struct prb_target *target)
{
	enum { MAX_NAMED = 8 };
	const char *reason;
	unsigned named = 0;

	for (size_t i = 0; (reason = prb_core_missing(target, i)); i++) {
		if (is_said(dump, reason))
			continue;
		if (++named > MAX_NAMED)
			return prb_dump_warn(dump,
					     strdup("more files are missing; '-v' names all"));
		PRB_TRY(prb_dump_warn(dump,
				      prb_format("%s, and the core file lacks what was mapped from "
						 "it; --sysroot or --library-path says where it is",
						 reason)));
	}
	return NULL;
}

/* Warns of a core without the interpreter's file, which has the names of types. */
static struct prb_error *warn_nameless(struct prb_reader *r)
{
	struct prb_python **py;

	prb_vec_each (py, &r->pythons->list)
		if ((*py)->code_by_members)
			PRB_TRY(prb_dump_warn(
				r->dump, prb_format("the names of types cannot be read without %s: "
						    "code was recognised by its members",
						    (*py)->module->path)));
	return NULL;
}

/* Warns of damage by stray writes to the interpreter's own types. */
static struct prb_error *warn_damaged(struct prb_reader *r)
{
	struct prb_python **py;

	prb_vec_each (py, &r->pythons->list)
		for (int i = 0; (*py)->damaged && i < PRB_BUILTIN_COUNT; i++) {
			prb_auto_str struct prb_str what = {};

			if (!((*py)->damaged >> i & 1))
				continue;
			prb_python_describe_damage(*py, prb_view_mem(r->view), i, &what);
			if (what.failed)
				return prb_error_nomem();
			if (what.length)
				PRB_TRY(prb_dump_warn(
					r->dump,
					prb_format("the type '%s' (%s at %#llx) is damaged: "
						   "%s; it was recognised by its address",
						   prb_builtin_types[i].name,
						   prb_builtin_types[i].symbol,
						   (unsigned long long)(*py)->builtins[i],
						   prb_str_text(&what))));
		}
	return NULL;
}

/* The list of modules can be shared only if it is complete. */
static bool may_share(const struct prb_target *target, const struct prb_dump_options *options,
		      const struct prb_dump_found *found)
{
	if (prb_target_is_recorded(target))
		return false;
	return found->modules || options->native || !prb_target_is_remote(target);
}

static struct prb_error *find_pythons(struct prb_reader *r, struct prb_dump_found *found)
{
	struct prb_error *err = NULL;

	if (!found->modules)
		err = prb_pythons_open(r->target, r->view, r->options->native, &found->modules,
				       &found->pythons);
	else if (!found->pythons.list.count)
		err = prb_pythons_find(found->modules, r->view, &found->pythons);
	r->modules = found->modules;
	r->pythons = &found->pythons;
	return err;
}

/* The steps of docs/architecture.md, in this order. */
static struct prb_error *fill(struct prb_reader *r, struct prb_dump_found *found)
{
	PRB_TRY(prb_view_create(r->target->mem, &r->view));
	PRB_TRY(find_pythons(r, found));
	if (r->options->native)
		PRB_TRY(prb_native_create(r->modules, r->dump->pool, r->options->native_all,
					  &r->native));
	/*
	 * Counters are noted before memory is read (see tasks.h). So the pages that were read to
	 * find Python are read again, in one go.
	 */
	PRB_TRY(prb_tasks_create(r->target, &r->tasks));
	prb_view_new_epoch(r->view);
	PRB_TRY(prb_view_prefetch(r->view));
	PRB_TRY(prb_wait_context_create(r->target, &r->waits));
	if (r->options->all_enders)
		PRB_TRY(prb_wait_context_search_all(r->waits, r->options->search));
	PRB_TRY(prb_dump_plan(r));
	PRB_TRY(r->target->moves ? read_live(r) : prb_read_still(r));
	PRB_TRY(read_rest(r));
	if (r->native)
		PRB_TRY(prb_cython_fill(r->target, r->dump));
	if (r->options->source || r->options->source_innermost)
		PRB_TRY(prb_source_fill(r->target, r->pythons, r->dump, !r->options->source));
	PRB_TRY(warn_missing(r->dump, r->target));
	PRB_TRY(warn_damaged(r));
	PRB_TRY(warn_nameless(r));
	prb_modules_remember(r->modules);
	prb_target_note_pages(r->target, 0, r->view);
	finish(r);
	return NULL;
}

void prb_dump_found_deinit(struct prb_dump_found *found)
{
	prb_pythons_deinit(&found->pythons);
	prb_modules_destroy(found->modules);
}

struct prb_error *prb_dump_create(struct prb_target *target, const struct prb_dump_options *options,
				  struct prb_dump **ret)
{
	struct prb_dump_found found = {};
	struct prb_error *err = prb_dump_create_with(target, options, &found, ret);

	prb_dump_found_deinit(&found);
	return err;
}

struct prb_error *prb_dump_create_with(struct prb_target *target,
				       const struct prb_dump_options *options,
				       struct prb_dump_found *found, struct prb_dump **ret)
{
	struct prb_dump_options actual = *options;
	struct prb_reader reader = {
		.target = target, .options = &actual, .patience = PRB_STOP_PATIENCE};
	struct prb_dump_found own = {};
	struct prb_dump *dump = calloc(1, sizeof(*dump));

	if (!dump)
		return prb_error_nomem();
	reader.dump = dump;

	struct prb_error *err = prb_pool_create(&dump->pool);
	if (!err && actual.locals && prb_snapshot_redacted(target)) {
		actual.locals = false;
		err = prb_dump_warn(dump, strdup("values were left out when this snapshot was "
						 "made (--redact)"));
	}
	if (!err)
		err = prb_target_same_program(
			target, fill(&reader, may_share(target, options, found) ? found : &own));
	prb_reader_deinit(&reader);
	prb_dump_found_deinit(&own);
	if (!err && target->custom)
		err = prb_dump_customise(target, &actual, dump);
	if (err)
		prb_dump_destroy(dump);
	else
		*ret = dump;
	return err;
}
