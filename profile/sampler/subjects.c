/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/subjects.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "dump/tasks/thread_of_state.h"
#include "profile/sampler/account.h"

/* Threads with a row of their own; a server may have a new one for each request, for days. */
enum { MOST_THREADS = 20000 };

static void free_subject(struct prb_subject *subject)
{
	prb_vec_free(&subject->states);
	prb_view_destroy(subject->view);
}

void prb_subjects_end(struct prb_subjects *s)
{
	struct prb_subject *subject;

	prb_vec_each (subject, &s->list)
		free_subject(subject);
	prb_vec_free(&s->list);
	prb_tasks_deinit(&s->tasks);
	prb_view_destroy(s->view);
	prb_pythons_deinit(&s->pythons);
	prb_modules_destroy(s->modules);
	prb_close_guard(&s->folder);
}

bool prb_subjects_changed(const struct prb_subjects *s)
{
	enum { OWN_LINKS = 2 };
	struct stat st;

	/* The kernel counts a link for each thread. */
	return fstat(s->folder, &st) || (size_t)st.st_nlink != s->tasks.list.count + OWN_LINKS;
}

static struct prb_error *add_row(struct prb_subjects *s, pid_t tid, const char *name, uint32_t *ret)
{
	struct prb_profile_thread *thread = prb_vec_push(&s->recording->threads);

	if (!thread)
		return prb_error_nomem();
	thread->process = s->process;
	thread->tid = tid;
	*ret = (uint32_t)s->recording->threads.count - 1;
	return prb_str_copy(name, &thread->os_name);
}

/* The row of a thread that is new; what is one too many shares one, which is no thread's. */
static struct prb_error *find_row(struct prb_subjects *s, const struct prb_task_watch *task,
				  uint32_t *ret)
{
	if (s->recording->threads.count < MOST_THREADS)
		return add_row(s, task->tid, task->name, ret);
	if (!s->shares) {
		PRB_TRY(add_row(s, 0, "<later threads>", &s->shared));
		s->shares = true;
	}
	*ret = s->shared;
	return NULL;
}

static bool is_shared(const struct prb_subjects *s, const struct prb_subject *subject)
{
	return s->shares && subject->number == s->shared;
}

/* For a thread that began during the recording, all CPU time counts; else only new time. */
static struct prb_error *add_subject(struct prb_subjects *s, const struct prb_task_watch *task,
				     int64_t now)
{
	struct prb_subject *subject = prb_vec_push(&s->list);

	if (!subject)
		return prb_error_nomem();
	s->changes++;
	subject->tid = task->tid;
	subject->seen = now;
	subject->ended = prb_task_has_ended(task);
	if (!s->begun)
		prb_task_times(&s->tasks, task, &subject->times);
	return find_row(s, task, &subject->number);
}

static struct prb_error *end_subject(struct prb_subjects *s, struct prb_subject *subject)
{
	struct prb_error *err = prb_account_rest(s->recording, subject);

	s->changes++;
	if (!is_shared(s, subject))
		s->recording->threads.items[subject->number].ended = true;
	free_subject(subject);
	return err;
}

/* Brings the list into the order of the tasks. */
static struct prb_error *match_tasks(struct prb_subjects *s, int64_t now)
{
	__typeof__(s->list) before = s->list;
	struct prb_subject *old = before.items, *end = old ? old + before.count : NULL;
	const struct prb_task_watch *task;
	struct prb_error *err = NULL;

	memset(&s->list, 0, sizeof(s->list));
	prb_vec_each (task, &s->tasks.list) {
		for (; !err && old < end && (old->tid < task->tid || old->ended); old++)
			err = end_subject(s, old);
		if (err)
			break;
		if (old < end && old->tid == task->tid) {
			struct prb_subject *subject = prb_vec_push(&s->list);

			err = subject ? NULL : prb_error_nomem();
			if (subject)
				*subject = *old++;
		} else {
			err = add_subject(s, task, now);
		}
		if (err)
			break;
	}
	for (; old < end; old++) {
		struct prb_error *failed = end_subject(s, old);

		if (err)
			prb_error_destroy(failed);
		else
			err = failed;
	}
	prb_vec_free(&before);
	return err;
}

/* The list changes while it is read: threads start and exit. */
static struct prb_error *read_threads(struct prb_subjects *s, struct prb_python *py,
				      struct prb_py_threads *ret)
{
	enum { ATTEMPTS = 20 };
	struct prb_error *err = NULL;

	for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
		prb_error_destroy(err);
		prb_view_new_epoch(s->view);
		PRB_TRY(prb_view_prefetch(s->view));
		err = prb_python_threads(py, prb_view_mem(s->view), ret);
		if (!err || (err->code != PRB_ERROR_BAD_DATA && err->code != PRB_ERROR_FAULT))
			break;
	}
	return prb_error_prefix(err, "cannot read the threads of Python %s", py->version);
}

static struct prb_error *add_state(struct prb_subjects *s, struct prb_python *py,
				   const struct prb_py_thread *thread,
				   const struct prb_found_thread *found)
{
	size_t index = (size_t)(found->task - s->tasks.list.items);
	struct prb_subject_state *state = prb_vec_push(&s->list.items[index].states);

	if (!state)
		return prb_error_nomem();
	*state = (struct prb_subject_state){py, *thread, found->kept_at};
	return NULL;
}

static struct prb_error *add_states(struct prb_subjects *s, struct prb_python *py,
				    struct prb_py_threads *threads)
{
	prb_auto_free struct prb_found_thread *found =
		calloc(threads->list.count + 1, sizeof(*found));
	struct prb_thread_finder finder = {
		.target = s->target, .modules = s->modules, .tasks = &s->tasks};
	struct prb_error *err;

	if (!found)
		return prb_error_nomem();
	err = prb_thread_finder_run(&finder, py, s->view, threads, found);
	prb_thread_finder_deinit(&finder);
	PRB_TRY(err);
	for (size_t i = 0; i < threads->list.count; i++)
		if (found[i].task)
			PRB_TRY(add_state(s, py, &threads->list.items[i], &found[i]));
	return NULL;
}

struct naming {
	struct prb_subjects *subjects;
	const struct prb_python *py;
};

static struct prb_profile_thread *nameless(const struct naming *n, uint64_t pthread)
{
	struct prb_subject *subject;

	prb_vec_each (subject, &n->subjects->list) {
		struct prb_profile_thread *out =
			&n->subjects->recording->threads.items[subject->number];

		if (subject->states.count && subject->states.items[0].py == n->py &&
		    subject->states.items[0].thread.pthread == pthread)
			return out->name || is_shared(n->subjects, subject) ? NULL : out;
	}
	return NULL;
}

static bool is_nameless(void *context, uint64_t pthread)
{
	return nameless(context, pthread);
}

/* Names are an addition: what cannot be read is missing. */
static struct prb_error *read_names(struct prb_subjects *s, struct prb_python *py, uint64_t interp)
{
	struct naming naming = {s, py};
	struct prb_py_thread_names names;
	struct prb_py_thread_name *name;
	struct prb_error *err =
		prb_python_thread_names(py, s->view, interp, is_nameless, &naming, &names);

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	if (err) {
		prb_error_destroy(err);
		return NULL;
	}
	prb_vec_each (name, &names.list) {
		struct prb_profile_thread *out = nameless(&naming, name->pthread);

		if (out)
			out->name = prb_steal(&name->name);
	}
	prb_py_thread_names_deinit(&names);
	return NULL;
}

static bool any_nameless(const struct prb_subjects *s)
{
	const struct prb_subject *subject;

	prb_vec_each (subject, &s->list)
		if (subject->states.count && !is_shared(s, subject) &&
		    !s->recording->threads.items[subject->number].name)
			return true;
	return false;
}

static struct prb_error *read_python(struct prb_subjects *s, struct prb_python *py)
{
	struct prb_py_threads threads;
	const struct prb_interp *interp;
	struct prb_error *err;

	PRB_TRY(read_threads(s, py, &threads));
	err = add_states(s, py, &threads);
	if (!err && any_nameless(s))
		prb_vec_each (interp, &threads.interps)
			if (!err)
				err = read_names(s, py, interp->address);
	prb_py_threads_deinit(&threads);
	return err;
}

/*
 * If states cannot be listed now, the known ones are kept; reading each shows whether it is still
 * there.
 */
static struct prb_error *read_states(struct prb_subjects *s)
{
	struct prb_python **py;
	struct prb_subject *subject;

	prb_vec_each (subject, &s->list)
		subject->states.count = 0;
	prb_vec_each (py, &s->pythons.list)
		PRB_TRY(read_python(s, *py));
	return NULL;
}

static struct prb_error *find_python(struct prb_subjects *s)
{
	struct prb_error *err =
		prb_pythons_open(s->target, s->view, false, &s->modules, &s->pythons);

	if ((s->recording->native || s->starts) && prb_error_catch(&err, PRB_ERROR_UNSUPPORTED))
		return NULL;
	PRB_TRY(err);
	return prb_recording_replace(s->recording, prb_recording_python(s->recording, s->process),
				     s->pythons.list.items[0]->version);
}

bool prb_subjects_search_is_due(const struct prb_subjects *s, int64_t now)
{
	return s->starts && !s->pythons.list.count && now >= s->search_at;
}

/*
 * The longer there was none, the longer until the next attempt. So a new Python is found soon, and
 * a program without Python costs little.
 */
static struct prb_error *find_late_python(struct prb_subjects *s, int64_t now)
{
	enum { AGE_SHARE = 8, COST_SHARE = 20, LONGEST_NS = 300000000 };
	int64_t gap = (now - s->since) / AGE_SHARE, used = prb_clock_thread_ns();
	struct prb_error *err;

	if (!prb_subjects_search_is_due(s, now))
		return NULL;
	prb_modules_destroy(prb_steal(&s->modules));
	prb_view_new_epoch(s->view);
	err = prb_target_refresh_maps(s->target);
	if (!err)
		err = find_python(s);
	gap = PRB_MAX(gap, (prb_clock_thread_ns() - used) * COST_SHARE);
	s->search_at = now + PRB_MIN(gap, (int64_t)LONGEST_NS);
	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return err;
	/* It may be in the middle of its start. */
	prb_log("profile", 1, "%s", err->message);
	prb_error_destroy(err);
	return NULL;
}

struct prb_error *prb_subjects_refresh(struct prb_subjects *s, int64_t now)
{
	struct prb_error *err;

	PRB_TRY(prb_tasks_update(&s->tasks, s->target));
	PRB_TRY(match_tasks(s, now));
	PRB_TRY(find_late_python(s, now));
	err = read_states(s);
	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return err;
	prb_log("profile", 1, "%s", err->message);
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *begin(struct prb_subjects *s)
{
	struct prb_target *target = s->target;

	PRB_TRY(prb_view_create(target->mem, &s->view));
	if (!s->starts)
		PRB_TRY(find_python(s));
	PRB_TRY(prb_target_open_fact(target, &s->folder, "task"));
	PRB_TRY(prb_tasks_create(target, &s->tasks));
	if (s->tasks.by_status)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"this kernel does not count how long threads run "
					"(/proc/PID/schedstat), which samples are weighed by");
	PRB_TRY(match_tasks(s, 0));
	PRB_TRY(read_states(s));
	s->begun = true;
	return NULL;
}

struct prb_error *prb_subjects_begin(struct prb_subjects *s, struct prb_target *target,
				     struct prb_recording *recording, uint32_t process)
{
	*s = (struct prb_subjects){
		.target = target, .recording = recording, .process = process, .folder = -1};
	return begin(s);
}

struct prb_error *prb_subjects_begin_started(struct prb_subjects *s, struct prb_target *target,
					     struct prb_recording *recording, uint32_t process)
{
	*s = (struct prb_subjects){.target = target,
				   .recording = recording,
				   .process = process,
				   .folder = -1,
				   .begun = true,
				   .starts = true,
				   .since = prb_clock_ns()};
	return begin(s);
}

struct prb_error *prb_subjects_renew(struct prb_subjects *s)
{
	bool begun = s->begun;
	struct prb_error *err;

	s->begun = false;
	err = prb_subjects_refresh(s, 0);
	s->begun = begun;
	for (size_t i = 0; !err && i < s->list.count; i++) {
		struct prb_task_watch *task = &s->tasks.list.items[i];

		prb_task_note(&s->tasks, task);
		prb_task_times(&s->tasks, task, &s->list.items[i].times);
	}
	return err;
}
