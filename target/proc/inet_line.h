/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file One line of /proc/PID/net/tcp, tcp6, udp, udp6, raw or raw6, which have the same columns.
 * Threading: all functions may be called from any thread.
 */
#ifndef PRB_TARGET_PROC_INET_LINE_H
#define PRB_TARGET_PROC_INET_LINE_H

#include <stdbool.h>
#include <stdint.h>

/** The column "st", as the kernel's TCP_ESTABLISHED and TCP_LISTEN. */
enum prb_inet_state { PRB_INET_ESTABLISHED = 1, PRB_INET_LISTENING = 10 };

struct prb_inet_end {
	/** Words of the address in hexadecimal, each as the machine has it in memory: 8 digits, or
	 * 32 of IPv6. */
	char address[33];
	unsigned port;
};

struct prb_inet_line {
	struct prb_inet_end near, far;
	unsigned state, uid;
	uint64_t inode; /* 0 for a connection that no process has any more, or not yet */
};

/** False for the heading, and for what is none. */
bool prb_inet_line_parse(const char *line, struct prb_inet_line *ret);

bool prb_inet_ends_equal(const struct prb_inet_end *a, const struct prb_inet_end *b);

#endif
