/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/cleanup.h"
#include "sql/tables/shared/censuses.h"

enum {
	PATH,
	CLASS,
	DEPTH,
	PARAMETERS,
	BYTES,
	ALL_PARAMETERS,
	ALL_BYTES,
	DTYPE,
	DEVICE,
	TRAINING,
	HOOKS,
	HELD_IN,
	PARENT,
	ADDRESS,
	INTERPRETER,
};

static const struct prb_column columns[] = {
	[PATH] = {"path", PRB_COLUMN_TEXT,
		  "Where it is in its model, after the name that the model has in the program"},
	[CLASS] = {"class", PRB_COLUMN_TEXT, "Name of its class, with the module"},
	[DEPTH] = {"depth", PRB_COLUMN_INTEGER, "How many modules are above it"},
	[PARAMETERS] = {"parameters", PRB_COLUMN_INTEGER,
			"Elements of its own parameters, without those of the modules in it"},
	[BYTES] = {"bytes", PRB_COLUMN_INTEGER, "What its own parameters take", "bytes"},
	[ALL_PARAMETERS] = {"all_parameters", PRB_COLUMN_INTEGER,
			    "The same with all modules in it; a shared one counts where it was "
			    "met first"},
	[ALL_BYTES] = {"all_bytes", PRB_COLUMN_INTEGER, "What those take", "bytes"},
	[DTYPE] = {"dtype", PRB_COLUMN_TEXT, "Type of its first own parameter"},
	[DEVICE] = {"device", PRB_COLUMN_TEXT, "Device of that"},
	[TRAINING] = {"training", PRB_COLUMN_INTEGER, "1 in training mode, 0 in evaluation"},
	[HOOKS] = {"hooks", PRB_COLUMN_INTEGER, "Forward and backward hooks that it has"},
	[HELD_IN] = {"held_in", PRB_COLUMN_TEXT,
		     "Function whose variable the model is; NULL for one of a module"},
	[PARENT] = {"parent", PRB_COLUMN_INTEGER, "Address of the module above it"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER, "Where it lies in memory: its id()"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER, "Id of the interpreter"},
	{},
};

static struct prb_error *put(struct prb_scan *scan, const struct prb_table_census *c,
			     const struct prb_torch_module *m)
{
	PRB_TRY(prb_scan_row(scan));
	prb_put_text(scan, PATH, m->path);
	prb_put_text(scan, CLASS, m->class);
	prb_put_integer(scan, DEPTH, m->depth);
	prb_put_integer(scan, PARAMETERS, (int64_t)m->parameters);
	prb_put_integer(scan, BYTES, (int64_t)m->bytes);
	prb_put_integer(scan, ALL_PARAMETERS, (int64_t)m->all_parameters);
	prb_put_integer(scan, ALL_BYTES, (int64_t)m->all_bytes);
	prb_put_static(scan, DTYPE, m->dtype);
	if (m->device && m->device_index >= 0)
		prb_put_format(scan, DEVICE, "%s:%d", m->device, m->device_index);
	else
		prb_put_static(scan, DEVICE, m->device);
	prb_put_natural(scan, TRAINING, m->training);
	prb_put_integer(scan, HOOKS, (int64_t)m->hooks);
	if (*m->place)
		prb_put_text(scan, HELD_IN, m->place + sizeof(" in ") - 1);
	if (m->parent != PRB_CENSUS_NONE)
		prb_put_integer(scan, PARENT, (int64_t)c->modules.list.items[m->parent].address);
	prb_put_integer(scan, ADDRESS, (int64_t)m->address);
	prb_put_integer(scan, INTERPRETER, c->interpreter->state.id);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_table_censuses *all;
	const struct prb_table_census *c;
	const struct prb_torch_module *m;
	size_t rows = 0;

	PRB_TRY(prb_censuses_read(scan, &all));
	prb_vec_each (c, &all->list) {
		prb_vec_each (m, &c->modules.list)
			PRB_TRY(put(scan, c, m));
		rows += c->modules.list.count;
	}
	prb_note_if_empty(scan, rows, "module of torch");
	return NULL;
}

const struct prb_table prb_table_torch_modules = {
	.schema = "torch",
	.name = "modules",
	.doc = "Modules of torch (torch.nn.Module), each with its path in the model",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 200,
	.scan = scan,
};
