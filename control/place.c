/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/place.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/conflict.h"
#include "control/pause_state.h"
#include "dump/dump.h"

enum { MAX_FRAME = 1 << 20 };

struct prb_error *prb_frame_number(const char *text, unsigned *ret)
{
	*ret = 0;
	if (!text)
		return NULL;
	if (!*text)
		return prb_error_create(PRB_ERROR_USAGE, "--frame needs a number");
	for (const char *p = text; *p; p++) {
		if (*p < '0' || *p > '9' || *ret > MAX_FRAME)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no frame", text),
				"0 is the innermost Python frame, 1 its caller");
		*ret = *ret * 10 + (unsigned)(*p - '0');
	}
	return NULL;
}

static struct prb_error *not_paused(const struct prb_target *t, unsigned depth)
{
	return prb_error_hint(
		prb_conflict_mark(prb_error_create(
			PRB_ERROR_UNSUPPORTED,
			"process %d is not paused: a frame that runs on cannot be used",
			(int)t->pid)),
		"'probing %d print --frame %u EXPRESSION' looks up a value without running code; "
		"'probing %d debug --pause' holds the process for eval --frame",
		(int)t->pid, depth, (int)t->pid);
}

static struct prb_error *check_paused(struct prb_target *t, unsigned depth)
{
	struct prb_pause_state state;

	prb_pause_state_find(t, &state);
	if (state.paused && !state.hard)
		return NULL;
	if (!state.paused)
		return not_paused(t, depth);
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "process %d is paused by ptrace (--hard), in which no code runs",
				 (int)t->pid),
		"'probing %d print --frame %u EXPRESSION' looks up a value without running code",
		(int)t->pid, depth);
}

static const struct prb_dump_frame *find_frame(const struct prb_dump_thread *thread, unsigned depth)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		if (frame->kind == PRB_FRAME_PYTHON && !depth--)
			return frame;
	return NULL;
}

/* Numbers and texts that core/commands/eval.py of the debuggers' plugin puts, too. */
static struct prb_error *put_head(const struct prb_dump_thread *thread,
				  const struct prb_dump_frame *frame, unsigned depth,
				  struct prb_str *head)
{
	if (!frame->func || !frame->file || strpbrk(frame->func, "\t\n") ||
	    strpbrk(frame->file, "\t\n"))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the names of frame %u cannot be read, or have a tab",
					depth);
	prb_str_printf(head, "%llu\t%d\t%u\t1\t%lld\t%s\t%s\n", (unsigned long long)thread->ident,
		       (int)thread->tid, depth, (long long)frame->line, frame->func, frame->file);
	return head->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_eval_in_frame(struct prb_target *t, pid_t tid, unsigned depth,
				    struct prb_str *code, uint32_t *flags)
{
	PRB_TRY(check_paused(t, depth));
	return prb_eval_name_frame(t, tid, depth, code, flags);
}

struct prb_error *prb_eval_name_frame(struct prb_target *t, pid_t tid, unsigned depth,
				      struct prb_str *code, uint32_t *flags)
{
	const struct prb_dump_options options = {
		.tid = tid, .main_only = !tid, .no_waits = true, .no_command = true};
	prb_auto_dump struct prb_dump *dump = NULL;
	prb_auto_str struct prb_str head = {};
	const struct prb_dump_frame *frame = NULL;
	const struct prb_dump_thread *thread = NULL;

	PRB_TRY(prb_dump_create(t, &options, &dump));
	if (dump->free_threaded)
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_UNSUPPORTED,
				"a free-threaded build runs on while code is evaluated, and "
				"so do its frames"),
			"'probing %d print --frame %u EXPRESSION' looks up a value without "
			"running code",
			(int)t->pid, depth);
	if (dump->threads.count)
		thread = &dump->threads.items[0];
	if (thread)
		frame = find_frame(thread, depth);
	if (!frame)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND, "there is no Python frame %u", depth),
			"'probing %d backtrace' shows them", (int)t->pid);
	PRB_TRY(put_head(thread, frame, depth, &head));
	prb_str_append(&head, prb_str_text(code), code->length);
	struct prb_str plain = *code;
	*code = head;
	head = plain;
	*flags |= PRB_WIRE_IN_FRAME;
	return code->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_eval_on_loop(struct prb_target *t, uint32_t *flags)
{
	struct prb_pause_state state;

	prb_pause_state_find(t, &state);
	if (state.paused)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "process %d is paused, and its event loop with it",
					 (int)t->pid),
			"without --loop code runs in the pause; 'probing %d resume' ends it",
			(int)t->pid);
	*flags |= PRB_WIRE_ON_LOOP;
	return NULL;
}

struct prb_error *prb_eval_check_place(struct prb_agent **agent, uint32_t flags)
{
	if (!(flags & (PRB_WIRE_IN_FRAME | PRB_WIRE_ON_LOOP)))
		return NULL;

	struct prb_error *err = prb_agent_requires(*agent, PRB_WIRE_CAN_PLACE,
						   "run code in frames and on event loops");

	if (err)
		prb_agent_close(prb_steal(agent));
	return err;
}
