/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Texts of the kernel about processes: taking them apart, and making safe to print what a
 * process wrote into them itself.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_TARGET_PROC_TEXT_H
#define PRB_TARGET_PROC_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

/** A line of /proc/PID/stat or /proc/PID/task/TID/stat. */
struct prb_stat {
	const char *comm; /**< inside the line, not terminated */
	size_t comm_length;
	char state;
	pid_t ppid;
	bool kernel; /**< a thread of the kernel */
	bool forked; /**< it was forked, and has executed no program since */
	unsigned threads;
	uint64_t start_ticks; /**< since boot, in clock ticks */
};

/** Takes a stat line apart; false if it is none. The name in it may hold any character. */
bool prb_stat_parse(const char *line, struct prb_stat *ret);

/** Numbers of a stat line by their place in it, as proc(5) counts: the first is the pid. */
enum prb_stat_number {
	PRB_STAT_PPID = 4,
	PRB_STAT_PGRP = 5,
	PRB_STAT_SESSION = 6,
	PRB_STAT_MINOR_FAULTS = 10,
	PRB_STAT_MAJOR_FAULTS = 12,
	PRB_STAT_USER = 14,
	PRB_STAT_SYSTEM = 15,
	PRB_STAT_CHILDREN_USER = 16, /**< of reaped children, and theirs */
	PRB_STAT_CHILDREN_SYSTEM = 17,
	PRB_STAT_PRIORITY = 18,
	PRB_STAT_NICE = 19,
	PRB_STAT_THREADS = 20,
	PRB_STAT_START = 22,
	PRB_STAT_VSIZE = 23,
	PRB_STAT_RSS = 24, /**< pages */
	PRB_STAT_PROCESSOR = 39,
	PRB_STAT_POLICY = 41,
	PRB_STAT_BLOCK_IO = 42,
	PRB_STAT_NUMBERS = 53,
};

/**
 * Reads all numbers of a stat line; missing ones, and the first three, are 0. False if it is no
 * stat line.
 */
bool prb_stat_numbers(const char *line, int64_t ret[PRB_STAT_NUMBERS]);

/** The word for a state of stat ("R"): "running", "idle", …; "unknown". Static. */
const char *prb_state_name(char state);

/** Appends a name from a stat line as the process wrote it: the kernel's escapes are undone. */
void prb_put_comm(struct prb_str *s, const char *comm, size_t length);

/** Appends "3600 s", "0.25 s" or "50 µs"; "for ever" stands for more than a hundred years. */
void prb_put_seconds(struct prb_str *s, double seconds);

/**
 * Finds "NAME:" at the beginning of a line of @p text, as in status and fdinfo, and returns the
 * text after it and blanks; NULL if there is none. The value ends with its line.
 */
const char *prb_text_field(const char *text, const char *name);

/** The value of a variable in an environment in the form of environ, or NULL. */
const char *prb_text_variable(const struct prb_str *environment, const char *name);

/** The last of the numbers in such a field, as in "NSpid:\t4242\t7"; false if it has none. */
bool prb_text_last_number(const char *text, const char *name, int64_t *ret);

#endif
