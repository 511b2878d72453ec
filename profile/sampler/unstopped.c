/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/unstopped.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "profile/sampler/account.h"

enum {
	SPREAD = 40, /* periods differ by up to one part of so many: no program can keep in step */
};

struct prb_unstopped {
	struct prb_stack_reader *reader;
	struct prb_quiet *quiet;
	struct prb_python *py; /* borrowed */
	struct prb_ebpf *ebpf;
	struct prb_view *view, *later; /* what is read, and what shows that it was the same */
	struct prb_py_frames frames;
	PRB_VEC(uint64_t) kept; /* records of this look that count, one after the other */
	uint64_t lost;
	int64_t now;
	bool any;
};

static struct prb_error *unsupported(const char *why)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
					       "samples by eBPF are not possible here: %s", why),
			      "'--source stops' works");
}

/* Where threads keep their states, from the thread pointer on: the same place for all of them. */
static struct prb_error *find_slot(const struct prb_subjects *subjects, int32_t *ret)
{
	const struct prb_subject *subject;
	const struct prb_subject_state *state;
	bool found = false;

	prb_vec_each (subject, &subjects->list) {
		prb_vec_each (state, &subject->states) {
			int64_t slot = (int64_t)(state->kept_at - state->thread.pthread);

			if (!state->kept_at)
				continue;
			if (slot < 0 || slot > 1 << 20 || (found && slot != *ret))
				return unsupported("threads keep their states in unknown places");
			found = true;
			*ret = (int32_t)slot;
		}
	}
	return found ? NULL : unsupported("it is not known where threads keep their states");
}

static struct prb_error *check_python(const struct prb_subjects *subjects)
{
	const struct prb_layout *l;

	if (subjects->pythons.list.count != 1)
		return unsupported("there is not exactly one Python in the process");
	l = &subjects->pythons.list.items[0]->layout;
	if (l->free_threaded)
		return unsupported("this is a build without a GIL");
	if (l->behaviour->state_in_variable || l->thread_id < 0 || l->code_name < 0)
		return unsupported("it is not known how this version does that");
	return NULL;
}

static struct prb_error *make_layout(const struct prb_subjects *subjects,
				     struct prb_ebpf_layout *ret)
{
	const struct prb_layout *l;
	bool old;

	PRB_TRY(check_python(subjects));
	l = &subjects->pythons.list.items[0]->layout;
	old = l->behaviour->chain == PRB_CHAIN_PYFRAME;
	*ret = (struct prb_ebpf_layout){
		.thread_id = l->thread_id,
		.thread_frame = old					  ? l->thread_frame
				: l->behaviour->chain == PRB_CHAIN_CFRAME ? l->thread_cframe
									  : l->thread_current_frame,
		.cframe_frame = l->behaviour->chain == PRB_CHAIN_CFRAME ? l->cframe_current_frame
									: PRB_ABSENT,
		.frame_code = old ? l->pyframe_code : l->frame_code,
		.frame_previous = old ? l->pyframe_back : l->frame_previous,
		.frame_position = old ? l->pyframe_position : l->frame_position,
		.frame_owner = old ? PRB_ABSENT : l->frame_owner,
		.position_size = old ? 4 : 8,
		.tag_mask = l->behaviour->tagged_refs ? 3 : 0,
		.code_name = l->code_name,
		.code_file = l->code_filename,
		.code_lines = l->code_linetable,
		.code_first_line = l->code_firstlineno,
		.name_hash = l->unicode_length + (int32_t)sizeof(uint64_t),
		.gil_locked = l->gil_locked,
		.gil_holder = l->gil_holder,
		.generator_frame = PRB_ABSENT,
	};
	if (l->behaviour->chain == PRB_CHAIN_CFRAME && l->behaviour->owner_generator >= 0 &&
	    l->frame_stack_top >= 0) {
		ret->generator_frame = l->generator_frame;
		ret->generator_owner = (uint8_t)l->behaviour->owner_generator;
		ret->frame_stack_top = l->frame_stack_top;
		ret->frame_stack = l->frame_localsplus;
		ret->code_variables = l->code_nlocalsplus;
		ret->code_stack_size = l->code_stacksize;
	}
	return find_slot(subjects, &ret->slot);
}

/* The GIL that all states share; 0 if there are several. */
static uint64_t find_gil(const struct prb_subjects *subjects)
{
	const struct prb_subject *subject;
	const struct prb_subject_state *state;
	uint64_t gil = 0;

	prb_vec_each (subject, &subjects->list) {
		prb_vec_each (state, &subject->states) {
			if (gil && gil != state->thread.gil)
				return 0;
			gil = state->thread.gil;
		}
	}
	return gil;
}

static struct prb_error *add_threads(struct prb_unstopped *u, double rate)
{
	const struct prb_subject *subject;

	prb_vec_each (subject, &u->reader->subjects->list) {
		uint32_t drawn;
		double part;

		if (getrandom(&drawn, sizeof(drawn), 0) < 0)
			return prb_error_os(errno, "cannot draw random numbers");
		part = 1 + ((double)drawn / UINT32_MAX * 2 - 1) / SPREAD;
		PRB_TRY(prb_ebpf_add(u->ebpf, subject->tid, (uint64_t)(1e9 / rate * part)));
	}
	return NULL;
}

static struct prb_error *begin(struct prb_unstopped *u, double rate)
{
	struct prb_ebpf_layout layout;

	PRB_TRY(make_layout(u->reader->subjects, &layout));
	layout.gil = find_gil(u->reader->subjects);
	u->py = u->reader->subjects->pythons.list.items[0];
	PRB_TRY(prb_view_create(u->reader->subjects->target->mem, &u->view));
	PRB_TRY(prb_view_create(u->reader->subjects->target->mem, &u->later));
	PRB_TRY(prb_ebpf_open(&layout, &u->ebpf));
	return add_threads(u, rate);
}

struct prb_error *prb_unstopped_create(struct prb_stack_reader *reader, struct prb_quiet *quiet,
				       double rate, struct prb_unstopped **ret)
{
	struct prb_unstopped *u = calloc(1, sizeof(*u));
	struct prb_error *err;

	if (!u)
		return prb_error_nomem();
	u->reader = reader;
	u->quiet = quiet;
	err = begin(u, rate);
	if (err)
		prb_unstopped_destroy(u);
	else
		*ret = u;
	return err;
}

void prb_unstopped_destroy(struct prb_unstopped *u)
{
	if (!u)
		return;
	prb_ebpf_close(u->ebpf);
	prb_view_destroy(u->view);
	prb_view_destroy(u->later);
	prb_py_frames_deinit(&u->frames);
	prb_vec_free(&u->kept);
	free(u);
}

/*
 * False for a code object that was freed: what it held may be another's by now, though its own
 * memory still has the old addresses. free() puts a link, which is 0 or an address, where the count
 * of references was; while it is freed the count is 0. A count has 32 bits, and from 3.14 on flags
 * in the highest 16.
 */
static bool is_alive(uint64_t references)
{
	return references && !(references >> 32 & 0xffff);
}

/* Whether the code object still is what the record describes; one of another name is another. */
static struct prb_error *is_same_code(struct prb_unstopped *u, struct prb_mem *mem,
				      const struct prb_ebpf_frame *frame, bool *ret)
{
	const struct prb_layout *l = &u->py->layout;
	uint64_t references, file, lines, name, hash;
	uint32_t first_line;

	*ret = false;
	PRB_TRY(prb_mem_read_u64(mem, frame->code + (uint64_t)PRB_MAX(l->object_refcnt, 0),
				 &references));
	PRB_TRY(prb_mem_read_u64(mem, frame->code + (uint64_t)l->code_filename, &file));
	PRB_TRY(prb_mem_read_u64(mem, frame->code + (uint64_t)l->code_linetable, &lines));
	PRB_TRY(prb_mem_read_u32(mem, frame->code + (uint64_t)l->code_firstlineno, &first_line));
	if (!is_alive(references) || file != frame->file || lines != frame->lines ||
	    first_line != frame->first_line)
		return NULL;
	PRB_TRY(prb_mem_read_u64(mem, frame->code + (uint64_t)l->code_name, &name));
	PRB_TRY(prb_mem_read_u64(mem, name + (uint64_t)l->unicode_length + sizeof(hash), &hash));
	*ret = hash == frame->name_hash;
	return NULL;
}

/* A frame whose code object is gone has none. */
static struct prb_error *add_frame(struct prb_unstopped *u, const struct prb_ebpf_frame *from)
{
	struct prb_py_frame *frame = prb_vec_push(&u->frames.list);
	struct prb_error *err;
	bool same = false;

	if (!frame)
		return prb_error_nomem();
	err = is_same_code(u, prb_view_mem(u->view), from, &same);
	if (err && (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS))
		return err;
	prb_error_destroy(err);
	*frame = (struct prb_py_frame){
		.address = from->address,
		.code = same ? from->code : 0,
		.position = from->position,
		.owner = (int8_t)from->owner,
	};
	return NULL;
}

/* A code object that was read lived all the time if it is still there after that. */
static struct prb_error *check_again(struct prb_unstopped *u, const struct prb_ebpf_record *record)
{
	bool same;

	prb_view_new_epoch(u->later);
	for (uint32_t i = 0; i < record->count; i++) {
		if (!u->frames.list.items[i].code)
			continue;
		PRB_TRY(is_same_code(u, prb_view_mem(u->later), &record->frames[i], &same));
		if (!same)
			return prb_error_create(PRB_ERROR_BAD_DATA, "a code object is gone");
	}
	return NULL;
}

/* Notes the frames; an error says why they are not believed. */
static struct prb_error *note_frames(struct prb_unstopped *u, const struct prb_ebpf_record *record)
{
	u->frames.list.count = 0;
	if (record->flags & PRB_EBPF_DEEP)
		return prb_error_create(PRB_ERROR_BAD_DATA, "more than %d frames", PRB_EBPF_FRAMES);
	if (!(record->flags & PRB_EBPF_ENDED))
		return prb_error_create(PRB_ERROR_BAD_DATA, "the chain of frames has no end");
	if (record->flags & PRB_EBPF_DOUBT ||
	    (record->flags & PRB_EBPF_RESTARTED && !record->count))
		return prb_error_create(PRB_ERROR_BAD_DATA, "the eval loop outside is not met");
	for (uint32_t i = 0; i < record->count; i++)
		PRB_TRY(add_frame(u, &record->frames[i]));
	PRB_TRY(prb_python_frames_judge(u->py, prb_view_mem(u->view), record->wanted, &u->frames));
	PRB_TRY(prb_codes_note(u->reader->codes, u->py, prb_view_mem(u->view), &u->frames));
	return prb_codes_has_new(u->reader->codes) ? check_again(u, record) : NULL;
}

static struct prb_error *take_note(struct prb_unstopped *u, const char *text, uint32_t *ret)
{
	struct prb_tree *tree = u->reader->subjects->recording->tree;
	uint32_t alone;

	PRB_TRY(prb_tree_note(tree, text, &alone));
	return prb_tree_call(tree, u->reader->root, tree->stacks.items[alone].frame, ret);
}

static struct prb_error *take_stack(struct prb_unstopped *u, const struct prb_ebpf_record *record,
				    bool several, struct prb_stack_sample *sample)
{
	struct prb_error *err;

	prb_codes_begin(u->reader->codes);
	/* The state says nothing of the stacks that the thread has in other interpreters. */
	err = several ? prb_error_create(PRB_ERROR_BAD_DATA, "several states")
		      : note_frames(u, record);
	if (err && (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS))
		return err;
	if (err) {
		prb_log("profile", 2, "a sample: %s", err->message);
		prb_error_destroy(err);
		sample->unreadable = true;
		return take_note(u, "<unreadable>", &sample->stack);
	}
	PRB_TRY(prb_codes_keep(u->reader->codes, &sample->stack));
	return sample->stack == u->reader->root ? take_note(u, "<not in Python>", &sample->stack)
						: NULL;
}

static struct prb_subject *find_subject(struct prb_unstopped *u, uint64_t pthread)
{
	struct prb_subject *subject;

	prb_vec_each (subject, &u->reader->subjects->list)
		if (subject->states.count && !subject->ended &&
		    subject->states.items[0].thread.pthread == pthread)
			return subject;
	return NULL;
}

/* What it waited for a processor before it had this one was there, too. */
static struct prb_error *account_queue(struct prb_recording *recording, struct prb_subject *subject,
				       const struct prb_stack_sample *sample, int64_t at)
{
	struct prb_stack_sample before = *sample;
	int64_t waited = sample->times.waited - subject->times.waited - subject->queued;

	if (waited <= 0 || !subject->stack)
		return NULL;
	before.state = PRB_RUN_QUEUED;
	before.unreadable = before.gil = false;
	before.times = subject->times;
	before.times.waited = sample->times.waited;
	return prb_account_sample(recording, subject, &before, PRB_MIN(subject->seen + waited, at));
}

static size_t size_of(const struct prb_ebpf_record *record)
{
	return offsetof(struct prb_ebpf_record, frames) + record->count * sizeof(record->frames[0]);
}

/*
 * The kernel counts a thread's time anew when the scheduler looks at it, or the program asks for
 * its clock. Many samples may come in between. So all samples that are drained together get equal
 * parts of the time since the ones before.
 */
static struct prb_error *keep(void *context, const struct prb_ebpf_record *record)
{
	struct prb_unstopped *u = context;
	struct prb_subject *subject = find_subject(u, record->pthread);
	size_t size = size_of(record);

	u->any = true;
	if (!subject || record->flags & PRB_EBPF_STRANGE) {
		/* A thread that is new, or has changed its state. Its time goes to its next sample.
		 */
		u->reader->stale |= record->state != 0;
		return NULL;
	}
	/* A look that came after it has counted this already. */
	if ((int64_t)record->ran < subject->times.ran)
		return NULL;
	if (!prb_vec_reserve(&u->kept, size / sizeof(uint64_t)))
		return prb_error_nomem();
	memcpy(u->kept.items + u->kept.count, record, size);
	u->kept.count += size / sizeof(uint64_t);
	subject->drained++;
	subject->drained_ran = (int64_t)record->ran;
	return NULL;
}

/* Its part of the time. */
static int64_t share(struct prb_subject *subject)
{
	/* No sample has this: it is shared, too. */
	subject->times.ran -= subject->unplaced;
	subject->unplaced = 0;
	return (subject->drained_ran - subject->times.ran) / subject->drained--;
}

static struct prb_error *take(struct prb_unstopped *u, const struct prb_ebpf_record *record)
{
	struct prb_recording *recording = u->reader->subjects->recording;
	struct prb_subject *subject = find_subject(u, record->pthread);
	struct prb_stack_sample sample = {
		.state = PRB_RUN_ON_CPU,
		.times = {0, (int64_t)record->waited, (int64_t)record->turns},
		.gil = record->gil,
	};
	int64_t at, ran;

	PRB_TRY(take_stack(u, record, subject->states.count > 1, &sample));
	at = PRB_MAX((int64_t)record->time, subject->seen);
	at = PRB_MIN(at, u->now);
	ran = share(subject);
	sample.times.ran = subject->times.ran + ran;
	PRB_TRY(account_queue(recording, subject, &sample, at));
	prb_quiet_watch(subject, ran, at);
	recording->cost.unstopped++;
	return prb_account_sample(recording, subject, &sample, at);
}

static struct prb_error *take_kept(struct prb_unstopped *u)
{
	for (size_t i = 0; i < u->kept.count;) {
		const struct prb_ebpf_record *record = (const void *)(u->kept.items + i);

		PRB_TRY(take(u, record));
		i += size_of(record) / sizeof(uint64_t);
	}
	return NULL;
}

struct prb_error *prb_unstopped_drain(struct prb_unstopped *u, int64_t now, bool *ret_any)
{
	uint64_t lost;

	u->any = false;
	u->now = now;
	PRB_TRY(prb_quiet_settle(u->quiet));
	prb_view_new_epoch(u->view);
	PRB_TRY(prb_view_prefetch(u->view));
	u->kept.count = 0;
	PRB_TRY(prb_ebpf_drain(u->ebpf, keep, u));
	PRB_TRY(take_kept(u));
	*ret_any = u->any;
	lost = prb_ebpf_lost(u->ebpf);
	u->reader->subjects->recording->cost.missed += lost - u->lost;
	u->lost = lost;
	return u->any ? prb_quiet_sort(u->quiet, now) : NULL;
}
