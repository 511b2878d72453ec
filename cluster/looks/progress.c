/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/progress.h"

#include <string.h>

#include "base/cleanup.h"
#include "cluster/looks/look.h"
#include "cluster/looks/thread_text.h"
#include "cluster/looks/training_thread.h"
#include "dump/dump.h"

uint64_t prb_progress_mix(uint64_t hash, uint64_t value)
{
	const uint64_t prime = UINT64_C(0x9e3779b97f4a7c15);

	return (hash ^ value) * prime + (hash >> 29);
}

static uint64_t mix_text(uint64_t hash, const char *text)
{
	for (; text && *text; text++)
		hash = prb_progress_mix(hash, (unsigned char)*text);
	return hash;
}

static uint64_t mix_frame(uint64_t hash, const struct prb_dump_frame *frame)
{
	const struct prb_dump_local *local;

	prb_vec_each (local, &frame->locals)
		if (local->number == PRB_NUMBER_INTEGER)
			hash = prb_progress_mix(mix_text(hash, local->name),
						(uint64_t)local->integer);
	return hash;
}

uint64_t prb_progress_hash(const struct prb_seen *seen)
{
	const struct prb_dump_frame *frame;
	uint64_t hash = 1;
	bool outside = !seen->called;

	prb_vec_each (frame, &seen->main->frames) {
		if (outside && frame->kind == PRB_FRAME_PYTHON &&
		    strcmp(prb_frame_name(frame), "<module>") != 0)
			hash = mix_frame(hash, frame);
		outside |= frame == seen->called;
	}
	return hash ? hash : 1;
}

struct prb_error *prb_progress_read(struct prb_watch *watch, struct prb_seen *seen)
{
	/* Numbers are read in any case; texts are not needed. */
	static const struct prb_repr_options none = {
		.max_depth = 1, .max_items = 1, .max_text = 8, .max_total = 60};
	struct prb_dump_options options = {
		.locals = true, .no_waits = true, .no_command = true, .values = &none};
	__attribute__((cleanup(prb_seen_deinit))) struct prb_seen again = {.trains = seen->trains};

	prb_training_thread_only(seen, &options);
	prb_auto_error struct prb_error *err =
		prb_dump_create_with(watch->target, &options, &watch->found, &again.dump);
	if (err)
		return err->code == PRB_ERROR_NOMEM ? prb_steal(&err) : NULL;
	if (!again.dump->threads.count)
		return NULL;
	prb_seen_find(&again);
	seen->progress = prb_progress_hash(&again);
	return NULL;
}
