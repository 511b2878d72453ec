/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording.h"

#include <stdlib.h>

#include "base/cleanup.h"

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

struct prb_error *prb_recording_create(struct prb_recording **ret)
{
	struct prb_recording *recording = calloc(1, sizeof(*recording));
	struct prb_error *err;

	if (!recording)
		return prb_error_nomem();
	recording->process_cpu = -1;
	err = prb_tree_create(&recording->tree);
	if (err)
		prb_recording_destroy(recording);
	else
		*ret = recording;
	return err;
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
	struct prb_profile_thread *thread;

	if (!recording)
		return;
	prb_recording_drop_lines(recording);
	prb_vec_each (thread, &recording->threads) {
		free(thread->name);
		free(thread->os_name);
	}
	prb_vec_free(&recording->threads);
	prb_vec_free(&recording->runs);
	prb_tree_destroy(recording->tree);
	prb_recording_destroy(recording->before);
	free(recording->command);
	free(recording->python);
	free(recording);
}
