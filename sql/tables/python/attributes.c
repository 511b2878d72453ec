/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/repr/core/attributes.h"
#include "sql/tables/shared/values.h"

enum { NAME, KIND, TYPE, VALUE, VALUE_ADDRESS, CLASS, NUMBER, ERROR, ADDRESS };

static const struct prb_column columns[] = {
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name of the attribute"},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "Where it is: dict (its __dict__), slot (of __slots__, or a field of a C type), "
		  "local (a variable of a generator, coroutine or frame), or computed "
		  "(a property or other descriptor, which is not called)"},
	[TYPE] = {"type", PRB_COLUMN_TEXT,
		  "Type of its value; of what is computed, the descriptor's"},
	[VALUE] = {"value", PRB_COLUMN_TEXT,
		   "Its value as python.locals has it; NULL for what is computed, <hidden> for "
		   "what the object's own class hides (repr=False, SecretStr)",
		   .flags = PRB_COLUMN_REPR},
	[VALUE_ADDRESS] = {"value_address", PRB_COLUMN_INTEGER,
			   "Where the value lies; NULL for what is computed or hidden, and for a "
			   "number or text in C"},
	[CLASS] = {"class", PRB_COLUMN_TEXT,
		   "Class that has the slot or descriptor; NULL for a dict"},
	[NUMBER] = {"number", PRB_COLUMN_ANY, "As in python.locals"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why the object, or a part of it, could not be read"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Argument: the object, by its id()",
		     .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN | PRB_COLUMN_REQUIRED},
	{},
};

static const char *kind_name(enum prb_attribute_kind kind)
{
	return kind == PRB_ATTRIBUTE_DICT    ? "dict"
	       : kind == PRB_ATTRIBUTE_SLOT  ? "slot"
	       : kind == PRB_ATTRIBUTE_LOCAL ? "local"
					     : "computed";
}

static bool add(void *context, const struct prb_attribute *a)
{
	struct prb_value_parts *parts = context;
	struct prb_value_part *part = prb_value_part_add(parts);

	if (!part)
		return false;
	part->key = *a->name ? 0 : a->key;
	part->value = a->object;
	part->kind = kind_name(a->kind);
	part->computed = a->kind == PRB_ATTRIBUTE_COMPUTED;
	parts->err = prb_str_copy(a->name, &part->name);
	if (!parts->err && a->text)
		parts->err = prb_str_copy(a->text, &part->text);
	if (!parts->err && a->owner)
		parts->err = prb_str_copy(a->owner, &part->owner);
	return !parts->err;
}

static struct prb_error *find(struct prb_value_parts *parts)
{
	return prb_object_attributes(parts->py, parts->mem, parts->object,
				     PRB_ATTRIBUTE_DICT | PRB_ATTRIBUTE_SLOT | PRB_ATTRIBUTE_LOCAL |
					     PRB_ATTRIBUTE_COMPUTED |
					     (parts->options.secrets ? PRB_ATTRIBUTE_SECRETS : 0),
				     add, parts, &parts->torn);
}

static void put(struct prb_scan *scan, const struct prb_value_part *part, size_t index)
{
	(void)index;
	/* A key that is no name shows as it is. */
	prb_put_text(scan, NAME, part->key ? prb_str_text(&part->key_text) : part->name);
	prb_put_text(scan, KIND, part->kind);
	prb_put_text(scan, CLASS, part->owner);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	static const struct prb_value_table table = {ADDRESS, ERROR, NAME, TYPE,
						     NUMBER,  0,     find, put};

	return prb_value_scan(scan, &table);
}

const struct prb_table prb_table_python_attributes = {
	.schema = "python",
	.name = "attributes",
	.doc = "Attributes of an object, as python.attributes(address), read without running code",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 10,
	.scan = scan,
};
