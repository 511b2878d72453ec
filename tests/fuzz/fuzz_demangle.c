/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any text as the name of a symbol. */
#include "tests/fuzz/input.h"

#include "dwarf/lines/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	prb_auto_free char *symbol = input_text(&input);

	free(prb_demangle(symbol));
	return 0;
}
