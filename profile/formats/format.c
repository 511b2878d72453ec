/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/formats/format.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profile/store/write/store.h"

/* clang-format off */
const struct prb_profile_format *const prb_profile_formats[] = {
	&prb_format_collapsed,
	&prb_format_speedscope,
	&prb_format_html,
	&prb_format_svg,
	&prb_format_pprof,
	&prb_format_trace,
	&prb_format_gecko,
	&prb_format_otlp,
	NULL,
};
/* clang-format on */

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length > tail && !strcmp(text + length - tail, end);
}

bool prb_store_is_path(const char *path)
{
	return ends_with(path, PRB_STORE_EXTENSION);
}

/* What people who look for tables need. */
static struct prb_error *refuse_table(struct prb_error *err)
{
	return prb_error_hint(err, "SQL writes CSV: 'probing FILE.profile query --format csv "
				   "\"SELECT * FROM profile.functions\"'");
}

struct prb_error *prb_profile_format_find(const char *path, const struct prb_profile_format **ret)
{
	prb_auto_str struct prb_str names = {};
	struct prb_error *err;

	prb_str_puts(&names, PRB_STORE_EXTENSION);
	for (size_t i = 0; prb_profile_formats[i]; i++)
		for (const char *const *e = prb_profile_formats[i]->extensions; *e; e++) {
			if (ends_with(path, *e)) {
				*ret = prb_profile_formats[i];
				return NULL;
			}
			prb_str_printf(&names, ", %s", *e);
		}
	err = prb_error_create(PRB_ERROR_USAGE, "'%.200s' does not say which format is wanted",
			       path);
	return ends_with(path, ".csv")
		       ? refuse_table(err)
		       : prb_error_hint(err, "the name ends with one of %s", prb_str_text(&names));
}

struct prb_error *prb_profile_format_named(const char *name, const struct prb_profile_format **ret)
{
	prb_auto_str struct prb_str names = {};
	struct prb_error *err;

	for (size_t i = 0; prb_profile_formats[i]; i++) {
		if (!strcmp(name, prb_profile_formats[i]->name)) {
			*ret = prb_profile_formats[i];
			return NULL;
		}
		prb_str_printf(&names, "%s%s", i ? ", " : "", prb_profile_formats[i]->name);
	}
	err = prb_error_create(PRB_ERROR_USAGE, "there is no format '%.100s'", name);
	return !strcmp(name, "csv") ? refuse_table(err)
				    : prb_error_hint(err, "there are %s", prb_str_text(&names));
}

struct prb_error *prb_sink_flush(struct prb_sink *sink, bool all)
{
	enum { MUCH = 1 << 16 };
	size_t at = 0;

	if (sink->text.failed)
		return prb_error_nomem();
	if (!all && sink->text.length < MUCH)
		return NULL;
	while (at < sink->text.length) {
		ssize_t n = write(sink->fd, sink->text.data + at, sink->text.length - at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return prb_error_os(errno, "cannot write %s", sink->path);
		at += (size_t)n;
	}
	prb_str_truncate(&sink->text, 0);
	return NULL;
}

void prb_profile_label(struct prb_str *s, struct prb_place place)
{
	const struct prb_tree_function *f = place.function;

	prb_str_puts(s, f->name);
	if (f->file && (place.ran || !f->module)) {
		prb_str_printf(s, " (%s", f->file);
		if (place.line > 0)
			prb_str_printf(s, ":%d", place.line);
		prb_str_putc(s, ')');
	}
	if (f->module)
		prb_str_printf(s, " [%s]", prb_tree_short_path(f->module));
}

const char *prb_profile_thread_name(const struct prb_profile_thread *thread)
{
	return thread->name ? thread->name : thread->os_name ? thread->os_name : "";
}
