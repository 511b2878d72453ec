/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Samples that the kernel takes of running threads, by a BPF program, without stopping them.
 *
 * Each thread has a clock of its own that counts its time on a processor, and starts the program at
 * each tick, in the thread's own context. Threads that it starts later have one, too. Nothing is
 * written to the process, and the kernel removes everything when we exit.
 *
 * Threading: one thread at a time. Internal to profile/sampler/. The only user of libbpf.
 */
#ifndef PRB_PROFILE_SAMPLER_EBPF_EBPF_H
#define PRB_PROFILE_SAMPLER_EBPF_EBPF_H

#include <sys/types.h>

#include "base/error.h"
#include "profile/sampler/ebpf/record.h"

struct prb_ebpf;

/** Whether this build has the BPF program. */
bool prb_ebpf_built(void);

/** PRB_ERROR_UNSUPPORTED if this build has no BPF program, or this machine no libbpf. */
struct prb_error *prb_ebpf_check(void) PRB_MUST_CHECK;

/**
 * Loads the program for one process. PRB_ERROR_UNSUPPORTED if this build or this kernel lacks
 * something, PRB_ERROR_PERMISSION without CAP_BPF and CAP_PERFMON.
 */
struct prb_error *prb_ebpf_open(const struct prb_ebpf_layout *layout,
				struct prb_ebpf **ret) PRB_MUST_CHECK;
void prb_ebpf_close(struct prb_ebpf *ebpf);

/** Starts the clock of a thread; @p period: ns of processor time between two samples. A thread that
 * has ended is no error. */
struct prb_error *prb_ebpf_add(struct prb_ebpf *ebpf, pid_t tid, uint64_t period) PRB_MUST_CHECK;

/** Calls @p take for each record that has come, in order; its first error ends that. */
struct prb_error *prb_ebpf_drain(struct prb_ebpf *ebpf,
				 struct prb_error *(*take)(void *context,
							   const struct prb_ebpf_record *record),
				 void *context) PRB_MUST_CHECK;

/** Records that were lost because nobody drained them in time, since it was opened. */
uint64_t prb_ebpf_lost(struct prb_ebpf *ebpf);

#endif
