/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "sql/tables/shared/facts.h"
#include "sql/tables/shared/machine.h"
#include "sql/spec/table.h"

enum { CPU, USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, GUEST, GUEST_NICE, BUSY };

static const struct prb_column columns[] = {
	[CPU] = {"cpu", PRB_COLUMN_INTEGER, "Number of the processor; NULL for all together"},
	[USER] = {"user_seconds", PRB_COLUMN_REAL, "In programs, with guests", "s"},
	[NICE] = {"nice_seconds", PRB_COLUMN_REAL, "In programs that were made nice", "s"},
	[SYSTEM] = {"system_seconds", PRB_COLUMN_REAL, "In the kernel", "s"},
	[IDLE] = {"idle_seconds", PRB_COLUMN_REAL, "With nothing to do", "s"},
	[IOWAIT] = {"iowait_seconds", PRB_COLUMN_REAL,
		    "With nothing to do while threads waited for disks", "s"},
	[IRQ] = {"irq_seconds", PRB_COLUMN_REAL, "In interrupts", "s"},
	[SOFTIRQ] = {"softirq_seconds", PRB_COLUMN_REAL, "In what interrupts leave to be done",
		     "s"},
	[STEAL] = {"steal_seconds", PRB_COLUMN_REAL,
		   "Ready to run while the hypervisor ran another machine", "s"},
	[GUEST] = {"guest_seconds", PRB_COLUMN_REAL, "Part of user: in virtual machines", "s"},
	[GUEST_NICE] = {"guest_nice_seconds", PRB_COLUMN_REAL, "Part of nice: in virtual machines",
			"s"},
	[BUSY] = {"busy", PRB_COLUMN_REAL, "Share of the time since boot with something to do",
		  "%"},
	{},
};

/** "cpu0 1 2 3 …": ticks in each state since boot. */
static struct prb_error *put(struct prb_scan *scan, const char *line, double ticks)
{
	double total = 0, states[GUEST_NICE + 1] = {};
	char *at = (char *)line + strlen("cpu");
	bool one = isdigit((unsigned char)*at);
	long number = one ? strtol(at, &at, 10) : 0;

	PRB_TRY(prb_scan_row(scan));
	if (one)
		prb_put_integer(scan, CPU, number);
	for (unsigned state = USER; state <= GUEST_NICE; state++) {
		char *end;
		unsigned long long value = strtoull(at, &end, 10);

		if (end == at)
			break;
		at = end;
		states[state] = (double)value / ticks;
		prb_put_real(scan, state, states[state]);
		if (state < GUEST)
			total += states[state];
	}
	if (total > 0)
		prb_put_real(scan, BUSY, 100 * (total - states[IDLE] - states[IOWAIT]) / total);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_str struct prb_str text = {};
	const char *at, *line;
	size_t length;

	if (!prb_scan_machine(scan))
		return NULL;
	PRB_TRY(prb_machine_file("/proc/stat", &text));
	at = prb_str_text(&text);
	while (prb_next_line(&at, &line, &length))
		if (length > 4 && !strncmp(line, "cpu", 3))
			PRB_TRY(put(scan, line, (double)sysconf(_SC_CLK_TCK)));
	return NULL;
}

const struct prb_table prb_table_cpu_utilization = {
	.schema = "cpu",
	.name = "utilization",
	.doc = "What this machine's processors did since boot: two readings make a rate",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 9,
	.scan = scan,
};
