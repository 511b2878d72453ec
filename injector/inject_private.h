/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the parts of injection only. */
#ifndef PRB_INJECTOR_INJECT_PRIVATE_H
#define PRB_INJECTOR_INJECT_PRIVATE_H

#include "base/vec.h"
#include "dwarf/elf/module.h"
#include "dwarf/unwind/unwind.h"
#include "injector/hijack/hijack.h"
#include "injector/inject.h"
#include "injector/libc/libc.h"
#include "injector/hijack/mailbox.h"
#include "target/ptrace/seccomp_calls.h"

/**
 * Goes through the rules that forbid injection, without touching the target: stopped, traced,
 * strict seccomp mode, a wrong machine.
 */
struct prb_error *prb_inject_preflight(struct prb_target *t) PRB_MUST_CHECK;

/**
 * Refuses a process whose memory another one has too: a child in vfork(), or one that was made by
 * clone(CLONE_VM). All processes that we see are compared. Its own children in vfork() do not
 * count: they end nothing in it.
 */
struct prb_error *prb_inject_check_alone(struct prb_target *t) PRB_MUST_CHECK;

/** The calls of @p makers with that C library: both bits of enum prb_call_maker. */
unsigned prb_filters_calls(const struct prb_libc *libc, unsigned makers);

/**
 * Whether the seccomp filters of the stopped thread @p tid, which we trace, allow @p calls, bits of
 * enum prb_call_maker.
 */
struct prb_error *prb_filters_check(struct prb_target *t, pid_t tid, unsigned calls) PRB_MUST_CHECK;

/**
 * The same of all threads, any of which may come to run the agent's code. Threads inherit filters,
 * so that of those with the same number of them one is stopped and asked for all.
 */
struct prb_error *prb_filters_check_all(struct prb_target *t, unsigned calls) PRB_MUST_CHECK;

/** A thread that may be hijacked; the lower its rank, the better. */
struct prb_candidate {
	pid_t tid;
	int rank;
};
struct prb_candidates {
	PRB_VEC(struct prb_candidate) list; /**< best first */
	bool running;			    /**< one of them is not asleep */
	size_t blocked; /**< threads left out since they sleep uninterruptibly */
};

/** Lists the threads by what each is doing. */
struct prb_error *prb_candidates_find(struct prb_target *t,
				      struct prb_candidates *ret) PRB_MUST_CHECK;

/**
 * What has the number of a first thread that has ended is empty; any other thread tells it all.
 * *ret: the same process by another thread, owned by the caller; untouched where the first one
 * lives.
 */
struct prb_error *prb_candidates_alive(struct prb_target *t,
				       struct prb_target **ret) PRB_MUST_CHECK;

/** Is it a system call that waits for what others do? @p number may be -1. */
bool prb_call_waits(uint16_t machine, long number);

/** A search for a thread of the target that may be hijacked. All is borrowed from the caller. */
struct prb_pick {
	struct prb_target *t;
	struct prb_modules *modules;
	struct prb_unwinder *unwinder;
	const struct prb_libc *libc;
	struct prb_hijack *hijack; /**< its thread stands there when one was found */
	struct prb_inject_result *result;
	unsigned calls; /**< that seccomp filters have to allow: bits of enum prb_call_maker */
};

/** Finds one and stops it. PRB_ERROR_TIMEOUT if none came to a safe place in time,
 * PRB_ERROR_UNSUPPORTED if none ever will; nothing was changed then. */
struct prb_error *prb_pick_thread(const struct prb_pick *search) PRB_MUST_CHECK;

/** Puts the thread back, and counts for how long it stood. */
struct prb_error *prb_pick_give_back(const struct prb_pick *search) PRB_MUST_CHECK;

/** A library file, opened and found fit for the target. */
struct prb_library {
	char *path;	  /**< real path as we see it */
	const char *name; /**< its last part */
	int fd;		  /**< -1 if not opened */
	struct prb_elf *elf;
	const char *build_id; /**< of the elf */
	bool agent;	      /**< it is the agent, which goes on to serve */
};

/**
 * Opens the file and checks it: PRB_ERROR_USAGE if it is no shared library for the target's
 * machine, or lacks @p symbol (may be NULL).
 */
struct prb_error *prb_library_open(const char *path, const char *symbol, uint16_t machine,
				   struct prb_library *ret) PRB_MUST_CHECK;
void prb_library_deinit(struct prb_library *library);

/** The target's copy of it, borrowed from @p modules; NULL if it has none. */
const struct prb_module *prb_library_loaded(const struct prb_library *library,
					    struct prb_modules *modules);

/**
 * PRB_ERROR_UNSUPPORTED if the target has loaded another file under its path, and sees it there: a
 * loader goes by names, and would give that one.
 */
struct prb_error *prb_library_check_path(const struct prb_library *library,
					 struct prb_modules *modules,
					 const struct prb_libc *libc) PRB_MUST_CHECK;

/** Whether the target's loader has an object of that name. */
bool prb_handle_has_name(struct prb_modules *modules, const struct prb_libc *libc,
			 const char *name);

/**
 * Opens the target's own copy once more, by the name that its loader knows: *ret is a handle, 0 if
 * that cannot be done.
 */
struct prb_error *prb_handle_open(const struct prb_library *library, struct prb_modules *modules,
				  const struct prb_libc *libc, struct prb_mail *mail,
				  double deadline, uint64_t *ret) PRB_MUST_CHECK;
/** Closes a handle; nothing is done for 0 or where the C library has no dlclose(). */
struct prb_error *prb_handle_close(const struct prb_libc *libc, struct prb_mail *mail,
				   double deadline, uint64_t handle) PRB_MUST_CHECK;

/** Has the new thread load the library and call the symbol, as the request says. */
struct prb_error *prb_library_load(const struct prb_library *library, struct prb_modules *modules,
				   const struct prb_libc *libc, struct prb_mail *mail,
				   const struct prb_inject_request *request,
				   struct prb_inject_result *ret) PRB_MUST_CHECK;

#endif
