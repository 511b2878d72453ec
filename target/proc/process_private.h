/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the parts that look at processes from outside. Internal to target/proc/. */
#ifndef PRB_TARGET_PROC_PROCESS_PRIVATE_H
#define PRB_TARGET_PROC_PROCESS_PRIVATE_H

#include "base/str.h"
#include "target/proc/process.h"

/** True if the kernel lets us read the memory of @p pid. */
bool prb_process_readable(pid_t pid);

/** As prb_process_refusal(), for a described process. */
struct prb_error *prb_process_check(const struct prb_process *process) PRB_MUST_CHECK;

/** The inputs of the kernel's decision to let one process read another. */
struct prb_credentials {
	uid_t uid[3]; /**< real, effective, saved */
	gid_t gid[3];
	uint64_t permitted, effective, bounding; /**< capabilities, a bit each */
};

struct prb_refusal_facts {
	pid_t pid;
	const char *comm;
	struct prb_credentials theirs, ours;
	bool dumpable;	      /**< false: its files in /proc belong to root though it does not */
	bool user_namespace;  /**< we are in one other than the initial one */
	bool unmapped;	      /**< its user does not exist in our user namespace */
	bool container;	      /**< we are in one */
	int ptrace_scope;     /**< of Yama; -1 if it is not there */
	bool ancestor;	      /**< we are the parent or an older ancestor of it */
	bool seccomp;	      /**< our own reads of memory are filtered */
	const char *confined; /**< our profile of AppArmor or SELinux; NULL if none */
};

/** Names the rule that forbids reading, and what to do; for the facts of a refused process. */
struct prb_error *prb_refusal_explain(const struct prb_refusal_facts *facts) PRB_MUST_CHECK
	__attribute__((returns_nonnull));

#endif
