/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stddef.h>

#include "dwarf/base/checked.h"
#include "dwarf/cpython/layouts/tables.h"

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
