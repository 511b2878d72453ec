/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What torch's profiler writes: any text is read, joined and summed up, or refused. */
#include "tests/fuzz/input.h"

#include "profile/kineto/gpu.h"
#include "profile/kineto/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_kineto trace;
	struct prb_kineto_gpus gpus = {};
	struct prb_error *err = prb_kineto_read((const char *)data, size, &trace);

	if (!err)
		err = prb_kineto_join(&trace);
	if (!err)
		err = prb_kineto_gpus(&trace, &gpus);
	prb_error_destroy(err);
	prb_kineto_gpus_deinit(&gpus);
	prb_kineto_deinit(&trace);
	return 0;
}
