/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The notes of a core: threads with their registers, mapped files, the process. */
#include <elf.h>
#include <signal.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/core/file.h"
#include "target/mem/note.h"

/* Offsets in struct elf_prstatus and struct elf_prpsinfo, alike on all 64-bit machines. */
enum {
	PRSTATUS_CURSIG = 12,
	PRSTATUS_PID = 32,
	PRSTATUS_UTIME = 48,
	PRSTATUS_STIME = 64,
	PRSTATUS_REGS = 112,
	PRPSINFO_PID = 24,
	PRPSINFO_NAME = 40,
	PRPSINFO_ARGUMENTS = 56,
	PRPSINFO_SIZE = 136,
	SIGINFO_CODE = 8,
	SIGINFO_ADDRESS = 16,
	NO_SYSCALL = -1,
	UNKNOWN_SYSCALL = -2,
	FACT = 1, /* type of the notes of a crash record */
};

/* Order of the x86_64 registers in struct user_regs_struct. */
enum {
	R15,
	R14,
	R13,
	R12,
	RBP,
	RBX,
	R11,
	R10,
	R9,
	R8,
	RAX,
	RCX,
	RDX,
	RSI,
	RDI,
	ORIG_RAX,
	RIP,
	CS,
	EFLAGS,
	RSP,
	X86_64_REGS = 27
};
enum { AARCH64_REGS = 34 /* x0–x30, sp, pc, pstate */ };

static uint64_t ticks(const char *timeval)
{
	uint64_t seconds, microseconds;

	memcpy(&seconds, timeval, sizeof(seconds));
	memcpy(&microseconds, timeval + sizeof(seconds), sizeof(microseconds));
	return seconds * 100 + microseconds / 10000;
}

static bool x86_64_regs(const char *data, size_t length, struct core_thread *thread)
{
	/* By DWARF number. */
	static const unsigned char order[] = {RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP,
					      R8,  R9,	R10, R11, R12, R13, R14, R15};
	static const unsigned char arguments[] = {RDI, RSI, RDX, R10, R8, R9};
	uint64_t regs[X86_64_REGS];

	if (length < sizeof(regs))
		return false;
	memcpy(regs, data, sizeof(regs));
	thread->regs = (struct prb_regs){.machine = EM_X86_64, .pc = regs[RIP]};
	for (unsigned i = 0; i < PRB_ARRAY_SIZE(order); i++)
		prb_regs_set(&thread->regs, i, regs[order[i]]);
	thread->syscall = (int64_t)regs[ORIG_RAX] >= 0 ? (int64_t)regs[ORIG_RAX] : NO_SYSCALL;
	for (unsigned i = 0; i < PRB_ARRAY_SIZE(arguments); i++)
		thread->args[i] = regs[arguments[i]];
	return true;
}

static bool aarch64_regs(const char *data, size_t length, struct core_thread *thread)
{
	uint64_t regs[AARCH64_REGS];

	if (length < sizeof(regs))
		return false;
	memcpy(regs, data, sizeof(regs));
	thread->regs = (struct prb_regs){.machine = EM_AARCH64, .pc = regs[32]};
	for (unsigned i = 0; i <= PRB_REG_AARCH64_SP; i++)
		prb_regs_set(&thread->regs, i, regs[i]);
	memcpy(thread->args, regs, sizeof(thread->args));
	/* It is in a note of its own, if at all. */
	thread->syscall = UNKNOWN_SYSCALL;
	return true;
}

static struct prb_error *take_prstatus(struct core *core, const struct prb_note *note)
{
	int32_t ids[4]; /* pid, ppid, pgrp, sid */

	if (note->length < PRSTATUS_REGS)
		return NULL;
	struct core_thread thread = {.ppid = 0};
	const char *regs = note->data + PRSTATUS_REGS;
	size_t length = note->length - PRSTATUS_REGS;
	bool whole = core->target.machine == EM_X86_64 ? x86_64_regs(regs, length, &thread)
						       : aarch64_regs(regs, length, &thread);

	memcpy(ids, note->data + PRSTATUS_PID, sizeof(ids));
	if (!whole || ids[0] <= 0)
		return NULL;
	thread.tid = ids[0];
	thread.ppid = ids[1];
	thread.pgrp = ids[2];
	thread.sid = ids[3];
	thread.utime = ticks(note->data + PRSTATUS_UTIME);
	thread.stime = ticks(note->data + PRSTATUS_STIME);
	memcpy(&thread.signal, note->data + PRSTATUS_CURSIG, sizeof(thread.signal));

	struct core_thread *added = prb_vec_push(&core->threads);
	if (!added)
		return prb_error_nomem();
	*added = thread;
	return NULL;
}

/* Belongs to the thread whose PRSTATUS came last. */
static void take_arm_syscall(struct core *core, const struct prb_note *note)
{
	int32_t number;

	if (note->length < sizeof(number) || !core->threads.count)
		return;
	memcpy(&number, note->data, sizeof(number));
	core->threads.items[core->threads.count - 1].syscall = number >= 0 ? number : NO_SYSCALL;
}

static void take_prpsinfo(struct core *core, const struct prb_note *note)
{
	int32_t ids[4];

	if (core->have_info || note->length < PRPSINFO_SIZE)
		return;
	memcpy(ids, note->data + PRPSINFO_PID, sizeof(ids));
	core->have_info = true;
	core->target.pid = ids[0] > 0 ? ids[0] : 0;
	core->ppid = ids[1];
	core->pgrp = ids[2];
	core->sid = ids[3];
	memcpy(core->name, note->data + PRPSINFO_NAME, sizeof(core->name) - 1);
	memcpy(core->arguments, note->data + PRPSINFO_ARGUMENTS, sizeof(core->arguments) - 1);
}

static void take_siginfo(struct core *core, const struct prb_note *note)
{
	int32_t signal, code;

	/* gdb writes one for each thread; the first belongs to the thread that was hit. */
	if (core->info.signal_told || note->length < SIGINFO_ADDRESS + sizeof(uint64_t))
		return;
	memcpy(&signal, note->data, sizeof(signal));
	memcpy(&code, note->data + SIGINFO_CODE, sizeof(code));
	core->info.signal_told = true;
	core->info.signal_code = code;
	/*
	 * Sent by kill() and the like, the address field holds the sender. Of an address that no
	 * pointer can be, the kernel reports nothing (SI_KERNEL).
	 */
	core->info.fault_told =
		code > 0 && code < SI_KERNEL &&
		(signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE);
	if (core->info.fault_told)
		memcpy(&core->info.fault_address, note->data + SIGINFO_ADDRESS,
		       sizeof(core->info.fault_address));
	if (code == SI_USER || code == SI_TKILL || code == SI_QUEUE)
		memcpy(&core->info.signal_sender, note->data + SIGINFO_ADDRESS,
		       sizeof(core->info.signal_sender));
}

/* NT_FILE: count, page size, count × (start, end, offset in pages), then the paths. */
static struct prb_error *take_files(struct core *core, const struct prb_note *note)
{
	uint64_t head[2], triple[3];

	if (core->mappings.count || note->length < sizeof(head))
		return NULL;
	memcpy(head, note->data, sizeof(head));
	if (head[0] > (note->length - sizeof(head)) / sizeof(triple))
		return NULL;

	const char *end = note->data + note->length;
	const char *path = note->data + sizeof(head) + head[0] * sizeof(triple);
	for (uint64_t i = 0; i < head[0]; i++) {
		uint64_t offset;
		const char *nul = memchr(path, '\0', (size_t)(end - path));

		if (!nul)
			break;
		memcpy(triple, note->data + sizeof(head) + i * sizeof(triple), sizeof(triple));
		if (triple[0] < triple[1] && prb_mul(triple[2], head[1], &offset)) {
			struct core_mapping *mapping = prb_vec_push(&core->mappings);

			if (!mapping)
				return prb_error_nomem();
			*mapping = (struct core_mapping){triple[0], triple[1], offset, path, 0};
		}
		path = nul + 1;
	}
	return NULL;
}

static int compare_mappings(const void *a, const void *b)
{
	const struct core_mapping *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sorts, leaves out what overlaps, and numbers the files. */
static void order_mappings(struct core *core)
{
	size_t kept = 0;
	struct core_mapping *m, *before = NULL;

	if (core->mappings.count)
		qsort(core->mappings.items, core->mappings.count, sizeof(*m), compare_mappings);
	prb_vec_each (m, &core->mappings) {
		if (before && m->start < before->end)
			continue;
		uint64_t number = !before			  ? 1
				  : strcmp(before->path, m->path) ? before->file + 1
								  : before->file;
		before = &core->mappings.items[kept++];
		*before = *m;
		before->file = number;
	}
	core->mappings.count = kept;
}

static struct prb_error *take_note(struct core *core, const struct prb_note *note)
{
	if (prb_note_is(note, "LINUX") && note->type == NT_ARM_SYSTEM_CALL &&
	    core->target.machine == EM_AARCH64)
		take_arm_syscall(core, note);
	if (prb_note_is(note, "PROBING") && note->type == FACT)
		return core_take_fact(core, note->data, note->length);
	if (!prb_note_is(note, "CORE"))
		return NULL;
	switch (note->type) {
	case NT_PRSTATUS:
		return take_prstatus(core, note);
	case NT_PRPSINFO:
		take_prpsinfo(core, note);
		return NULL;
	case NT_SIGINFO:
		take_siginfo(core, note);
		return NULL;
	case NT_FILE:
		return take_files(core, note);
	case NT_AUXV:
		core->auxv = note->data;
		core->auxv_size = note->length;
		return NULL;
	default:
		return NULL;
	}
}

/* True if this signal, by default, ends a process with a core. */
static bool dumps_core(int signal)
{
	static const int signals[] = {SIGQUIT, SIGILL,	SIGTRAP, SIGABRT, SIGBUS,
				      SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(signals); i++)
		if (signals[i] == signal)
			return true;
	return false;
}

struct prb_error *core_notes_parse(struct core *core)
{
	struct prb_note note;

	for (size_t offset = 0;
	     prb_note_next(core->notes.data, core->notes.length, 4, &offset, &note);)
		PRB_TRY(take_note(core, &note));
	order_mappings(core);

	/* The thread that was hit is written first. */
	const struct core_thread *first = core->threads.items;
	if (core->threads.count && dumps_core(first->signal)) {
		core->info.signal = first->signal;
		core->info.signal_tid = first->tid;
	} else {
		core->info = (struct prb_core_info){
			.missing_bytes = core->info.missing_bytes,
			.missing_segments = core->info.missing_segments,
		};
	}
	core_understand_record(core);
	if (!core->target.pid && core->threads.count) {
		core->target.pid = first->tid;
		for (size_t i = 1; i < core->threads.count; i++)
			core->target.pid = PRB_MIN(core->target.pid, core->threads.items[i].tid);
	}
	return NULL;
}

bool core_auxv(const struct core *core, uint64_t type, uint64_t *ret)
{
	uint64_t pair[2];

	for (size_t at = 0; at + sizeof(pair) <= core->auxv_size; at += sizeof(pair)) {
		memcpy(pair, core->auxv + at, sizeof(pair));
		if (pair[0] != type)
			continue;
		*ret = pair[1];
		return true;
	}
	return false;
}

const struct core_thread *core_thread(const struct core *core, pid_t tid)
{
	const struct core_thread *thread;

	prb_vec_each (thread, &core->threads)
		if (thread->tid == tid)
			return thread;
	return NULL;
}
