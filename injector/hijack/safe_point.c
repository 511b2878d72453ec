/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/hijack/safe_point.h"

#include <inttypes.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "injector/hijack/pick.h"
#include "injector/libc/musl.h"

enum {
	FRAMES_MAX = 20000,
	SCAN_MAX = 1 << 20, /* bytes of a stack that are searched */
	SCAN_CHUNK = 64 << 10,
	PAGE = 4096,
	GUESS_WORDS = 64,
	SIGRETURN_MAX = 16, /* bytes of the code that returns from a handler */
	LIBC_FRAMES = 2,    /* of a thread's beginning: clone() and what it calls */
	GET_RSEQ = 0x420f,  /* PTRACE_GET_RSEQ_CONFIGURATION */
};

struct walk {
	const struct prb_safe_point *safe;
	struct prb_mem *mem;
	size_t depth;
	size_t trailing_libc; /* frames of libc at the outer end, as far as walked */
	bool seen_other;      /* a frame that is not libc's */
	bool joins;	      /* one of pthread_join() */
	bool waits;	      /* for others, in a system call, and not for a lock of an allocator */
	bool company;	      /* musl: it is not the only thread */
	bool busy;	/* it must not be in the C library: it runs, and is to call functions */
	bool inside;	/* the last frame was in unsafe code */
	size_t entered; /* frames of libc that the last frame, not libc's own, has called */
	uint64_t place; /* where that frame goes on */
	struct prb_verdict *verdict;
};

static const struct prb_unsafe_range *unsafe_range(const struct walk *w, uint64_t pc)
{
	const struct prb_unsafe_range *range = prb_libc_unsafe_range(w->safe->libc, pc);

	return range && range->lone && w->company && w->safe->libc->purpose == PRB_HIJACK_CREATE
		       ? NULL
		       : range;
}

static void set_way_out(struct walk *w, uint64_t address)
{
	w->verdict->ways_out[0] = address;
	w->verdict->way_count = address != 0;
}

/*
 * The functions of libc that a frame has called. The outermost frame of a program calls what begins
 * it in libc, so this is known only when a frame follows, or how many there are.
 */
static void judge_entered(struct walk *w)
{
	if (!w->verdict->why)
		w->verdict->why = "in a function of the C library";
	set_way_out(w, w->place);
}

static void look_for_libc(struct walk *w, bool libc, uint64_t return_address)
{
	if (w->entered)
		judge_entered(w);
	w->entered = libc ? 0 : w->trailing_libc;
	w->place = return_address;
}

/* @return_address: where this frame goes on, of which @pc is the code that runs. */
static void look_at(struct walk *w, uint64_t pc, uint64_t return_address)
{
	const struct prb_libc *libc = w->safe->libc;
	const struct prb_unsafe_range *range = unsafe_range(w, pc);

	if (w->busy)
		look_for_libc(w, prb_libc_holds(libc, pc), return_address);
	if (w->inside && !range)
		set_way_out(w, return_address);
	w->inside = range;
	if (!w->verdict->why && range)
		w->verdict->why = range->what;
	w->joins |= libc->join && pc >= libc->join && pc < libc->join_end;
	if (prb_libc_holds(libc, pc)) {
		w->trailing_libc++;
	} else {
		w->trailing_libc = 0;
		w->seen_other = true;
	}
}

/* Is this where a function begins? In code that runs there, nothing has been done yet. */
static bool is_entry(const struct walk *w, uint64_t address)
{
	struct prb_module *module = prb_modules_find(w->safe->modules, address);
	prb_auto_str struct prb_str name = {};
	uint64_t start = 0;
	struct prb_error *err =
		module ? prb_module_symbol_at(module, address, &name, &start) : NULL;

	if (err)
		prb_error_destroy(err);
	return !err && start == address;
}

/*
 * A word on the stack as a return address, or as where a signal came. Pointers to functions and,
 * which the kernel gives every program, to the loader and the vdso, are neither.
 */
static const struct prb_unsafe_range *look_at_word(const struct walk *w, uint64_t word)
{
	const struct prb_unsafe_range *range = unsafe_range(w, word - 1);
	const struct prb_map *map =
		range ? prb_maps_find(&w->safe->modules->target->maps, word) : NULL;

	return map && map->exec && !is_entry(w, word) ? range : NULL;
}

/* Does one of the words lead back from a signal handler? */
static bool has_signal_frame(const struct walk *w, const uint64_t *words, size_t count)
{
	const struct prb_machine *machine = w->safe->machine;
	uint8_t code[SIGRETURN_MAX];
	size_t length = PRB_MIN(machine->sigreturn_length, sizeof(code));

	for (size_t i = 0; i < count; i++) {
		const struct prb_map *map =
			prb_maps_find(&w->safe->modules->target->maps, words[i]);

		if (!map || !map->exec)
			continue;
		struct prb_error *err = prb_mem_read(w->mem, words[i], code, length);
		if (!err && !memcmp(code, machine->sigreturn_code, length))
			return true;
		prb_error_destroy(err);
	}
	return false;
}

/*
 * Reads up to where the stack ends, or @most bytes. The maps were read before the thread stopped,
 * and may have an older stack there.
 */
static struct prb_error *read_stack(struct prb_mem *mem, uint64_t sp, size_t most, void *ret,
				    size_t *ret_length)
{
	size_t chunk = SCAN_CHUNK, done = 0;

	while (done < most) {
		size_t step = PRB_MIN(chunk - (size_t)((sp + done) & (chunk - 1)), most - done);
		struct prb_error *err = prb_mem_read(mem, sp + done, (uint8_t *)ret + done, step);

		if (!err) {
			done += step;
			continue;
		}
		if (!prb_error_catch(&err, PRB_ERROR_FAULT))
			return err;
		if (chunk == PAGE)
			break;
		chunk = PAGE;
	}
	*ret_length = done;
	return NULL;
}

/*
 * Scans a stack that could not be unwound: any word that points into unsafe code counts. A function
 * that never waits is not active in a waiting thread, unless a signal interrupted it; otherwise the
 * word is a leftover.
 */
static struct prb_error *scan(struct walk *w, const struct prb_regs *regs)
{
	uint64_t sp = regs->value[prb_regs_sp(regs->machine)] & ~UINT64_C(7);
	prb_auto_free uint64_t *words = malloc(SCAN_MAX);
	const char *brief = NULL;
	size_t length;

	if (!words)
		return prb_error_nomem();
	PRB_TRY(read_stack(w->mem, sp, SCAN_MAX, words, &length));
	for (size_t i = 0; i < length / 8 && !w->verdict->why; i++) {
		const struct prb_unsafe_range *range = look_at_word(w, words[i]);

		if (range && range->brief)
			brief = range->what;
		else if (range)
			w->verdict->why = range->what;
	}
	if (w->verdict->why)
		return NULL;
	/* musl's brief functions are leaves: a thread that runs elsewhere has left them. */
	bool elsewhere =
		w->waits || (w->safe->libc->purpose == PRB_HIJACK_CALL && w->safe->libc->musl);
	bool signal = (brief || elsewhere) && has_signal_frame(w, words, length / 8);
	if (brief && (!elsewhere || signal))
		w->verdict->why = brief;
	if (signal && w->safe->libc->purpose == PRB_HIJACK_CALL)
		w->verdict->why = "in a signal handler";
	return NULL;
}

static struct prb_error *walk(struct walk *w, struct prb_regs *regs, bool *complete)
{
	bool exact = true;

	*complete = false;
	for (; w->depth < FRAMES_MAX; w->depth++) {
		struct prb_unwind_step step = {};

		look_at(w, exact ? regs->pc : regs->pc - 1, regs->pc);
		PRB_TRY(prb_unwind_step(w->safe->unwinder, w->mem, exact, regs, &step));
		*complete = step.end;
		if (step.end || step.reason)
			break;
		exact = step.signal_frame;
	}
	return *complete || w->verdict->why ? NULL : scan(w, regs);
}

/* Does a call of a function end just before this address? */
static bool follows_call(const struct walk *w, uint64_t address)
{
	uint8_t before[8];
	struct prb_error *err =
		prb_mem_read(w->mem, address - sizeof(before), before, sizeof(before));
	bool follows = !err && w->safe->machine->ends_in_call(before, sizeof(before));

	prb_error_destroy(err);
	return follows;
}

static void guess(struct walk *w, uint64_t word)
{
	const struct prb_map *map = prb_maps_find(&w->safe->modules->target->maps, word);
	struct prb_verdict *verdict = w->verdict;

	if (!map || !map->exec || prb_libc_holds(w->safe->libc, word) ||
	    verdict->way_count == PRB_WAYS_OUT_MAX || is_entry(w, word) || !follows_call(w, word))
		return;
	for (size_t i = 0; i < verdict->way_count; i++)
		if (verdict->ways_out[i] == word)
			return;
	verdict->ways_out[verdict->way_count++] = word;
}

/*
 * Where a function of musl is left: a word on the stack that points into other code, behind a call.
 * A guess, by which the thread comes or does not; where it has come it is looked at anew.
 */
static struct prb_error *guess_ways_out(struct walk *w, const struct prb_regs *regs)
{
	uint64_t words[GUESS_WORDS], link;
	size_t length;

	w->verdict->way_count = 0;
	if (w->safe->machine->link && prb_regs_get(regs, w->safe->machine->link, &link))
		guess(w, link);
	PRB_TRY(read_stack(w->mem, regs->value[prb_regs_sp(regs->machine)] & ~UINT64_C(7),
			   sizeof(words), words, &length));
	for (size_t i = 0; i < length / 8; i++)
		guess(w, words[i]);
	return NULL;
}

/* In the middle of one it would not be noticed that something came between. */
static struct prb_error *check_rseq(pid_t tid, struct prb_mem *mem, uint64_t pc, const char **why)
{
	struct {
		uint64_t address;
		uint32_t size, signature, flags, pad;
	} rseq = {};
	struct {
		uint32_t version, flags;
		uint64_t start, length, abort;
	} section;
	uint64_t current;

	if (ptrace((enum __ptrace_request)GET_RSEQ, tid, sizeof(rseq), &rseq) <= 0 || !rseq.address)
		return NULL;
	PRB_TRY(prb_mem_read_u64(mem, rseq.address + 8, &current));
	if (!current)
		return NULL;
	PRB_TRY(prb_mem_read(mem, current, &section, sizeof(section)));
	if (pc - section.start < section.length)
		*why = "in a restartable sequence";
	return NULL;
}

/* The lock that a thread waits for shows whether it is in the C library. */
static const char *check_futex(const struct prb_safe_point *safe, const struct prb_place *place)
{
	uint64_t operation = place->arguments[1] & FUTEX_CMD_MASK;

	if (place->call != safe->machine->sys_futex)
		return NULL;
	if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET)
		return "waiting for a lock of the kernel";
	return prb_libc_holds(safe->libc, place->arguments[0])
		       ? "waiting for a lock of the C library"
		       : NULL;
}

/* Is it a thread of the C library? */
static struct prb_error *check_thread(const struct prb_safe_point *safe, pid_t tid,
				      const struct prb_place *place, uint64_t *thread,
				      struct prb_verdict *ret)
{
	bool first = tid == safe->modules->target->pid;

	if (place->thread_pointer)
		PRB_TRY(safe->machine->thread(place->thread_pointer, safe->modules->target->mem,
					      safe->libc->musl, thread));
	if (*thread || (!place->thread_pointer && first && safe->libc->purpose == PRB_HIJACK_CALL))
		return NULL;
	ret->why = "not a thread of the C library";
	/* The first one becomes it once the loader of its program is through. */
	ret->lasting = !first;
	return NULL;
}

/* Checks that matter only if the thread calls functions of the C library itself. */
static const char *check_call(const struct prb_safe_point *safe, pid_t tid,
			      const struct prb_place *place, bool waits)
{
	enum { ROOM = 64 << 10, NOT_BEGUN = -38 /* ENOSYS: the kernel's until it has a result */ };
	uint64_t sp = place->regs.value[prb_regs_sp(place->regs.machine)], result;
	const struct prb_map *stack = prb_maps_find(&safe->modules->target->maps, sp);

	/* The first thread's stack grows. */
	if (stack && tid != safe->modules->target->pid && sp - stack->start < ROOM)
		return "near the end of its stack";
	if (place->in_call && !safe->machine->sets_back &&
	    prb_regs_get(&place->regs, safe->machine->result, &result) &&
	    (int64_t)result == NOT_BEGUN)
		return "at the entry of a system call, which would fail";
	if (place->in_call && safe->libc->musl && !waits)
		return "in a system call in which it may hold a lock";
	return NULL;
}

/* Checks that need more than one frame of the walk. */
static struct prb_error *judge_whole(struct walk *w, const struct prb_place *place, bool complete)
{
	const struct prb_libc *libc = w->safe->libc;
	struct prb_verdict *ret = w->verdict;
	bool futex = place->call == w->safe->machine->sys_futex;
	bool inside = w->busy && !complete && prb_libc_holds(libc, place->regs.pc);
	bool unnamed = !ret->why && !w->waits && prb_libc_musl_unnamed(libc, place->regs.pc) &&
		       !prb_libc_unsafe(libc, place->regs.pc);

	if (w->inside)
		ret->way_count = 0;
	if (w->entered && (!complete || w->entered > LIBC_FRAMES))
		judge_entered(w);
	if (!ret->why && (inside || unnamed))
		ret->why = unnamed ? "in a function of the C library that has no name"
				   : "in a function of the C library";
	if (unnamed || (inside && libc->musl))
		PRB_TRY(guess_ways_out(w, &place->regs));
	if (!ret->why && w->joins && !futex)
		ret->why = "in pthread_join()";
	if (!ret->why && complete && (!w->seen_other || w->trailing_libc > LIBC_FRAMES))
		ret->why = "starting or exiting, or a thread of the C library itself";
	return NULL;
}

struct prb_error *prb_safe_point_judge(const struct prb_safe_point *safe, pid_t tid,
				       const struct prb_place *place, struct prb_verdict *ret)
{
	struct walk w = {.safe = safe, .mem = safe->modules->target->mem, .verdict = ret};
	bool calls = safe->libc->purpose == PRB_HIJACK_CALL, complete = false;
	struct prb_regs regs = place->regs;
	uint64_t thread = 0;

	*ret = (struct prb_verdict){.in_call = place->in_call};
	PRB_TRY(check_thread(safe, tid, place, &thread, ret));
	if (ret->why)
		return NULL;
	ret->why = check_futex(safe, place);
	/* The locks of glibc's allocator do not all lie in the library, so that they are not seen.
	 */
	w.waits = prb_call_waits(safe->modules->target->machine, place->call) &&
		  (place->call != safe->machine->sys_futex || safe->libc->musl);
	w.busy = calls && !place->in_call;
	if (!ret->why && calls)
		ret->why = check_call(safe, tid, place, w.waits);
	if (safe->libc->musl && thread)
		PRB_TRY(prb_libc_musl_threads(w.mem, thread, safe->machine->musl_neighbours,
					      &w.company));
	PRB_TRY(walk(&w, &regs, &complete));
	PRB_TRY(judge_whole(&w, place, complete));
	/* A thread that waits would be waited for. */
	if (!ret->why || (calls && place->in_call))
		ret->way_count = 0;
	return NULL;
}

struct prb_error *prb_safe_point_check(const struct prb_safe_point *safe,
				       const struct prb_inject_arch *arch, pid_t tid,
				       const struct prb_thread_state *state,
				       struct prb_verdict *ret)
{
	struct prb_place place = {.thread_pointer = arch->thread_pointer(state)};

	place.call = arch->call(state, place.arguments);
	place.in_call = place.call >= 0;
	arch->registers(state, &place.regs);
	*ret = (struct prb_verdict){.why = arch->obstacle(tid, state)};
	ret->lasting = ret->why;
	if (!ret->why)
		PRB_TRY(check_rseq(tid, safe->modules->target->mem, place.regs.pc, &ret->why));
	return ret->why ? NULL : prb_safe_point_judge(safe, tid, &place, ret);
}
