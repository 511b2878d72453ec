/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/sites.h"

#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/config_keys.h"
#include "agent/sites_format.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"
#include "control/eval.h"

/** How often the buffer is read, and how long its rows may take to be kept. */
static const double LOOK_SECONDS = 0.05, KEEP_SECONDS = 10;

enum { TEXT_MAX = 256, PY_3_6 = 0x0306 };

_Static_assert((int)PRB_SITES_FRAMES == (int)PRB_SITES_FRAMES_MOST, "frames of one stack");

struct reader {
	const struct prb_sites_options *options;
	struct prb_sites_facts *facts;
	struct prb_mem *mem;
	uint64_t buffer, at;  /* the next word, counted from the beginning */
	uint64_t *words;      /* a copy of what is new */
	struct prb_str said;  /* by the agent */
	size_t size, largest; /* of the buffer and of a record, in words */
	bool ended, read_all, cancelled;
	double since; /* when it began */
	struct prb_error *failure;
};

bool prb_sites_parse_size(const char *text, uint64_t *ret)
{
	const struct prb_config_key key = {.type = PRB_CONFIG_SIZE, .least = 1, .most = 1 << 30};
	double value;

	if (!prb_config_parse(&key, text, &value))
		return false;
	*ret = (uint64_t)value;
	return true;
}

struct prb_error *prb_sites_refusal(const struct prb_python *py)
{
	const struct prb_layout *l = &py->layout;

	if (l->version < PY_3_6 || l->thread_id < 0 || l->thread_interp < 0)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"allocations are sampled in Python 3.6 and later");
	return NULL;
}

static void make_recipe(const struct prb_python *py, const struct prb_sites_options *options,
			uint64_t ret[PRB_SITES_RECIPE])
{
	const struct prb_layout *l = &py->layout;
	const struct prb_behaviour *b = l->behaviour;
	const bool objects = b->chain == PRB_CHAIN_PYFRAME, shims = b->owner_interpreter >= 0;

	memset(ret, 0, PRB_SITES_RECIPE * sizeof(*ret));
	ret[PRB_SITES_MEAN] = options->mean;
	ret[PRB_SITES_CHAIN] = objects ? 0 : b->chain == PRB_CHAIN_CFRAME ? 1 : 2;
	ret[PRB_SITES_FIRST_FRAME] =
		(uint64_t)(objects			  ? l->thread_frame
			   : b->chain == PRB_CHAIN_CFRAME ? l->thread_cframe
							  : l->thread_current_frame);
	if (b->chain == PRB_CHAIN_CFRAME)
		ret[PRB_SITES_CFRAME_FRAME] = (uint64_t)l->cframe_current_frame;
	ret[PRB_SITES_THREAD_SIZE] = (uint64_t)l->thread_size;
	ret[PRB_SITES_THREAD_ID] = (uint64_t)l->thread_id;
	ret[PRB_SITES_THREAD_INTERP] = (uint64_t)l->thread_interp;
	ret[PRB_SITES_INTERP] = options->interp;
	ret[PRB_SITES_CODE] = (uint64_t)(objects ? l->pyframe_code : l->frame_code);
	ret[PRB_SITES_PREVIOUS] = (uint64_t)(objects ? l->pyframe_back : l->frame_previous);
	ret[PRB_SITES_POSITION] = (uint64_t)(objects ? l->pyframe_position : l->frame_position);
	ret[PRB_SITES_POSITION_SIZE] = objects ? sizeof(int32_t) : sizeof(uint64_t);
	ret[PRB_SITES_HAS_OWNER] = !objects && shims;
	ret[PRB_SITES_OWNER] = ret[PRB_SITES_HAS_OWNER] ? (uint64_t)l->frame_owner : 0;
	ret[PRB_SITES_SHIM] = shims ? (uint64_t)b->owner_interpreter : UINT64_MAX;
	ret[PRB_SITES_TAGS] = b->tagged_refs ? 3 : 0;
	ret[PRB_SITES_NATIVE] = options->native;
	if (!objects && !shims)
		ret[PRB_SITES_ENTRY] = (uint64_t)l->frame_is_entry;
	if (l->free_threaded && l->frame_tlbc_index > 0 && l->code_tlbc > 0) {
		ret[PRB_SITES_COPY] = (uint64_t)l->frame_tlbc_index;
		ret[PRB_SITES_COPIES] = (uint64_t)l->code_tlbc;
		ret[PRB_SITES_BYTES] = (uint64_t)l->code_bytes;
	}
}

/** How much of the recipe is sent: older agents do without the rest, or refuse all of it. */
static size_t recipe_length(const struct prb_python *py, bool native)
{
	return py->layout.free_threaded ? PRB_SITES_RECIPE
	       : native			? PRB_SITES_NATIVE_RECIPE
					: PRB_SITES_OLD_RECIPE;
}

/** Differences of times do not overflow. */
static int64_t time_of(uint64_t word)
{
	return (int64_t)(word & UINT64_MAX >> 2);
}

/** Parses the data after the frames, at @p at of @p count words; returns its length. */
static size_t parse_stack(const uint64_t *at, size_t count, struct prb_sites_sample *ret)
{
	if (count < PRB_SITES_REGISTERS)
		return count;
	ret->registers = at;
	ret->stack = at + PRB_SITES_REGISTERS;
	ret->stack_length = (count - PRB_SITES_REGISTERS) * sizeof(*at);
	return count;
}

/** A record at @p at of @p count words; its length, 0 if it is none. */
static size_t parse(const uint64_t *at, size_t count, struct prb_sites_sample *ret)
{
	uint64_t kind = count ? at[0] & 0xff : 0;
	size_t frames = count ? at[0] >> 8 & 0xffff : 0, length;

	*ret = (struct prb_sites_sample){.freed = kind == PRB_SITES_FREED};
	if (kind == PRB_SITES_FREED && count >= PRB_SITES_FREED_WORDS) {
		ret->time = time_of(at[1]);
		ret->address = at[2];
		return PRB_SITES_FREED_WORDS;
	}
	if (kind != PRB_SITES_ALLOCATED || frames > PRB_SITES_FRAMES ||
	    count < PRB_SITES_ALLOCATED_WORDS + 2 * frames)
		return 0;
	ret->more = at[0] >> 24 & 1;
	ret->tid = (uint32_t)(at[0] >> 32);
	ret->time = time_of(at[1]);
	ret->address = at[2];
	ret->bytes = PRB_MIN(at[3], PRB_SITES_LARGEST);
	ret->frames = at + PRB_SITES_ALLOCATED_WORDS;
	ret->count = (unsigned)frames;
	length = PRB_SITES_ALLOCATED_WORDS + 2 * frames;
	if (at[4] > PRB_SITES_NATIVE_RECORD - PRB_SITES_RECORD || at[4] > count - length)
		return 0;
	return length + parse_stack(at + length, (size_t)at[4], ret);
}

void prb_sites_registers(const struct prb_sites_sample *sample, uint16_t machine,
			 struct prb_regs *ret)
{
	/* By DWARF number, in the order of the record. */
	static const uint8_t x86_64[] = {3, 6, 12, 13, 14, 15};
	static const uint8_t aarch64[] = {19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};
	const uint8_t *numbers = machine == EM_X86_64 ? x86_64 : aarch64;
	size_t count = machine == EM_X86_64 ? sizeof(x86_64) : sizeof(aarch64);

	*ret = (struct prb_regs){.machine = machine, .pc = sample->registers[0]};
	prb_regs_set(ret, prb_regs_sp(machine), sample->registers[1]);
	for (size_t i = 0; i < count; i++)
		prb_regs_set(ret, numbers[i], sample->registers[2 + i]);
}

static struct prb_error *read_header(struct reader *r, struct prb_sites_header *ret)
{
	PRB_TRY(prb_mem_read(r->mem, r->buffer, ret, sizeof(*ret)));
	if (ret->version != PRB_SITES_VERSION || ret->words != r->size || ret->head < r->at)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"the buffer of allocations at %#" PRIx64 " is damaged",
					r->buffer);
	return NULL;
}

/** Copies @p count words from where we are. */
static struct prb_error *copy(struct reader *r, size_t count)
{
	size_t first = r->at % r->size;
	size_t part = PRB_MIN(count, r->size - first);
	uint64_t words = r->buffer + PRB_SITES_HEADER;

	PRB_TRY(prb_mem_read(r->mem, words + first * sizeof(*r->words), r->words,
			     part * sizeof(*r->words)));
	return part == count ? NULL
			     : prb_mem_read(r->mem, words, r->words + part,
					    (count - part) * sizeof(*r->words));
}

static struct prb_error *take_all(struct reader *r, size_t count)
{
	for (size_t i = 0; i < count;) {
		struct prb_sites_sample sample;
		size_t length = parse(r->words + i, count - i, &sample);

		if (!length) {
			r->facts->lost += (count - i) * sizeof(*r->words);
			return NULL;
		}
		PRB_TRY(r->options->take(r->options->context, &sample));
		i += length;
	}
	return NULL;
}

/**
 * Takes what is new. Records that the writer may have overwritten during the copy are lost, and the
 * start of the next record is unknown then: all are dropped.
 */
static struct prb_error *look(struct reader *r)
{
	struct prb_sites_header header;
	uint64_t count;

	PRB_TRY(read_header(r, &header));
	count = header.head - r->at;
	if (count <= r->size) {
		PRB_TRY(copy(r, (size_t)count));
		PRB_TRY(read_header(r, &header));
	}
	if (header.head - r->at + r->largest > r->size) {
		r->facts->lost += (header.head - r->at) * sizeof(*r->words);
		r->at = header.head;
	} else {
		r->at += count;
		PRB_TRY(take_all(r, (size_t)count));
	}
	r->facts->began = time_of((uint64_t)header.began);
	r->facts->ended = time_of((uint64_t)header.ended);
	r->facts->bytes = header.bytes;
	r->facts->other_bytes = header.other_bytes;
	r->facts->untracked = header.untracked;
	r->facts->codes_dropped = header.codes_dropped;
	return NULL;
}

/** Takes the lines that the agent has sent: "buffer NUMBER", "ended", "stays". */
static void listen(struct reader *r)
{
	const char *text = prb_str_text(&r->said);

	if (!r->buffer && !strncmp(text, "buffer ", 7) && strchr(text, '\n')) {
		r->buffer = strtoull(text + 7, NULL, 10);
		prb_log("sites", 1, "allocations are sampled into %#" PRIx64, r->buffer);
	}
	r->facts->stays = strstr(text, "\nstays\n") != NULL;
	r->ended = r->facts->stays || strstr(text, "\nended\n");
}

/** Called again and again while the agent samples: one interruption ends that, one lets it go. */
static int poll_buffer(void *context)
{
	struct reader *r = context;

	if (r->failure)
		return -1;
	listen(r);
	r->cancelled |= r->options->ends(r->options->context);
	if (r->buffer && !r->read_all)
		r->failure = look(r);
	r->read_all |= r->ended && !r->failure;
	return r->failure ? -1 : r->cancelled + r->read_all;
}

static struct prb_error *hear(void *context, enum prb_wire_type what, const void *data,
			      size_t length)
{
	struct reader *r = context;

	if (what != PRB_WIRE_STDOUT && what != PRB_WIRE_TRACEBACK)
		return NULL;
	if (r->said.length + length <= TEXT_MAX * 16)
		prb_str_append(&r->said, data, length);
	return r->said.failed ? prb_error_nomem() : NULL;
}

/** The last line of the traceback is the reason. */
static struct prb_error *reason(struct prb_str *said)
{
	const char *text, *colon;

	while (said->length && said->data[said->length - 1] == '\n')
		prb_str_truncate(said, said->length - 1);
	text = strrchr(prb_str_text(said), '\n');
	text = text ? text + 1 : prb_str_text(said);
	colon = strstr(text, ": ");
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "allocations cannot be sampled there: %.*s",
				TEXT_MAX, colon ? colon + 2 : text);
}

static struct prb_error *run(struct prb_agent *agent, struct reader *r, const struct prb_str *code)
{
	struct prb_eval how = {.flags = PRB_WIRE_SITES,
			       .lasts = r->options->seconds,
			       .put = hear,
			       .interruptions = poll_buffer,
			       .look = LOOK_SECONDS,
			       .context = r};
	struct prb_target *t = prb_agent_target(agent);
	struct prb_eval_result result = {};
	struct prb_error *err = prb_eval_run(agent, &how, "<probing>", code, &result);

	if (r->failure) {
		prb_error_destroy(err);
		err = prb_steal(&r->failure);
	}
	/* The records read until then are shown. */
	if (r->facts->began && prb_error_catch(&err, PRB_ERROR_NO_PROCESS)) {
		r->facts->gone = true;
		r->facts->ended =
			r->facts->began + (int64_t)((prb_clock_seconds() - r->since) * 1e9);
	} else if (err) {
		/* It says it all. */
	} else if (result.outcome == PRB_WIRE_RAISED) {
		err = reason(&r->said);
	} else if (result.outcome != PRB_WIRE_INTERRUPTED || !r->buffer) {
		err = prb_eval_judge(t, t ? t->pid : 0, &how, &result);
	}
	prb_eval_result_deinit(&result);
	return err;
}

static struct prb_error *check_agent(struct prb_agent *agent, bool native)
{
	PRB_TRY(prb_agent_requires(agent, PRB_WIRE_CAN_SITES, "sample allocations"));
	return native ? prb_agent_requires(agent, PRB_WIRE_CAN_SITES_NATIVE,
					   "sample allocations with their C frames")
		      : NULL;
}

struct prb_error *prb_sites_run(struct prb_agent *agent, struct prb_python *py,
				const struct prb_sites_options *options,
				struct prb_sites_facts *ret)
{
	struct reader r = {.options = options,
			   .facts = ret,
			   .mem = py->target->mem,
			   .size = options->native ? PRB_SITES_NATIVE_WORDS : PRB_SITES_WORDS,
			   .largest = options->native ? PRB_SITES_NATIVE_RECORD : PRB_SITES_RECORD,
			   .since = prb_clock_seconds()};
	uint64_t recipe[PRB_SITES_RECIPE];
	prb_auto_str struct prb_str code = {};
	struct prb_error *err;

	*ret = (struct prb_sites_facts){};
	PRB_TRY(check_agent(agent, options->native));
	make_recipe(py, options, recipe);
	prb_str_printf(&code, "sample\n%.3f", options->seconds);
	for (size_t i = 0; i < recipe_length(py, options->native); i++)
		prb_str_printf(&code, " %" PRIu64, recipe[i]);
	r.words = malloc(r.size * sizeof(*r.words));
	err = code.failed || !r.words ? prb_error_nomem() : run(agent, &r, &code);
	free(r.words);
	prb_str_deinit(&r.said);
	return err;
}

struct prb_error *prb_sites_keep_rows(struct prb_agent *agent, const struct prb_str *lines)
{
	struct prb_eval how = {.flags = PRB_WIRE_SITES, .timeout = KEEP_SECONDS};
	struct prb_target *t = prb_agent_target(agent);
	struct prb_eval_result result = {};
	prb_auto_str struct prb_str code = {};
	struct prb_error *err;

	prb_str_puts(&code, "rows\n");
	prb_str_append(&code, lines->data, lines->length);
	err = code.failed ? prb_error_nomem()
			  : prb_eval_run(agent, &how, "<probing>", &code, &result);
	if (!err && result.outcome == PRB_WIRE_RAISED)
		err = reason(&result.traceback);
	if (!err)
		err = prb_eval_judge(t, t ? t->pid : 0, &how, &result);
	prb_eval_result_deinit(&result);
	return err;
}
