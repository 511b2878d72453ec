/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <elf.h>
#include <stddef.h>

#include "base/checked.h"
#include "python/layout/asyncio_table.h"
#include "python/layout/tables.h"

#define FIELD(name, path) {#name, path, offsetof(struct prb_layout, name)},
const struct prb_layout_field prb_layout_fields[] = {PRB_LAYOUT_FIELDS(FIELD)};
#undef FIELD

const unsigned prb_layout_field_count = PRB_ARRAY_SIZE(prb_layout_fields);

#define TABLE(name) &prb_layout_##name,
static const struct prb_layout *const tables[] = {PRB_LAYOUT_TABLES(TABLE) NULL};
#undef TABLE

static const struct prb_layout *find(uint16_t version, bool free_threaded, bool debug_build)
{
	for (const struct prb_layout *const *table = tables; *table; table++)
		if ((*table)->version == version && (*table)->free_threaded == free_threaded &&
		    (*table)->debug_build == debug_build)
			return *table;
	return NULL;
}

/* Since 3.8 objects of debug builds look like those of release builds. */
enum { DEBUG_LIKE_RELEASE = 0x0308 };

const struct prb_layout *prb_layout_table(uint16_t version, bool free_threaded, bool debug_build)
{
	const struct prb_layout *table = find(version, free_threaded, debug_build);

	if (!table && debug_build && version >= DEBUG_LIKE_RELEASE)
		table = find(version, free_threaded, false);
	return table;
}

const struct prb_asyncio_layout *prb_asyncio_table_find(const struct prb_layout *python)
{
	for (const struct prb_asyncio_layout *table = prb_asyncio_tables; table->version; table++)
		if (table->version == python->version &&
		    table->free_threaded == python->free_threaded)
			return table;
	return NULL;
}

/* A pthread_mutex_t has 48 bytes there and 40 on x86_64; the GIL has two, the runtime one GIL. */
enum { AARCH64_GIL_GROWTH = 2 * 8 };

static void grow(int32_t *field)
{
	if (*field != PRB_ABSENT)
		*field += AARCH64_GIL_GROWTH;
}

void prb_layout_adjust(struct prb_layout *layout, uint16_t machine)
{
	if (machine != EM_AARCH64)
		return;
	grow(&layout->gil_size);
	grow(&layout->runtime_size);
	if (layout->runtime_gil != PRB_ABSENT) { /* 3.7 to 3.11: in the runtime */
		grow(&layout->runtime_tstate_current);
	} else if (layout->gil_size != PRB_ABSENT) { /* 3.12+: in the interpreter */
		grow(&layout->interp_size);
		if (layout->version == 0x030c) /* after the GIL; before it since */
			grow(&layout->interp_threads_main);
	}
}
