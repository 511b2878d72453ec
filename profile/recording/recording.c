/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/recording.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "base/siphash.h"
#include "base/str.h"

const char *prb_run_state_name(enum prb_run_state state)
{
	static const char *const names[PRB_RUN_STATES] = {
		[PRB_RUN_ON_CPU] = "on a processor", [PRB_RUN_QUEUED] = "waits for a processor",
		[PRB_RUN_ASLEEP] = "asleep",	     [PRB_RUN_IN_KERNEL] = "asleep in the kernel",
		[PRB_RUN_HELD] = "stopped",
	};

	return names[state];
}

const char *prb_profile_end_text(enum prb_profile_end end)
{
	switch (end) {
	case PRB_PROFILE_DONE:
		break;
	case PRB_PROFILE_INTERRUPTED:
		return "interrupted";
	case PRB_PROFILE_TARGET_ENDED:
		return "the process ended";
	case PRB_PROFILE_THREAD_ENDED:
		return "the thread ended";
	case PRB_PROFILE_TARGET_EXEC:
		return "the process began to run another program";
	case PRB_PROFILE_CUT_OFF:
		return "the recording was not finished";
	}
	return NULL;
}

const char *prb_wait_kind_name(enum prb_wait_kind kind)
{
	static const char *const names[PRB_WAIT_KINDS] = {
		[PRB_WAIT_GIL] = "gil",
		[PRB_WAIT_LOCK] = "lock",
		[PRB_WAIT_DESCRIPTOR] = "descriptor",
		[PRB_WAIT_CHILD] = "child",
		[PRB_WAIT_TIME] = "time",
		[PRB_WAIT_OTHER] = "other",
	};

	return names[kind];
}

static bool same_wait(const struct prb_profile_wait *a, const struct prb_profile_wait *b)
{
	return a->kind == b->kind && a->owner == b->owner && !a->what == !b->what &&
	       (!a->what || !strcmp(a->what, b->what));
}

static struct prb_error *add_wait(struct prb_recording *r, const struct prb_profile_wait *wait)
{
	struct prb_profile_wait *slot = prb_vec_push(&r->waits);

	if (!slot)
		return prb_error_nomem();
	*slot = (struct prb_profile_wait){.kind = wait->kind, .owner = wait->owner};
	return prb_str_copy(wait->what, &slot->what);
}

struct prb_error *prb_recording_wait(struct prb_recording *r, const struct prb_profile_wait *wait,
				     uint32_t *ret)
{
	const uint64_t key[2] = {(uint64_t)wait->kind, wait->owner};
	const char *what = wait->what ? wait->what : "";
	uint64_t hash = prb_siphash(1, 3, key, what, strlen(what));
	size_t number;

	for (; prb_number_map_get(&r->wait_numbers, hash, &number); hash++)
		if (same_wait(&r->waits.items[number], wait)) {
			*ret = (uint32_t)number;
			return NULL;
		}
	*ret = (uint32_t)r->waits.count;
	PRB_TRY(add_wait(r, wait));
	return prb_number_map_put(&r->wait_numbers, hash, *ret) ? NULL : prb_error_nomem();
}

struct prb_error *prb_recording_replace(struct prb_recording *recording, char **text,
					const char *by)
{
	char **slot = *text ? prb_vec_push(&recording->retired) : NULL;

	if (*text && !slot)
		return prb_error_nomem();
	if (slot)
		*slot = prb_steal(text);
	return prb_str_copy(by, text);
}

struct prb_error *prb_recording_create(struct prb_recording **ret)
{
	struct prb_recording *recording = calloc(1, sizeof(*recording));
	struct prb_error *err;

	if (!recording)
		return prb_error_nomem();
	recording->process_cpu = -1;
	err = prb_tree_create(&recording->tree);
	if (!err)
		err = add_wait(recording, &(struct prb_profile_wait){});
	if (err)
		prb_recording_destroy(recording);
	else
		*ret = recording;
	return err;
}

struct prb_error *prb_recording_copy_thread(struct prb_recording *recording,
					    const struct prb_profile_thread *thread,
					    uint32_t process)
{
	struct prb_profile_thread *slot = prb_vec_push(&recording->threads);

	if (!slot)
		return prb_error_nomem();
	*slot = (struct prb_profile_thread){
		.process = process, .tid = thread->tid, .cpu = thread->cpu, .ended = thread->ended};
	PRB_TRY(prb_str_copy(thread->name, &slot->name));
	return prb_str_copy(thread->os_name, &slot->os_name);
}

struct prb_error *prb_recording_copy_lines(struct prb_recording *recording,
					   const struct prb_recording *from)
{
	const struct prb_profile_line *line;

	prb_vec_each (line, &from->lines) {
		struct prb_profile_line *slot = prb_vec_push(&recording->lines);

		if (!slot)
			return prb_error_nomem();
		*slot = (struct prb_profile_line){.line = line->line};
		PRB_TRY(prb_pool_share(recording->tree->pool, line->file, &slot->file));
		PRB_TRY(prb_str_copy(line->text, &slot->text));
	}
	return NULL;
}

void prb_recording_drop_lines(struct prb_recording *recording)
{
	struct prb_profile_line *line;

	prb_vec_each (line, &recording->lines)
		free(line->text);
	prb_vec_free(&recording->lines);
}

void prb_recording_destroy(struct prb_recording *recording)
{
	struct prb_profile_wait *wait;
	struct prb_profile_thread *thread;
	struct prb_profile_process *other;
	char **text;

	if (!recording)
		return;
	prb_recording_drop_lines(recording);
	prb_vec_each (thread, &recording->threads) {
		free(thread->name);
		free(thread->os_name);
	}
	prb_vec_free(&recording->threads);
	prb_vec_each (wait, &recording->waits)
		free(wait->what);
	prb_vec_free(&recording->waits);
	prb_number_map_deinit(&recording->wait_numbers);
	prb_vec_free(&recording->runs);
	prb_vec_each (other, &recording->others) {
		free(other->command);
		free(other->python);
	}
	prb_vec_free(&recording->others);
	prb_vec_each (text, &recording->retired)
		free(*text);
	prb_vec_free(&recording->retired);
	prb_tree_destroy(recording->tree);
	prb_recording_destroy(recording->before);
	free(recording->command);
	free(recording->condition);
	prb_vec_free(&recording->windows);
	free(recording->python);
	free(recording);
}
