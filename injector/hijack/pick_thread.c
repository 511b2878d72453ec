/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The search for a thread that may be hijacked, at its current place or one that it soon reaches.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "target/task.h"
#include "base/clock.h"
#include "injector/hijack/mailbox.h"
#include "injector/hijack/pick.h"
#include "injector/hijack/safe_point.h"

enum {
	STOP_TIMEOUT_MS = 400,
	WARM_FRAMES = 1000,
};
static const double search_timeout = 1.5; /* seconds for finding a safe point */

struct finding {
	const struct prb_pick *s;
	struct prb_candidates candidates;
	const char *why; /* why the last thread that was looked at could not be hijacked */
	pid_t why_tid;
	bool passing; /* some thread of the round could be hijacked later */
	bool no_breakpoints;
};

struct prb_error *prb_pick_give_back(const struct prb_pick *s)
{
	double pause = 0;
	struct prb_error *err = prb_hijack_give_back(s->hijack, &pause);

	s->cost->pause_us += pause;
	return err;
}

/* Another program may have been executed since its code was looked up. */
static struct prb_error *check_code(struct finding *f)
{
	const struct prb_inject_arch *arch = f->s->hijack->arch;
	uint8_t gadget[16] = {}, trampoline[16] = {};
	struct prb_error *err =
		prb_mail_read(f->s->hijack->memory, f->s->libc->code.gadget - arch->syscall_offset,
			      gadget, PRB_MIN(arch->syscall_length, sizeof(gadget)));

	if (!err)
		err = prb_mail_read(f->s->hijack->memory, f->s->libc->code.trampoline, trampoline,
				    PRB_MIN(arch->machine->sigreturn_length, sizeof(trampoline)));
	if (!err && !memcmp(gadget, arch->syscall_code, arch->syscall_length) &&
	    !memcmp(trampoline, arch->machine->sigreturn_code, arch->machine->sigreturn_length))
		return NULL;
	prb_error_destroy(err);
	return prb_error_hint(prb_error_create(PRB_ERROR_FAILED, "another program was executed"),
			      "nothing was changed; try again");
}

/* Has an unsafe thread come out of the functions that make it so, if it does within @patience_ms.
 */
static struct prb_error *lead_out(struct finding *f, const struct prb_safe_point *safe,
				  int patience_ms, struct prb_verdict *verdict)
{
	pid_t tid = f->s->hijack->stop.tid;
	bool reached;

	if (!patience_ms || !f->s->hijack->arch->breakpoints || f->no_breakpoints ||
	    !verdict->way_count)
		return NULL;
	struct prb_error *err =
		prb_hijack_follow(f->s->hijack, verdict->ways_out[0], patience_ms, &reached);
	if (err && err->code == PRB_ERROR_UNSUPPORTED) {
		prb_log("inject", 1, "%s", err->message);
		f->no_breakpoints = true;
		prb_error_destroy(err);
		return NULL;
	}
	PRB_TRY(err);
	prb_log("inject", 3, "thread %d %s %#llx", tid, reached ? "came to" : "did not come to",
		(unsigned long long)verdict->ways_out[0]);
	f->s->cost->stops++;
	return prb_safe_point_check(safe, f->s->hijack->arch, tid, &f->s->hijack->state, verdict);
}

/*
 * Stops a thread and keeps it if it may be hijacked where it is, or where it soon comes to; else it
 * runs on. A thread that was asked to stop must be waited for: ptrace cannot detach before it has
 * stopped.
 */
static struct prb_error *try_thread(struct finding *f, pid_t tid, double end, int patience_ms,
				    bool *ret)
{
	const struct prb_safe_point safe = {f->s->modules, f->s->unwinder, f->s->libc,
					    f->s->hijack->arch->machine};
	struct prb_verdict verdict = {};
	int timeout_ms = (int)((end - prb_clock_seconds()) * 1000);
	struct prb_error *err =
		prb_hijack_take(f->s->hijack, tid, PRB_MAX(timeout_ms, STOP_TIMEOUT_MS));

	*ret = false;
	f->s->cost->stops++;
	if (!err)
		err = check_code(f);
	if (!err)
		err = prb_filters_check(f->s->t, tid, f->s->calls);
	if (!err)
		err = prb_safe_point_check(&safe, f->s->hijack->arch, tid, &f->s->hijack->state,
					   &verdict);
	if (!err && verdict.why)
		err = lead_out(f, &safe, patience_ms, &verdict);
	if (!err && !verdict.why) {
		*ret = true;
		f->s->cost->hijacked = tid;
		return NULL;
	}
	prb_error_destroy(prb_pick_give_back(f->s));
	if (err && err->code != PRB_ERROR_NO_PROCESS)
		return prb_error_prefix(err, "process %d", f->s->t->pid);
	f->passing |= err || !verdict.lasting;
	f->why = verdict.why ? verdict.why : "it has ended";
	f->why_tid = tid;
	prb_log("inject", 2, "thread %d: %s", tid, err ? err->message : verdict.why);
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *no_thread(struct finding *f)
{
	struct prb_task task;

	PRB_TRY(prb_task_read(f->s->t, f->s->t->pid, &task));
	if (strchr("ZX", task.state))
		return prb_error_os(ESRCH, "process %d has ended", f->s->t->pid);
	if (!f->candidates.list.count)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "process %d: all its threads sleep in the kernel and "
					 "cannot be stopped",
					 f->s->t->pid),
			"try again when it has left its vfork() or its disk, or a "
			"frozen control group of it is thawed");
	return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
					       "process %d: no thread could be hijacked safely; "
					       "thread %d: %s",
					       f->s->t->pid, f->why_tid,
					       f->why ? f->why : "unknown"),
			      "nothing was changed in it; try again later");
}

/* No thread will ever be fit. */
static struct prb_error *no_fit_thread(struct finding *f)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "process %d: no thread can be hijacked; thread %d: %s",
				 f->s->t->pid, f->why_tid, f->why),
		"nothing was changed in it; dumps and queries need no injection");
}

/* A thread that runs may stop anywhere, most likely in what has been opened anyway. */
static struct prb_error *open_tables(struct finding *f)
{
	struct prb_module **module;

	prb_vec_each (module, &f->s->modules->list)
		if ((*module)->elf || !strcmp((*module)->path, "[vdso]"))
			PRB_TRY(prb_unwinder_use_file(f->s->unwinder, (*module)->start));
	return NULL;
}

/*
 * The unwinder finds and keeps the tables of the code on the stack while the thread still sleeps,
 * as far as its stack pointer alone leads.
 */
static struct prb_error *warm_up(struct finding *f, pid_t tid)
{
	struct prb_task task;
	struct prb_error *err = prb_task_read(f->s->t, tid, &task);

	if (err || !task.pc) {
		prb_error_destroy(err);
		return open_tables(f);
	}
	struct prb_regs regs = {.machine = f->s->t->machine, .pc = task.pc};
	struct prb_unwind_step step = {.signal_frame = true};

	prb_regs_set(&regs, prb_regs_sp(regs.machine), task.sp);
	for (int depth = 0; depth < WARM_FRAMES && !step.end && !step.reason; depth++) {
		PRB_TRY(prb_unwinder_use_file(f->s->unwinder, regs.pc));
		PRB_TRY(prb_unwind_step(f->s->unwinder, f->s->t->mem, step.signal_frame, &regs,
					&step));
	}
	return NULL;
}

/* How long a round waits for each unsafe thread to come out: many could be asleep there, and one of
 * several may be fit as it is. */
static int patience_ms(const struct finding *f, int round)
{
	static const int patience[] = {0, 2, 10, 50};
	int at = f->candidates.list.count == 1 ? round + 1 : round;

	return patience[PRB_MIN(at, (int)PRB_ARRAY_SIZE(patience) - 1)];
}

/*
 * A thread at an unsafe place is let go at once, in the first round; in later ones it is led out
 * where that is possible, else let go and looked at again. The others run on all the time.
 */
static struct prb_error *find(struct finding *f)
{
	double end = prb_clock_seconds() + search_timeout;
	unsigned seed = (unsigned)f->s->t->pid;

	for (int round = 0;; round++) {
		PRB_TRY(prb_candidates_find(f->s->t, &f->candidates));
		f->passing = f->candidates.blocked || !f->candidates.list.count;
		if (!round && f->candidates.list.count)
			PRB_TRY(warm_up(f, f->candidates.list.items[0].tid));
		for (size_t i = 0; i < f->candidates.list.count; i++) {
			bool found;

			PRB_TRY(try_thread(f, f->candidates.list.items[i].tid, end,
					   patience_ms(f, round), &found));
			if (found)
				return NULL;
			if (prb_clock_seconds() > end)
				return no_thread(f);
		}
		if (!f->passing)
			return no_fit_thread(f);
		if (prb_clock_seconds() > end)
			return no_thread(f);
		/* A running thread leaves its place within microseconds; a sleeping one stays. */
		long longest = f->candidates.running ? 50000 : 5000000;
		nanosleep(&(struct timespec){.tv_nsec = 5000 + rand_r(&seed) % longest}, NULL);
	}
}

struct prb_error *prb_pick_thread(const struct prb_pick *s)
{
	struct finding f = {.s = s};
	struct prb_error *err =
		s->calls & PRB_CALL_SERVES ? prb_filters_check_all(s->t, s->calls) : NULL;

	if (!err)
		err = find(&f);
	prb_vec_free(&f.candidates.list);
	return err;
}
