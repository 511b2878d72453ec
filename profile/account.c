/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/account.h"

#include "base/cleanup.h"

/* The last run of the thread if that goes on, or a new one. */
static struct prb_error *find_run(struct prb_recording *recording, struct prb_subject *subject,
				  const struct prb_stack_sample *sample, struct prb_run **ret)
{
	struct prb_run *run;

	if (subject->run) {
		run = &recording->runs.items[subject->run - 1];
		if (run->stack == sample->stack && run->state == sample->state) {
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
		.stack = sample->stack,
		.state = sample->state,
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

struct prb_error *prb_account_sample(struct prb_recording *recording, struct prb_subject *subject,
				     const struct prb_stack_sample *sample, int64_t now)
{
	struct prb_run *run;

	PRB_TRY(find_run(recording, subject, sample, &run));
	run->samples++;
	run->reads++;
	run->wall += now - subject->seen;
	run->queue += sample->times.waited - subject->times.waited;
	subject->unplaced += sample->times.ran - subject->times.ran;
	/* A thread without Python has nothing to tell apart, unless its C frames are read. */
	if (sample->state == PRB_RUN_ON_CPU || (!subject->states.count && !recording->native)) {
		place_cpu(recording, subject, run);
		subject->cpu_run = subject->run;
	}
	subject->times = sample->times;
	subject->seen = now;
	subject->asleep = sample->asleep;
	recording->cost.unreadable += sample->unreadable;
	return NULL;
}

void prb_account_same(struct prb_recording *recording, struct prb_subject *subject, int64_t now)
{
	struct prb_run *run = &recording->runs.items[subject->run - 1];

	run->samples++;
	run->wall += now - subject->seen;
	subject->seen = now;
}

void prb_account_rest(struct prb_recording *recording, struct prb_subject *subject)
{
	size_t run = subject->cpu_run ? subject->cpu_run : subject->run;

	if (subject->unplaced && run && run <= recording->runs.count)
		place_cpu(recording, subject, &recording->runs.items[run - 1]);
}
