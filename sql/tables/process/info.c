/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <elf.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/read/process.h"
#include "target/proc/cgroup.h"
#include "target/proc/process.h"
#include "target/proc/signal_text.h"
#include "sql/engine/instant.h"
#include "sql/tables/shared/facts.h"
#include "sql/spec/table.h"
#include "target/architecture.h"
#include "values/environment.h"

enum {
	PID,
	PPID,
	PGID,
	SID,
	NAME,
	STATE,
	EXE,
	EXE_DELETED,
	CWD,
	ROOT,
	CMDLINE,
	UID,
	EUID,
	GID,
	EGID,
	USER,
	START_TIME,
	AGE,
	THREADS,
	USER_SECONDS,
	SYSTEM_SECONDS,
	NICE,
	RSS,
	RSS_PEAK,
	RSS_ANON,
	SHARED,
	SWAP,
	VSIZE,
	PSS,
	USS,
	MINOR_FAULTS,
	MAJOR_FAULTS,
	FDS,
	OOM_SCORE,
	OOM_SCORE_ADJ,
	TRACER,
	SECCOMP,
	NO_NEW_PRIVS,
	CAPABILITIES,
	CONTAINER,
	NS_PID,
	PID_NAMESPACE,
	NET_NAMESPACE,
	MNT_NAMESPACE,
	USER_NAMESPACE,
	PYTHON_VERSION,
	FREE_THREADED,
	DEBUG_BUILD,
	BUILD_ID,
	RANK,
	LOCAL_RANK,
	WORLD_SIZE,
	SIGNAL,
	SIGNAL_CODE,
	SIGNAL_ADDRESS,
	SIGNAL_SENDER,
	SIGNAL_TID,
	KIND,
	MACHINE,
	TIME,
	ERROR,
};

static const struct prb_column columns[] = {
	[PID] = {"pid", PRB_COLUMN_INTEGER, "Process id"},
	[PPID] = {"ppid", PRB_COLUMN_INTEGER, "Process id of the parent; 0 if it is out of sight"},
	[PGID] = {"pgid", PRB_COLUMN_INTEGER, "Process group"},
	[SID] = {"sid", PRB_COLUMN_INTEGER, "Session"},
	[NAME] = {"name", PRB_COLUMN_TEXT, "Name, as the kernel has it"},
	[STATE] = {"state", PRB_COLUMN_TEXT,
		   "State of the first thread: running, idle, uninterruptible, stopped, traced, "
		   "zombie or unknown"},
	[EXE] = {"exe", PRB_COLUMN_TEXT, "Path of the executable"},
	[EXE_DELETED] = {"exe_deleted", PRB_COLUMN_INTEGER,
			 "1 if the executable was removed or replaced since"},
	[CWD] = {"cwd", PRB_COLUMN_TEXT, "Working directory"},
	[ROOT] = {"root", PRB_COLUMN_TEXT, "Root directory: not / in a chroot or container"},
	[CMDLINE] = {"cmdline", PRB_COLUMN_TEXT, "Command line, arguments joined by spaces"},
	[UID] = {"uid", PRB_COLUMN_INTEGER, "User, real"},
	[EUID] = {"euid", PRB_COLUMN_INTEGER, "User, effective"},
	[GID] = {"gid", PRB_COLUMN_INTEGER, "Group, real"},
	[EGID] = {"egid", PRB_COLUMN_INTEGER, "Group, effective"},
	[USER] = {"user", PRB_COLUMN_TEXT, "Name of the effective user"},
	[START_TIME] = {"start_time", PRB_COLUMN_REAL, "When it was started, since the epoch", "s",
			PRB_COLUMN_TIME},
	[AGE] = {"age", PRB_COLUMN_REAL, "Time since then", "s"},
	[THREADS] = {"threads", PRB_COLUMN_INTEGER, "How many threads it has"},
	[USER_SECONDS] = {"user_seconds", PRB_COLUMN_REAL,
			  "Processor time of all threads in programs", "s"},
	[SYSTEM_SECONDS] = {"system_seconds", PRB_COLUMN_REAL,
			    "Processor time of all threads in the kernel", "s"},
	[NICE] = {"nice", PRB_COLUMN_INTEGER, "Niceness, from -20 to 19"},
	[RSS] = {"rss", PRB_COLUMN_INTEGER, "Memory in RAM, shared or not", "bytes"},
	[RSS_PEAK] = {"rss_peak", PRB_COLUMN_INTEGER, "The most that rss has been", "bytes"},
	[RSS_ANON] = {"rss_anon", PRB_COLUMN_INTEGER, "Part of rss without a file behind it",
		      "bytes"},
	[SHARED] = {"shared", PRB_COLUMN_INTEGER, "Part of rss that is of files and shared memory",
		    "bytes"},
	[SWAP] = {"swap", PRB_COLUMN_INTEGER, "Memory that was swapped out", "bytes"},
	[VSIZE] = {"vsize", PRB_COLUMN_INTEGER, "Address space", "bytes"},
	[PSS] = {"pss", PRB_COLUMN_INTEGER,
		 "Memory in RAM, shared pages divided by their users; slow", "bytes",
		 .flags = PRB_COLUMN_COSTLY},
	[USS] = {"uss", PRB_COLUMN_INTEGER, "Memory in RAM that nobody shares; slow", "bytes",
		 .flags = PRB_COLUMN_COSTLY},
	[MINOR_FAULTS] = {"minor_faults", PRB_COLUMN_INTEGER,
			  "Page faults that needed no reading from disk"},
	[MAJOR_FAULTS] = {"major_faults", PRB_COLUMN_INTEGER, "Page faults that did"},
	[FDS] = {"fds", PRB_COLUMN_INTEGER, "How many descriptors are open"},
	[OOM_SCORE] = {"oom_score", PRB_COLUMN_INTEGER,
		       "Who is killed when memory runs out: the highest"},
	[OOM_SCORE_ADJ] = {"oom_score_adj", PRB_COLUMN_INTEGER,
			   "What was added to it, from -1000 (never) to 1000"},
	[TRACER] = {"tracer", PRB_COLUMN_INTEGER, "Process that debugs it; NULL if none does"},
	[SECCOMP] = {"seccomp", PRB_COLUMN_TEXT, "Filter of system calls: off, strict or filter"},
	[NO_NEW_PRIVS] = {"no_new_privs", PRB_COLUMN_INTEGER,
			  "1 if programs it starts cannot gain rights"},
	[CAPABILITIES] = {"capabilities", PRB_COLUMN_TEXT,
			  "Effective capabilities, a bit each, in hex"},
	[CONTAINER] = {"container", PRB_COLUMN_TEXT,
		       "Id of its container, from its control group; NULL if none"},
	[NS_PID] = {"ns_pid", PRB_COLUMN_INTEGER, "Process id that it has for itself"},
	[PID_NAMESPACE] = {"pid_namespace", PRB_COLUMN_INTEGER, "Number of its pid namespace"},
	[NET_NAMESPACE] = {"net_namespace", PRB_COLUMN_INTEGER, "Number of its network namespace"},
	[MNT_NAMESPACE] = {"mnt_namespace", PRB_COLUMN_INTEGER, "Number of its mount namespace"},
	[USER_NAMESPACE] = {"user_namespace", PRB_COLUMN_INTEGER, "Number of its user namespace"},
	[PYTHON_VERSION] = {"python_version", PRB_COLUMN_TEXT,
			    "Version of Python; NULL if it is no Python that can be read"},
	[FREE_THREADED] = {"free_threaded", PRB_COLUMN_INTEGER, "1 if this Python has no GIL"},
	[DEBUG_BUILD] = {"debug_build", PRB_COLUMN_INTEGER, "1 if this Python is a debug build"},
	[BUILD_ID] = {"build_id", PRB_COLUMN_TEXT,
		      "Build-id of the file that holds the interpreter"},
	[RANK] = {"rank", PRB_COLUMN_INTEGER, "Rank in its distributed job"},
	[LOCAL_RANK] = {"local_rank", PRB_COLUMN_INTEGER, "Rank among those of its machine"},
	[WORLD_SIZE] = {"world_size", PRB_COLUMN_INTEGER, "How many processes the job has"},
	[SIGNAL] = {"signal", PRB_COLUMN_TEXT,
		    "What ended the process that a core is of: SIGSEGV; NULL if nothing did"},
	[SIGNAL_CODE] = {"signal_code", PRB_COLUMN_TEXT, "Why it was sent: SEGV_MAPERR, SI_USER"},
	[SIGNAL_ADDRESS] = {"signal_address", PRB_COLUMN_TEXT,
			    "Address that could not be used, in hex"},
	[SIGNAL_SENDER] = {"signal_sender", PRB_COLUMN_INTEGER, "Process that sent it"},
	[SIGNAL_TID] = {"signal_tid", PRB_COLUMN_INTEGER, "Thread that it hit"},
	[KIND] = {"kind", PRB_COLUMN_TEXT,
		  "What is being read: process, core, snapshot or debugger"},
	[MACHINE] = {"machine", PRB_COLUMN_TEXT, "x86_64 or aarch64"},
	[TIME] = {"time", PRB_COLUMN_REAL, "When it was as told here, since the epoch", "s",
		  PRB_COLUMN_TIME},
	[ERROR] = {"_error", PRB_COLUMN_TEXT, "Why cells are missing"},
	{},
};

/** One row in the making. */
struct row {
	struct prb_scan *scan;
	struct prb_missing missing;
	struct prb_fact_clock clock;
	bool clock_known;
};

static bool wants_any(const struct prb_scan *scan, unsigned first, unsigned last)
{
	for (unsigned column = first; column <= last; column++)
		if (prb_scan_wants(scan, column))
			return true;
	return false;
}

/** A core has made up a line of stat of which these are true: the rest is 0. */
static bool made_up(const int64_t *numbers)
{
	return !numbers[PRB_STAT_START] && !numbers[PRB_STAT_VSIZE];
}

static void put_times(struct row *row, const int64_t *numbers)
{
	struct prb_scan *scan = row->scan;
	double ticks = row->clock.ticks;

	if (numbers[PRB_STAT_USER] || numbers[PRB_STAT_SYSTEM] || !made_up(numbers)) {
		prb_put_real(scan, USER_SECONDS, (double)numbers[PRB_STAT_USER] / ticks);
		prb_put_real(scan, SYSTEM_SECONDS, (double)numbers[PRB_STAT_SYSTEM] / ticks);
	}
	if (!row->clock_known || made_up(numbers))
		return;
	double start = row->clock.boot + (double)numbers[PRB_STAT_START] / ticks;
	prb_put_real(scan, START_TIME, start);
	prb_put_real(scan, AGE, prb_instant_time(scan->instant) - start);
}

static struct prb_error *put_stat(struct row *row)
{
	struct prb_scan *scan = row->scan;
	prb_auto_str struct prb_str text = {}, name = {};
	int64_t numbers[PRB_STAT_NUMBERS];
	struct prb_stat stat;

	PRB_TRY(prb_fact_file(scan, &row->missing, &text, "stat"));
	if (!text.length)
		return NULL;
	if (!prb_stat_parse(prb_str_text(&text), &stat) ||
	    !prb_stat_numbers(prb_str_text(&text), numbers))
		return prb_missing_add(scan, &row->missing,
				       prb_error_create(PRB_ERROR_BAD_DATA, "stat is malformed"),
				       "stat");
	prb_put_comm(&name, stat.comm, stat.comm_length);
	if (name.length)
		prb_put_text(scan, NAME, prb_str_text(&name));
	prb_put_static(scan, STATE, prb_state_name(stat.state));
	prb_put_integer(scan, PPID, numbers[PRB_STAT_PPID]);
	prb_put_integer(scan, PGID, numbers[PRB_STAT_PGRP]);
	prb_put_integer(scan, SID, numbers[PRB_STAT_SESSION]);
	prb_put_integer(scan, THREADS, numbers[PRB_STAT_THREADS]);
	put_times(row, numbers);
	if (made_up(numbers))
		return NULL;
	prb_put_integer(scan, NICE, numbers[PRB_STAT_NICE]);
	prb_put_integer(scan, VSIZE, numbers[PRB_STAT_VSIZE]);
	prb_put_integer(scan, MINOR_FAULTS, numbers[PRB_STAT_MINOR_FAULTS]);
	prb_put_integer(scan, MAJOR_FAULTS, numbers[PRB_STAT_MAJOR_FAULTS]);
	return NULL;
}

/** A core has no status, but the kernel passed the users to the program at its start (auxv). */
static struct prb_error *put_users(struct row *row, const char *status, int64_t *euid)
{
	static const struct {
		uint64_t type;
		unsigned column;
	} entries[] = {{AT_UID, UID}, {AT_EUID, EUID}, {AT_GID, GID}, {AT_EGID, EGID}};
	prb_auto_str struct prb_str auxv = {};
	struct prb_scan *scan = row->scan;
	Elf64_auxv_t entry;

	*euid = -1;
	if (*status) {
		long long ids[4];
		const char *uid = prb_text_field(status, "Uid"),
			   *gid = prb_text_field(status, "Gid");

		if (uid && sscanf(uid, "%lld %lld", &ids[0], &ids[1]) == 2 && gid &&
		    sscanf(gid, "%lld %lld", &ids[2], &ids[3]) == 2) {
			for (unsigned i = 0; i < 4; i++)
				prb_put_integer(scan, entries[i].column, ids[i]);
			*euid = ids[1];
		}
		return NULL;
	}
	PRB_TRY(prb_fact_file(scan, &row->missing, &auxv, "auxv"));
	for (size_t at = 0; at + sizeof(entry) <= auxv.length; at += sizeof(entry)) {
		memcpy(&entry, auxv.data + at, sizeof(entry));
		for (unsigned i = 0; i < 4; i++)
			if (entry.a_type == entries[i].type)
				prb_put_integer(scan, entries[i].column, (int64_t)entry.a_un.a_val);
		if (entry.a_type == AT_EUID)
			*euid = (int64_t)entry.a_un.a_val;
	}
	return NULL;
}

static void put_status(struct row *row, const char *status)
{
	static const char *const seccomp[] = {"off", "strict", "filter"};
	struct prb_scan *scan = row->scan;
	const char *value = prb_text_field(status, "Seccomp");
	long long anon, file, shared;

	if (value && *value >= '0' && *value <= '2')
		prb_put_static(scan, SECCOMP, seccomp[*value - '0']);
	prb_put_field(scan, RSS, status, "VmRSS", 1024);
	prb_put_field(scan, RSS_PEAK, status, "VmHWM", 1024);
	prb_put_field(scan, SWAP, status, "VmSwap", 1024);
	prb_put_field(scan, RSS_ANON, status, "RssAnon", 1024);
	prb_put_field(scan, NO_NEW_PRIVS, status, "NoNewPrivs", 1);
	prb_put_field_text(scan, CAPABILITIES, status, "CapEff");
	value = prb_text_field(status, "RssFile");
	anon = value ? strtoll(value, NULL, 10) : -1;
	value = prb_text_field(status, "RssShmem");
	shared = value ? strtoll(value, NULL, 10) : -1;
	if (anon >= 0 && shared >= 0 && !__builtin_add_overflow(anon, shared, &file) &&
	    !__builtin_mul_overflow(file, 1024, &file))
		prb_put_integer(scan, SHARED, file);
	value = prb_text_field(status, "TracerPid");
	if (value && strtoll(value, NULL, 10) > 0)
		prb_put_field(scan, TRACER, status, "TracerPid", 1);
	/* One number for each pid namespace, the innermost last. */
	prb_put_last_number(scan, NS_PID, status, "NSpid");
}

static struct prb_error *put_identity(struct row *row)
{
	prb_auto_str struct prb_str status = {}, user = {};
	int64_t euid;

	PRB_TRY(prb_fact_file(row->scan, &row->missing, &status, "status"));
	put_status(row, prb_str_text(&status));
	PRB_TRY(put_users(row, prb_str_text(&status), &euid));
	if (prb_scan_wants(row->scan, USER))
		prb_fact_user(row->scan, euid, &user);
	if (user.length)
		prb_put_text(row->scan, USER, prb_str_text(&user));
	return user.failed ? prb_error_nomem() : NULL;
}

static struct prb_error *put_link(struct row *row, unsigned column, const char *name)
{
	prb_auto_str struct prb_str path = {};

	if (!prb_scan_wants(row->scan, column))
		return NULL;
	PRB_TRY(prb_fact_link(row->scan, &row->missing, &path, "%s", name));
	if (path.length)
		prb_put_text(row->scan, column, prb_str_text(&path));
	return NULL;
}

static struct prb_error *put_exe(struct row *row)
{
	static const char deleted[] = " (deleted)";
	const size_t cut = sizeof(deleted) - 1;
	prb_auto_str struct prb_str path = {};

	if (!wants_any(row->scan, EXE, EXE_DELETED))
		return NULL;
	PRB_TRY(prb_fact_link(row->scan, &row->missing, &path, "exe"));
	if (!path.length)
		return NULL;
	bool gone = path.length > cut && !strcmp(path.data + path.length - cut, deleted);
	prb_put_bytes(row->scan, EXE, path.data, path.length - (gone ? cut : 0));
	prb_put_integer(row->scan, EXE_DELETED, gone);
	return NULL;
}

static void put_death(struct prb_scan *scan)
{
	struct prb_dump_death death = prb_dump_death(prb_instant_target(scan->instant));
	prb_auto_str struct prb_str name = {};

	if (!death.signal)
		return;
	prb_put_signal(&name, death.signal);
	prb_put_text(scan, SIGNAL, prb_str_text(&name));
	if (death.code)
		prb_put_static(scan, SIGNAL_CODE, death.code);
	if (death.has_address)
		prb_put_format(scan, SIGNAL_ADDRESS, "%#llx", (unsigned long long)death.address);
	if (death.sender)
		prb_put_integer(scan, SIGNAL_SENDER, death.sender);
	prb_put_integer(scan, SIGNAL_TID, death.tid);
}

static struct prb_error *put_cmdline(struct row *row)
{
	prb_auto_str struct prb_str text = {};

	if (!prb_scan_wants(row->scan, CMDLINE))
		return NULL;
	PRB_TRY(prb_fact_file(row->scan, &row->missing, &text, "cmdline"));
	if (!text.length)
		return NULL;
	size_t length = prb_text_command_length(text.data, text.length);
	length -= !text.data[length - 1];
	for (size_t i = 0; i < length; i++)
		if (!text.data[i])
			text.data[i] = ' ';
	prb_put_bytes(row->scan, CMDLINE, text.data, length);
	return NULL;
}

static struct prb_error *put_number(struct row *row, unsigned column, const char *name)
{
	prb_auto_str struct prb_str text = {};

	if (!prb_scan_wants(row->scan, column))
		return NULL;
	PRB_TRY(prb_fact_file(row->scan, &row->missing, &text, "%s", name));
	if (text.length)
		prb_put_integer(row->scan, column, strtoll(text.data, NULL, 10));
	return NULL;
}

static struct prb_error *put_namespace(struct row *row, unsigned column, const char *name)
{
	prb_auto_str struct prb_str link = {};

	if (!prb_scan_wants(row->scan, column))
		return NULL;
	PRB_TRY(prb_fact_link(row->scan, &row->missing, &link, "ns/%s", name));
	const char *number = strchr(prb_str_text(&link), '[');
	if (number)
		prb_put_integer(row->scan, column, strtoll(number + 1, NULL, 10));
	return NULL;
}

static struct prb_error *put_costly(struct row *row)
{
	prb_auto_str struct prb_str text = {};
	long long clean, dirty;

	if (!wants_any(row->scan, PSS, USS))
		return NULL;
	PRB_TRY(prb_fact_file(row->scan, &row->missing, &text, "smaps_rollup"));
	prb_put_field(row->scan, PSS, prb_str_text(&text), "Pss", 1024);
	const char *a = prb_text_field(prb_str_text(&text), "Private_Clean");
	const char *b = prb_text_field(prb_str_text(&text), "Private_Dirty");
	if (!a || !b)
		return NULL;
	clean = strtoll(a, NULL, 10);
	dirty = strtoll(b, NULL, 10);
	if (!__builtin_add_overflow(clean, dirty, &clean) &&
	    !__builtin_mul_overflow(clean, 1024, &clean))
		prb_put_integer(row->scan, USS, clean);
	return NULL;
}

static struct prb_error *put_count(struct row *row)
{
	prb_auto_str struct prb_str names = {};
	int64_t count = 0;

	if (!prb_scan_wants(row->scan, FDS))
		return NULL;
	struct prb_error *err =
		prb_target_list(prb_instant_target(row->scan->instant), &names, "fd");
	if (err)
		return prb_missing_add(row->scan, &row->missing, err, "fd");
	for (const char *s = prb_str_text(&names); *s; s++)
		count += *s == '\n';
	prb_put_integer(row->scan, FDS, count);
	return NULL;
}

static struct prb_error *put_job(struct row *row)
{
	prb_auto_str struct prb_str text = {};

	if (!wants_any(row->scan, RANK, WORLD_SIZE))
		return NULL;
	PRB_TRY(prb_missing_add(
		row->scan, &row->missing,
		prb_environment_read(prb_instant_target(row->scan->instant), &text, NULL),
		"environ"));
	struct prb_process_job job = prb_process_job(&text);
	prb_put_natural(row->scan, RANK, job.rank);
	prb_put_natural(row->scan, LOCAL_RANK, job.local_rank);
	prb_put_natural(row->scan, WORLD_SIZE, job.world_size);
	return NULL;
}

static struct prb_error *put_container(struct row *row)
{
	prb_auto_str struct prb_str text = {}, id = {};

	if (!prb_scan_wants(row->scan, CONTAINER))
		return NULL;
	PRB_TRY(prb_fact_file(row->scan, &row->missing, &text, "cgroup"));
	prb_cgroup_container(prb_str_text(&text), &id);
	if (id.length)
		prb_put_text(row->scan, CONTAINER, prb_str_text(&id));
	return NULL;
}

static struct prb_error *put_python(struct row *row)
{
	struct prb_pythons *pythons;
	struct prb_mem *mem;

	if (!wants_any(row->scan, PYTHON_VERSION, BUILD_ID))
		return NULL;
	struct prb_error *err = prb_instant_pythons(row->scan->instant, &pythons, &mem);
	if (err)
		return prb_missing_add(row->scan, &row->missing, err, "Python");
	const struct prb_python *py = pythons->list.items[0];
	prb_put_text(row->scan, PYTHON_VERSION, py->version);
	prb_put_integer(row->scan, FREE_THREADED, py->layout.free_threaded);
	prb_put_integer(row->scan, DEBUG_BUILD, py->layout.debug_build);
	const char *build_id = prb_module_build_id(py->module);
	if (*build_id)
		prb_put_text(row->scan, BUILD_ID, build_id);
	return NULL;
}

static struct prb_error *put_row(struct row *row)
{
	static const struct {
		unsigned column;
		const char *name;
	} links[] = {{CWD, "cwd"}, {ROOT, "root"}},
	  numbers[] = {{OOM_SCORE, "oom_score"}, {OOM_SCORE_ADJ, "oom_score_adj"}},
	  namespaces[] = {{PID_NAMESPACE, "pid"},
			  {NET_NAMESPACE, "net"},
			  {MNT_NAMESPACE, "mnt"},
			  {USER_NAMESPACE, "user"}};

	PRB_TRY(put_stat(row));
	PRB_TRY(put_identity(row));
	PRB_TRY(put_exe(row));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(links); i++)
		PRB_TRY(put_link(row, links[i].column, links[i].name));
	PRB_TRY(put_cmdline(row));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(numbers); i++)
		PRB_TRY(put_number(row, numbers[i].column, numbers[i].name));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(namespaces); i++)
		PRB_TRY(put_namespace(row, namespaces[i].column, namespaces[i].name));
	PRB_TRY(put_costly(row));
	PRB_TRY(put_count(row));
	PRB_TRY(put_job(row));
	PRB_TRY(put_container(row));
	return put_python(row);
}

static struct prb_error *scan(struct prb_scan *scan)
{
	const struct prb_target *target = prb_instant_target(scan->instant);
	const struct prb_architecture *machine = prb_architecture_find(target->machine);
	struct row row = {.scan = scan};

	PRB_TRY(prb_scan_row(scan));
	row.clock_known = prb_fact_clock(scan, &row.clock);
	if (target->pid)
		prb_put_integer(scan, PID, target->pid);
	prb_put_static(scan, KIND, prb_target_kind_key(target->kind));
	put_death(scan);
	prb_put_static(scan, MACHINE, machine ? machine->name : NULL);
	prb_put_real(scan, TIME, prb_instant_time(scan->instant));
	struct prb_error *err = put_row(&row);
	if (!err)
		prb_missing_put(scan, ERROR, &row.missing);
	prb_missing_deinit(&row.missing);
	return err;
}

const struct prb_table prb_table_process_info = {
	.schema = "process",
	.name = "info",
	.doc = "The process: one row",
	.columns = columns,
	.rows = 1,
	.scan = scan,
};
