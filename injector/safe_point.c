/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/safe_point.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "injector/inject_private.h"
#include "injector/libc_musl.h"

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
	bool inside;	      /* the last frame was in unsafe code */
	struct prb_verdict *verdict;
};

static const struct prb_unsafe_range *unsafe_range(const struct walk *w, uint64_t pc)
{
	const struct prb_unsafe_range *range = prb_libc_unsafe_range(w->safe->libc, pc);

	return range && range->lone && w->company ? NULL : range;
}

/* @return_address: where this frame goes on, of which @pc is the code that runs. */
static void look_at(struct walk *w, uint64_t pc, uint64_t return_address)
{
	const struct prb_libc *libc = w->safe->libc;
	const struct prb_unsafe_range *range = unsafe_range(w, pc);

	if (w->inside && !range)
		w->verdict->way_out = return_address;
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
	const struct prb_inject_arch *arch = w->safe->arch;
	uint8_t code[SIGRETURN_MAX];
	size_t length = PRB_MIN(arch->sigreturn_length, sizeof(code));

	for (size_t i = 0; i < count; i++) {
		const struct prb_map *map =
			prb_maps_find(&w->safe->modules->target->maps, words[i]);

		if (!map || !map->exec)
			continue;
		struct prb_error *err = prb_mem_read(w->mem, words[i], code, length);
		if (!err && !memcmp(code, arch->sigreturn_code, length))
			return true;
		prb_error_destroy(err);
	}
	return false;
}

/*
 * Reads up to where the stack ends, or @most bytes. The maps were read before the thread stood, and
 * may tell of a stack that was there then.
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
 * What could not be unwound: any word that points into unsafe code counts. What never waits is not
 * at work in a thread that does, unless a signal came there; then it is left over from earlier.
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
	if (!w->verdict->why && brief && (!w->waits || has_signal_frame(w, words, length / 8)))
		w->verdict->why = brief;
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

/*
 * Where a function of musl without a name is left: the first word on the stack that points into
 * other code. A guess, by which the thread comes or does not; where it has come it is looked at
 * anew.
 */
static struct prb_error *guess_way_out(struct walk *w, uint64_t sp)
{
	uint64_t words[GUESS_WORDS];
	size_t length;

	PRB_TRY(read_stack(w->mem, sp & ~UINT64_C(7), sizeof(words), words, &length));
	for (size_t i = 0; i < length / 8 && !w->verdict->way_out; i++) {
		const struct prb_map *map =
			prb_maps_find(&w->safe->modules->target->maps, words[i]);

		if (map && map->exec && !prb_libc_holds(w->safe->libc, words[i]) &&
		    !is_entry(w, words[i]))
			w->verdict->way_out = words[i];
	}
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

/* Which lock a thread waits for tells whether it is in the C library. */
static const char *check_futex(const struct prb_safe_point *safe,
			       const struct prb_thread_state *state, bool *waits)
{
	uint64_t arguments[6];

	*waits = safe->arch->call(state, arguments) == safe->arch->sys_futex;
	if (!*waits)
		return NULL;
	uint64_t operation = arguments[1] & FUTEX_CMD_MASK;
	if (operation != FUTEX_WAIT && operation != FUTEX_WAIT_BITSET)
		return "waiting for a lock of the kernel";
	return prb_libc_holds(safe->libc, arguments[0]) ? "waiting for a lock of the C library"
							: NULL;
}

struct prb_error *prb_safe_point_check(const struct prb_safe_point *safe, pid_t tid,
				       const struct prb_thread_state *state,
				       struct prb_verdict *ret)
{
	struct walk w = {.safe = safe, .mem = safe->modules->target->mem, .verdict = ret};
	struct prb_regs regs;
	bool complete = false, waits = false;
	uint64_t arguments[6], pc, sp, thread = 0;
	long number = safe->arch->call(state, arguments);

	safe->arch->registers(state, &regs);
	pc = regs.pc;
	sp = regs.value[prb_regs_sp(regs.machine)];
	*ret = (struct prb_verdict){.why = safe->arch->obstacle(tid, state)};
	if (!ret->why)
		PRB_TRY(safe->arch->thread(state, w.mem, safe->libc->musl, &thread));
	ret->lasting = ret->why;
	if (!ret->why && !thread) {
		ret->why = "not a thread of the C library";
		/* The first one becomes it once the loader of its program is through. */
		ret->lasting = tid != safe->modules->target->pid;
	}
	if (!ret->why)
		PRB_TRY(check_rseq(tid, w.mem, regs.pc, &ret->why));
	if (ret->why)
		return NULL;
	ret->why = check_futex(safe, state, &waits);
	/* The locks of glibc's allocator do not all lie in the library, so that they are not seen.
	 */
	w.waits = prb_call_waits(safe->modules->target->machine, number) &&
		  (!waits || safe->libc->musl);
	if (safe->libc->musl)
		PRB_TRY(prb_libc_musl_threads(w.mem, thread, safe->arch->musl_neighbours,
					      &w.company));
	PRB_TRY(walk(&w, &regs, &complete));
	if (w.inside)
		ret->way_out = 0;
	if (!ret->why && !w.waits && prb_libc_musl_unnamed(safe->libc, pc) &&
	    !prb_libc_unsafe(safe->libc, pc)) {
		ret->why = "in a function of the C library that has no name";
		PRB_TRY(guess_way_out(&w, sp));
	}
	if (!ret->why && w.joins && !waits)
		ret->why = "in pthread_join()";
	if (!ret->why && complete && (!w.seen_other || w.trailing_libc > LIBC_FRAMES))
		ret->why = "starting or exiting, or a thread of the C library itself";
	return NULL;
}
