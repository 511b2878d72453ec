/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as the description of an inference server. */
#include <stdint.h>
#include <stdlib.h>

#include "inference/engine.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_engine *engine;
	struct prb_error *err = prb_engine_parse("fuzz", (const char *)data, size, &engine);
	const char *rest;

	if (err) {
		prb_error_destroy(err);
		return 0;
	}
	/* What is accepted is complete. */
	if (!engine->name || !engine->module || !engine->parts.count)
		abort();
	prb_engine_takes(engine, "1.2.3");
	prb_engine_by_title(engine, "VLLM::Worker_TP0", &rest);
	prb_engine_destroy(engine);
	return 0;
}
