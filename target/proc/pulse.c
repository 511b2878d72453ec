/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "target/proc/process.h"
#include "target/proc/process_private.h"
#include "target/proc/text.h"

/** The scheduler's clock of the process counts each nanosecond, and what runs right now too. */
bool prb_pulse_clock(pid_t pid, uint64_t *ret)
{
	struct timespec used;
	clockid_t clock;

	if (clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
		return false;
	*ret = (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
	return true;
}

static void read_executable(pid_t pid, struct prb_pulse *ret)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	if (stat(path, &st))
		return;
	ret->device = st.st_dev;
	ret->inode = st.st_ino;
}

bool prb_pulse_again(pid_t pid, const struct prb_pulse *before, struct prb_pulse *ret)
{
	uint64_t ran;

	if (!before->start_ticks || !prb_pulse_clock(pid, &ran) || ran != before->ran)
		return prb_pulse_read(pid, ret);
	*ret = *before;
	return true;
}

bool prb_pulse_read(pid_t pid, struct prb_pulse *ret)
{
	prb_auto_str struct prb_str line = {};
	int64_t numbers[PRB_STAT_NUMBERS];
	struct prb_stat stat;

	*ret = (struct prb_pulse){};
	/* The clock first: what runs between the two looks is seen the next time. */
	bool clocked = prb_pulse_clock(pid, &ret->ran);

	if (!prb_proc_read(pid, "stat", &line) || !prb_stat_parse(prb_str_text(&line), &stat) ||
	    !prb_stat_numbers(prb_str_text(&line), numbers) || stat.state == 'Z' ||
	    stat.state == 'X')
		return false;
	ret->start_ticks = stat.start_ticks;
	ret->state = stat.state;
	ret->threads = stat.threads;
	ret->rss = numbers[PRB_STAT_RSS] * sysconf(_SC_PAGESIZE);
	ret->cpu_seconds = (double)(numbers[PRB_STAT_USER] + numbers[PRB_STAT_SYSTEM]) /
			   (double)sysconf(_SC_CLK_TCK);
	if (clocked)
		ret->cpu_seconds = (double)ret->ran / 1e9;
	else
		ret->ran = (uint64_t)prb_clock_ns(); /* as if it ran all the time */
	if (!stat.kernel)
		read_executable(pid, ret);
	return true;
}
