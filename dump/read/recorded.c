/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/recorded.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

static const char *const read_names[] = {"idle", "stopped", "unstable"};

/* The key of a note. Several states may have no thread: then the state's address is in it. */
static void name_fact(struct prb_str *key, const char *what, const struct prb_reader_thread *thread,
		      const struct prb_dump_thread *out)
{
	if (thread->task)
		prb_str_printf(key, "%s:%d:%lld", what, out->tid, (long long)out->interpreter);
	else
		prb_str_printf(key, "%s:state:%llx", what,
			       (unsigned long long)thread->state.address);
}

/*
 * Notes for a snapshot how the thread was read, and the agreed frames, which its memory does not
 * show.
 */
void prb_note_recorded(struct prb_reader *r, const struct prb_reader_thread *thread)
{
	const struct prb_dump_thread *out = prb_reader_out(r, thread);
	prb_auto_str struct prb_str key = {}, value = {};

	char state = thread->task ? thread->task->state : 0;

	name_fact(&key, "read", thread, out);
	prb_str_printf(&value, "%s %c %.3f", read_names[out->read], state ? state : '?',
		       out->pause_us);
	if (out->read == PRB_READ_UNSTABLE) {
		const struct prb_py_frame *f;

		prb_str_printf(&value, " %zu", thread->frames.list.count);
		prb_vec_each (f, &thread->frames.list)
			prb_str_printf(&value, " %llx %llx %llx %d %d %d %d",
				       (unsigned long long)f->address, (unsigned long long)f->code,
				       (unsigned long long)f->position, f->owner, f->entry, f->shim,
				       f->hidden);
	}
	prb_target_remember(r->target, prb_str_text(&key), prb_str_text(&value), value.length);
	prb_str_truncate(&key, 0);
	name_fact(&key, "switched", thread, out);
	if (thread->doubt == PRB_NATIVE_SWITCHED)
		prb_target_remember(r->target, prb_str_text(&key), "yes", strlen("yes"));
	prb_str_truncate(&key, 0);
	name_fact(&key, "error", thread, out);
	if (out->error)
		prb_target_remember(r->target, prb_str_text(&key), out->error, strlen(out->error));
}

static struct prb_error *recall_frames(const char *text, struct prb_py_frames *frames)
{
	unsigned long long address, code, position;
	int owner, entry, shim, hidden, used;
	size_t count;

	if (sscanf(text, "%zu%n", &count, &used) < 1)
		return NULL;
	for (text += used; count-- && sscanf(text, "%llx %llx %llx %d %d %d %d%n", &address, &code,
					     &position, &owner, &entry, &shim, &hidden, &used) == 7;
	     text += used) {
		struct prb_py_frame *frame = prb_vec_push(&frames->list);

		if (!frame)
			return prb_error_nomem();
		*frame = (struct prb_py_frame){address, code, position, (int8_t)owner,
					       entry,	shim, hidden};
	}
	return NULL;
}

struct prb_error *prb_read_recorded(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	prb_auto_str struct prb_str key = {}, value = {}, switched = {};
	char kind[16], state;
	double pause;
	int used;

	name_fact(&key, "read", thread, out);
	if (!prb_target_recall(r->target, prb_str_text(&key), &value) ||
	    sscanf(prb_str_text(&value), "%15s %c %lf%n", kind, &state, &pause, &used) != 3)
		return NULL;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(read_names); i++)
		if (!strcmp(kind, read_names[i]))
			out->read = (enum prb_read_kind)i;
	if (thread->task)
		thread->task->state = state == '?' ? 0 : state;
	out->pause_us = pause;
	thread->recorded = true;
	prb_str_truncate(&key, 0);
	name_fact(&key, "switched", thread, out);
	if (prb_target_recall(r->target, prb_str_text(&key), &switched))
		thread->doubt = PRB_NATIVE_SWITCHED;
	if (out->read == PRB_READ_UNSTABLE)
		return recall_frames(prb_str_text(&value) + used, &thread->frames);
	return NULL;
}

struct prb_error *prb_read_recorded_error(struct prb_reader *r,
					  const struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	prb_auto_str struct prb_str key = {}, error = {};

	name_fact(&key, "error", thread, out);
	if (!prb_target_recall(r->target, prb_str_text(&key), &error))
		return NULL;
	return prb_str_copy(prb_str_text(&error), &out->error);
}
