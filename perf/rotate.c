/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "perf/rotate.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "base/vec.h"
#include "perf/processes.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "profile/store.h"

/* A file of the series. */
struct part {
	char *path;
	dev_t device;
	ino_t inode;
};

struct series {
	const struct prb_performance_settings *settings;
	PRB_VEC(struct part) parts; /* oldest first */
	int64_t until;		    /* 0: no end of its own */
};

/* "run.profile" is "run-20261231-235959.profile" then; of the same second, "-2" follows. */
static char *name_part(const struct series *s)
{
	const char *output = s->settings->output;
	int stem = (int)(strlen(output) - strlen(PRB_STORE_EXTENSION));
	const time_t now = time(NULL);
	char stamp[32] = "";
	struct tm local;

	if (localtime_r(&now, &local))
		strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
	for (unsigned again = 1;; again++) {
		char *path = again > 1 ? prb_format("%.*s-%s-%u%s", stem, output, stamp, again,
						    PRB_STORE_EXTENSION)
				       : prb_format("%.*s-%s%s", stem, output, stamp,
						    PRB_STORE_EXTENSION);
		struct stat st;

		if (!path || lstat(path, &st))
			return path;
		free(path);
	}
}

static struct prb_error *add_part(struct series *s, const char *path)
{
	struct part *part;
	struct stat st;

	if (lstat(path, &st))
		return NULL;
	part = prb_vec_push(&s->parts);
	if (!part)
		return prb_error_nomem();
	*part = (struct part){strdup(path), st.st_dev, st.st_ino};
	return part->path ? NULL : prb_error_nomem();
}

/* Only what was written here is removed: by now another file may have the name. */
static void drop_oldest(struct series *s)
{
	struct part *oldest = s->parts.items;
	struct stat st;

	if (!s->parts.count)
		return;
	if (!lstat(oldest->path, &st) && st.st_dev == oldest->device && st.st_ino == oldest->inode)
		unlink(oldest->path);
	free(oldest->path);
	s->parts.count--;
	memmove(oldest, oldest + 1, s->parts.count * sizeof(*oldest));
}

static struct prb_error *tell(const struct series *s, const char *path,
			      const struct prb_recording *recording)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {.out = &text};

	if (s->settings->json) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "recording", path);
		prb_json_real(&json, "timestamp", recording->started, 6);
		prb_json_integer(&json, "duration_ns", recording->duration);
		prb_json_text(&json, "ended", prb_profile_end_text(recording->end));
		prb_json_close(&json, '}');
		prb_str_putc(&text, '\n');
	} else {
		prb_text_escape(&text, path);
		prb_str_puts(&text, ": ");
		prb_text_duration(&text, (double)recording->duration / 1e9);
		prb_str_printf(&text, " of %d\n", (int)recording->pid);
	}
	PRB_TRY(prb_output(&text));
	return prb_output_flush();
}

/* *ret_more: its time is over, and that of the series is not. */
static struct prb_error *record_part(struct series *s,
				     const struct prb_performance_targets *targets, bool *ret_more)
{
	prb_auto_recording struct prb_recording *recording = NULL;
	struct prb_performance_settings settings = *s->settings;
	prb_auto_free char *path = name_part(s);
	double left = s->until ? (double)(s->until - prb_clock_ns()) / 1e9 : 0;

	if (!path)
		return prb_error_nomem();
	settings.output = path;
	settings.duration = settings.rotate;
	if (s->until && left < settings.rotate)
		settings.duration = left > 0.001 ? left : 0.001;
	PRB_TRY(prb_performance_keep(targets, &settings, NULL, &recording));
	PRB_TRY(add_part(s, path));
	while (settings.keep && s->parts.count > (size_t)settings.keep)
		drop_oldest(s);
	*ret_more = recording->end == PRB_PROFILE_DONE && (!s->until || prb_clock_ns() < s->until);
	return tell(s, path, recording);
}

struct prb_error *prb_performance_rotate(const struct prb_cli *cli,
					 const struct prb_performance_settings *settings)
{
	__attribute__((cleanup(
		prb_performance_targets_deinit))) struct prb_performance_targets targets = {};
	struct series s = {.settings = settings};
	struct prb_error *err;
	bool more = true;

	if (settings->duration > 0)
		s.until = prb_clock_ns() + (int64_t)(settings->duration * 1e9);
	err = prb_performance_open(cli, settings, &targets);
	/* A Ctrl-C between two files ends the series too. */
	prb_interrupt_keep();
	while (!err && more && !prb_interrupted())
		err = record_part(&s, &targets, &more);
	for (size_t i = 0; i < s.parts.count; i++)
		free(s.parts.items[i].path);
	prb_vec_free(&s.parts);
	return err;
}
