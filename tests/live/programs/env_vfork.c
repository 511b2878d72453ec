/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A library whose only function blocks in vfork() until its waiting child is killed. */
#include <unistd.h>

int stand_in_vfork(void)
{
	if (!vfork()) {
		for (;;)
			pause();
	}
	return 0;
}
