/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/arch/machine.h"

#include "base/checked.h"

const struct prb_machine *prb_machine(uint16_t machine)
{
	static const struct prb_machine *const known[] = {&prb_machine_x86_64,
							  &prb_machine_aarch64};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(known); i++)
		if (known[i]->machine == machine)
			return known[i];
	return NULL;
}
