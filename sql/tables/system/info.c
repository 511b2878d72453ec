/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "sql/tables/shared/facts.h"
#include "sql/tables/shared/machine.h"
#include "sql/spec/table.h"

enum {
	HOSTNAME,
	OS,
	KERNEL,
	KERNEL_BUILD,
	MACHINE,
	CPUS,
	CPU_MODEL,
	MEMORY_TOTAL,
	MEMORY_AVAILABLE,
	MEMORY_FREE,
	SWAP_TOTAL,
	SWAP_FREE,
	UPTIME,
	BOOT_TIME,
	LOAD_1,
	LOAD_5,
	LOAD_15,
	TIME,
};

static const struct prb_column columns[] = {
	[HOSTNAME] = {"hostname", PRB_COLUMN_TEXT, "Name of the machine"},
	[OS] = {"os", PRB_COLUMN_TEXT, "Name of the distribution"},
	[KERNEL] = {"kernel", PRB_COLUMN_TEXT, "Version of the kernel"},
	[KERNEL_BUILD] = {"kernel_build", PRB_COLUMN_TEXT, "Number and date of its build"},
	[MACHINE] = {"machine", PRB_COLUMN_TEXT, "Kind of processor: x86_64 or aarch64"},
	[CPUS] = {"cpus", PRB_COLUMN_INTEGER, "Processors that are online"},
	[CPU_MODEL] = {"cpu_model", PRB_COLUMN_TEXT,
		       "Name of the processor; NULL if the kernel has none"},
	[MEMORY_TOTAL] = {"memory_total", PRB_COLUMN_INTEGER, "RAM", "bytes"},
	[MEMORY_AVAILABLE] = {"memory_available", PRB_COLUMN_INTEGER,
			      "RAM that programs can have without swapping", "bytes"},
	[MEMORY_FREE] = {"memory_free", PRB_COLUMN_INTEGER, "RAM that is used for nothing",
			 "bytes"},
	[SWAP_TOTAL] = {"swap_total", PRB_COLUMN_INTEGER, "Swap space", "bytes"},
	[SWAP_FREE] = {"swap_free", PRB_COLUMN_INTEGER, "Swap space that is not used", "bytes"},
	[UPTIME] = {"uptime", PRB_COLUMN_REAL, "Time since the machine was started", "s"},
	[BOOT_TIME] = {"boot_time", PRB_COLUMN_REAL, "When that was, since the epoch", "s",
		       PRB_COLUMN_TIME},
	[LOAD_1] = {"load_1", PRB_COLUMN_REAL,
		    "Threads that ran or wanted to, average of a minute"},
	[LOAD_5] = {"load_5", PRB_COLUMN_REAL, "The same of five minutes"},
	[LOAD_15] = {"load_15", PRB_COLUMN_REAL, "The same of fifteen minutes"},
	[TIME] = {"time", PRB_COLUMN_REAL, "Time of the machine's clock, since the epoch", "s",
		  PRB_COLUMN_TIME},
	{},
};

static void put_memory(struct prb_scan *scan, const char *text)
{
	prb_put_field(scan, MEMORY_TOTAL, text, "MemTotal", 1024);
	prb_put_field(scan, MEMORY_AVAILABLE, text, "MemAvailable", 1024);
	prb_put_field(scan, MEMORY_FREE, text, "MemFree", 1024);
	prb_put_field(scan, SWAP_TOTAL, text, "SwapTotal", 1024);
	prb_put_field(scan, SWAP_FREE, text, "SwapFree", 1024);
}

/** PRETTY_NAME="…" */
static void put_os(struct prb_scan *scan, const char *text)
{
	static const char key[] = "PRETTY_NAME=";

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, sizeof(key) - 1) != 0)
			continue;
		line += sizeof(key) - 1;
		line += *line == '"';
		prb_put_bytes(scan, OS, line, strcspn(line, "\"\n"));
		return;
	}
}

static void put_cpu_model(struct prb_scan *scan, const char *text)
{
	const char *model = strstr(text, "model name");
	size_t length = model ? strcspn(model, ":\n") : 0;

	if (!model || model[length] != ':')
		return;
	model += length + 1;
	model += strspn(model, " \t");
	prb_put_bytes(scan, CPU_MODEL, model, strcspn(model, "\n"));
}

static void put_names(struct prb_scan *scan)
{
	struct utsname names;

	if (uname(&names))
		return;
	prb_put_text(scan, HOSTNAME, names.nodename);
	prb_put_text(scan, KERNEL, names.release);
	prb_put_text(scan, KERNEL_BUILD, names.version);
	prb_put_text(scan, MACHINE, names.machine);
}

static void put_times(struct prb_scan *scan, const char *loads)
{
	double load[3], boot = prb_machine_boot();

	double time = prb_clock_calendar_seconds();
	prb_put_real(scan, TIME, time);
	prb_put_real(scan, BOOT_TIME, boot);
	prb_put_real(scan, UPTIME, time - boot);
	if (sscanf(loads, "%lf %lf %lf", &load[0], &load[1], &load[2]) != 3)
		return;
	for (unsigned i = 0; i < 3; i++)
		prb_put_real(scan, LOAD_1 + i, load[i]);
}

/** Reads a file that may not be there; only memory is an error. */
static struct prb_error *read_file(const char *path, struct prb_str *ret)
{
	struct prb_error *err = prb_machine_file(path, ret);

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *scan(struct prb_scan *scan)
{
	prb_auto_str struct prb_str memory = {}, loads = {}, os = {}, cpus = {};

	if (!prb_scan_machine(scan))
		return NULL;
	PRB_TRY(prb_machine_file("/proc/meminfo", &memory));
	PRB_TRY(read_file("/proc/loadavg", &loads));
	if (prb_scan_wants(scan, OS))
		PRB_TRY(read_file("/etc/os-release", &os));
	if (prb_scan_wants(scan, CPU_MODEL))
		PRB_TRY(read_file("/proc/cpuinfo", &cpus));
	PRB_TRY(prb_scan_row(scan));
	put_names(scan);
	put_os(scan, prb_str_text(&os));
	put_cpu_model(scan, prb_str_text(&cpus));
	prb_put_natural(scan, CPUS, sysconf(_SC_NPROCESSORS_ONLN));
	put_memory(scan, prb_str_text(&memory));
	put_times(scan, prb_str_text(&loads));
	return NULL;
}

const struct prb_table prb_table_system_info = {
	.schema = "system",
	.name = "info",
	.doc = "This machine: one row",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 1,
	.scan = scan,
};
