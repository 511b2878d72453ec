/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/why.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "dump/idle.h"
#include "target/target.h"

static const char *file_name(const struct prb_dump_frame *frame)
{
	const char *slash = frame->file ? strrchr(frame->file, '/') : NULL;

	return slash ? slash + 1 : frame->file;
}

/** "train.py:41". */
static void put_place(struct prb_str *s, const struct prb_dump_frame *frame)
{
	prb_text_escape(s, file_name(frame) ? file_name(frame) : "?");
	if (frame->line > 0)
		prb_str_printf(s, ":%d", frame->line);
}

static bool same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

bool prb_why_same_call(const struct prb_seen *a, const struct prb_seen *b)
{
	if (!a->collective || !b->collective || strcmp(a->collective, b->collective) != 0)
		return false;
	if (!a->caller || !b->caller)
		return a->caller == b->caller;
	return a->caller->line == b->caller->line && same(a->caller->file, b->caller->file);
}

void prb_why_put_call(struct prb_str *s, const struct prb_seen *seen)
{
	prb_text_escape(s, seen->collective);
	if (!seen->caller)
		return;
	prb_str_puts(s, ", called at ");
	put_place(s, seen->caller);
}

/** "Trainer.step train.py:41". */
static void put_frame(struct prb_str *s, const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame = prb_innermost(thread);

	if (!frame) {
		prb_str_puts(s, "no Python frame");
		return;
	}
	prb_text_escape(s, prb_frame_name(frame));
	prb_str_putc(s, ' ');
	put_place(s, frame);
}

/** "Trainer.step train.py:41, idle 12 s in sleep". */
static void put_thread(struct prb_str *s, const struct prb_dump_thread *thread)
{
	put_frame(s, thread);
	prb_str_puts(s, ", ");
	prb_str_puts(s, thread->state);
	if (thread->idle_seconds >= 0) {
		prb_str_putc(s, ' ');
		prb_text_duration(s, thread->idle_seconds);
	}
	if (thread->waits_for) {
		prb_str_puts(s, " in ");
		prb_text_escape(s, thread->waits_for);
	}
	if (thread->error) {
		prb_str_puts(s, "; ");
		prb_text_escape(s, thread->error);
	}
}

void prb_why_put_state(struct prb_str *s, const struct prb_seen *seen, enum prb_movement movement)
{
	if (!seen->main) {
		prb_why_put_absence(s, seen, false);
		return;
	}
	prb_str_puts(s, movement == PRB_MOVES	? "moves; it was at "
			: movement == PRB_SPINS ? "computes at "
						: "is at ");
	put_thread(s, seen->main);
}

void prb_why_put_absence(struct prb_str *s, const struct prb_seen *seen, bool several)
{
	if (!seen->rank->pid)
		prb_str_puts(s, several ? "have no process on this machine"
					: "has no process on this machine");
	else if (seen->gone)
		prb_str_puts(s, several ? "have ended meanwhile" : "has ended meanwhile");
	else if (!seen->main) {
		prb_str_puts(s, "cannot be read: ");
		prb_text_escape(s, seen->error ? seen->error : "it has no thread");
	} else {
		prb_str_puts(s, seen->state == 'D'   ? "sleeps in the kernel (state D) at "
				: seen->state == 't' ? "is stopped by a debugger at "
				: seen->state == 'Z' ? "has ended, and waits for its parent: "
						     : "is stopped by a signal at ");
		if (seen->state == 'D')
			put_thread(s, seen->main);
		else
			put_frame(s, seen->main);
	}
}

/** The number behind @p words in a text; 0 if they are not there. */
static long number_behind(const char *text, const char *words)
{
	const char *found = text ? strstr(text, words) : NULL;

	return found ? strtol(found + strlen(words), NULL, 10) : 0;
}

/** True if the thread reads from a worker of its data loader, which has the number *ret. */
static bool waits_for_worker(const struct prb_dump_thread *thread, pid_t *ret)
{
	const struct prb_dump_frame *frame;
	long pid =
		number_behind(thread->waits_for, "\xe2\x86\x90 "); /* "pipe 7 ← 4251 (python3)" */

	*ret = (pid_t)pid;
	if (pid <= 0)
		return false;
	prb_vec_each (frame, &thread->frames)
		if (frame->module && !strncmp(frame->module, "torch.utils.data.", 17))
			return true;
	return false;
}

static struct prb_error *put_worker(struct prb_str *s, pid_t pid)
{
	const struct prb_dump_options options = {.main_only = true};
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;

	prb_auto_error struct prb_error *err = prb_target_open_process(pid, &target);
	if (!err)
		err = prb_dump_create(target, &options, &dump);
	if (!err)
		err = prb_idle_fill(target, dump, NULL);
	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	if (err) {
		prb_str_puts(s, "cannot be read: ");
		prb_text_escape(s, err->message);
	} else if (dump->threads.count) {
		prb_str_puts(s, "is at ");
		put_thread(s, &dump->threads.items[0]);
	}
	return NULL;
}

/** The thread of @p dump with that number. */
static const struct prb_dump_thread *find_thread(const struct prb_dump *dump, pid_t tid)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads)
		if (tid > 0 && thread->tid == tid)
			return thread;
	return NULL;
}

/** The thread that holds the lock that @p thread waits for, or the GIL; NULL if unknown. */
static const struct prb_dump_thread *holder(const struct prb_dump *dump,
					    const struct prb_dump_thread *thread)
{
	const struct prb_dump_thread *other;

	if (!same(thread->gil, "waits"))
		return find_thread(dump, (pid_t)number_behind(thread->waits_for, " held by "));
	prb_vec_each (other, &dump->threads)
		if (same(other->gil, "holds"))
			return other;
	return NULL;
}

static void put_name(struct prb_str *s, const struct prb_dump_thread *thread)
{
	prb_str_printf(s, "thread %d", (int)thread->tid);
	if (!thread->name)
		return;
	prb_str_putc(s, ' ');
	prb_text_escape(s, thread->name);
}

struct prb_error *prb_why_put_reason(struct prb_str *s, struct prb_str *evidence,
				     const struct prb_seen *seen, enum prb_movement movement)
{
	const struct prb_dump_thread *held;
	pid_t worker;

	if (!seen->main) {
		prb_why_put_absence(s, seen, false);
		return NULL;
	}
	if (waits_for_worker(seen->main, &worker)) {
		prb_str_printf(s, "waits in DataLoader for worker %d, which ", (int)worker);
		return put_worker(s, worker);
	}
	prb_why_put_state(s, seen, movement);
	held = holder(seen->dump, seen->main);
	if (!held)
		return NULL;
	prb_str_puts(evidence, "its lock is held by ");
	put_name(evidence, held);
	prb_str_puts(evidence, ": ");
	put_thread(evidence, held);
	prb_str_putc(evidence, '\n');
	return NULL;
}

bool prb_why_cycle(const struct prb_dump *dump, struct prb_str *s)
{
	const struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads) {
		const struct prb_dump_thread *here = thread;
		size_t steps = 0;

		do
			here = same(here->gil, "waits") ? NULL : holder(dump, here);
		while (here && here != thread && steps++ < dump->threads.count);
		if (here != thread)
			continue;
		do {
			const struct prb_dump_thread *next = holder(dump, here);

			prb_str_puts(s, here == thread ? "" : ", ");
			put_name(s, here);
			prb_str_puts(s, " waits for a lock of ");
			put_name(s, next);
			here = next;
		} while (here != thread);
		return true;
	}
	return false;
}
