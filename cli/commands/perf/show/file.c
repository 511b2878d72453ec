/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a recording is written to, and in which format. */
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/local_time.h"
#include "base/new_file.h"
#include "base/str.h"
#include "cli/commands/perf/show/performance.h"
#include "profile/store/write/store.h"

enum { CHUNK_RUNS = 16384 }; /* of a finished recording that is written */

bool prb_performance_writes_recording(const struct prb_performance_settings *s)
{
	return s->out.path && !s->out.format && prb_store_is_path(s->out.path);
}

bool prb_performance_needs_order(const struct prb_performance_settings *s,
				 const struct prb_profile_format *format)
{
	return s->show.diff || s->show.slowest || s->show.last > 0 || s->show.from > 0 ||
	       s->show.to > 0 || (format && !format->any_order);
}

bool prb_performance_wants_source(const struct prb_performance_settings *s,
				  const struct prb_profile_format *format)
{
	return !s->record.no_source && (s->show.annotate || prb_performance_writes_recording(s) ||
					format == &prb_format_html);
}

/** A default file name: "probing-4242-20261231-235959.html". */
static char *file_name(const struct prb_recording *recording,
		       const struct prb_profile_format *format)
{
	return prb_format("probing-%d-%s%s", (int)recording->pid,
			  prb_local_time((time_t)recording->started, PRB_LOCAL_STAMP).text,
			  format->extensions[0]);
}

static struct prb_error *write_to(const struct prb_recording *recording,
				  const struct prb_profile_choice *choice,
				  const struct prb_profile_format *format,
				  struct prb_new_file *file, const char *path)
{
	struct prb_sink sink = {.path = path};
	struct prb_error *err;

	PRB_TRY(prb_new_file_open(file, path));
	sink.fd = file->fd;
	err = format->write(recording, choice, &sink);
	prb_str_deinit(&sink.text);
	PRB_TRY(err);
	return prb_new_file_finish(file);
}

struct prb_error *prb_performance_write(const struct prb_recording *recording,
					const struct prb_profile_choice *choice,
					const struct prb_performance_output *out,
					const struct prb_profile_format *format)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_free char *own = out->path ? NULL : file_name(recording, format);
	const char *path = out->path ? out->path : own;

	if (!path)
		return prb_error_nomem();
	file.replaces_links = !out->path;
	PRB_TRY(write_to(recording, choice, format, &file, path));
	return out->json ? NULL : prb_performance_tell_file(recording, choice, path);
}

struct prb_error *prb_performance_find_format(const struct prb_performance_settings *s,
					      const struct prb_profile_format *usual,
					      const struct prb_profile_format **ret)
{
	*ret = usual;
	if (!s->out.path && !usual)
		return NULL;
	if (s->out.format)
		return prb_profile_format_named(s->out.format, ret);
	if (!s->out.path)
		return NULL;
	*ret = NULL;
	return prb_performance_writes_recording(s) ? NULL
						   : prb_profile_format_find(s->out.path, ret);
}

struct prb_error *prb_performance_keep_recording(const struct prb_recording *recording,
						 const char *path)
{
	prb_auto_store struct prb_store *store = NULL;
	struct prb_recording part = *recording;

	PRB_TRY(prb_store_create(path, &store));
	part.runs.count = 0;
	PRB_TRY(prb_store_begin(store, &part));
	for (size_t left = recording->runs.count; left; left -= part.runs.count) {
		part.runs.items = recording->runs.items + recording->runs.count - left;
		part.runs.count = PRB_MIN(left, (size_t)CHUNK_RUNS);
		PRB_TRY(prb_store_put_rest(store, &part));
	}
	part.runs.count = 0;
	return prb_store_finish(store, &part);
}
