/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A library whose only function stands in vfork() until its child, which waits, is killed. */
#include <unistd.h>

int stand_in_vfork(void)
{
	if (!vfork()) {
		for (;;)
			pause();
	}
	return 0;
}
