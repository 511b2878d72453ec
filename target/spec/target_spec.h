/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finds the target of the user's text.
 *
 * In this order: digits are a pid, or with "-START" that process alone (target/proc/instance.h);
 * /REGEX/ matches command lines; a file that exists is a core, a snapshot, a bundle or a recording
 * by its content, a socket is the process that listens there; a bundle and a number is one of its
 * ranks; host:port is elsewhere; anything else is a part of a command line.
 */
#ifndef PRB_TARGET_SPEC_TARGET_SPEC_H
#define PRB_TARGET_SPEC_TARGET_SPEC_H

#include "base/error.h"
#include "target/target.h"
#include "target/spec/command_line.h"

enum prb_spec_kind {
	PRB_SPEC_PID,
	PRB_SPEC_REGEX,
	PRB_SPEC_CORE,
	PRB_SPEC_SNAPSHOT,
	PRB_SPEC_BUNDLE,     /**< snapshots of several ranks: one has to be chosen */
	PRB_SPEC_MEMBER,     /**< "hang.probing/37": one of them */
	PRB_SPEC_RECORDED,   /**< a .profile, a .ring or a folder of rings */
	PRB_SPEC_REMOTE,     /**< host:port: a process that is served elsewhere */
	PRB_SPEC_SOCKET,     /**< the process that listens at a unix socket, as the agent does */
	PRB_SPEC_OTHER_FILE, /**< a path to a file that is neither */
	PRB_SPEC_NAME,
};

/** The form of @p text; looks at files, not at processes. */
enum prb_spec_kind prb_spec_kind(const char *text);

/**
 * Opens the target that @p text names; @p exe is for core files, or NULL. PRB_ERROR_USAGE if it
 * is ambiguous, with the candidates in the hint.
 */
struct prb_error *prb_spec_open(const char *text, const char *exe,
				struct prb_target **ret) PRB_MUST_CHECK;

/** The error for a target that is no core, if @p places has something that only cores take. */
struct prb_error *prb_spec_refuse_places(const char *text,
					 const struct prb_core_places *places) PRB_MUST_CHECK;

/** As prb_spec_open(), with the places of a core's files. */
struct prb_error *prb_spec_open_in(const char *text, const struct prb_core_places *places,
				   struct prb_target **ret) PRB_MUST_CHECK;

/**
 * As above, for readers of rows: the pid of an ended process opens its leftovers, if any; *left is
 * true then.
 */
struct prb_error *prb_spec_open_rows(const char *text, const struct prb_core_places *places,
				     struct prb_target **ret, bool *left) PRB_MUST_CHECK;

/**
 * Appends the pids of all processes that the name or /regex/ @p text matches. PRB_ERROR_USAGE if
 * it is of another form, PRB_ERROR_NO_PROCESS if there are none.
 */
struct prb_error *prb_spec_find_all(const char *text, struct prb_pids *ret) PRB_MUST_CHECK;

#endif
