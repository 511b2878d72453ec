/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	FORKED = 0x40,		    /* PF_FORKNOEXEC among the flags in stat */
	KERNEL_THREAD = 0x00200000, /* PF_KTHREAD */
};

bool prb_stat_parse(const char *line, struct prb_stat *ret)
{
	const char *open = strchr(line, '(');
	const char *close = strrchr(line, ')');
	unsigned long long start;
	unsigned flags;
	long threads;

	if (!open || !close || close < open)
		return false;
	*ret = (struct prb_stat){.comm = open + 1, .comm_length = (size_t)(close - open - 1)};
	if (sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %ld %*d %llu",
		   &ret->state, &ret->ppid, &flags, &threads, &start) != 5)
		return false;
	ret->kernel = flags & KERNEL_THREAD;
	ret->forked = flags & FORKED;
	ret->threads = threads > 0 ? (unsigned)threads : 0;
	ret->start_ticks = start;
	return true;
}

bool prb_stat_numbers(const char *line, int64_t ret[PRB_STAT_NUMBERS])
{
	const char *at = strrchr(line, ')');

	memset(ret, 0, PRB_STAT_NUMBERS * sizeof(*ret));
	if (!at || at[1] != ' ' || !at[2])
		return false;
	at += 3; /* behind the state, which is one letter */
	for (unsigned field = PRB_STAT_PPID; field < PRB_STAT_NUMBERS; field++) {
		char *end;

		/* Addresses and limits go beyond the range of signed numbers. */
		ret[field] = (int64_t)strtoull(at, &end, 10);
		if (end == at)
			break;
		at = end;
	}
	return true;
}

void prb_put_comm(struct prb_str *s, const char *comm, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		bool escaped = comm[i] == '\\' && i + 1 < length &&
			       (comm[i + 1] == '\\' || comm[i + 1] == 'n');

		i += escaped;
		prb_str_putc(s, escaped && comm[i] == 'n' ? '\n' : comm[i]);
	}
}

void prb_put_seconds(struct prb_str *s, double seconds)
{
	char text[32];

	if (!(seconds < 100.0 * 366 * 86400)) {
		prb_str_puts(s, "for ever");
		return;
	}
	if (seconds > 0 && seconds < 0.001) {
		prb_str_printf(s, "%.0f µs", seconds * 1e6);
		return;
	}

	int length = snprintf(text, sizeof(text), "%.3f", seconds);
	while (length > 0 && text[length - 1] == '0')
		length--;
	if (length > 0 && text[length - 1] == '.')
		length--;
	prb_str_append(s, text, (size_t)length);
	prb_str_puts(s, " s");
}

const char *prb_text_field(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text; *line; line++) {
		if (!strncmp(line, name, length) && line[length] == ':') {
			line += length + 1;
			return line + strspn(line, " \t");
		}
		line = strchr(line, '\n');
		if (!line)
			return NULL;
	}
	return NULL;
}

const char *prb_text_variable(const struct prb_str *environment, const char *name)
{
	const char *at = prb_str_text(environment), *end = at + environment->length;
	size_t length = strlen(name);

	for (; at < end; at += strlen(at) + 1)
		if (!strncmp(at, name, length) && at[length] == '=')
			return at + length + 1;
	return NULL;
}

bool prb_text_last_number(const char *text, const char *name, int64_t *ret)
{
	const char *at = prb_text_field(text, name);
	bool found = false;

	while (at && *at && *at != '\n') {
		char *end;
		int64_t number = strtoll(at, &end, 10);

		if (end == at)
			break;
		*ret = number;
		found = true;
		at = end + strspn(end, " \t");
	}
	return found;
}

const char *prb_state_name(char state)
{
	switch (state) {
	case 'R':
		return "running";
	case 'S':
	case 'I':
		return "idle";
	case 'D':
		return "uninterruptible";
	case 'T':
		return "stopped";
	case 't':
		return "traced";
	case 'Z':
	case 'X':
		return "zombie";
	}
	return "unknown";
}
