/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/schema.h"

#include <string.h>

#include "base/checked.h"

const struct prb_schema_table prb_schema_tables[] = {
	{"recording", "CREATE TABLE recording (\n"
		      "  probing TEXT, system TEXT, started REAL, duration_ns INTEGER,\n"
		      "  rate REAL, tid INTEGER, native INTEGER, ended TEXT, totals_s INTEGER,\n"
		      "  times INTEGER, late INTEGER, missed INTEGER, unreadable INTEGER,\n"
		      "  stops INTEGER, stopped_again INTEGER, pause_p50_us REAL,\n"
		      "  pause_p99_us REAL, pause_max_us REAL, pause_total_us REAL,\n"
		      "  own_cpu_ns INTEGER, ring_s REAL, tasks INTEGER,\n"
		      "  unseen_children_ns INTEGER, condition TEXT, around_s REAL)"},
	{"processes", "CREATE TABLE processes (\n"
		      "  process INTEGER PRIMARY KEY, pid INTEGER, command TEXT, python TEXT,\n"
		      "  cpu_ns INTEGER)"},
	{"threads", "CREATE TABLE threads (\n"
		    "  thread INTEGER PRIMARY KEY, process INTEGER, tid INTEGER, name TEXT,\n"
		    "  os_name TEXT, cpu_ns INTEGER, ended INTEGER)"},
	{"functions", "CREATE TABLE functions (\n"
		      "  function INTEGER PRIMARY KEY, kind TEXT, name TEXT, file TEXT,\n"
		      "  first_line INTEGER, module TEXT)"},
	{"frames", "CREATE TABLE frames (\n"
		   "  frame INTEGER PRIMARY KEY, function INTEGER, line INTEGER)"},
	{"stacks", "CREATE TABLE stacks (\n"
		   "  stack INTEGER PRIMARY KEY, parent INTEGER, frame INTEGER, depth INTEGER)"},
	{"states", "CREATE TABLE states (\n"
		   "  state INTEGER PRIMARY KEY, name TEXT)"},
	{"waits", "CREATE TABLE waits (\n"
		  "  wait INTEGER PRIMARY KEY, kind TEXT, what TEXT, owner INTEGER)"},
	{"chunks", "CREATE TABLE chunks (\n"
		   "  chunk INTEGER PRIMARY KEY, begin_ns INTEGER, unit_ns INTEGER,\n"
		   "  runs INTEGER, data BLOB)"},
	{"totals", "CREATE TABLE totals (\n"
		   "  part INTEGER, stack INTEGER, state INTEGER, samples INTEGER,\n"
		   "  cpu_ns INTEGER, wall_ns INTEGER, runqueue_ns INTEGER,\n"
		   "  PRIMARY KEY (part, stack, state)) WITHOUT ROWID"},
	{"windows", "CREATE TABLE windows (\n"
		    "  begin_ns INTEGER PRIMARY KEY, end_ns INTEGER)"},
	{"source",
	 "CREATE TABLE source (\n"
	 "  file TEXT, line INTEGER, text TEXT,\n"
	 "  PRIMARY KEY (file, line)) WITHOUT ROWID",
	 PRB_SCHEMA_SOURCE},
	{"images",
	 "CREATE TABLE images (\n"
	 "  image INTEGER PRIMARY KEY, path TEXT, build_id TEXT, address INTEGER,\n"
	 "  size INTEGER, file_offset INTEGER)",
	 PRB_SCHEMA_IMAGES},
	{"origins",
	 "CREATE TABLE origins (\n"
	 "  function INTEGER PRIMARY KEY, image INTEGER, address INTEGER)",
	 PRB_SCHEMA_ORIGINS},
	{"unstopped", "CREATE TABLE unstopped (samples INTEGER)", PRB_SCHEMA_UNSTOPPED},
	{},
};

static const char *const ends[] = {
	[PRB_PROFILE_DONE] = "time over",
	[PRB_PROFILE_INTERRUPTED] = "interrupted",
	[PRB_PROFILE_TARGET_ENDED] = "process ended",
	[PRB_PROFILE_THREAD_ENDED] = "thread ended",
	[PRB_PROFILE_TARGET_EXEC] = "another program",
};

const char *prb_schema_end(enum prb_profile_end end)
{
	return (size_t)end < PRB_ARRAY_SIZE(ends) ? ends[end] : NULL;
}

enum prb_profile_end prb_schema_end_of(const char *word)
{
	for (size_t i = 0; word && i < PRB_ARRAY_SIZE(ends); i++)
		if (!strcmp(word, ends[i]))
			return (enum prb_profile_end)i;
	return PRB_PROFILE_CUT_OFF;
}

bool prb_schema_wait_of(const char *word, enum prb_wait_kind *ret)
{
	for (unsigned i = PRB_WAIT_NONE + 1; i < PRB_WAIT_KINDS; i++)
		if (!strcmp(word, prb_wait_kind_name((enum prb_wait_kind)i))) {
			*ret = (enum prb_wait_kind)i;
			return true;
		}
	return false;
}

bool prb_schema_kind_of(const char *word, enum prb_function_kind *ret)
{
	for (unsigned i = 0; i <= PRB_FUNCTION_TASK; i++)
		if (!strcmp(word, prb_function_kind_name((enum prb_function_kind)i))) {
			*ret = (enum prb_function_kind)i;
			return true;
		}
	return false;
}
