/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as the line table of a code object: format, first line, position, table; and as its
 * table of exception handlers. */
#include "tests/fuzz/input.h"

#include "python/frames/exception_table.h"
#include "python/frames/lines.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	enum prb_line_format format = input_u8(&input) % (PRB_LINES_LOCATIONS + 1);
	int32_t first_line = (int32_t)input_u32(&input);
	int64_t position = (int64_t)input_u64(&input);
	struct prb_exception_handler handler;
	struct prb_py_location location;

	if (prb_exception_table_find(input.data, input.size, position, &handler) &&
	    (position < 0 || handler.position < 0))
		abort();
	prb_lines_decode(format, input.data, input.size, first_line, position, &location);
	if (location.line < -1 || location.end_line < -1 || location.col < -1 ||
	    location.end_col < -1)
		abort();
	for (position = -2; position < 64; position++)
		prb_lines_decode(format, input.data, input.size, first_line, position, &location);
	return 0;
}
