/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "profile/sampler/account.h"
#include "target/proc/process.h"
#include "target/proc/text.h"
#include "target/spec/command_line.h"

enum {
	REFRESH_NS = 1000000000, /* threads and states are listed at least so often */
	REFRESH_SHARE = 10,	 /* and at most so that it takes one part of so many */
};

static int64_t read_clock(clockid_t clock)
{
	struct timespec t;

	return clock_gettime(clock, &t) ? -1 : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void note_clock(struct prb_sampled *p)
{
	p->cpu_now = PRB_MAX(read_clock(p->clock), p->cpu_now);
}

/* CPU time of all children that it has reaped, and of their reaped children; -1 if it has ended. */
static int64_t read_children_clock(const struct prb_sampled *p)
{
	prb_auto_close int fd = openat(p->subjects.folder, "../stat", O_RDONLY | O_CLOEXEC);
	int64_t numbers[PRB_STAT_NUMBERS], ticks = sysconf(_SC_CLK_TCK);
	char line[1024];
	ssize_t length = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);

	if (length <= 0 || ticks <= 0)
		return -1;
	line[length] = 0;
	if (!prb_stat_numbers(line, numbers))
		return -1;
	return (numbers[PRB_STAT_CHILDREN_USER] + numbers[PRB_STAT_CHILDREN_SYSTEM]) *
	       (1000000000 / ticks);
}

void prb_sampled_note_children(struct prb_sampled *p)
{
	p->children_now = PRB_MAX(p->children_now, read_children_clock(p));
}

static struct prb_error *sample_one(struct prb_sampled *p, size_t index)
{
	struct prb_subject *subject = &p->subjects.list.items[index];
	struct prb_task_watch *task = &p->subjects.tasks.list.items[index];
	struct prb_stack_sample sample;
	int64_t now;

	if (subject->ended || (p->tid && subject->tid != p->tid))
		return NULL;
	now = prb_clock_ns();
	if (subject->asleep && (subject->unmoved || prb_task_slept(&p->subjects.tasks, task, true)))
		return prb_account_same(p->recording, subject, 1, now);
	if (subject->held && subject->unmoved)
		return prb_account_queued(p->recording, subject, now);
	p->ran_any = true;
	prb_task_note(&p->subjects.tasks, task);
	if (!prb_task_has_ended(task))
		PRB_TRY(prb_stack_read(&p->reader, index, &sample));
	if (prb_task_has_ended(task) || sample.gone) {
		subject->ended = p->ended_any = true;
		prb_account_last(&p->subjects.tasks, subject, task);
		return NULL;
	}
	/* The kernel samples it, and the counters go on from its last sample. */
	if (sample.none) {
		subject->asleep = subject->held = false;
		return NULL;
	}
	/* With C frames this is not needed. */
	p->stateless_ran |= !p->reader.natives && !subject->states.count &&
			    sample.times.turns != subject->times.turns;
	now = prb_clock_ns();
	prb_quiet_watch(subject, sample.times.ran - subject->times.ran, now);
	return prb_account_sample(p->recording, subject, &sample, now);
}

/* Threads idle for long are only looked at if one of them has run. *ret_others_slept: none has. */
static struct prb_error *sample_all(struct prb_sampled *p, bool others_slept)
{
	const size_t *index;

	p->ran_any = p->ended_any = p->stateless_ran = false;
	prb_stack_begin_round(&p->reader);
	if (others_slept)
		prb_vec_each (index, &p->quiet.watched)
			PRB_TRY(sample_one(p, *index));
	for (size_t i = 0; !others_slept && i < p->subjects.list.count; i++)
		PRB_TRY(sample_one(p, i));
	return NULL;
}

/* Before a round: new threads and states must be known, or samples would be attributed wrongly. */
static struct prb_error *refresh(struct prb_sampled *p, int64_t now)
{
	bool wanted = p->ended_any || p->stateless_ran || p->reader.stale ||
		      prb_subjects_search_is_due(&p->subjects, now) || now >= p->refresh_until ||
		      prb_subjects_changed(&p->subjects);
	int64_t used = prb_clock_thread_ns();

	if (!wanted || now < p->refresh_from)
		return NULL;
	PRB_TRY(prb_quiet_settle(&p->quiet));
	PRB_TRY(prb_subjects_refresh(&p->subjects, now));
	PRB_TRY(prb_quiet_sort(&p->quiet, now));
	p->refresh_from = now + (prb_clock_thread_ns() - used) * REFRESH_SHARE;
	p->refresh_until = now + REFRESH_NS;
	return NULL;
}

/* All that are sampled. */
static bool all_ended(const struct prb_sampled *p)
{
	const struct prb_subject *subject;

	prb_vec_each (subject, &p->subjects.list)
		if (!subject->ended && (!p->tid || subject->tid == p->tid))
			return false;
	return true;
}

void prb_sampled_stop(struct prb_sampled *p)
{
	prb_stack_let_go(&p->reader, true);
	prb_stack_end(&p->reader);
	prb_unstopped_destroy(prb_steal(&p->unstopped));
	prb_awaits_destroy(prb_steal(&p->awaits));
	prb_quiet_end(&p->quiet);
	prb_subjects_end(&p->subjects);
	prb_codes_destroy(prb_steal(&p->codes));
	p->subjects = (struct prb_subjects){.folder = -1};
}

static void end_program(struct prb_sampled *p)
{
	p->reader.natives = NULL;
	prb_natives_destroy(prb_steal(&p->natives));
	if (p->target != p->borrowed)
		prb_target_destroy(p->target);
	p->target = NULL;
}

static void end_past(struct prb_sampled_past *past)
{
	prb_natives_destroy(prb_steal(&past->natives));
	prb_target_destroy(prb_steal(&past->target));
}

struct prb_error *prb_sampled_hand_over(struct prb_sampled *p, struct prb_native_places *places)
{
	struct prb_sampled_past *past;

	prb_vec_each (past, &p->past)
		PRB_TRY(prb_natives_hand_over(past->natives, places));
	return prb_natives_hand_over(p->natives, places);
}

void prb_sampled_shrink(struct prb_sampled *p)
{
	struct prb_sampled_past *past;

	prb_vec_each (past, &p->past)
		if (!prb_natives_is_needed(past->natives))
			end_past(past);
	if (!prb_natives_is_needed(p->natives))
		end_program(p);
}

void prb_sampled_end(struct prb_sampled *p)
{
	struct prb_sampled_past *past;

	prb_vec_each (past, &p->past)
		end_past(past);
	prb_vec_free(&p->past);
	end_program(p);
}

struct prb_error *prb_sampled_name(struct prb_sampled *p)
{
	prb_auto_str struct prb_str text = {};
	struct prb_process process;

	PRB_TRY(prb_process_describe(p->pid, &process));
	if (process.argv.count)
		prb_command_line_text(&text, &process);
	prb_process_deinit(&process);
	if (text.failed)
		return prb_error_nomem();
	if (!text.length)
		return NULL;
	return prb_recording_replace(p->recording, prb_recording_command(p->recording, p->number),
				     prb_str_text(&text));
}

/* "4242 python3 train.py". */
static struct prb_error *add_root(struct prb_sampled *p)
{
	enum { MOST = 120 };
	const char *command = *prb_recording_command(p->recording, p->number);
	prb_auto_free char *name = prb_format("%d %.*s", (int)p->pid, MOST, command ? command : "");

	if (!name)
		return prb_error_nomem();
	PRB_TRY(prb_tree_note(p->recording->tree, name, &p->reader.root));
	prb_codes_root(p->codes, p->reader.root);
	if (p->natives)
		prb_natives_root(p->natives, p->reader.root);
	return NULL;
}

static struct prb_error *open_natives(struct prb_sampled *p)
{
	PRB_TRY(prb_natives_create(p->target, p->recording, (*p->images)++, &p->natives));
	if (p->live)
		prb_natives_name_at_once(p->natives);
	return NULL;
}

struct prb_error *prb_sampled_switch_native(struct prb_sampled *p, bool native)
{
	struct prb_subject *subject;

	PRB_TRY(prb_quiet_settle(&p->quiet));
	p->native = native;
	if (native && !p->natives) {
		PRB_TRY(open_natives(p));
		prb_natives_root(p->natives, p->reader.root);
	}
	p->reader.natives = native ? p->natives : NULL;
	/* The sleeping threads have other stacks now. */
	prb_vec_each (subject, &p->subjects.list)
		subject->asleep = false;
	return prb_quiet_sort(&p->quiet, p->reader.woke);
}

/* That takes some time, which no sample is of: counters are noted anew. */
static struct prb_error *begin_unstopped(struct prb_sampled *p)
{
	PRB_TRY(prb_unstopped_create(&p->reader, &p->quiet, p->ebpf_rate, &p->unstopped));
	p->reader.never_stops = true;
	PRB_TRY(prb_subjects_renew(&p->subjects));
	return prb_quiet_sort(&p->quiet, 0);
}

/* The process as the program that it runs now. */
static struct prb_error *look_at(struct prb_sampled *p)
{
	struct prb_error *(*begin)(struct prb_subjects *, struct prb_target *,
				   struct prb_recording *, uint32_t) =
		p->starts ? prb_subjects_begin_started : prb_subjects_begin;

	PRB_TRY(prb_codes_create(p->recording->tree, &p->codes));
	if (p->modules)
		prb_codes_watch_modules(p->codes);
	PRB_TRY(begin(&p->subjects, p->target, p->recording, p->number));
	prb_quiet_begin(&p->quiet, &p->subjects, p->clock);
	PRB_TRY(prb_quiet_sort(&p->quiet, 0));
	if (p->native)
		PRB_TRY(open_natives(p));
	p->reader.subjects = p->reader.causes.subjects = &p->subjects;
	p->reader.codes = p->codes;
	p->reader.natives = p->natives;
	if (p->tasks)
		PRB_TRY(prb_awaits_create(&p->subjects, &p->awaits));
	p->reader.awaits = p->awaits;
	p->reader.pauses = p->pauses;
	if (p->ebpf_rate > 0)
		PRB_TRY(begin_unstopped(p));
	return p->named ? add_root(p) : NULL;
}

static struct prb_error *open_program(struct prb_sampled *p)
{
	PRB_TRY(prb_sampled_name(p));
	PRB_TRY(prb_target_open_process(p->pid, &p->target));
	return look_at(p);
}

static struct prb_error *is_gone(const struct prb_sampled *p)
{
	return prb_error_os(ESRCH, "process %d is gone", (int)p->pid);
}

struct prb_error *prb_sampled_begin(struct prb_sampled *p)
{
	p->target = p->borrowed;
	p->cpu_now = clock_getcpuclockid(p->pid, &p->clock) ? -1 : read_clock(p->clock);
	if (p->starts)
		return p->cpu_now < 0 ? is_gone(p) : open_program(p);
	PRB_TRY(look_at(p));
	p->cpu_begin = p->cpu_now = read_clock(p->clock);
	return p->cpu_begin < 0 ? is_gone(p) : NULL;
}

void prb_sampled_leave_out(struct prb_sampled *p)
{
	p->over = true;
	p->left_out = p->cpu_now >= 0;
	prb_sampled_stop(p);
}

void prb_sampled_note_left_out(struct prb_sampled *p)
{
	int64_t now = p->left_out ? read_clock(p->clock) : -1;

	p->left_out = now >= 0;
	p->cpu_now = PRB_MAX(now, p->cpu_now);
}

struct prb_error *prb_sampled_renew(struct prb_sampled *p)
{
	PRB_TRY(prb_subjects_renew(&p->subjects));
	PRB_TRY(prb_quiet_sort(&p->quiet, 0));
	if (p->cpu_begin >= 0)
		p->cpu_begin = p->cpu_now = read_clock(p->clock);
	return NULL;
}

void prb_sampled_start(struct prb_sampled *p, int64_t now)
{
	struct prb_subject *subject;

	p->reader.woke = now;
	prb_sampled_note_children(p);
	p->children_begin = p->children_now;
	prb_vec_each (subject, &p->subjects.list)
		subject->seen = now;
}

/* Its first thread goes on, with what it has counted so far. */
struct carried {
	struct prb_task_times times;
	int64_t unplaced, unplaced_queue, seen;
};

static struct prb_error *part(struct prb_sampled *p, struct carried *ret)
{
	struct prb_sampled_past *past = prb_vec_push(&p->past);
	struct prb_subject *subject;

	if (!past)
		return prb_error_nomem();
	*past = (struct prb_sampled_past){p->target == p->borrowed ? NULL : p->target,
					  prb_steal(&p->natives)};
	p->target = NULL;
	ret->seen = p->reader.woke;
	PRB_TRY(prb_quiet_settle(&p->quiet));
	prb_vec_each (subject, &p->subjects.list) {
		PRB_TRY(prb_account_rest(p->recording, subject));
		p->recording->threads.items[subject->number].ended = true;
		if (subject->tid == p->pid)
			*ret = (struct carried){subject->times, subject->unplaced,
						subject->unplaced_queue, subject->seen};
	}
	prb_sampled_stop(p);
	return NULL;
}

/*
 * Any thread may have asked for the other program; it has the number of the first one now, and the
 * counters that it had. It cannot have used more than the whole process.
 */
static void carry_on(struct prb_sampled *p, struct prb_subject *subject,
		     const struct carried *carried, int64_t cpu_before)
{
	size_t index = (size_t)(subject - p->subjects.list.items);
	struct prb_task_times now = {};
	int64_t used;

	prb_task_times(&p->subjects.tasks, &p->subjects.tasks.list.items[index], &now);
	note_clock(p);
	used = p->cpu_now - cpu_before;
	subject->times = carried->times;
	subject->unplaced = carried->unplaced;
	subject->unplaced_queue = carried->unplaced_queue;
	if (now.ran >= carried->times.ran && now.ran - carried->times.ran <= used)
		return;
	subject->times = now;
	subject->times.ran -= PRB_MIN(PRB_MAX(used, (int64_t)0), now.ran);
}

/* The process runs another program: that is sampled from now on. */
static struct prb_error *go_on_with_next(struct prb_sampled *p, int64_t cpu_before)
{
	struct carried carried = {};
	struct prb_subject *subject;

	PRB_TRY(prb_recording_replace(p->recording, prb_recording_python(p->recording, p->number),
				      NULL));
	PRB_TRY(part(p, &carried));
	p->starts = true;
	PRB_TRY(open_program(p));
	prb_vec_each (subject, &p->subjects.list) {
		subject->seen = carried.seen;
		if (subject->tid == p->pid)
			carry_on(p, subject, &carried, cpu_before);
	}
	return NULL;
}

static struct prb_error *ran_another(struct prb_sampled *p, int64_t cpu_before,
				     enum prb_sampled_state *ret)
{
	struct prb_error *err;

	*ret = PRB_SAMPLED_EXEC;
	if (!p->follows)
		return NULL;
	err = go_on_with_next(p, cpu_before);
	if (!err)
		*ret = PRB_SAMPLED_RUNS;
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_log("profile", 1, "%s", err->message);
	prb_error_destroy(err);
	return NULL;
}

/* Refreshes what is known; *ret_runs: the number of runs before the samples. */
static struct prb_error *get_ready(struct prb_sampled *p, bool *ret_others_slept, size_t *ret_runs)
{
	int64_t now = p->reader.woke;

	*ret_runs = p->recording->runs.count;
	PRB_TRY(refresh(p, now));
	if (p->unstopped)
		PRB_TRY(prb_unstopped_drain(p->unstopped, now, &p->drained));
	if (p->reader.natives)
		PRB_TRY(prb_natives_refresh(p->natives, now));
	if (p->awaits)
		PRB_TRY(prb_awaits_refresh(p->awaits, now));
	*ret_others_slept = !p->tid && prb_quiet_look(&p->quiet);
	if (!*ret_others_slept)
		PRB_TRY(prb_quiet_settle(&p->quiet));
	if (!p->unstopped)
		*ret_runs = p->recording->runs.count;
	return NULL;
}

struct prb_error *prb_sampled_round(struct prb_sampled *p, int64_t woke,
				    enum prb_sampled_state *ret)
{
	const int64_t cpu_before = p->cpu_now;
	bool others_slept = false;
	size_t runs = 0;
	struct prb_error *err;

	*ret = PRB_SAMPLED_ENDED;
	p->reader.woke = woke;
	err = get_ready(p, &others_slept, &runs);
	if (!err)
		err = sample_all(p, others_slept);
	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
		return NULL;
	PRB_TRY(err);
	if (others_slept)
		p->cpu_now = PRB_MAX(p->quiet.now, p->cpu_now);
	else
		note_clock(p);
	/* Data that was read from another program meanwhile is dropped. */
	err = p->ran_any || p->drained ? prb_target_same_program(p->target, NULL) : NULL;
	if (err) {
		prb_error_destroy(err);
		prb_account_undo(p->recording, &p->subjects, runs, woke);
		return ran_another(p, cpu_before, ret);
	}
	if (!p->tid)
		PRB_TRY(prb_quiet_sampled(&p->quiet, others_slept, prb_clock_ns()));
	*ret = all_ended(p) ? PRB_SAMPLED_ENDED : PRB_SAMPLED_RUNS;
	return NULL;
}

struct prb_error *prb_sampled_settle(struct prb_sampled *p)
{
	if (!p->over)
		note_clock(p);
	return prb_quiet_settle(&p->quiet);
}

struct prb_error *prb_sampled_finish(struct prb_sampled *p)
{
	struct prb_subject *subject;

	if (p->unstopped)
		PRB_TRY(prb_unstopped_drain(p->unstopped, prb_clock_ns(), &p->drained));
	PRB_TRY(prb_quiet_settle(&p->quiet));
	prb_vec_each (subject, &p->subjects.list)
		PRB_TRY(prb_account_rest(p->recording, subject));
	return NULL;
}
