/* SPDX-License-Identifier: GPL-3.0-or-later */
#ifdef __aarch64__

#include "injector/inject_arch.h"

const struct prb_inject_arch *prb_inject_arch(void)
{
	return NULL;
}

#endif
