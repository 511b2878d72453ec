/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The scheduler's clock of each CPU.
 *
 * The kernel notes when a thread last ran (`se.exec_start`) by the clock of the thread's CPU. That
 * clock leaves out the time that a hypervisor stole and, on most kernels, the time of interrupts.
 * So the clocks of two CPUs differ, by hours on a virtual machine that has run for months, and only
 * a thread on that CPU can read its clock. Short-lived threads of ours do so, one for each CPU.
 *
 * Threading: any thread. The affinity of the caller is not changed.
 */
#ifndef PRB_DUMP_TASKS_CPU_CLOCK_H
#define PRB_DUMP_TASKS_CPU_CLOCK_H

#include <stdbool.h>
#include <stddef.h>

struct prb_cpu_clock {
	int cpu;    /**< set by the caller */
	double now; /**< milliseconds; 0 if it could not be read */
	/** Milliseconds of CLOCK_MONOTONIC that this clock has left out since boot. */
	double lost;
	bool late; /**< its CPU had no time for a thread of ours: another try may read it */
};

/**
 * Reads the clocks of @p count CPUs, each listed once. A clock stays unknown if the caller's
 * affinity excludes its CPU, or if that CPU cannot run a thread of ours within a fifth of a second.
 */
void prb_cpu_clocks_read(struct prb_cpu_clock *clocks, size_t count);

/**
 * The time in `se.exec_start` of a /proc/PID/task/TID/sched text: when the thread last began or
 * ended a stretch of running. False if the text lacks it, or if the kernel has erased it, as for a
 * thread that was moved to another CPU and has not run there yet.
 */
bool prb_cpu_clock_parse(const char *sched, double *ret);

#endif
