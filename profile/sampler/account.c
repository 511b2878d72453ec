/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/account.h"

#include "base/checked.h"
#include "base/cleanup.h"

/* The last run of the thread if that goes on, or a new one. */
static struct prb_error *find_run(struct prb_recording *recording, struct prb_subject *subject,
				  uint32_t stack, enum prb_run_state state, struct prb_run **ret)
{
	uint32_t wait = state == PRB_RUN_ON_CPU ? 0 : subject->wait;
	struct prb_run *run;

	if (subject->run) {
		run = &recording->runs.items[subject->run - 1];
		if (run->stack == stack && run->state == state && run->wait == wait &&
		    run->gil == subject->gil) {
			*ret = run;
			return NULL;
		}
	}
	run = prb_vec_push(&recording->runs);
	if (!run)
		return prb_error_nomem();
	subject->run = recording->runs.count;
	*run = (struct prb_run){
		.thread = subject->number,
		.stack = stack,
		.state = state,
		.wait = wait,
		.wait_kind = recording->waits.items[wait].kind,
		.gil = subject->gil,
		.begin = subject->seen - recording->begun,
	};
	*ret = run;
	return NULL;
}

static void place_cpu(struct prb_recording *recording, struct prb_subject *subject,
		      struct prb_run *run)
{
	double weight = (double)subject->unplaced;

	run->cpu += subject->unplaced;
	run->cpu_squares += weight * weight;
	recording->threads.items[subject->number].cpu += subject->unplaced;
	subject->unplaced = 0;
}

/* A wait that was over before the sample may have been anywhere: in the sleep that it ended, say.
 */
static void place_queue(struct prb_subject *subject, struct prb_run *run)
{
	run->queue += subject->unplaced_queue;
	subject->unplaced_queue = 0;
	subject->queue_stack = run->stack;
}

struct prb_error *prb_account_sample(struct prb_recording *recording, struct prb_subject *subject,
				     const struct prb_stack_sample *sample, int64_t now)
{
	/* A lower count belongs to another thread that has this tid now. */
	int64_t waited = PRB_MAX(sample->times.waited - subject->times.waited, (int64_t)0);
	int64_t placed = PRB_MIN(subject->queued, waited);
	/* A thread without Python has nothing to tell apart, unless its C frames are read. */
	bool alike = !subject->states.count && !recording->native;
	struct prb_run *run;

	subject->before = (struct prb_subject_before){now, subject->times, subject->unplaced,
						      subject->unplaced_queue, subject->queued};
	subject->wait = sample->wait;
	subject->gil = sample->gil;
	PRB_TRY(find_run(recording, subject, sample->stack, sample->state, &run));
	run->samples++;
	run->reads++;
	run->wall += now - subject->seen;
	subject->queued -= placed;
	subject->unplaced_queue += waited - placed;
	subject->unplaced += PRB_MAX(sample->times.ran - subject->times.ran, (int64_t)0);
	if (sample->state == PRB_RUN_QUEUED || alike)
		place_queue(subject, run);
	if (sample->state == PRB_RUN_ON_CPU || alike) {
		place_cpu(recording, subject, run);
		subject->ran = true;
		subject->cpu_stack = sample->stack;
	}
	subject->stack = sample->stack;
	subject->state = sample->state;
	subject->times = sample->times;
	subject->seen = now;
	subject->asleep = sample->asleep;
	subject->held = sample->held;
	recording->cost.unreadable += sample->unreadable;
	return NULL;
}

struct prb_error *prb_account_same(struct prb_recording *recording, struct prb_subject *subject,
				   uint32_t samples, int64_t now)
{
	struct prb_run *run;

	PRB_TRY(find_run(recording, subject, subject->stack, subject->state, &run));
	run->samples += samples;
	run->wall += now - subject->seen;
	subject->seen = now;
	return NULL;
}

struct prb_error *prb_account_queued(struct prb_recording *recording, struct prb_subject *subject,
				     int64_t now)
{
	int64_t waited = now - subject->seen;
	struct prb_run *run;

	PRB_TRY(find_run(recording, subject, subject->stack, PRB_RUN_QUEUED, &run));
	run->samples++;
	run->wall += waited;
	run->queue += waited;
	subject->queued += waited;
	place_queue(subject, run);
	subject->state = PRB_RUN_QUEUED;
	subject->seen = now;
	return NULL;
}

void prb_account_last(const struct prb_tasks *tasks, struct prb_subject *subject,
		      const struct prb_task_watch *task)
{
	struct prb_task_times times;

	if (!prb_task_times(tasks, task, &times) || times.ran < subject->times.ran)
		return;
	subject->unplaced += times.ran - subject->times.ran;
	subject->unplaced_queue +=
		PRB_MAX(times.waited - subject->times.waited - subject->queued, (int64_t)0);
	subject->times = times;
}

struct prb_error *prb_account_rest(struct prb_recording *recording, struct prb_subject *subject)
{
	struct prb_run *run;

	if (!subject->stack)
		return NULL;
	if (subject->unplaced) {
		PRB_TRY(find_run(recording, subject,
				 subject->ran ? subject->cpu_stack : subject->stack,
				 subject->ran ? PRB_RUN_ON_CPU : subject->state, &run));
		place_cpu(recording, subject, run);
	}
	if (subject->unplaced_queue) {
		PRB_TRY(find_run(recording, subject,
				 subject->queue_stack ? subject->queue_stack : subject->stack,
				 subject->queue_stack ? PRB_RUN_QUEUED : subject->state, &run));
		place_queue(subject, run);
	}
	return NULL;
}

void prb_account_cut(struct prb_recording *recording, struct prb_subjects *subjects, size_t runs)
{
	struct prb_subject *subject;

	recording->runs.count = runs;
	prb_vec_each (subject, &subjects->list)
		if (subject->run > runs)
			subject->run = 0;
}

void prb_account_undo(struct prb_recording *recording, struct prb_subjects *subjects, size_t runs,
		      int64_t since)
{
	struct prb_subject *subject;

	for (size_t i = runs; i < recording->runs.count; i++)
		recording->threads.items[recording->runs.items[i].thread].cpu -=
			recording->runs.items[i].cpu;
	prb_vec_each (subject, &subjects->list) {
		const struct prb_subject_before *before = &subject->before;

		if (subject->run <= runs)
			continue;
		if (before->at >= since) {
			subject->times = before->times;
			subject->unplaced = before->unplaced;
			subject->unplaced_queue = before->unplaced_queue;
			subject->queued = before->queued;
		}
		subject->ran = false;
		subject->stack = subject->queue_stack = 0;
	}
	prb_account_cut(recording, subjects, runs);
}
