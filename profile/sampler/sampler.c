/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/sampler.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/urgent.h"
#include "profile/sampler/account.h"
#include "profile/sampler/ebpf/ebpf.h"
#include "profile/sampler/process.h"
#include "profile/sampler/schedule.h"
#include "profile/sampler/source_text.h"
#include "target/ptrace/stop.h"
#include "target/ptrace/unstopped.h"
#include "target/proc/process.h"

enum {
	LATE_NS = 1000000,	/* interval at which late threads are checked */
	WATCH_NS = 50000000,	/* after which the end of a child is looked for */
	CHILDREN_NS = 50000000, /* children are looked for at most so often */
	CHILDREN_SHARE = 30,	/* and so that it takes one part of so many */
	PROGRESS_NS = 1000000000,
	MOST_PROCESSES = 65536,
	EBPF_LOOKS = 100, /* a second at most, at sleeping threads, where the kernel samples */
};

struct sampler {
	struct prb_target *target;		   /* NULL: the program */
	const struct prb_profile_program *program; /* that was started for this, or NULL */
	const struct prb_profile_options *options;
	struct prb_recording *recording;
	PRB_VEC(struct prb_sampled *) processes; /* by number */
	unsigned images;
	struct prb_native_places places; /* in the order in which they are looked up */
	struct prb_pauses pauses;
	struct prb_schedule schedule;
	int64_t end, woke;
	int64_t children_at; /* when they are looked for again */
	int64_t progress_at; /* when it is reported again */
	bool nothing;	     /* it ended before it was looked at */
	int64_t own_before;
	bool gate_open; /* options->gate is not ours */
	bool told;	/* options->begun was called */
};

static int64_t read_own_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static bool cancelled(const struct sampler *s)
{
	return s->options->cancelled && s->options->cancelled(s->options->context);
}

static bool program_ended(const struct sampler *s)
{
	return s->program && s->program->has_ended(s->program->context);
}

/* True if processes are distinguished by the outermost frames of their stacks. */
static bool has_several(const struct sampler *s)
{
	return s->options->others_count || s->options->children;
}

/* Processes after the first one have a row of their own. */
static struct prb_error *add_process(struct sampler *s, pid_t pid, struct prb_target *borrowed,
				     struct prb_sampled **ret)
{
	prb_auto_free struct prb_sampled *made = calloc(1, sizeof(*made));
	struct prb_sampled **slot = made ? prb_vec_push(&s->processes) : NULL, *p;
	struct prb_profile_process *row = NULL;

	if (!slot)
		return prb_error_nomem();
	if (s->processes.count > 1 && !(row = prb_vec_push(&s->recording->others))) {
		s->processes.count--;
		return prb_error_nomem();
	}
	p = *slot = prb_steal(&made);
	*p = (struct prb_sampled){
		.recording = s->recording,
		.number = (uint32_t)s->processes.count - 1,
		.pid = pid,
		.tid = s->options->tid,
		.native = s->options->native,
		.ebpf_rate = s->options->ebpf ? s->options->rate : 0,
		.modules = s->options->modules,
		.live = s->options->live,
		.tasks = s->options->tasks,
		.starts = !borrowed,
		.follows = s->program || s->options->children ||
			   (!s->options->tid && !s->options->live && !s->options->ebpf),
		.named = has_several(s),
		.descends = !borrowed && s->processes.count > 1,
		.images = &s->images,
		.pauses = &s->pauses,
		.borrowed = borrowed,
		.subjects.folder = -1,
		.cpu_now = -1,
	};
	if (row)
		*row = (struct prb_profile_process){.pid = pid, .cpu = -1};
	*ret = p;
	return NULL;
}

static struct prb_sampled *find_known(const struct sampler *s, pid_t pid)
{
	struct prb_sampled *const *p;

	prb_vec_each (p, &s->processes)
		if ((*p)->pid == pid && (!(*p)->over || (*p)->left_out))
			return *p;
	return NULL;
}

/* The child ended before anything was read: the recording has no row of it. */
static void forget_last(struct sampler *s)
{
	struct prb_sampled *p = s->processes.items[--s->processes.count];
	struct prb_profile_process *row = &s->recording->others.items[--s->recording->others.count];

	prb_sampled_end(p);
	free(p);
	free(row->command);
	free(row->python);
}

/* A process that is about to end has no memory any more, so no command line. */
static bool has_ended(pid_t pid)
{
	struct prb_process process;
	prb_auto_error struct prb_error *err = prb_process_describe(pid, &process);
	bool ended = err || process.kind == PRB_PROCESS_ZOMBIE || !process.argv.count;

	if (!err)
		prb_process_deinit(&process);
	return ended;
}

/* An unreadable child is named, and left out. */
static struct prb_error *add_child(struct sampler *s, pid_t pid)
{
	struct prb_sampled *p = find_known(s, pid);
	size_t threads = s->recording->threads.count;
	struct prb_error *err;

	if (p)
		p->descends = true;
	if (p || s->processes.count >= MOST_PROCESSES)
		return NULL;
	PRB_TRY(add_process(s, pid, NULL, &p));
	err = prb_sampled_begin(p);
	/* The first time they are looked for: what it has used before us is not ours. */
	if (!err && !s->program && !s->children_at)
		err = prb_sampled_renew(p);
	if (!err) {
		prb_sampled_start(p, s->woke);
		/* Children that a later process has reaped are ours, and were not found. */
		if (s->program || s->children_at)
			p->children_begin = 0;
		return NULL;
	}
	prb_sampled_leave_out(p);
	if (!s->program && !s->children_at)
		p->cpu_begin = p->cpu_now;
	if (err->code == PRB_ERROR_NOMEM)
		return err;
	prb_log("profile", 1, "process %d is left out: %s", (int)pid, err->message);
	if (p->cpu_now < 0 || (threads == s->recording->threads.count && has_ended(pid)))
		forget_last(s);
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *add_children_of(struct sampler *s, pid_t parent)
{
	prb_auto_free pid_t *pids = NULL;
	size_t count = 0;

	PRB_TRY(s->options->children(s->options->context, parent, &pids, &count));
	for (size_t i = 0; i < count; i++)
		PRB_TRY(add_child(s, pids[i]));
	return NULL;
}

/*
 * The callback returns all descendants, so it is only asked about processes without a recorded
 * ancestor.
 */
static bool has_known_ancestor(const struct sampler *s, size_t number)
{
	return number > s->options->others_count && !s->processes.items[0]->over;
}

/* Orphans of an ended process are known by then, or belong to none of ours. */
static struct prb_error *find_children(struct sampler *s)
{
	size_t count = s->processes.count;
	int64_t used = prb_clock_thread_ns();

	if (!s->options->children || s->woke < s->children_at)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		prb_sampled_note_left_out(s->processes.items[i]);
		if (s->processes.items[i]->over || has_known_ancestor(s, i))
			continue;
		prb_sampled_note_children(s->processes.items[i]);
		PRB_TRY(add_children_of(s, s->processes.items[i]->pid));
	}
	used = prb_clock_thread_ns() - used;
	s->children_at = s->woke + PRB_MAX(used * CHILDREN_SHARE, (int64_t)CHILDREN_NS);
	return NULL;
}

static bool any_late(const struct sampler *s)
{
	struct prb_sampled *const *p;

	prb_vec_each (p, &s->processes)
		if ((*p)->reader.late.count)
			return true;
	return false;
}

static void let_late_go(const struct sampler *s)
{
	struct prb_sampled *const *p;

	prb_vec_each (p, &s->processes)
		prb_stack_let_go(&(*p)->reader, false);
}

/* While the sampler sleeps and no thread is about to stop, others may read the process. */
static void open_gate(struct sampler *s)
{
	if (s->options->gate && !s->gate_open)
		pthread_mutex_unlock(s->options->gate);
	s->gate_open = true;
}

static void close_gate(struct sampler *s)
{
	if (s->options->gate && s->gate_open)
		pthread_mutex_lock(s->options->gate);
	s->gate_open = false;
}

/* Waits for the next time, which is now and the last one if the recording is to end first. */
static void wait_for_time(struct sampler *s)
{
	struct prb_profile_cost *cost = &s->recording->cost;
	/* Times that pass unused cost samples only where we take those of running threads. */
	uint64_t unused = 0, *missed = s->options->ebpf ? &unused : &cost->missed;
	int64_t next = prb_schedule_next(&s->schedule, prb_clock_ns(), missed);
	int64_t now;

	next = PRB_MIN(next, s->end);
	for (now = prb_clock_ns(); now < next && !cancelled(s); now = prb_clock_ns()) {
		int64_t until = any_late(s) ? PRB_MIN(next, now + LATE_NS) : next;

		if (program_ended(s))
			break;
		if (s->program)
			until = PRB_MIN(until, now + WATCH_NS);
		if (!any_late(s))
			open_gate(s);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME,
				&(struct timespec){.tv_sec = until / 1000000000,
						   .tv_nsec = until % 1000000000},
				NULL);
		let_late_go(s);
	}
	close_gate(s);
	if (cancelled(s)) {
		s->recording->end = PRB_PROFILE_INTERRUPTED;
		s->end = now;
	}
	cost->late += !s->options->ebpf && (double)(now - next) > s->schedule.mean / 2;
	s->woke = now;
}

static struct prb_error *end_process(struct sampler *s, struct prb_sampled *p)
{
	struct prb_sampled *const *other;

	p->over = true;
	prb_sampled_note_children(p);
	PRB_TRY(prb_sampled_finish(p));
	if (!has_several(s))
		return NULL;
	prb_sampled_stop(p);
	/*
	 * C frames get their names at the end. Frames of one file get them from one process: a
	 * living one, which can still open the file's debug information, comes first.
	 */
	prb_vec_each (other, &s->processes)
		if (!(*other)->over)
			PRB_TRY(prb_sampled_hand_over(*other, &s->places));
	PRB_TRY(prb_sampled_hand_over(p, &s->places));
	prb_sampled_shrink(p);
	return NULL;
}

/* Why the recording ends when the last of its processes does. */
static enum prb_profile_end end_of(const struct sampler *s, enum prb_sampled_state state)
{
	if (state == PRB_SAMPLED_EXEC && !program_ended(s))
		return PRB_PROFILE_TARGET_EXEC;
	return s->options->tid && state == PRB_SAMPLED_ENDED ? PRB_PROFILE_THREAD_ENDED
							     : PRB_PROFILE_TARGET_ENDED;
}

/* One round; *ret_more is false if it was the last one. */
static struct prb_error *run_round(struct sampler *s, bool *ret_more)
{
	enum prb_sampled_state state = PRB_SAMPLED_ENDED, last = PRB_SAMPLED_ENDED;
	size_t running = 0;

	PRB_TRY(find_children(s));
	for (size_t i = 0; i < s->processes.count; i++) {
		struct prb_sampled *p = s->processes.items[i];

		if (p->over)
			continue;
		PRB_TRY(prb_sampled_round(p, s->woke, &state));
		running += state == PRB_SAMPLED_RUNS;
		if (state == PRB_SAMPLED_RUNS)
			continue;
		PRB_TRY(end_process(s, p));
		last = state;
	}
	s->recording->cost.times++;
	*ret_more = running && s->woke < s->end;
	if (!running)
		s->recording->end = end_of(s, last);
	return NULL;
}

/*
 * CPU time of children that were never found. The parent's count includes found children that have
 * ended: subtract them. Children that others than their parents wait for are not counted.
 */
static int64_t sum_up_unseen(const struct sampler *s)
{
	struct prb_sampled *const *slot;
	int64_t unseen = 0;

	if (!s->options->children)
		return 0;
	prb_vec_each (slot, &s->processes) {
		const struct prb_sampled *p = *slot;

		if (!p->descends)
			unseen += p->children_now - p->children_begin;
		else if (p->over && !p->left_out && p->cpu_begin >= 0)
			unseen -= p->cpu_now + p->children_begin;
	}
	return PRB_MAX(unseen, (int64_t)0);
}

/* Sums up the result, the cost and the duration so far. */
static struct prb_error *sum_up(struct sampler *s, int64_t now)
{
	struct prb_recording *recording = s->recording;
	struct prb_sampled *const *slot;

	prb_vec_each (slot, &s->processes) {
		PRB_TRY(prb_sampled_settle(*slot));
		prb_sampled_note_left_out(*slot);
	}
	recording->duration = now - recording->begun;
	recording->cost.own_cpu = read_own_clock() - s->own_before;
	recording->cost.duration = recording->duration;
	recording->cost.again = 0;
	recording->unseen_children = sum_up_unseen(s);
	prb_pauses_sum_up(&s->pauses, &recording->cost);
	prb_vec_each (slot, &s->processes) {
		const struct prb_sampled *p = *slot;
		int64_t cpu = p->cpu_begin < 0 ? -1 : p->cpu_now - p->cpu_begin;

		recording->cost.again += p->reader.again;
		if (p->number)
			recording->others.items[p->number - 1].cpu = cpu;
		else
			recording->process_cpu = cpu;
	}
	return NULL;
}

/* Drops runs that were written or shown. */
static void cut(struct sampler *s)
{
	struct prb_sampled *const *p;

	prb_vec_each (p, &s->processes)
		prb_account_cut(s->recording, &(*p)->subjects, 0);
	s->recording->runs.count = 0;
}

static void tell_begun(struct sampler *s)
{
	if (s->told || !s->options->begun || !prb_store_is_there(s->options->store))
		return;
	s->told = true;
	s->options->begun(s->options->context);
}

static struct prb_error *store(struct sampler *s)
{
	struct prb_store *store = s->options->store;
	int64_t now = prb_clock_ns();
	bool complete;

	tell_begun(s);
	if (!store || !prb_store_is_due(store, s->recording, now))
		return NULL;
	PRB_TRY(sum_up(s, now));
	PRB_TRY(prb_store_put(store, s->recording, now, &complete));
	if (complete)
		cut(s);
	return NULL;
}

static struct prb_error *tell_progress(struct sampler *s)
{
	int64_t now = prb_clock_ns();

	if (!s->options->progress || now < s->progress_at)
		return NULL;
	s->progress_at = now + PROGRESS_NS;
	PRB_TRY(sum_up(s, now));
	s->options->progress(s->recording);
	return NULL;
}

static struct prb_error *show(struct sampler *s)
{
	struct prb_live *live = s->options->live;
	int64_t now = prb_clock_ns();

	if (!live || !prb_live_is_due(live, now))
		return NULL;
	PRB_TRY(sum_up(s, now));
	PRB_TRY(prb_live_put(live, s->recording, now));
	cut(s);
	return NULL;
}

static struct prb_error *switch_native(struct sampler *s)
{
	const struct prb_profile_options *o = s->options;
	struct prb_sampled *const *p;
	bool native = o->wants_native ? o->wants_native(o->context) : s->recording->native;

	if (native == s->recording->native)
		return NULL;
	s->recording->native = native;
	prb_vec_each (p, &s->processes)
		if (!(*p)->over)
			PRB_TRY(prb_sampled_switch_native(*p, native));
	return NULL;
}

static struct prb_error *run_all(struct sampler *s)
{
	bool more = !s->nothing;

	while (more) {
		PRB_TRY(switch_native(s));
		wait_for_time(s);
		PRB_TRY(run_round(s, &more));
		PRB_TRY(store(s));
		PRB_TRY(show(s));
		PRB_TRY(tell_progress(s));
	}
	return NULL;
}

static struct prb_error *check_tid(const struct sampler *s)
{
	const struct prb_sampled *first = s->processes.items[0];
	const struct prb_subject *subject;

	prb_vec_each (subject, &first->subjects.list)
		if (subject->tid == s->options->tid)
			return NULL;
	return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has no thread %d",
				(int)first->pid, s->options->tid);
}

/* It may have ended already, and then there is nothing to look at; the end is met in a round. */
static struct prb_error *begin_first(struct sampler *s, struct prb_sampled *p)
{
	struct prb_error *err = prb_sampled_begin(p);

	if (!err || !s->program || err->code == PRB_ERROR_NOMEM || !program_ended(s))
		return err;
	prb_error_destroy(err);
	s->recording->end = PRB_PROFILE_TARGET_ENDED;
	s->nothing = true;
	return NULL;
}

/* One of all that a name matches may end, or be of another kind: the others are recorded. */
static struct prb_error *begin_other(struct sampler *s, struct prb_sampled *p)
{
	char *const *names = s->options->names;
	struct prb_error *err =
		names ? prb_recording_replace(s->recording,
					      prb_recording_command(s->recording, p->number),
					      names[p->number - 1])
		      : prb_sampled_name(p);

	if (!err)
		err = prb_sampled_begin(p);
	if (!err || err->code == PRB_ERROR_NOMEM || names)
		return prb_error_prefix(err, "process %d", (int)p->pid);
	prb_log("profile", 1, "process %d is left out: %s", (int)p->pid, err->message);
	prb_error_destroy(err);
	prb_sampled_leave_out(p);
	p->cpu_begin = p->cpu_now;
	return NULL;
}

static struct prb_error *begin_processes(struct sampler *s)
{
	pid_t pid = s->program ? s->program->pid : s->target->pid;
	struct prb_sampled *p;

	PRB_TRY(add_process(s, pid, s->target, &p));
	PRB_TRY(begin_first(s, p));
	if (s->options->tid)
		PRB_TRY(check_tid(s));
	for (size_t i = 0; i < s->options->others_count; i++) {
		struct prb_target *other = s->options->others[i];

		PRB_TRY(add_process(s, other->pid, other, &p));
		PRB_TRY(begin_other(s, p));
	}
	return NULL;
}

static struct prb_error *begin(struct sampler *s)
{
	struct prb_sampled *const *p;
	uint64_t key[2] = {};
	double rate;

	if (getrandom(key, sizeof(key), 0) < 0)
		return prb_error_os(errno, "cannot draw random numbers");
	PRB_TRY(begin_processes(s));
	if (s->program)
		s->program->release(s->program->context);
	s->recording->started = prb_clock_calendar_seconds();
	s->recording->begun = s->woke = prb_clock_ns();
	s->end = s->options->seconds > 0
			 ? s->recording->begun + (int64_t)(s->options->seconds * 1e9)
			 : INT64_MAX;
	prb_vec_each (p, &s->processes)
		prb_sampled_start(*p, s->recording->begun);
	if (!s->program)
		PRB_TRY(find_children(s));
	s->progress_at = s->woke + PROGRESS_NS;
	rate = s->options->ebpf ? PRB_MIN(s->options->rate, (double)EBPF_LOOKS) : s->options->rate;
	prb_schedule_begin(&s->schedule, key, rate, s->recording->begun);
	return NULL;
}

/* Stored runs have the stacks' old numbers, and get the new ones. */
static struct prb_error *name_natives(struct sampler *s)
{
	const struct prb_profile_options *o = s->options;
	size_t count = s->recording->tree->stacks.count;
	prb_auto_free uint32_t *renamed = NULL;
	struct prb_sampled *const *p;

	/* A viewer has the tree as it is. */
	if (o->live)
		return NULL;
	prb_vec_each (p, &s->processes)
		PRB_TRY(prb_sampled_hand_over(*p, &s->places));
	if (!s->places.list.count)
		return NULL;
	/* From here on, an interruption ends the naming. */
	if (o->give_up_names)
		o->give_up_names(o->context);
	if (o->store) {
		PRB_TRY(prb_store_put_rest(o->store, s->recording));
		s->recording->runs.count = 0;
	}
	PRB_TRY(prb_natives_name(s->recording, &s->places, o->give_up_names, o->context, &renamed));
	if (o->store)
		prb_store_rename(o->store, prb_steal(&renamed), count);
	return NULL;
}

static struct prb_error *finish(struct sampler *s)
{
	struct prb_sampled *const *p;

	prb_vec_each (p, &s->processes) {
		if ((*p)->over)
			continue;
		prb_sampled_note_children(*p);
		PRB_TRY(prb_sampled_finish(*p));
	}
	PRB_TRY(sum_up(s, prb_clock_ns()));
	PRB_TRY(name_natives(s));
	if (s->options->source && (s->processes.items[0]->target || s->program))
		PRB_TRY(prb_profile_add_source(s->recording, s->processes.items[0]->target,
					       s->program));
	return s->options->store ? prb_store_finish(s->options->store, s->recording) : NULL;
}

/* On a busy machine that is what keeps pauses short. */
static struct prb_error *run_first(struct sampler *s)
{
	prb_auto_urgent struct prb_urgent urgent = {};
	struct prb_error *err;

	prb_urgent_begin(&urgent);
	prb_unstopped_keep(true);
	err = run_all(s);
	prb_unstopped_keep(false);
	return err;
}

static struct prb_error *record(struct sampler *s)
{
	PRB_TRY(begin(s));
	if (s->options->store)
		PRB_TRY(prb_store_begin(s->options->store, s->recording));
	s->own_before = read_own_clock();
	PRB_TRY(run_first(s));
	return finish(s);
}

static void end_processes(struct sampler *s)
{
	struct prb_sampled **p;

	prb_vec_each (p, &s->processes) {
		prb_sampled_end(*p);
		free(*p);
	}
	prb_vec_free(&s->processes);
	prb_native_places_deinit(&s->places);
}

static struct prb_error *record_all(struct sampler *s, pid_t pid, struct prb_recording **ret)
{
	const struct prb_profile_options *options = s->options;
	struct prb_sampled *const *p;
	struct prb_error *err;

	PRB_TRY(prb_recording_create(&s->recording));
	s->recording->pid = pid;
	s->recording->rate = options->rate;
	s->recording->ring = (int64_t)(options->ring * 1e9);
	s->recording->around = (int64_t)(options->around * 1e9);
	s->recording->tid = options->tid;
	s->recording->native = options->native;
	s->recording->cost.ebpf = options->ebpf;
	s->recording->tasks = options->tasks;
	err = prb_str_copy(options->command, &s->recording->command);
	if (!err)
		err = prb_str_copy(options->condition, &s->recording->condition);
	if (options->gate)
		pthread_mutex_lock(options->gate);
	if (!err)
		err = record(s);
	prb_vec_each (p, &s->processes)
		prb_sampled_stop(*p);
	open_gate(s);
	prb_store_stop(options->store);
	end_processes(s);
	if (err && !options->live)
		prb_recording_destroy(s->recording);
	else
		*ret = s->recording;
	return err;
}

struct prb_error *prb_profile_record(struct prb_target *target,
				     const struct prb_profile_options *options,
				     struct prb_recording **ret)
{
	struct sampler s = {.target = target, .options = options};

	if (!target->moves)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "a %s does not run: there is nothing to "
						       "sample",
						       prb_target_kind_name(target->kind)),
				      "'probing FILE dump' shows its stacks");
	return record_all(&s, target->pid, ret);
}

struct prb_error *prb_profile_record_program(const struct prb_profile_program *program,
					     const struct prb_profile_options *options,
					     struct prb_recording **ret)
{
	struct sampler s = {.program = program, .options = options};
	struct prb_error *err;

	prb_stop_keep_status(program->pid);
	err = record_all(&s, program->pid, ret);
	prb_stop_keep_status(0);
	return err;
}

bool prb_profile_ebpf_built(void)
{
	return prb_ebpf_built();
}

struct prb_error *prb_profile_ebpf_check(void)
{
	return prb_ebpf_check();
}
