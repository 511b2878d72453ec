/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/servers.h"

#include <math.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/engine/instant.h"

/** Seconds. */
static const double LONGEST_READING = 10;

struct reading {
	struct prb_engines engines;
	struct prb_server_process process;
};

static void destroy(void *memo)
{
	struct reading *reading = memo;

	prb_server_process_deinit(&reading->process);
	prb_engines_deinit(&reading->engines);
	free(reading);
}

static struct prb_error *create(struct prb_instant *instant, void **ret)
{
	struct reading *reading = calloc(1, sizeof(*reading));
	struct prb_error *err;

	if (!reading)
		return prb_error_nomem();
	err = prb_engines_load(getenv("PROBING_ENGINES"), &reading->engines);
	if (!err)
		err = prb_server_process_read(&reading->engines, prb_instant_target(instant),
					      prb_instant_mode(instant), &reading->process);
	if (err)
		destroy(reading);
	else
		*ret = reading;
	return err;
}

struct prb_error *prb_server_of(struct prb_scan *scan, const struct prb_server_process **ret)
{
	static const char key;
	const struct prb_server_process *p;
	void *memo;

	*ret = NULL;
	PRB_TRY(prb_instant_memo(scan->instant, &key, create, destroy, &memo));
	p = &((struct reading *)memo)->process;
	if (p->missing)
		prb_scan_note(scan, "%s.%s: not all could be read: %s", scan->table->schema,
			      scan->table->name, p->missing);
	if (p->part)
		*ret = p;
	else if (!p->missing)
		prb_scan_note(scan,
			      "%s.%s is empty: the process is none of an inference server "
			      "that is known",
			      scan->table->schema, scan->table->name);
	return NULL;
}

void prb_put_age(struct prb_scan *scan, unsigned column, double time)
{
	double age = prb_instant_time(scan->instant) - time;

	/* It may have come while the process was read. */
	if (isfinite(age) && age >= -LONGEST_READING)
		prb_put_real(scan, column, PRB_MAX(age, 0));
}
