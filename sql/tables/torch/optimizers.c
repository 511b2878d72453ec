/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "python/repr/core/items.h"
#include "python/repr/core/repr.h"
#include "sql/tables/shared/censuses.h"

enum {
	HOLDER,
	CLASS,
	GROUPS,
	PARAMETERS,
	LEARNING_RATE,
	STATE_TENSORS,
	STATE_BYTES,
	ADDRESS,
	INTERPRETER
};

static const struct prb_column columns[] = {
	[HOLDER] = {"holder", PRB_COLUMN_TEXT, "How it is reached: variables and attributes"},
	[CLASS] = {"class", PRB_COLUMN_TEXT, "Name of its class, with the module"},
	[GROUPS] = {"groups", PRB_COLUMN_INTEGER, "How many groups of parameters it has"},
	[PARAMETERS] = {"parameters", PRB_COLUMN_INTEGER, "How many tensors are in these groups"},
	[LEARNING_RATE] =
		{"lr", PRB_COLUMN_TEXT,
		 "Learning rate of its first group as repr() prints it; NULL without one"},
	[STATE_TENSORS] = {"state_tensors", PRB_COLUMN_INTEGER, "Tensors of its state"},
	[STATE_BYTES] = {"state_bytes", PRB_COLUMN_INTEGER, "What these take, each storage once",
			 "bytes"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Where it lies in memory: its id()"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER, "Id of the interpreter"},
	{},
};

struct counted {
	struct prb_python *py;
	struct prb_mem *mem;
	int64_t groups, parameters;
	uint64_t first; /* group */
};

static bool count_parameter(void *context, uint64_t key __attribute__((unused)),
			    uint64_t value __attribute__((unused)))
{
	((struct counted *)context)->parameters++;
	return true;
}

static bool count_group(void *context, uint64_t key __attribute__((unused)), uint64_t value)
{
	struct counted *k = context;
	uint64_t list;
	prb_auto_error struct prb_error *err =
		prb_object_dict_get(k->py, k->mem, value, "params", &list);

	if (!k->groups++)
		k->first = value;
	if (!err)
		err = prb_object_items(k->py, k->mem, list, true, count_parameter, k, NULL);
	return true;
}

/* Unreadable cells stay NULL. */
static struct prb_error *put_groups(struct prb_scan *scan, const struct prb_table_census *c,
				    uint64_t optimizer)
{
	struct counted k = {.py = c->interpreter->py,
			    .mem = prb_interpreter_bulk(scan, c->interpreter)};
	prb_auto_str struct prb_str rate = {};
	uint64_t groups, lr;
	prb_auto_error struct prb_error *err =
		prb_object_attribute(k.py, k.mem, optimizer, "param_groups", &groups);

	if (!err)
		err = prb_object_items(k.py, k.mem, groups, true, count_group, &k, NULL);
	if (err)
		return NULL;
	prb_put_integer(scan, GROUPS, k.groups);
	prb_put_integer(scan, PARAMETERS, k.parameters);
	if (!k.first)
		return NULL;
	err = prb_object_dict_get(k.py, k.mem, k.first, "lr", &lr);
	if (!err)
		err = prb_object_repr(k.py, k.mem, lr, NULL, &rate);
	if (!err)
		prb_put_text(scan, LEARNING_RATE, prb_str_text(&rate));
	return NULL;
}

/* Whether the walk came to an object through another one. */
static bool is_below(const struct prb_census *census, uint32_t object, uint32_t above)
{
	struct prb_census_object o;

	while (object != PRB_CENSUS_NONE && object > above && prb_census_object(census, object, &o))
		object = o.parent;
	return object == above;
}

static void put_state(struct prb_scan *scan, const struct prb_table_census *c, uint32_t optimizer)
{
	size_t count;
	const struct prb_census_tensor *t = prb_census_tensors(c->census, &count);
	uint64_t tensors = 0, bytes = 0;
	struct prb_census_object object;

	for (size_t i = 0; i < count; i++) {
		if (t[i].gradient || !is_below(c->census, t[i].object, optimizer) ||
		    !prb_census_object(c->census, t[i].object, &object) ||
		    prb_torch_tensor_find(&c->modules, object.address))
			continue;
		tensors++;
		bytes += t[i].first ? t[i].storage_bytes : 0;
	}
	prb_put_integer(scan, STATE_TENSORS, (int64_t)tensors);
	prb_put_integer(scan, STATE_BYTES, (int64_t)bytes);
}

static struct prb_error *put(struct prb_scan *scan, const struct prb_table_census *c,
			     uint32_t index)
{
	struct prb_census_object object;
	struct prb_census_type type;

	if (!prb_census_object(c->census, index, &object))
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	if (prb_census_type(c->census, object.type, &type))
		prb_put_text(scan, CLASS, type.name);
	prb_put_integer(scan, ADDRESS, (int64_t)object.address);
	prb_put_integer(scan, INTERPRETER, c->interpreter->state.id);
	put_state(scan, c, index);
	PRB_TRY(put_groups(scan, c, object.address));
	return prb_put_holder(scan, HOLDER, c, index);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_table_censuses *all;
	const struct prb_table_census *c;
	size_t rows = 0;

	PRB_TRY(prb_censuses_read(scan, &all));
	prb_vec_each (c, &all->list) {
		struct prb_torch_objects objects;
		struct prb_error *err = NULL;
		const uint32_t *object;

		PRB_TRY(prb_torch_objects(c->census, "torch.optim.optimizer.Optimizer", &objects));
		prb_vec_each (object, &objects.list)
			err = err ? err : put(scan, c, *object);
		rows += objects.list.count;
		prb_vec_free(&objects.list);
		PRB_TRY(err);
	}
	prb_note_if_empty(scan, rows, "optimizer of torch");
	return NULL;
}

const struct prb_table prb_table_torch_optimizers = {
	.schema = "torch",
	.name = "optimizers",
	.doc = "Optimizers of torch, with their parameters and the memory of their state",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 2,
	.scan = scan,
};
