/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a .profile: an error, or a recording that all formats can write. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profile/recording/diff.h"
#include "profile/formats/format.h"
#include "profile/recording/join.h"
#include "profile/store/load/load.h"
#include "profile/recording/range.h"
#include "profile/recording/wall_parts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Explains the time of each row. */
static void explain(const struct prb_recording *recording, const struct prb_profile_choice *choice)
{
	struct prb_wall_parts parts;
	struct prb_error *err = prb_wall_parts_make(recording, choice, &parts);

	for (size_t i = 0; !err && i < parts.list.count; i++) {
		const struct prb_wall_part *part = &parts.list.items[i];
		struct prb_report_row row = {.function = part->function, .line = part->line};
		prb_auto_str struct prb_str text = {};
		size_t count;

		if (!prb_wall_parts_of(&parts, &row, &count) || !count)
			abort();
		prb_wall_part_text(recording, part, &text);
	}
	if (!err)
		prb_wall_parts_deinit(&parts);
	prb_error_destroy(err);
}

static void write_all(const struct prb_recording *recording)
{
	for (unsigned i = 0; prb_profile_formats[i]; i++) {
		const struct prb_profile_choice choice = {
			.weight = i % 2 ? PRB_WEIGHT_WALL : PRB_WEIGHT_CPU,
			.lines = i % 3,
		};
		struct prb_sink sink = {.fd = memfd_create("out", MFD_CLOEXEC), .path = "out"};
		struct prb_report report;
		struct prb_error *err = prb_report_make(recording, &choice, &report);

		if (!err)
			prb_report_deinit(&report);
		prb_error_destroy(err);
		explain(recording, &choice);
		prb_error_destroy(prb_profile_formats[i]->write(recording, &choice, &sink));
		prb_str_deinit(&sink.text);
		close(sink.fd);
	}
}

/* Compares it with itself, and clips it. */
static void compare(struct prb_recording *recording)
{
	const struct prb_profile_choice choice = {.weight = PRB_WEIGHT_WALL, .lines = true};
	struct prb_recording *joined;
	struct prb_error *err = prb_recording_join(recording, recording, &joined);
	struct prb_diff diff;

	if (!err) {
		err = prb_diff_make(joined, &choice, &diff);
		if (!err)
			prb_diff_deinit(&diff);
		prb_recording_destroy(joined);
	}
	prb_error_destroy(err);
	prb_recording_clip(recording, recording->duration / 3, recording->duration / 2);
	write_all(recording);
}

static void load_in_steps(const char *path)
{
	struct prb_recording *recording;
	struct prb_error *err = prb_profile_load_steps(path, &recording);

	if (!err)
		prb_recording_destroy(recording);
	prb_error_destroy(err);
}

static bool put_file(const char *path, const uint8_t *data, size_t size)
{
	prb_auto_close int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	return fd >= 0 && write(fd, data, size) == (ssize_t)size;
}

/* The last byte is the size of the journal at the end, in pages of 256 bytes. */
static bool put_files(const char *path, const char *journal, const uint8_t *data, size_t size)
{
	size_t length = size ? data[size - 1] * 256u : 0;

	if (!length || length > size) {
		unlink(journal);
		return put_file(path, data, size);
	}
	return put_file(path, data, size - length) &&
	       put_file(journal, data + size - length, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_recording *recording;
	char path[60], journal[80];

	snprintf(path, sizeof(path), "/dev/shm/probing-fuzz-%d.profile", (int)getpid());
	snprintf(journal, sizeof(journal), "%s-journal", path);
	for (int in_order = 0; in_order < 2 && put_files(path, journal, data, size); in_order++) {
		struct prb_error *err = prb_profile_load(path, in_order, &recording);

		if (!err) {
			write_all(recording);
			if (in_order)
				compare(recording);
			prb_recording_destroy(recording);
		}
		prb_error_destroy(err);
		load_in_steps(path);
	}
	unlink(path);
	unlink(journal);
	return 0;
}
