/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/inet_line.h"

#include <stdio.h>
#include <string.h>

bool prb_inet_line_parse(const char *line, struct prb_inet_line *ret)
{
	unsigned long long inode;

	/* NUMBER: NEAR FAR STATE QUEUES TIMER RETRIES UID TIMEOUT INODE */
	if (sscanf(line, " %*d: %32[0-9A-F]:%x %32[0-9A-F]:%x %x %*s %*s %*s %u %*d %llu",
		   ret->near.address, &ret->near.port, ret->far.address, &ret->far.port,
		   &ret->state, &ret->uid, &inode) != 7)
		return false;
	ret->inode = inode;
	return true;
}

bool prb_inet_ends_equal(const struct prb_inet_end *a, const struct prb_inet_end *b)
{
	return a->port == b->port && !strcmp(a->address, b->address);
}
