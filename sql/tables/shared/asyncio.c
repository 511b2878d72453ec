/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/asyncio.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "sql/engine/instant.h"

static void destroy(void *memo)
{
	struct prb_asyncio_readings *readings = memo;
	struct prb_asyncio_reading **reading;

	prb_vec_each (reading, &readings->list)
		prb_asyncio_reading_destroy(*reading);
	prb_vec_free(&readings->list);
	free(readings);
}

static struct prb_error *read_all(struct prb_instant *instant,
				  struct prb_asyncio_readings *readings)
{
	struct prb_modules *modules;
	struct prb_pythons *pythons;
	struct prb_python **py;
	struct prb_mem *unused;

	PRB_TRY(prb_instant_modules(instant, &modules));
	PRB_TRY(prb_instant_pythons(instant, &pythons, &unused));
	prb_vec_each (py, &pythons->list) {
		struct prb_asyncio_reading **slot = prb_vec_push(&readings->list);

		if (!slot)
			return prb_error_nomem();
		PRB_TRY(prb_asyncio_reading_create(prb_instant_target(instant), modules, *py,
						   (unsigned)(py - pythons->list.items),
						   prb_instant_mode(instant),
						   prb_instant_values(instant), slot));
	}
	return NULL;
}

static struct prb_error *create(struct prb_instant *instant, void **ret)
{
	struct prb_asyncio_readings *readings = calloc(1, sizeof(*readings));

	if (!readings)
		return prb_error_nomem();

	struct prb_error *err = read_all(instant, readings);

	if (err)
		destroy(readings);
	else
		*ret = readings;
	return err;
}

struct prb_error *prb_asyncio_scan(struct prb_scan *scan, const struct prb_asyncio_readings **ret)
{
	static const char key;
	struct prb_asyncio_reading **reading;
	void *memo;

	PRB_TRY(prb_instant_memo(scan->instant, &key, create, destroy, &memo));

	struct prb_asyncio_readings *readings = memo;

	prb_vec_each (reading, &readings->list)
		if ((*reading)->tasks.error)
			prb_scan_note(
				scan,
				"not all of what asyncio notes of its tasks could be read: %s",
				(*reading)->tasks.error);
	*ret = readings;
	return NULL;
}
