/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What is printed and saved of a tree of processes: the verdict, where each process is, the
 * merged stacks of all threads; and a bundle of snapshots.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLI_COMMANDS_RUN_REPORT_H
#define PRB_CLI_COMMANDS_RUN_REPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"
#include "cli/commands/run/standstill.h"

enum { PRB_REPORT_LINES = 60 };

/** Appends at most PRB_REPORT_LINES - @p spare lines; what is cut is counted. */
struct prb_error *prb_report_text(const struct prb_standstill *s, size_t spare,
				  struct prb_str *ret) PRB_MUST_CHECK;

/**
 * Saves snapshots of all Python processes as a bundle, in which their numbers are their pids.
 * @p chosen: the user named the file. *count: how many there are; none is no file. *left: how many
 * could not be read, or not in @p seconds.
 */
struct prb_error *prb_report_save(const struct prb_standstill *s, const char *path, bool chosen,
				  bool redact, double seconds, size_t *count,
				  size_t *left) PRB_MUST_CHECK;

/** The thread in which pytest runs a test, with xdist not the main thread; NULL: none does. */
const struct prb_dump_thread *prb_report_tester(const struct prb_why_one *one);

/** Appends the test that pytest runs in the process, if it runs one: "tests/test_a.py::test_b
 * (call)". */
struct prb_error *prb_report_test(const struct prb_why_one *one,
				  struct prb_str *ret) PRB_MUST_CHECK;

/** Appends where the tasks and greenlets of the process wait, and for what. */
struct prb_error *prb_report_tasks(const struct prb_why_one *one,
				   struct prb_str *ret) PRB_MUST_CHECK;

#endif
