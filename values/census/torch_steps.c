/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/census/torch_steps.h"

#include <string.h>

#include "base/cleanup.h"
#include "python/repr/core/repr.h"
#include "python/repr/arrays/tensor.h"
#include "values/census/torch_modules.h"

static bool take_first(void *context, uint64_t key __attribute__((unused)), uint64_t value)
{
	*(uint64_t *)context = value;
	return false;
}

static struct prb_error *read_tensor(struct prb_python *py, struct prb_mem *mem, uint64_t object,
				     uint64_t *ret)
{
	const double most = 1e15;
	struct prb_tensor tensor;
	float value;

	PRB_TRY(prb_tensor_read(py, mem, object, &tensor));
	if (!tensor.storage || !tensor.device || strcmp(tensor.device, "cpu") ||
	    tensor.elements != 1 || strcmp(tensor.dtype, "float32"))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the step is not on the CPU");
	PRB_TRY(prb_mem_read(mem, tensor.data, &value, sizeof(value)));
	if (!(value >= 0) || value > (float)most)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the step is no number");
	*ret = (uint64_t)value;
	return NULL;
}

struct prb_error *prb_torch_steps(struct prb_python *py, struct prb_mem *mem, uint64_t optimizer,
				  uint64_t *ret)
{
	uint64_t states, state = 0, step;
	int64_t number;
	struct prb_error *err;

	PRB_TRY(prb_object_attribute(py, mem, optimizer, "state", &states));
	PRB_TRY(prb_object_dict_each(py, mem, states, take_first, &state));
	if (!state)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the optimizer has no state yet");
	PRB_TRY(prb_object_dict_get(py, mem, state, "step", &step));
	err = prb_object_int(py, mem, step, &number);
	if (prb_error_catch(&err, PRB_ERROR_BAD_DATA))
		return read_tensor(py, mem, step, ret);
	*ret = (uint64_t)number;
	return err;
}

struct prb_error *prb_torch_counter(struct prb_census *census, struct prb_python *py,
				    struct prb_mem *mem, uint64_t *ret)
{
	struct prb_torch_objects optimizers;
	struct prb_census_object object;
	const uint32_t *index;

	*ret = 0;
	PRB_TRY(prb_torch_objects(census, "torch.optim.optimizer.Optimizer", &optimizers));
	prb_vec_each (index, &optimizers.list) {
		uint64_t steps;
		prb_auto_error struct prb_error *err = NULL;

		if (!prb_census_object(census, *index, &object))
			continue;
		err = prb_torch_steps(py, mem, object.address, &steps);
		if (err)
			continue;
		*ret = object.address;
		break;
	}
	prb_vec_free(&optimizers.list);
	return NULL;
}
