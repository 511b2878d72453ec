/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "target/proc/process.h"
#include "sql/tables/shared/facts.h"
#include "sql/tables/shared/machine.h"
#include "sql/spec/table.h"
#include "target/proc/pids.h"
#include "target/proc/user.h"

enum {
	PID,
	PPID,
	USER,
	UID,
	NAME,
	CMDLINE,
	EXE,
	KIND,
	STATE,
	USER_SECONDS,
	SYSTEM_SECONDS,
	RSS,
	VSIZE,
	NICE,
	THREADS,
	START_TIME,
	AGE,
	PYTHON_VERSION,
	RANK,
	LOCAL_RANK,
	ERROR,
};

static const struct prb_column columns[] = {
	[PID] = {"pid", PRB_COLUMN_INTEGER, "Process id", .flags = PRB_COLUMN_KEY},
	[PPID] = {"ppid", PRB_COLUMN_INTEGER, "Process id of the parent; 0 if it is out of sight"},
	[USER] = {"user", PRB_COLUMN_TEXT, "Name of the effective user; NULL if it has none"},
	[UID] = {"uid", PRB_COLUMN_INTEGER, "User, effective"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name, as the kernel has it"},
	[CMDLINE] = {"cmdline", PRB_COLUMN_TEXT,
		     "Command line, arguments joined by spaces; NULL for threads of the kernel"},
	[EXE] = {"exe", PRB_COLUMN_TEXT, "Path of the executable; NULL if it may not be seen"},
	[KIND] = {"kind", PRB_COLUMN_TEXT, "program, zombie, or kernel for its own threads"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "running, idle, uninterruptible, stopped, traced, zombie or unknown"},
	[USER_SECONDS] = {"user_seconds", PRB_COLUMN_REAL, "Processor time in programs", "s"},
	[SYSTEM_SECONDS] = {"system_seconds", PRB_COLUMN_REAL, "Processor time in the kernel", "s"},
	[RSS] = {"rss", PRB_COLUMN_INTEGER, "Memory in RAM, shared or not", "bytes"},
	[VSIZE] = {"vsize", PRB_COLUMN_INTEGER, "Address space", "bytes"},
	[NICE] = {"nice", PRB_COLUMN_INTEGER, "Niceness, from -20 to 19"},
	[THREADS] = {"threads", PRB_COLUMN_INTEGER, "How many threads it has"},
	[START_TIME] = {"start_time", PRB_COLUMN_REAL, "When it was started, since the epoch", "s",
			PRB_COLUMN_TIME},
	[AGE] = {"age", PRB_COLUMN_REAL, "Time since then", "s"},
	[PYTHON_VERSION] = {"python_version", PRB_COLUMN_TEXT,
			    "Version of Python, '' if it does not tell; NULL if it is no Python"},
	[RANK] = {"rank", PRB_COLUMN_INTEGER, "Of Python programs: rank in its distributed job"},
	[LOCAL_RANK] = {"local_rank", PRB_COLUMN_INTEGER,
			"Of Python programs: rank among those of its machine"},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Of Python programs: why they may not be read"},
	{},
};

static void put_user(struct prb_scan *scan, uid_t uid)
{
	prb_auto_str struct prb_str name = {};

	prb_put_integer(scan, UID, uid);
	if (prb_scan_wants(scan, USER) && prb_user_name(uid, &name))
		prb_put_text(scan, USER, prb_str_text(&name));
}

static void put_cmdline(struct prb_scan *scan, const struct prb_process *process)
{
	prb_auto_str struct prb_str text = {};
	char *const *arg;

	prb_vec_each (arg, &process->argv)
		prb_str_printf(&text, "%s%s", text.length ? " " : "", *arg);
	if (text.length)
		prb_put_text(scan, CMDLINE, prb_str_text(&text));
}

static void put_process(struct prb_scan *scan, const struct prb_process *process)
{
	static const char *const kinds[] = {
		[PRB_PROCESS_PROGRAM] = "program",
		[PRB_PROCESS_ZOMBIE] = "zombie",
		[PRB_PROCESS_KERNEL] = "kernel",
	};

	prb_put_integer(scan, PID, process->pid);
	prb_put_integer(scan, PPID, process->ppid);
	put_user(scan, process->uid);
	prb_put_text(scan, NAME, process->comm);
	put_cmdline(scan, process);
	prb_put_text(scan, EXE, process->exe);
	prb_put_static(scan, KIND, kinds[process->kind]);
	prb_put_static(scan, STATE, prb_state_name(process->state));
	prb_put_integer(scan, THREADS, process->threads);
	prb_put_real(scan, START_TIME, process->start_time);
	prb_put_real(scan, AGE, prb_clock_calendar_seconds() - process->start_time);
}

static void put_numbers(struct prb_scan *scan, const int64_t *numbers)
{
	double ticks = (double)sysconf(_SC_CLK_TCK);
	int64_t rss;

	prb_put_real(scan, USER_SECONDS, (double)numbers[PRB_STAT_USER] / ticks);
	prb_put_real(scan, SYSTEM_SECONDS, (double)numbers[PRB_STAT_SYSTEM] / ticks);
	if (!__builtin_mul_overflow(numbers[PRB_STAT_RSS], sysconf(_SC_PAGESIZE), &rss))
		prb_put_integer(scan, RSS, rss);
	prb_put_integer(scan, VSIZE, numbers[PRB_STAT_VSIZE]);
	prb_put_integer(scan, NICE, numbers[PRB_STAT_NICE]);
}

static void put_python(struct prb_scan *scan, const struct prb_python_process *python)
{
	prb_put_text(scan, PYTHON_VERSION, python->version ? python->version : "");
	prb_put_natural(scan, RANK, python->rank);
	prb_put_natural(scan, LOCAL_RANK, python->local_rank);
	prb_put_text(scan, ERROR, python->refusal);
}

static const struct prb_python_process *find(const struct prb_python_processes *pythons, pid_t pid)
{
	const struct prb_python_process *p;

	prb_vec_each (p, &pythons->list)
		if (p->process.pid == pid)
			return p;
	return NULL;
}

/** A process that ended meanwhile gives no row. */
static struct prb_error *process_row(struct prb_scan *scan, pid_t pid,
				     const struct prb_python_processes *pythons)
{
	__attribute__((cleanup(prb_process_deinit))) struct prb_process process = {};
	prb_auto_str struct prb_str text = {};
	int64_t numbers[PRB_STAT_NUMBERS];
	char path[32];
	struct prb_error *err = prb_process_describe(pid, &process);

	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
		return NULL;
	PRB_TRY(err);
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	err = prb_machine_file(path, &text);
	bool there = !err && prb_stat_numbers(prb_str_text(&text), numbers);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (!there)
		return NULL;
	PRB_TRY(prb_scan_row(scan));
	put_process(scan, &process);
	put_numbers(scan, numbers);
	const struct prb_python_process *python = find(pythons, pid);
	if (python)
		put_python(scan, python);
	return NULL;
}

static bool wants_python(const struct prb_scan *scan)
{
	for (unsigned column = PYTHON_VERSION; column <= ERROR; column++)
		if (prb_scan_wants(scan, column))
			return true;
	return false;
}

static struct prb_error *list_rows(struct prb_scan *scan,
				   const struct prb_python_processes *pythons)
{
	prb_auto_pids struct prb_pids pids = {};
	const pid_t *pid;

	PRB_TRY(prb_pids_of_all(&pids));
	prb_vec_each (pid, &pids.list)
		PRB_TRY(process_row(scan, *pid, pythons));
	return NULL;
}

/* All at once: the list of /proc and that of the Python processes should be of one instant. */
static struct prb_error *scan(struct prb_scan *scan)
{
	__attribute__((
		cleanup(prb_python_processes_deinit))) struct prb_python_processes pythons = {};
	int64_t pid;

	if (!prb_scan_machine(scan))
		return NULL;
	if (wants_python(scan))
		PRB_TRY(prb_process_list(&pythons));
	if (!prb_scan_key_integer(scan, PID, &pid))
		return list_rows(scan, &pythons);
	return pid > 0 && pid <= INT32_MAX ? process_row(scan, (pid_t)pid, &pythons) : NULL;
}

const struct prb_table prb_table_system_process = {
	.schema = "system",
	.name = "process",
	.doc = "All processes of this machine, as far as they can be seen",
	.columns = columns,
	.flags = PRB_TABLE_GLOBAL,
	.rows = 300,
	.scan = scan,
};
