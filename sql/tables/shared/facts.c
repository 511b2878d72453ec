/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/engine/instant.h"
#include "target/proc/user.h"

static struct prb_target *target_of(struct prb_scan *scan)
{
	return prb_instant_target(scan->instant);
}

void prb_missing_deinit(struct prb_missing *missing)
{
	prb_str_deinit(&missing->names);
	prb_str_deinit(&missing->reasons);
}

static bool ends_query(const struct prb_target *t, const struct prb_error *err)
{
	return err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_CANCELLED ||
	       err->code == PRB_ERROR_TIMEOUT || (err->code == PRB_ERROR_NO_PROCESS && t->live);
}

struct prb_error *prb_missing_add(struct prb_scan *scan, struct prb_missing *missing,
				  struct prb_error *err, const char *name)
{
	struct prb_target *t = target_of(scan);

	if (!err || ends_query(t, err))
		return err;
	if (!t->live && (err->code == PRB_ERROR_NOT_FOUND || err->code == PRB_ERROR_UNSUPPORTED))
		prb_str_printf(&missing->names, "%s%s", missing->names.length ? ", " : "", name);
	else
		prb_str_printf(&missing->reasons, "%s%s", missing->reasons.length ? "; " : "",
			       err->message);
	prb_error_destroy(err);
	return missing->names.failed || missing->reasons.failed ? prb_error_nomem() : NULL;
}

void prb_missing_put(struct prb_scan *scan, unsigned column, const struct prb_missing *missing)
{
	const char *names = prb_str_text(&missing->names);
	const char *reasons = prb_str_text(&missing->reasons);

	if (*names)
		prb_put_format(scan, column, "not in the %s: %s%s%s",
			       prb_target_kind_name(target_of(scan)->kind), names,
			       *reasons ? "; " : "", reasons);
	else if (*reasons)
		prb_put_text(scan, column, reasons);
}

struct prb_error *prb_fact_file(struct prb_scan *scan, struct prb_missing *missing,
				struct prb_str *ret, const char *name, ...)
{
	prb_auto_str struct prb_str text = {};
	va_list args;

	va_start(args, name);
	prb_str_vprintf(&text, name, args);
	va_end(args);
	const char *fact = prb_str_text(&text);
	return prb_missing_add(scan, missing,
			       prb_target_read_file(target_of(scan), ret, "%s", fact), fact);
}

struct prb_error *prb_fact_link(struct prb_scan *scan, struct prb_missing *missing,
				struct prb_str *ret, const char *name, ...)
{
	prb_auto_str struct prb_str text = {};
	va_list args;

	va_start(args, name);
	prb_str_vprintf(&text, name, args);
	va_end(args);
	const char *fact = prb_str_text(&text);
	return prb_missing_add(scan, missing,
			       prb_target_read_link(target_of(scan), ret, "%s", fact), fact);
}

struct prb_error *prb_fact_told(struct prb_scan *scan, struct prb_error *err, bool *told)
{
	struct prb_target *t = target_of(scan);

	*told = !err;
	if (!err || ends_query(t, err) ||
	    (t->live && err->code != PRB_ERROR_NOT_FOUND && err->code != PRB_ERROR_UNSUPPORTED))
		return err;
	prb_scan_note(scan, "%s.%s is empty: %s", scan->table->schema, scan->table->name,
		      err->message);
	prb_error_destroy(err);
	return NULL;
}

struct prb_error *prb_fact_table(struct prb_scan *scan, struct prb_str *ret, bool *told,
				 const char *name)
{
	return prb_fact_told(scan, prb_target_read_file(target_of(scan), ret, "%s", name), told);
}

static struct prb_error *read_folder(struct prb_instant *instant, const char *name, void **ret)
{
	prb_auto_str struct prb_str names = {};

	PRB_TRY(prb_target_list(prb_instant_target(instant), &names, "%s", name));
	*ret = prb_str_take(&names);
	return *ret ? NULL : prb_error_nomem();
}

static struct prb_error *read_tasks(struct prb_instant *instant, void **ret)
{
	return read_folder(instant, "task", ret);
}

static struct prb_error *read_fds(struct prb_instant *instant, void **ret)
{
	return read_folder(instant, "fd", ret);
}

struct prb_error *prb_fact_list(struct prb_scan *scan, enum prb_fact_folder folder,
				const char **ret)
{
	static const struct {
		struct prb_error *(*read)(struct prb_instant *instant, void **ret);
	} folders[] = {[PRB_FACT_TASKS] = {read_tasks}, [PRB_FACT_FDS] = {read_fds}};
	void *names = NULL;
	bool told;

	PRB_TRY(prb_fact_told(scan,
			      prb_instant_memo(scan->instant, &folders[folder],
					       folders[folder].read, free, &names),
			      &told));
	*ret = told ? names : "";
	return NULL;
}

bool prb_fact_clock(struct prb_scan *scan, struct prb_fact_clock *ret)
{
	static const char key[] = "clock";
	struct prb_target *t = target_of(scan);
	prb_auto_str struct prb_str text = {};
	struct timespec calendar, boot;

	*ret = (struct prb_fact_clock){.ticks = (double)sysconf(_SC_CLK_TCK)};
	if (!t->local) {
		struct prb_fact_clock told;

		if (!prb_target_recall(t, key, &text) ||
		    sscanf(prb_str_text(&text), "%lf %lf", &told.boot, &told.ticks) != 2 ||
		    !(told.ticks >= 1) || !(told.boot > 0) || !isfinite(told.boot))
			return false;
		*ret = told;
		return true;
	}
	/* The kernel counts from boot, and the calendar may have been set since: ask for both. */
	clock_gettime(CLOCK_REALTIME, &calendar);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	ret->boot = (double)(calendar.tv_sec - boot.tv_sec) +
		    (double)(calendar.tv_nsec - boot.tv_nsec) / 1e9;
	prb_str_printf(&text, "%.9f %.0f", ret->boot, ret->ticks);
	prb_target_remember(t, key, prb_str_text(&text), text.length);
	return true;
}

void prb_fact_user(struct prb_scan *scan, int64_t uid, struct prb_str *ret)
{
	struct prb_target *t = target_of(scan);
	size_t start = ret->length;
	char key[40];

	snprintf(key, sizeof(key), "user:%lld", (long long)uid);
	if (prb_target_recall(t, key, ret) || !t->local || uid < 0)
		return;
	if (prb_user_name((uid_t)uid, ret) && !ret->failed)
		prb_target_remember(t, key, ret->data + start, ret->length - start);
}

bool prb_next_line(const char **text, const char **line, size_t *length)
{
	if (!**text)
		return false;
	*line = *text;
	*length = strcspn(*text, "\n");
	*text += *length + ((*text)[*length] == '\n');
	return true;
}

void prb_put_field(struct prb_scan *scan, unsigned column, const char *text, const char *name,
		   int64_t unit)
{
	const char *value = prb_text_field(text, name);
	int64_t number;
	char *end;

	if (!value)
		return;
	number = strtoll(value, &end, 10);
	if (end != value && !__builtin_mul_overflow(number, unit, &number))
		prb_put_integer(scan, column, number);
}

void prb_put_last_number(struct prb_scan *scan, unsigned column, const char *text, const char *name)
{
	int64_t number;

	if (prb_text_last_number(text, name, &number))
		prb_put_integer(scan, column, number);
}

void prb_put_field_text(struct prb_scan *scan, unsigned column, const char *text, const char *name)
{
	const char *value = prb_text_field(text, name);

	if (value && strcspn(value, "\n"))
		prb_put_bytes(scan, column, value, strcspn(value, "\n"));
}

const char *prb_policy_name(int64_t policy)
{
	static const char *const names[] = {"other", "fifo", "rr",	 "batch",
					    NULL,    "idle", "deadline", "ext"};

	return policy >= 0 && (size_t)policy < PRB_ARRAY_SIZE(names) ? names[policy] : NULL;
}
