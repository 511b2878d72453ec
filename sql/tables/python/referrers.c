/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/censuses.h"

enum { TYPE, HOLDER, BYTES, REFERRER, INTERPRETER, ERROR, ADDRESS };

static const struct prb_column columns[] = {
	[TYPE] = {"type", PRB_COLUMN_TEXT, "Type of an object that refers to it"},
	[HOLDER] = {"holder", PRB_COLUMN_TEXT,
		    "The shortest way to that object, from a module or the variable of a frame"},
	[BYTES] = {"bytes", PRB_COLUMN_INTEGER, "What that object takes, with what it owns",
		   "bytes"},
	[REFERRER] = {"referrer", PRB_COLUMN_INTEGER, "Where that object lies: its id()"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER, "Id of the interpreter"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why nothing is known of the object"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Argument: the object, by its id()",
		     .flags = PRB_COLUMN_KEY | PRB_COLUMN_HIDDEN | PRB_COLUMN_REQUIRED},
	{},
};

/* Referrers of one object; one that refers to it twice is listed once. */
struct referrers {
	PRB_VEC(uint32_t) list;
};

static struct prb_error *add(void *context, uint32_t holder,
			     uint32_t object __attribute__((unused)))
{
	struct referrers *r = context;
	uint32_t *added;

	if (r->list.count && r->list.items[r->list.count - 1] == holder)
		return NULL;
	added = prb_vec_push(&r->list);
	if (!added)
		return prb_error_nomem();
	*added = holder;
	return NULL;
}

static struct prb_error *put(struct prb_scan *scan, const struct prb_table_census *c,
			     uint32_t referrer, int64_t address)
{
	struct prb_census_object object;
	struct prb_census_type type;

	if (!prb_census_object(c->census, referrer, &object))
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	if (prb_census_type(c->census, object.type, &type))
		prb_put_text(scan, TYPE, type.name);
	prb_put_integer(scan, BYTES, (int64_t)object.bytes);
	prb_put_integer(scan, REFERRER, (int64_t)object.address);
	prb_put_integer(scan, INTERPRETER, c->interpreter->state.id);
	prb_put_integer(scan, ADDRESS, address);
	return prb_put_holder(scan, HOLDER, c, referrer);
}

static struct prb_error *put_all(struct prb_scan *scan, const struct prb_table_census *c,
				 uint32_t object, int64_t address)
{
	const char *before = prb_census_doubt(c->census), *doubt;
	struct referrers r = {};
	struct prb_error *err = prb_census_referrers(c->census, object, add, &r);

	for (size_t i = 0; !err && i < r.list.count; i++)
		err = put(scan, c, r.list.items[i], address);
	doubt = prb_census_doubt(c->census);
	if (!err && doubt != before)
		prb_scan_note(scan, "python.referrers: %s", doubt);
	if (!err && !r.list.count)
		prb_scan_note(scan, "python.referrers is empty: no object refers to it; a variable "
				    "of a frame or C code may hold it");
	prb_vec_free(&r.list);
	return err;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_table_censuses *all;
	const struct prb_table_census *c;
	int64_t address;
	bool found = false;

	if (!prb_scan_key_integer(scan, ADDRESS, &address))
		return NULL;
	PRB_TRY(prb_censuses_read(scan, &all));
	prb_vec_each (c, &all->list) {
		uint32_t object = prb_census_find(c->census, (uint64_t)address);

		if (object == PRB_CENSUS_NONE)
			continue;
		found = true;
		PRB_TRY(put_all(scan, c, object, address));
	}
	if (found)
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	prb_put_text(scan, ERROR, "no object was found there");
	prb_put_integer(scan, ADDRESS, address);
	return NULL;
}

const struct prb_table prb_table_python_referrers = {
	.schema = "python",
	.name = "referrers",
	.doc = "Objects that refer to an object, as python.referrers(address), and how each is "
	       "reached",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 10,
	.scan = scan,
};
