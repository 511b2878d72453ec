/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Reads a running thread without stopping it: it is read many times, and only the outermost frames
 * common to all reads are shown. A frame that was in every read, with no other frames further out,
 * was there all the time. The frames further in are not shown.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/read/reader.h"
#include "dump/read/decode.h"

enum {
	READS = 10,
	ATTEMPTS = 40,	     /* reads that fail (a chain cut in the middle) are not counted */
	GAP_NS = 100 * 1000, /* between reads, growing: short periods of a program show up */
};

/*
 * Number of outermost frames that two walks have in common; the innermost of them may be at another
 * position.
 */
static size_t common(const struct prb_py_frames *a, const struct prb_py_frames *b)
{
	size_t n = 0, most = PRB_MIN(a->list.count, b->list.count);

	while (n < most) {
		const struct prb_py_frame *x = &a->list.items[a->list.count - 1 - n];
		const struct prb_py_frame *y = &b->list.items[b->list.count - 1 - n];

		if (x->address != y->address || x->code != y->code || x->owner != y->owner ||
		    x->hidden != y->hidden)
			break;
		n++;
		if (x->position != y->position)
			break;
	}
	return n;
}

/* Keeps the outermost @p count frames. */
static void cut(struct prb_py_frames *frames, size_t count)
{
	size_t drop = frames->list.count - count;

	if (!drop)
		return;
	memmove(frames->list.items, frames->list.items + drop, count * sizeof(*frames->list.items));
	frames->list.count = count;
}

/*
 * The outermost frame of a thread never changes. A walk that ends in another frame was cut short
 * while a generator yielded (up to 3.10 nothing else shows that).
 */
static bool same_outermost(const struct prb_py_frames *a, const struct prb_py_frames *b)
{
	return a->list.count && b->list.count &&
	       a->list.items[a->list.count - 1].address == b->list.items[b->list.count - 1].address;
}

/* The result of one more read, compared with thread->frames. */
struct opinion {
	bool readable;
	bool deeper;	 /* more frames and another outermost one: thread->frames was cut short */
	size_t confirms; /* outermost frames that agree */
	size_t depth;	 /* frames in this read */
};

static struct prb_error *confirm(struct prb_reader_thread *thread, struct prb_view *view,
				 struct opinion *ret)
{
	struct prb_py_frames again;

	prb_view_new_epoch(view);
	PRB_TRY(prb_view_prefetch(view));

	struct prb_error *err =
		prb_python_frames(thread->py, prb_view_mem(view), thread->state.address, &again);
	bool same = !err && same_outermost(&thread->frames, &again);
	*ret = (struct opinion){
		.readable = same,
		.deeper = !err && !same && again.list.count > thread->frames.list.count,
	};
	if (same) {
		ret->confirms = common(&thread->frames, &again);
		ret->depth = again.list.count;
	}
	prb_py_frames_deinit(&again);
	if (err && (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS))
		return err;
	prb_error_destroy(err);
	return NULL;
}

static void gap(int attempt)
{
	nanosleep(&(struct timespec){.tv_nsec = GAP_NS * (1 + attempt % 7)}, NULL);
}

/* Cuts thread->frames to what READS reads agree on; *deepest: frames in the deepest of them. */
static struct prb_error *agree(struct prb_reader_thread *thread, struct prb_view *view,
			       size_t *deepest)
{
	int reads = 0;

	for (int attempt = 0; attempt < ATTEMPTS && reads < READS; attempt++) {
		struct opinion opinion = {};

		if (!reads) {
			prb_view_new_epoch(view);
			PRB_TRY(prb_reader_walk(thread, prb_view_mem(view)));
			opinion.readable = !thread->frames_error;
			opinion.confirms = opinion.depth = thread->frames.list.count;
		} else {
			PRB_TRY(confirm(thread, view, &opinion));
		}
		if (opinion.deeper)
			reads = 0; /* begin anew */
		if (opinion.readable) {
			cut(&thread->frames, opinion.confirms);
			*deepest = PRB_MAX(*deepest, opinion.depth);
			reads++;
		}
		gap(attempt);
	}
	if (reads < READS)
		cut(&thread->frames, 0);
	return NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool same_frame(const struct prb_dump_frame *a, const struct prb_dump_frame *b)
{
	return same_text(a->func, b->func) && same_text(a->qualname, b->qualname) &&
	       same_text(a->file, b->file) && a->line == b->line && a->end_line == b->end_line &&
	       a->col == b->col && a->end_col == b->end_col;
}

/* Decodes memory as it is now; *same: with the same result as before. */
static struct prb_error *decode_again(struct prb_reader *r, struct prb_reader_thread *thread,
				      struct prb_view *view, bool *same)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	struct prb_dump_thread before = {};

	memcpy(&before.frames, &out->frames, sizeof(before.frames));
	memset(&out->frames, 0, sizeof(out->frames));
	prb_view_new_epoch(view);

	struct prb_error *err = prb_reader_decode(r, thread, prb_view_mem(view));
	*same = !err && before.frames.count == out->frames.count;
	for (size_t i = 0; *same && i < out->frames.count; i++)
		*same = same_frame(&before.frames.items[i], &out->frames.items[i]);
	prb_dump_frames_clear(&before);
	return err;
}

/*
 * Names come from code objects that frames on the stack keep alive. A walk between two decodings
 * with equal results proves that the frames were still there.
 */
static struct prb_error *decode_agreed(struct prb_reader *r, struct prb_reader_thread *thread,
				       struct prb_view *view)
{
	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		size_t before = thread->frames.list.count;
		struct opinion opinion;
		bool same = false;

		prb_view_new_epoch(view);
		PRB_TRY(prb_reader_decode(r, thread, prb_view_mem(view)));
		PRB_TRY(confirm(thread, view, &opinion));
		if (!opinion.readable)
			continue;
		cut(&thread->frames, opinion.confirms);
		if (opinion.confirms < before)
			continue;
		PRB_TRY(decode_again(r, thread, view, &same));
		if (!same)
			continue;
		prb_target_note_pages(r->target, thread->task ? thread->task->tid : 0, view);
		return NULL;
	}
	cut(&thread->frames, 0);
	return prb_reader_decode(r, thread, prb_view_mem(view));
}

/*
 * Checks that the thread lives: a state left by an ended thread agrees with itself, but is stale.
 */
static struct prb_error *check_alive(struct prb_reader *r, struct prb_reader_thread *thread,
				     struct prb_view *view)
{
	if (thread->task) {
		struct prb_task_watch now = *thread->task;

		prb_task_note(&r->tasks, &now);
		if (prb_task_has_ended(&now))
			return prb_error_create(PRB_ERROR_NO_PROCESS, "the thread has ended");
	}
	prb_view_new_epoch(view);
	return prb_reader_check_state(thread, prb_view_mem(view));
}

struct prb_error *prb_read_nonblocking(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);
	struct prb_view *view;
	size_t deepest = 0;

	out->read = PRB_READ_UNSTABLE;
	if (!thread->py)
		return NULL;
	thread->regs.known = 0;
	PRB_TRY(prb_view_create(r->target->mem, &view));

	struct prb_error *err = agree(thread, view, &deepest);
	if (!err)
		err = decode_agreed(r, thread, view);
	if (!err)
		err = check_alive(r, thread, view);
	prb_view_destroy(view);
	PRB_TRY(err);
	if (out->frames.count && thread->frames.list.count == deepest)
		return NULL;

	free(out->error);
	out->error = prb_format(out->frames.count ? "inner frames change while they are read"
						  : "no two reads of it agree");
	return out->error ? NULL : prb_error_nomem();
}
