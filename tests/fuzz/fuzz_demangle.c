/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any text as the name of a symbol, and as a name to shorten. */
#include "tests/fuzz/input.h"

#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	prb_auto_free char *symbol = input_text(&input);

	prb_auto_free char *name = prb_demangle(symbol);
	prb_auto_free char *of_name = NULL, *of_any = NULL;
	if (name)
		prb_error_destroy(prb_short_name(name, &of_name));
	prb_error_destroy(prb_short_name(symbol, &of_any));
	return 0;
}
