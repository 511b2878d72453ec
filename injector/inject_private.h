/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the parts of injection. Internal to injector/. */
#ifndef PRB_INJECTOR_INJECT_PRIVATE_H
#define PRB_INJECTOR_INJECT_PRIVATE_H

#include "dwarf/elf/module.h"
#include "injector/hijack/mailbox.h"
#include "injector/hijack/pick.h"
#include "injector/inject.h"
#include "injector/libc/libc.h"

/**
 * Goes through the rules that forbid injection, without touching the target: stopped, traced,
 * strict seccomp mode, a wrong machine.
 */
struct prb_error *prb_inject_preflight(struct prb_target *t) PRB_MUST_CHECK;

/**
 * Refuses a process that shares its memory with another one: a child in vfork(), or one that was
 * made by clone(CLONE_VM). All processes that we see are compared. Its own children in vfork() do
 * not count: they end nothing in it.
 */
struct prb_error *prb_inject_check_alone(struct prb_target *t) PRB_MUST_CHECK;

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
