/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/unwind/recover.h"

#include <string.h>

enum {
	MACHINE_AARCH64 = 183,
	SEARCHED = 64 << 10, /* bytes of the stack */
	CHUNK = 4096,
	MAX_ARGUMENTS = 64,	      /* bytes of arguments that are on the stack during a call */
	MAX_LOOKED_THROUGH = 8 << 20, /* bytes of code, for one frame */
	STEPS = 8,		      /* callers that must be found for a call that proves little */
};

/* The verdict of the call before a return address. */
enum verdict {
	REFUTED,
	POSSIBLE, /* a call through a pointer, or to a function that may have jumped to ours */
	PROVEN,	  /* a call to our function */
	OF_WHOLE, /* a call to the function that ours was split off from */
};

struct search {
	const struct prb_recovery *recovery;
	const struct prb_cfi_row *row;
	struct prb_regs *regs;
	uint64_t pc, sp;
	struct prb_code_range function;
	struct prb_frame_size frame;
	int64_t frame_offset, ra_offset; /* CFA minus frame pointer; return address minus CFA */
	uint64_t looked_through;	 /* bytes of code */
};

static bool fetch(const struct search *s, uint64_t address, uint64_t *ret)
{
	return s->recovery->memory->read(s->recovery->memory->context, address, ret, sizeof(*ret));
}

/* The offsets from the CFA, if the row has the usual shape. */
static bool understand_row(struct search *s)
{
	struct prb_cfi_rule ra = prb_cfi_row_rule(s->row, s->row->ra);
	struct prb_cfi_rule saved = prb_cfi_row_rule(s->row, prb_regs_fp(s->regs->machine));

	if (s->row->cfa.kind != PRB_CFI_REGISTER || s->row->signal_frame ||
	    s->row->cfa.reg != prb_regs_fp(s->regs->machine) || ra.kind != PRB_CFI_OFFSET ||
	    saved.kind != PRB_CFI_OFFSET)
		return false;
	s->frame_offset = s->row->cfa.value;
	s->ra_offset = ra.value;
	return true;
}

/* The frame reaches at least down to what it has saved. */
static uint64_t saved_bytes(const struct search *s)
{
	int64_t lowest = 0;

	for (unsigned i = 0; i < s->row->count; i++)
		if (s->row->rules[i].kind == PRB_CFI_OFFSET && s->row->rules[i].value < lowest)
			lowest = s->row->rules[i].value;
	return (uint64_t)-lowest;
}

static enum verdict judge_direct(struct search *s, uint64_t target, uint64_t cfa)
{
	struct prb_code_range caller;
	struct prb_frame_size frame;
	uint64_t jump;

	if (target == s->function.start)
		return PROVEN;
	if (!s->recovery->function(s->recovery->context, target, &caller) || caller.start != target)
		return REFUTED;
	s->looked_through += caller.end - caller.start;
	if (s->looked_through > MAX_LOOKED_THROUGH)
		return REFUTED;
	jump = prb_code_jump_into(s->recovery->memory, s->regs->machine, &caller, &s->function);
	if (!jump || jump == s->function.start)
		return jump ? PROVEN : POSSIBLE;
	prb_code_frame_size(s->recovery->memory, s->regs->machine, &caller, &frame);
	if (!frame.known || frame.dynamic || cfa - s->sp < frame.bytes ||
	    cfa - s->sp > frame.bytes + MAX_ARGUMENTS)
		return REFUTED;
	return OF_WHOLE;
}

/* Could the frame of the function end at @cfa, by the return address that was saved there? */
static enum verdict judge(struct search *s, uint64_t cfa, uint64_t return_address)
{
	struct prb_code_range caller;
	struct prb_call call;
	enum verdict verdict = REFUTED;

	if (s->regs->machine == MACHINE_AARCH64)
		return_address &= ~s->recovery->pac_mask;
	if (!s->recovery->function(s->recovery->context, return_address - 1, &caller))
		return REFUTED;
	prb_code_call_before(s->recovery->memory, s->regs->machine, return_address, &call);
	if (call.kind == PRB_CALL_DIRECT)
		verdict = judge_direct(s, call.target, cfa);
	return verdict == REFUTED && call.indirect ? POSSIBLE : verdict;
}

static void with_frame(const struct search *s, uint64_t cfa, struct prb_regs *regs)
{
	*regs = *s->regs;
	prb_regs_set(regs, prb_regs_fp(regs->machine), cfa - (uint64_t)s->frame_offset);
}

/* The callers follow each other up the stack, each behind a call, as far as we look. */
static bool leads_on(const struct search *s, uint64_t cfa)
{
	struct prb_regs regs;
	struct prb_call call;
	uint64_t last = s->sp, next = cfa;
	bool end = false;

	with_frame(s, cfa, &regs);
	for (unsigned i = 0; i < STEPS; i++) {
		if (!s->recovery->step(s->recovery->context, &regs, &next, &end))
			return false;
		if (end)
			return next >= last;
		if (next <= last)
			return false;
		prb_code_call_before(s->recovery->memory, regs.machine, regs.pc, &call);
		if (call.kind == PRB_CALL_NONE)
			return false;
		last = next;
	}
	return true;
}

/* A frame of known size: its end is where that says, or nowhere. */
static uint64_t by_size(struct search *s)
{
	uint64_t cfa, arguments, address;
	enum verdict verdict;

	if (!prb_code_pushed_arguments(s->recovery->memory, s->regs->machine, &s->function,
				       &s->frame, s->pc, &arguments))
		return 0;
	cfa = s->sp + s->frame.bytes + arguments;
	if (!fetch(s, cfa + (uint64_t)s->ra_offset, &address))
		return 0;
	verdict = judge(s, cfa, address);
	return verdict == PROVEN || (verdict == POSSIBLE && leads_on(s, cfa)) ? cfa : 0;
}

/* The result of a search: numbers of proven and of possible places. */
struct found {
	unsigned proven, possible;
	uint64_t first_proven, first_possible;
};

static void note(struct search *s, uint64_t cfa, uint64_t return_address, struct found *found)
{
	enum verdict verdict = judge(s, cfa, return_address);

	/* The size of a split-off part is known, so only one of many calls can match. */
	if (verdict == PROVEN || verdict == OF_WHOLE) {
		if (!found->proven++)
			found->first_proven = cfa;
	} else if (verdict == POSSIBLE && !found->proven && found->possible < 2 &&
		   leads_on(s, cfa)) {
		if (!found->possible++)
			found->first_possible = cfa;
	}
}

/*
 * A frame of any size. Frames that compilers make end at multiples of 16; of hand-written ones,
 * which have more below the frame pointer than its old value and the return address, any word may
 * be it. Where such a one has nothing but that on the stack, nothing old can lie in it.
 */
static uint64_t by_search(struct search *s)
{
	bool compiled = s->frame_offset == 16 || s->regs->machine == MACHINE_AARCH64;
	uint64_t step = compiled ? 16 : 8, first = s->sp + saved_bytes(s);
	uint64_t words[CHUNK / 8];
	struct found found = {};

	first = (first + step - 1) & ~(step - 1);
	for (uint64_t at = first; at < first + SEARCHED && found.proven < 2; at += CHUNK) {
		uint64_t slots = at + (uint64_t)s->ra_offset;
		size_t count = sizeof(words);

		while (count && !s->recovery->memory->read(s->recovery->memory->context, slots,
							   words, count))
			count /= 2;
		for (size_t i = 0; i < count / 8 && found.proven < 2; i += step / 8)
			note(s, at + i * 8, words[i], &found);
		if (count < sizeof(words))
			break;
	}
	if (s->looked_through > MAX_LOOKED_THROUGH)
		return 0; /* not all was looked at */
	if (!compiled && found.first_proven == s->sp + (uint64_t)s->frame_offset)
		return found.first_proven;
	if (found.proven)
		return found.proven == 1 ? found.first_proven : 0;
	return found.possible == 1 ? found.first_possible : 0;
}

enum prb_cfi_status prb_recover_frame_pointer(const struct prb_recovery *recovery,
					      const struct prb_cfi_row *row, uint64_t pc,
					      struct prb_regs *regs)
{
	struct search s = {.recovery = recovery, .row = row, .pc = pc, .regs = regs};
	uint64_t cfa = 0;

	if (!understand_row(&s) || !prb_regs_get(regs, prb_regs_sp(regs->machine), &s.sp) ||
	    !recovery->function(recovery->context, pc, &s.function))
		return PRB_CFI_UNKNOWN_REGISTER;
	prb_code_frame_size(recovery->memory, regs->machine, &s.function, &s.frame);
	if (s.frame.known && !s.frame.dynamic && s.frame.bytes >= saved_bytes(&s))
		cfa = by_size(&s);
	else
		cfa = by_search(&s);
	if (!cfa)
		return PRB_CFI_UNKNOWN_REGISTER;
	with_frame(&s, cfa, regs);
	return PRB_CFI_OK;
}
