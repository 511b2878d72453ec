/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any text as the name of a symbol, as a name to shorten, and as a name and a source of Cython. */
#include "tests/fuzz/input.h"

#include "dump/native/cython.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/short_name.h"

static void by_cython(const char *text, int32_t line)
{
	prb_auto_str struct prb_str name = {};
	char path[PRB_CYTHON_PATH];
	size_t searched = 0;
	int32_t number;

	if (prb_cython_name(text, &name) != (name.length > 0))
		abort();
	if (prb_cython_place(text, line, path, &number, &searched) && (number < 1 || !*path))
		abort();
	if (searched > strlen(text) + (size_t)line)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	prb_auto_free char *symbol = input_text(&input);

	prb_auto_free char *name = prb_demangle(symbol);
	prb_auto_free char *of_name = NULL, *of_any = NULL;
	if (name)
		prb_error_destroy(prb_short_name(name, &of_name));
	prb_error_destroy(prb_short_name(symbol, &of_any));
	by_cython(symbol, size ? data[0] : 0);
	return 0;
}
