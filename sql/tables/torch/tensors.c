/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/checked.h"
#include "base/cleanup.h"
#include "sql/tables/shared/censuses.h"

enum {
	SHAPE,
	DTYPE,
	DEVICE,
	BYTES,
	KIND,
	REQUIRES_GRAD,
	HOLDER,
	STORAGE,
	STORAGE_BYTES,
	SHARED,
	TYPE,
	ADDRESS,
	INTERPRETER,
};

static const struct prb_column columns[] = {
	[SHAPE] = {"shape", PRB_COLUMN_TEXT, "Its sizes, as (2, 3); of more than 8 the first"},
	[DTYPE] = {"dtype", PRB_COLUMN_TEXT, "Type of its elements"},
	[DEVICE] = {"device", PRB_COLUMN_TEXT, "Device that they are on; NULL if unknown"},
	[BYTES] = {"bytes", PRB_COLUMN_INTEGER, "What its elements take", "bytes"},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "Parameter or buffer (of a module), gradient (of the holder), or tensor"},
	[REQUIRES_GRAD] = {"requires_grad", PRB_COLUMN_INTEGER, "1, 0; NULL if unknown"},
	[HOLDER] = {"holder", PRB_COLUMN_TEXT,
		    "How it is reached: path of the parameter, or of variables and attributes",
		    .flags = PRB_COLUMN_COSTLY},
	[STORAGE] = {"storage", PRB_COLUMN_INTEGER,
		     "Address of its storage: those of equal storage share it; NULL if unknown"},
	[STORAGE_BYTES] = {"storage_bytes", PRB_COLUMN_INTEGER, "What its storage takes", "bytes"},
	[SHARED] = {"shared", PRB_COLUMN_INTEGER,
		    "0 for the first tensor with its storage, 1 for the others: what is counted "
		    "once is WHERE NOT shared"},
	[TYPE] = {"type", PRB_COLUMN_TEXT, "Name of its class, with the module"},
	[ADDRESS] = {"address", PRB_COLUMN_INTEGER,
		     "Where its object lies in memory; of a gradient, that of the holder"},
	[INTERPRETER] = {"interpreter", PRB_COLUMN_INTEGER, "Id of the interpreter"},
	{},
};

static void put_shape(struct prb_scan *scan, const struct prb_census_tensor *t)
{
	prb_auto_str struct prb_str shape = {};
	uint64_t known = PRB_MIN(t->dimensions, PRB_ARRAY_SIZE(t->shape));

	prb_str_putc(&shape, '(');
	for (uint64_t i = 0; i < known; i++)
		prb_str_printf(&shape, "%s%llu", i ? ", " : "", (unsigned long long)t->shape[i]);
	prb_str_puts(&shape, t->dimensions > known ? ", …)" : t->dimensions == 1 ? ",)" : ")");
	prb_put_text(scan, SHAPE, prb_str_text(&shape));
}

static const char *kind_of(const struct prb_table_census *c, const struct prb_census_tensor *t,
			   uint64_t address)
{
	const struct prb_torch_tensor *known = prb_torch_tensor_find(&c->modules, address);

	if (t->gradient)
		return "gradient";
	return !known ? "tensor" : known->buffer ? "buffer" : "parameter";
}

static struct prb_error *put(struct prb_scan *scan, const struct prb_table_census *c,
			     const struct prb_census_tensor *t)
{
	struct prb_census_object object = {};
	struct prb_census_type type;

	PRB_TRY(prb_scan_row(scan));
	put_shape(scan, t);
	prb_put_static(scan, DTYPE, t->dtype);
	if (t->device && t->device_index >= 0)
		prb_put_format(scan, DEVICE, "%s:%d", t->device, t->device_index);
	else
		prb_put_static(scan, DEVICE, t->device);
	prb_put_integer(scan, BYTES, (int64_t)t->bytes);
	prb_put_natural(scan, REQUIRES_GRAD, t->requires_grad);
	if (t->storage) {
		prb_put_integer(scan, STORAGE, (int64_t)t->storage);
		prb_put_integer(scan, STORAGE_BYTES, (int64_t)t->storage_bytes);
	}
	prb_put_integer(scan, SHARED, !t->first);
	prb_put_integer(scan, INTERPRETER, c->interpreter->state.id);
	if (prb_census_object(c->census, t->object, &object)) {
		prb_put_static(scan, KIND, kind_of(c, t, object.address));
		prb_put_integer(scan, ADDRESS, (int64_t)object.address);
		if (prb_census_type(c->census, object.type, &type))
			prb_put_text(scan, TYPE, type.name);
	}
	return prb_put_holder(scan, HOLDER, c, t->object);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_table_censuses *all;
	const struct prb_table_census *c;
	size_t rows = 0;

	PRB_TRY(prb_censuses_read(scan, &all));
	prb_vec_each (c, &all->list) {
		size_t count;
		const struct prb_census_tensor *t = prb_census_tensors(c->census, &count);

		for (size_t i = 0; i < count; i++)
			PRB_TRY(put(scan, c, &t[i]));
		rows += count;
	}
	prb_note_if_empty(scan, rows, "tensor of torch");
	return NULL;
}

const struct prb_table prb_table_torch_tensors = {
	.schema = "torch",
	.name = "tensors",
	.doc = "Tensors of torch that something in Python refers to, and their gradients",
	.columns = columns,
	.flags = PRB_TABLE_COSTLY,
	.rows = 1000,
	.scan = scan,
};
