/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing memory --sites`: takes the samples. */
#include "cli/commands/memory/sites/sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/naming.h"
#include "command/output.h"
#include "command/term.h"
#include "command/waiting.h"
#include "control/load.h"
#include "profile/sampler/codes.h"
#include "target/proc/process.h"
#include "target/spec/command_line.h"

enum { SAMPLES_MAX = 4 << 20, PLACES_MAX = 1 << 20 };

/* A code object and a position in it, and the frame that they are in the tree. */
struct place {
	uint64_t code, position;
	uint32_t frame;
};

struct taker {
	struct prb_memory_sites *sites;
	struct prb_python *py;
	struct prb_codes *codes;
	struct prb_site_natives *natives; /* NULL: Python frames alone */
	uint32_t frames[PRB_SITES_FRAMES_MOST];
	PRB_VEC(struct place) places;
	struct prb_number_map place_numbers; /* by a hash of both */
	struct prb_number_map blocks;	     /* by address: the last sample there */
	uint32_t cut, none, unknown;	     /* stacks of a note */
};

/* Code objects live until the end of the sampling, so each is read once. */
static struct prb_error *learn(struct taker *t, uint64_t code, uint64_t position, uint32_t *ret)
{
	struct prb_py_frame frame = {.code = code, .position = position};
	struct prb_py_frames frames = {};
	const uint32_t *made;

	frames.list.items = &frame;
	frames.list.count = 1;
	prb_codes_begin(t->codes);
	PRB_TRY(prb_codes_note(t->codes, t->py, t->py->target->mem, &frames));
	PRB_TRY(prb_codes_keep_frames(t->codes, &made));
	*ret = made[0];
	return NULL;
}

static struct prb_error *frame_of(struct taker *t, uint64_t code, uint64_t position, uint32_t *ret)
{
	uint64_t key = (code ^ position * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
	struct place *place;
	size_t number;

	for (; prb_number_map_get(&t->place_numbers, key, &number); key++) {
		place = &t->places.items[number];
		if (place->code == code && place->position == position) {
			*ret = place->frame;
			return NULL;
		}
	}
	if (t->places.count >= PLACES_MAX) {
		*ret = t->sites->recording->tree->stacks.items[t->unknown].frame;
		return NULL;
	}
	PRB_TRY(learn(t, code, position, ret));
	place = prb_vec_push(&t->places);
	if (!place || !prb_number_map_put(&t->place_numbers, key, t->places.count - 1))
		return prb_error_nomem();
	*place = (struct place){code, position, *ret};
	return NULL;
}

/* With its C frames. */
static struct prb_error *native_stack_of(struct taker *t, const struct prb_sites_sample *sample,
					 uint32_t *ret)
{
	size_t count = 0;

	for (unsigned i = 0; i < sample->count; i++) {
		const uint64_t *words = &sample->frames[2 * i];

		if (!prb_site_is_shim(words))
			PRB_TRY(frame_of(t, words[0] & ~UINT64_C(1), words[1],
					 &t->frames[count++]));
	}
	return prb_site_natives_stack(t->natives, sample, t->frames, sample->more ? t->cut : 0,
				      ret);
}

static struct prb_error *stack_of(struct taker *t, const struct prb_sites_sample *sample,
				  uint32_t *ret)
{
	struct prb_tree *tree = t->sites->recording->tree;
	uint32_t frame;

	if (t->natives && sample->registers)
		return native_stack_of(t, sample, ret);
	*ret = sample->more ? t->cut : sample->count ? 0 : t->none;
	for (unsigned i = sample->count; i-- > 0;) {
		PRB_TRY(frame_of(t, sample->frames[2 * i], sample->frames[2 * i + 1], &frame));
		PRB_TRY(prb_tree_call(tree, *ret, frame, ret));
	}
	return NULL;
}

/* Marks the block known at an address as freed, even if the free itself was not seen. */
static void end_block(struct taker *t, uint64_t address)
{
	size_t number;

	if (prb_number_map_get(&t->blocks, address, &number))
		t->sites->samples.items[number].alive = false;
}

static struct prb_error *take(void *context, const struct prb_sites_sample *sample)
{
	struct taker *t = context;
	struct prb_memory_sample *added;
	uint32_t stack;

	end_block(t, sample->address);
	if (sample->freed)
		return NULL;
	t->sites->full |= t->sites->samples.count >= SAMPLES_MAX;
	if (t->sites->full)
		return NULL;
	PRB_TRY(stack_of(t, sample, &stack));
	added = prb_vec_push(&t->sites->samples);
	if (!added || !prb_number_map_put(&t->blocks, sample->address, t->sites->samples.count - 1))
		return prb_error_nomem();
	*added = (struct prb_memory_sample){.stack = stack,
					    .tid = sample->tid,
					    .time = sample->time,
					    .bytes = sample->bytes,
					    .alive = true};
	return NULL;
}

static bool user_has_enough(void *context __attribute__((unused)))
{
	return prb_interrupted();
}

static struct prb_error *sample(struct taker *t, struct prb_agent *agent, double seconds,
				uint64_t interp)
{
	const struct prb_sites_options options = {.seconds = seconds,
						  .mean = t->sites->mean,
						  .interp = interp,
						  .native = t->natives,
						  .take = take,
						  .ends = user_has_enough,
						  .context = t};
	struct prb_tree *tree = t->sites->recording->tree;

	PRB_TRY(prb_codes_create(tree, &t->codes));
	PRB_TRY(prb_tree_note(tree, "<callers beyond 128 frames>", &t->cut));
	PRB_TRY(prb_tree_note(tree, "<not in Python>", &t->none));
	PRB_TRY(prb_tree_note(tree, "<unknown code>", &t->unknown));
	PRB_TRY(prb_sites_run(agent, t->py, &options, &t->sites->facts));
	if (!t->natives)
		return NULL;
	PRB_TRY(prb_site_natives_name(t->natives, t->sites, prb_naming_gives_up));
	prb_naming_tell(t->sites->recording);
	return NULL;
}

static void taker_deinit(struct taker *t)
{
	prb_codes_destroy(t->codes);
	prb_site_natives_destroy(t->natives);
	prb_vec_free(&t->places);
	prb_number_map_deinit(&t->place_numbers);
	prb_number_map_deinit(&t->blocks);
}

static struct prb_error *describe(const struct prb_memory *m, const struct prb_python *py,
				  struct prb_recording *recording)
{
	struct prb_process process = {};
	prb_auto_str struct prb_str text = {};
	struct prb_error *err;

	recording->pid = m->target->pid;
	recording->started = prb_clock_calendar_seconds();
	PRB_TRY(prb_str_copy(py->version, &recording->python));
	err = prb_process_describe(m->target->pid, &process);
	if (!err)
		prb_command_line_text(&text, &process);
	prb_process_deinit(&process);
	prb_error_destroy(err);
	return text.length ? prb_str_copy(prb_str_text(&text), &recording->command) : NULL;
}

/* Rows that cannot be kept are no reason to show nothing. */
static struct prb_error *keep_rows(struct prb_agent *agent, const struct prb_memory_sites *sites)
{
	prb_auto_str struct prb_str lines = {};
	prb_auto_error struct prb_error *err = NULL;

	PRB_TRY(prb_memory_sites_rows(sites, &lines));
	if (!lines.length)
		return NULL;
	err = prb_sites_keep_rows(agent, &lines);
	if (err)
		prb_warn(err->message);
	return NULL;
}

static struct prb_error *take_through(struct prb_agent *agent, struct prb_memory *m,
				      const struct prb_memory_interpreter *of,
				      const struct prb_memory_settings *s,
				      struct prb_memory_sites *ret)
{
	struct taker t = {.sites = ret, .py = of->py};
	struct prb_error *err = NULL;

	if (prb_term_is(stderr) && !s->json)
		fprintf(stderr,
			"sampling allocations of %d; Ctrl-C ends it and shows what there "
			"is\n",
			(int)m->target->pid);
	ret->native = s->cc;
	if (s->cc)
		err = prb_site_natives_create(m, of->py, ret->recording, &t.natives);
	prb_waiting_begin("sampling allocations", s->sites);
	prb_interrupt_catch_ends();
	if (!err)
		err = sample(&t, agent, s->sites, of->state.address);
	prb_interrupt_release();
	prb_waiting_end();
	taker_deinit(&t);
	return err || ret->facts.gone ? err : keep_rows(agent, ret);
}

struct prb_error *prb_memory_sites_take(struct prb_memory *m, const struct prb_memory_settings *s,
					struct prb_memory_sites *ret)
{
	const struct prb_memory_interpreter *first = NULL, *i;
	struct prb_agent *agent;
	struct prb_error *err;

	prb_vec_each (i, &m->interpreters)
		if (!first && i->state.main)
			first = i;
	if (!first)
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "%s",
					m->no_python ? m->no_python->message
						     : "there is no main interpreter");
	PRB_TRY(prb_sites_refusal(first->py));
	PRB_TRY(prb_recording_create(&ret->recording));
	PRB_TRY(describe(m, first->py, ret->recording));
	PRB_TRY(prb_agent_reach(m->target, true, &agent));
	err = take_through(agent, m, first, s, ret);
	prb_agent_close(agent);
	return err;
}

void prb_memory_sites_deinit(struct prb_memory_sites *sites)
{
	prb_recording_destroy(sites->recording);
	prb_vec_free(&sites->samples);
}
