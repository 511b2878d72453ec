/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/repr/core/items.h"
#include "sql/tables/shared/values.h"

enum { NUMBER, KEY, TYPE, VALUE, VALUE_ADDRESS, KEY_ADDRESS, ERROR, ADDRESS };

static const struct prb_column columns[] = {
	[NUMBER] = {"number", PRB_COLUMN_INTEGER, "Which one it is, from 0",
		    .flags = PRB_COLUMN_KEY | PRB_COLUMN_RANGE},
	[KEY] = {"key", PRB_COLUMN_TEXT, "The key in a dict, as repr() has it; NULL for others",
		 .flags = PRB_COLUMN_REPR},
	[TYPE] = {"type", PRB_COLUMN_TEXT, "Type of the item"},
	[VALUE] = {"value", PRB_COLUMN_TEXT, "The item as python.locals has values",
		   .flags = PRB_COLUMN_REPR},
	[VALUE_ADDRESS] = {"value_address", PRB_COLUMN_INTEGER, "Where the item lies: its id()"},
	[KEY_ADDRESS] = {"key_address", PRB_COLUMN_INTEGER, "Where the key lies; NULL without one"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why the object, or a part of it, could not be read"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Argument: the container, by its id()",
		     .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN | PRB_COLUMN_REQUIRED},
	{},
};

static bool add(void *context, uint64_t key, uint64_t value)
{
	struct prb_value_parts *parts = context;
	struct prb_value_part *part = prb_value_part_add(parts);

	if (!part)
		return false;
	part->key = key;
	part->value = value;
	return true;
}

static struct prb_error *find(struct prb_value_parts *parts)
{
	return prb_object_items(parts->py, parts->mem, parts->object, parts->options.secrets, add,
				parts, &parts->torn);
}

static void put(struct prb_scan *scan, const struct prb_value_part *part, size_t index)
{
	prb_put_integer(scan, NUMBER, (int64_t)index);
	if (!part->key)
		return;
	prb_put_integer(scan, KEY_ADDRESS, (int64_t)part->key);
	prb_put_bytes(scan, KEY, prb_str_text(&part->key_text), part->key_text.length);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	static const struct prb_value_table table = {ADDRESS, ERROR,	  KEY,	TYPE,
						     0,	      NUMBER + 1, find, put};

	return prb_value_scan(scan, &table);
}

const struct prb_table prb_table_python_items = {
	.schema = "python",
	.name = "items",
	.doc = "Items of a list, tuple, dict, set or deque, as python.items(address)",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 100,
	.scan = scan,
};
