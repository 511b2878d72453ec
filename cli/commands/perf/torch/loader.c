/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/torch/loader.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/vec.h"
#include "cluster/looks/pace_spots.h"
#include "cluster/looks/thread_text.h"
#include "control/pause_state.h"
#include "dump/dump.h"
#include "target/proc/subprocesses.h"
#include "target/target.h"

static const char TORCH[] = "torch.", LOOP[] = "torch.utils.data._utils.worker",
		  FETCH[] = "torch.utils.data._utils.fetch";

enum { ROUNDS = 100, MOST_WORKERS = 32 /* more are as these */ };
static const struct timespec PAUSE = {.tv_nsec = 20000000};

/* Workers that make batches in this part of the time are not idle. */
static const double NONE_IDLE = 0.85;

struct worker {
	struct prb_target *target;
	struct prb_dump_found found;
	bool counted; /* it was seen to be a worker */
};

struct workers {
	PRB_VEC(struct worker) list;
	struct prb_pace functions; /* of the program, in which batches are made */
};

void prb_torch_loader_deinit(struct prb_torch_loader *loader)
{
	prb_str_deinit(&loader->function);
}

static void workers_deinit(struct workers *workers)
{
	struct worker *worker;
	struct prb_spot *spot;

	prb_vec_each (worker, &workers->list) {
		prb_dump_found_deinit(&worker->found);
		prb_target_destroy(worker->target);
	}
	prb_vec_free(&workers->list);
	prb_vec_each (spot, &workers->functions.spots)
		free(spot->name);
	prb_vec_free(&workers->functions.spots);
}

static bool is_of(const struct prb_dump_frame *frame, const char *module)
{
	return frame->module && !strncmp(frame->module, module, strlen(module));
}

/* Notes what the worker does in its loop: makes a batch, or waits. */
static struct prb_error *note(struct worker *worker, const struct prb_dump_thread *thread,
			      struct workers *workers, struct prb_torch_loader *ret)
{
	const struct prb_dump_frame *frame, *called = NULL;
	bool loop = false, fetch = false;

	prb_vec_each (frame, &thread->frames) {
		if (frame->kind != PRB_FRAME_PYTHON)
			continue;
		fetch |= is_of(frame, FETCH);
		loop |= is_of(frame, LOOP);
		/* The outermost that torch calls. */
		if (!fetch && !is_of(frame, TORCH))
			called = frame;
	}
	if (!loop)
		return NULL;
	ret->workers += !worker->counted;
	worker->counted = true;
	ret->looks++;
	ret->busy += fetch;
	return fetch && called ? prb_pace_count(&workers->functions, prb_frame_name(called), 1)
			       : NULL;
}

static struct prb_error *look(struct worker *worker, struct workers *workers,
			      struct prb_torch_loader *ret)
{
	const struct prb_dump_options options = {
		.main_only = true, .no_waits = true, .no_command = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_error struct prb_error *err =
		prb_dump_create_with(worker->target, &options, &worker->found, &dump);

	/* It may have ended, or be no Python. */
	if (err)
		return err->code == PRB_ERROR_NOMEM ? prb_steal(&err) : NULL;
	return dump->threads.count ? note(worker, &dump->threads.items[0], workers, ret) : NULL;
}

static struct prb_error *open_workers(pid_t pid, struct workers *workers)
{
	struct prb_subprocesses children = {};
	struct prb_error *err = prb_subprocesses_find(pid, &children);

	for (size_t i = 0; i < children.list.count && i < MOST_WORKERS && !err; i++) {
		prb_auto_target struct prb_target *target = NULL;
		prb_auto_error struct prb_error *closed =
			prb_target_open_process(children.list.items[i].pid, &target);
		struct worker *worker = closed ? NULL : prb_vec_push(&workers->list);

		if (worker)
			*worker = (struct worker){.target = prb_steal(&target)};
		else if (!closed)
			err = prb_error_nomem();
	}
	prb_subprocesses_deinit(&children);
	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		err = NULL;
	}
	return err;
}

struct prb_error *prb_torch_loader_look(pid_t pid, struct prb_torch_loader *ret)
{
	__attribute__((cleanup(workers_deinit))) struct workers workers = {};
	const struct prb_spot *spot, *most = NULL;
	struct worker *worker;

	if (getenv(PRB_PAUSE_CLIENT))
		return NULL;
	PRB_TRY(open_workers(pid, &workers));
	for (unsigned n = 0; n < ROUNDS && workers.list.count; n++) {
		prb_vec_each (worker, &workers.list)
			PRB_TRY(look(worker, &workers, ret));
		/* Children of another kind. */
		if (n > ROUNDS / 10 && !ret->workers)
			break;
		if (nanosleep(&PAUSE, NULL))
			break;
	}
	prb_vec_each (spot, &workers.functions.spots)
		if (!most || spot->count > most->count)
			most = spot;
	if (!most)
		return NULL;
	prb_text_escape(&ret->function, most->name);
	ret->in_function = most->count;
	return ret->function.failed ? prb_error_nomem() : NULL;
}

void prb_torch_loader_text(const struct prb_torch_loader *loader, double step, struct prb_str *s)
{
	double busy = (double)loader->busy / (double)loader->looks;
	bool one = loader->workers == 1;

	prb_str_printf(s, ": %u worker%s", loader->workers, one ? "" : "s");
	if (step > 0) {
		prb_str_puts(s, ", ");
		prb_text_duration(s, step * busy * loader->workers);
		prb_str_puts(s, " for the batches of a step");
	}
	if (busy < NONE_IDLE) {
		prb_str_printf(s, ", at work %.0f %% of the time", 100 * busy);
		return;
	}
	prb_str_printf(s, ", %s idle: more workers", one ? "never" : "none");
	if (loader->in_function * 2 > loader->busy)
		prb_str_printf(s, ", or look at `%s` (%.0f %% of their time)",
			       prb_str_text(&loader->function),
			       100 * (double)loader->in_function / (double)loader->looks);
}
