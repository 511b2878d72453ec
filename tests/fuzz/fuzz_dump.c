/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A dump with all options, of a snapshot with arbitrary modules, interpreter layout, memory and
 * function names. The snapshots in the corpus are of real programs.
 */
#include "tests/fuzz/snapshot_file.h"

#include "dump/dump.h"
#include "dump/idle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct prb_dump_options options = {.locals = true, .native = true, .source = true};
	struct prb_target *t = open_snapshot(data, size);
	struct prb_dump *dump;

	if (!t)
		return 0;
	struct prb_error *err = prb_dump_create(t, &options, &dump);
	if (!err) {
		err = prb_idle_fill(t, dump, NULL);
		prb_dump_destroy(dump);
	}
	prb_error_destroy(err);
	prb_target_destroy(t);
	return 0;
}
