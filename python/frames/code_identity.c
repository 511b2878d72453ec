/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/frames/code_identity.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/checked.h"
#include "base/siphash.h"
#include "python/repr/core/repr.h"

enum { MAX_LINE_TABLE = 16 << 20 };

/* Long tables are identified by their beginning and size. */
static struct prb_error *sum_lines(struct prb_python *py, struct prb_mem *mem,
				   struct prb_py_code_identity *code)
{
	static const uint64_t key[2] = {};
	uint8_t lines[1024];
	size_t size = PRB_MIN(code->lines_size, (uint64_t)sizeof(lines));

	PRB_TRY(prb_mem_read(mem, code->lines + (uint64_t)py->layout.bytes_data, lines, size));
	code->lines_sum = prb_siphash(1, 3, key, lines, size);
	return NULL;
}

struct prb_error *prb_python_code_identity(struct prb_python *py, struct prb_mem *mem,
					   uint64_t code, struct prb_py_code_identity *ret)
{
	const struct prb_layout *l = &py->layout;
	const struct {
		int32_t offset;
		uint64_t *part;
	} parts[] = {
		{l->object_type, &ret->type},
		{l->code_name, &ret->name},
		{l->code_filename, &ret->file},
		{l->code_linetable, &ret->lines},
		{l->behaviour->has_qualname ? l->code_qualname : PRB_ABSENT, &ret->qualname},
	};

	*ret = (struct prb_py_code_identity){};
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (parts[i].offset >= 0)
			PRB_TRY(prb_mem_read_u64(mem, code + (uint64_t)parts[i].offset,
						 parts[i].part));
	PRB_TRY(prb_mem_read_u32(mem, code + (uint64_t)l->code_firstlineno, &ret->first_line));
	PRB_TRY(prb_mem_read_u32(mem, code + (uint64_t)l->code_flags, &ret->flags));
	PRB_TRY(prb_object_str_sum(py, mem, ret->name, &ret->name_sum));
	PRB_TRY(prb_object_str_sum(py, mem, ret->file, &ret->file_sum));
	if (ret->qualname)
		PRB_TRY(prb_object_str_sum(py, mem, ret->qualname, &ret->qualname_sum));
	PRB_TRY(prb_mem_read_u64(mem, ret->lines + (uint64_t)l->var_size, &ret->lines_size));
	return sum_lines(py, mem, ret);
}

bool prb_py_code_identity_equal(const struct prb_py_code_identity *a,
				const struct prb_py_code_identity *b)
{
	return !memcmp(a, b, sizeof(*a));
}

struct prb_error *prb_python_line_table(struct prb_python *py, struct prb_mem *mem,
					const struct prb_py_code_identity *code, uint8_t **ret)
{
	prb_auto_free uint8_t *table = NULL;

	if (code->lines_size > MAX_LINE_TABLE)
		return prb_error_create(PRB_ERROR_BAD_DATA, "a line table of %llu bytes",
					(unsigned long long)code->lines_size);
	table = malloc(code->lines_size + 1);
	if (!table)
		return prb_error_nomem();
	PRB_TRY(prb_mem_read(mem, code->lines + (uint64_t)py->layout.bytes_data, table,
			     code->lines_size));
	*ret = prb_steal(&table);
	return NULL;
}
