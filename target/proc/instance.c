/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/instance.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

void prb_instance_print(pid_t pid, uint64_t start_ticks, char ret[PRB_INSTANCE_SIZE])
{
	if (start_ticks)
		snprintf(ret, PRB_INSTANCE_SIZE, "%d-%" PRIu64, (int)pid, start_ticks);
	else
		snprintf(ret, PRB_INSTANCE_SIZE, "%d", (int)pid);
}

static bool take_digits(const char **at, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return !errno;
}

bool prb_instance_parse(const char *text, pid_t *pid, uint64_t *start_ticks)
{
	uint64_t number;

	if (!take_digits(&text, &number) || !number || number > INT_MAX || *text++ != '-')
		return false;
	*pid = (pid_t)number;
	return take_digits(&text, start_ticks) && !*text;
}

uint64_t prb_instance_start(pid_t pid)
{
	prb_auto_str struct prb_str text = {};
	struct prb_stat stat;

	return prb_proc_read(pid, "stat", &text) && prb_stat_parse(prb_str_text(&text), &stat)
		       ? stat.start_ticks
		       : 0;
}

struct prb_error *prb_instance_check(pid_t pid, uint64_t start_ticks)
{
	uint64_t start = prb_instance_start(pid);

	if (start == start_ticks)
		return NULL;
	return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has ended%s", (int)pid,
				start ? "; its pid is another process's now" : "");
}
