/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Time limits and deadlines of waits, from the target's memory. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"

bool prb_read_time(struct prb_wait_context *c, uint64_t address, enum prb_time_unit unit,
		   double *ret, struct prb_str *s)
{
	double parts = unit == PRB_TIMEVAL ? 1e6 : 1e9;
	int64_t time[2];

	if (!address || !prb_wait_ok(s, prb_mem_read(c->mem, address, time, sizeof(time))))
		return false;
	if (time[0] < 0 || time[1] < 0 || (double)time[1] >= parts)
		return false;
	*ret = (double)time[0] + (double)time[1] / parts;
	return true;
}

void prb_put_limit(struct prb_wait *wait, double seconds, struct prb_str *s)
{
	wait->asked = seconds;
	wait->enders.endless = false;
	prb_str_puts(s, ", at most ");
	prb_put_seconds(s, seconds);
}

void prb_put_limit_at(struct prb_wait_context *c, struct prb_wait *wait, uint64_t address,
		      enum prb_time_unit unit, struct prb_str *s)
{
	double seconds;

	if (prb_read_time(c, address, unit, &seconds, s))
		prb_put_limit(wait, seconds, s);
}

/* Checked once: all threads share it. */
static bool shares_time(struct prb_wait_context *c, struct prb_str *s)
{
	prb_auto_str struct prb_str theirs = {};
	char ours[64];

	if (c->time_known)
		return c->same_time;
	c->time_known = true;

	ssize_t n = readlink("/proc/self/ns/time", ours, sizeof(ours));
	/* Kernels without such namespaces have no link. */
	if (!prb_wait_ok(s, prb_target_read_link(c->target, &theirs, "ns/time")))
		c->same_time = n < 0;
	else
		c->same_time = n > 0 && (size_t)n == theirs.length &&
			       !memcmp(ours, theirs.data, theirs.length);
	return c->same_time;
}

/* A time namespace shifts all clocks but CLOCK_REALTIME. */
static bool shares_clock(struct prb_wait_context *c, int clock, struct prb_str *s)
{
	if (clock == CLOCK_REALTIME || clock == CLOCK_TAI)
		return true;
	if (clock != CLOCK_MONOTONIC && clock != CLOCK_BOOTTIME)
		return false;
	return shares_time(c, s);
}

static bool read_clock(struct prb_wait_context *c, int clock, double *ret, struct prb_str *s)
{
	struct timespec now;

	if (!shares_clock(c, clock, s) || clock_gettime(clock, &now))
		return false;
	*ret = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
	return true;
}

void prb_put_deadline(struct prb_wait_context *c, struct prb_wait *wait, int clock,
		      uint64_t address, struct prb_str *s)
{
	double end, now;

	if (address)
		prb_enders_limited(c);
	/* The clocks of a core's machine stopped when it was written, or are not ours. */
	if (c->target->partial)
		return;
	if (!prb_read_time(c, address, PRB_TIMESPEC, &end, s) || !read_clock(c, clock, &now, s))
		return;
	wait->left = end > now ? end - now : 0;
	prb_str_puts(s, ", ");
	/*
	 * Shows fractions of a second only for short times, so that threads in the same sleep read
	 * alike.
	 */
	prb_put_seconds(s, wait->left < 10 ? wait->left : round(wait->left));
	prb_str_puts(s, " left");
}
