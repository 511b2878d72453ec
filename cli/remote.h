/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Commands whose target is elsewhere: they are run there, by a server (cli/serve.h) or by
 * ssh, and what they print is printed here.
 */
#ifndef PRB_CLI_REMOTE_H
#define PRB_CLI_REMOTE_H

#include <stdbool.h>

#include "cli/agent_client.h"
#include "cli/command.h"
#include "cli/words.h"
#include "dwarf/base/error.h"

/** True if the target is "host:port" or "ssh://host/…". NULL is none. */
bool prb_remote_is(const char *target);

/**
 * Runs the command of @p cli at its target, with its settings. The error says what went wrong on
 * the way; what the command itself told there has an empty message.
 */
struct prb_error *prb_remote_command(const struct prb_cli *cli,
				     const void *settings) PRB_MUST_CHECK;

/** A command that is run elsewhere. */
struct prb_remote_job {
	const char *target, *token_file;
	struct prb_words words; /**< the command and what follows it */
	int in;			/**< its stdin, or -1: it is empty */
	int out, err;		/**< where its output goes */
};

/** How it ended. */
struct prb_remote_end {
	int code, signal; /**< exit code, or if that is not 0 the signal that ended it */
};

/** Runs it at "host:port". Ctrl-C is handed on. */
struct prb_error *prb_remote_run(const struct prb_remote_job *job,
				 struct prb_remote_end *ret) PRB_MUST_CHECK;

/** Runs it at "ssh://[user@]host[:port]/TARGET". */
struct prb_error *prb_remote_ssh(const struct prb_remote_job *job,
				 struct prb_remote_end *ret) PRB_MUST_CHECK;

/** What the end of a command means for us. */
struct prb_error *prb_remote_judge(const struct prb_remote_end *end) PRB_MUST_CHECK;

/** Starts `agent relay` there and gives a connection to the agent, whose process it is a child of.
 */
struct prb_error *prb_remote_agent(const struct prb_cli *cli, bool may_load,
				   struct prb_agent **ret) PRB_MUST_CHECK;

#endif
