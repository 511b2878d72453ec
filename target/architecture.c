/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/architecture.h"

#include <stddef.h>

#include "base/checked.h"
#include "target/regs.h"

static const struct prb_architecture architectures[] = {
	{EM_X86_64, "x86_64", "elf64-x86-64", PRB_REG_X86_64_RSP, 6, PRB_REG_X86_64_RA, 58, 1,
	 true},
	{EM_AARCH64, "aarch64", "elf64-littleaarch64", PRB_REG_AARCH64_SP, 29, PRB_REG_AARCH64_LR,
	 36, 4, false},
};

const struct prb_architecture *prb_architecture_find(uint16_t number)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(architectures); i++)
		if (architectures[i].number == number)
			return &architectures[i];
	return NULL;
}

unsigned prb_regs_sp(uint16_t machine)
{
	const struct prb_architecture *found = prb_architecture_find(machine);

	return found ? found->sp : architectures->sp;
}

unsigned prb_regs_fp(uint16_t machine)
{
	const struct prb_architecture *found = prb_architecture_find(machine);

	return found ? found->fp : architectures->fp;
}
