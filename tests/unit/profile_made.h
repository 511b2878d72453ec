/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Recordings made by hand, for tests. */
#ifndef PRB_TESTS_PROFILE_MADE_H
#define PRB_TESTS_PROFILE_MADE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/formats/format.h"
#include "profile/recording/recording.h"

/** A stack of functions "a/b/c", outermost first, each in /src/NAME.py from line 1 on. */
static inline uint32_t made_stack(struct prb_recording *r, const char *path, int32_t line)
{
	char *words = strdup(path), *rest = words;
	uint32_t stack = 0;

	for (const char *name; (name = strsep(&rest, "/"));) {
		char file[300];
		uint32_t function, frame;

		snprintf(file, sizeof(file), "/src/%s.py", name);
		assert_null(prb_tree_function(
			r->tree,
			&(struct prb_tree_function){.name = name, .file = file, .first_line = 1},
			&function));
		assert_null(prb_tree_frame(r->tree, function, line, &frame));
		assert_null(prb_tree_call(r->tree, stack, frame, &stack));
	}
	free(words);
	return stack;
}

static inline uint32_t made_thread(struct prb_recording *r, pid_t tid, const char *name)
{
	struct prb_profile_thread *thread = prb_vec_push(&r->threads);

	assert_non_null(thread);
	thread->tid = tid;
	thread->os_name = strdup(name);
	return (uint32_t)r->threads.count - 1;
}

/** Appends a sample of @p ms on a processor, beginning at the end of the last one. */
static inline void made_run(struct prb_recording *r, uint32_t thread, uint32_t stack, int64_t ms)
{
	int64_t ns = ms * 1000000;
	const struct prb_run *last =
		r->runs.count ? &r->runs.items[r->runs.count - 1] : &(struct prb_run){};
	int64_t begin = last->begin + last->wall;
	struct prb_run *run = prb_vec_push(&r->runs);

	assert_non_null(run);
	*run = (struct prb_run){
		.thread = thread,
		.stack = stack,
		.samples = 1,
		.reads = 1,
		.begin = begin,
		.wall = 2 * ns,
		.cpu = ns,
		.cpu_squares = (double)ns * (double)ns,
	};
	r->threads.items[thread].cpu += ns;
	r->duration = begin + run->wall;
}

/** The output of a format; the caller frees. */
static inline char *made_text(const struct prb_recording *r,
			      const struct prb_profile_choice *choice,
			      const struct prb_profile_format *format, size_t *length)
{
	struct prb_sink sink = {.fd = memfd_create("profile", 0), .path = "profile"};
	char *text;

	assert_true(sink.fd >= 0);
	assert_null(format->write(r, choice, &sink));
	prb_str_deinit(&sink.text);
	*length = (size_t)lseek(sink.fd, 0, SEEK_END);
	text = calloc(1, *length + 1);
	assert_int_equal(pread(sink.fd, text, *length, 0), *length);
	close(sink.fd);
	return text;
}

#endif
