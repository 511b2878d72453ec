/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/model/dump.h"

#include <stdlib.h>

#include "base/pool.h"

void prb_dump_frame_deinit(struct prb_dump_frame *frame)
{
	struct prb_dump_local *local;

	prb_vec_each (local, &frame->locals)
		free(local->value);
	prb_vec_free(&frame->locals);
	free(frame->source);
	free(frame->error);
}

void prb_dump_frames_clear(struct prb_dump_thread *thread)
{
	struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		prb_dump_frame_deinit(frame);
	prb_vec_free(&thread->frames);
}

void prb_dump_thread_deinit(struct prb_dump_thread *thread)
{
	prb_dump_frames_clear(thread);
	prb_vec_free(&thread->holds);
	free(thread->name);
	free(thread->os_name);
	free(thread->waits_for);
	free(thread->in_c);
	free(thread->error);
}

void prb_dump_task_deinit(struct prb_dump_task *task)
{
	struct prb_dump_awaiter *awaiter;
	struct prb_dump_frame *frame;

	prb_vec_each (frame, &task->frames)
		prb_dump_frame_deinit(frame);
	prb_vec_free(&task->frames);
	prb_vec_each (awaiter, &task->awaiters)
		free(awaiter->name);
	prb_vec_free(&task->awaiters);
	free(task->name);
	free(task->waits_for);
	free(task->error);
}

struct prb_error *prb_dump_task_add_awaiter(struct prb_dump_task *task, const char *name)
{
	struct prb_dump_awaiter *awaiter = prb_vec_push(&task->awaiters);

	if (!awaiter)
		return prb_error_nomem();
	awaiter->at = task->frames.count;
	return name ? prb_str_copy(name, &awaiter->name) : NULL;
}

struct prb_error *prb_dump_warn(struct prb_dump *dump, char *text)
{
	char **slot = text ? prb_vec_push(&dump->warnings) : NULL;

	if (!slot) {
		free(text);
		return prb_error_nomem();
	}
	*slot = text;
	return NULL;
}

void prb_dump_destroy(struct prb_dump *dump)
{
	struct prb_dump_thread *thread;
	struct prb_dump_task *task;
	char **text;

	if (!dump)
		return;
	prb_vec_each (thread, &dump->threads)
		prb_dump_thread_deinit(thread);
	prb_vec_free(&dump->threads);
	prb_vec_each (task, &dump->tasks)
		prb_dump_task_deinit(task);
	prb_vec_free(&dump->tasks);
	prb_vec_each (text, &dump->argv)
		free(*text);
	prb_vec_free(&dump->argv);
	prb_vec_each (text, &dump->warnings)
		free(*text);
	prb_vec_free(&dump->warnings);
	prb_pool_destroy(dump->pool);
	free(dump->exe);
	free(dump->python_version);
	free(dump->exception);
	free(dump->build_id);
	free(dump);
}
