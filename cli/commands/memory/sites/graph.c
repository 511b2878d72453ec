/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sampled allocations as a flame graph: the formats of recordings, with bytes for nanoseconds. */
#include <math.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/new_file.h"
#include "cli/commands/memory/sites/sites.h"
#include "profile/formats/format.h"

struct prb_error *prb_memory_sites_check_output(const char *path)
{
	const struct prb_profile_format *format;

	PRB_TRY(prb_profile_format_find(path, &format));
	if (format->bytes)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "%s is of times, and cannot have bytes",
					       format->name),
			      "flame graphs of allocations are .html, .svg or .collapsed files");
}

static struct prb_error *thread_of(struct prb_recording *r, uint32_t tid,
				   struct prb_number_map *numbers, uint32_t *ret)
{
	struct prb_profile_thread *thread;
	size_t number = r->threads.count;

	*ret = (uint32_t)number;
	if (prb_number_map_get(numbers, tid, &number)) {
		*ret = (uint32_t)number;
		return NULL;
	}
	thread = prb_vec_push(&r->threads);
	if (!thread || !prb_number_map_put(numbers, tid, number))
		return prb_error_nomem();
	*thread = (struct prb_profile_thread){.tid = (pid_t)tid};
	return NULL;
}

static struct prb_error *add_runs(struct prb_memory_sites *sites, struct prb_number_map *numbers)
{
	struct prb_recording *r = sites->recording;
	const struct prb_memory_sample *sample;

	prb_vec_each (sample, &sites->samples) {
		double bytes = prb_memory_sample_bytes(sites, sample);
		struct prb_run *run;
		uint32_t thread;

		PRB_TRY(thread_of(r, sample->tid, numbers, &thread));
		run = prb_vec_push(&r->runs);
		if (!run)
			return prb_error_nomem();
		*run = (struct prb_run){.thread = thread,
					.stack = sample->stack,
					.samples = 1,
					.reads = 1,
					.begin = sample->time - sites->facts.began,
					.cpu = llround(bytes),
					.queue = sample->alive ? llround(bytes) : 0,
					.cpu_squares = bytes * bytes};
		r->threads.items[thread].cpu += run->cpu;
	}
	r->bytes = true;
	r->rate = (double)sites->mean;
	r->duration = sites->facts.ended - sites->facts.began;
	return NULL;
}

static struct prb_error *write_to(const struct prb_recording *recording, const char *path)
{
	const struct prb_profile_choice choice = {.weight = PRB_WEIGHT_CPU, .lines = true};
	const struct prb_profile_format *format;
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	struct prb_sink sink = {.path = path};
	struct prb_error *err;

	PRB_TRY(prb_profile_format_find(path, &format));
	PRB_TRY(prb_new_file_open(&file, path));
	sink.fd = file.fd;
	err = format->write(recording, &choice, &sink);
	prb_str_deinit(&sink.text);
	PRB_TRY(err);
	return prb_new_file_finish(&file);
}

struct prb_error *prb_memory_sites_write(struct prb_memory_sites *sites, const char *path)
{
	struct prb_number_map numbers = {};
	struct prb_error *err = add_runs(sites, &numbers);

	prb_number_map_deinit(&numbers);
	return err ? err : write_to(sites->recording, path);
}
