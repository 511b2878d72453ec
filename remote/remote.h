/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs commands on remote targets, through a server (remote/serve/serve.h) or ssh, and prints
 * their output here.
 */
#ifndef PRB_REMOTE_REMOTE_H
#define PRB_REMOTE_REMOTE_H

#include <stdbool.h>
#include <stddef.h>

#include "control/client.h"
#include "command/command.h"
#include "command/prompt/prompt.h"
#include "command/words.h"
#include "base/error.h"

/** True if the target is "host:port" or "ssh://host/…". NULL is none. */
bool prb_remote_is(const char *target);

/**
 * Runs the command of @p cli at its target, with its settings. The error is one of the connection;
 * an error that the command itself printed has an empty message.
 */
struct prb_error *prb_remote_command(const struct prb_cli *cli,
				     const void *settings) PRB_MUST_CHECK;

/** A command that is run elsewhere. */
struct prb_remote_job {
	const char *target, *token_file;
	struct prb_words words; /**< the command and what follows it */
	int in;			/**< its stdin, or -1: it is empty */
	int out, err;		/**< where its output goes */
	const char *mark;	/**< of prb_remote_talk_begin(), or NULL */
};

/** How it ended. */
struct prb_remote_end {
	int code, signal; /**< exit code, or if that is not 0 the signal that ended it */
};

/** Runs it at "host:port". Ctrl-C is handed on. */
struct prb_error *prb_remote_run(const struct prb_remote_job *job,
				 struct prb_remote_end *ret) PRB_MUST_CHECK;

/**
 * A command at "host:port" that answers texts, each ended by a NUL on its stdin, one after the
 * other: what it prints for one ends, on both streams, with the job's mark. The empty text is
 * answered by nothing.
 */
struct prb_remote_talk;

/** Starts it and waits until it answers. @p job is needed no more then, but for its texts. */
struct prb_error *prb_remote_talk_begin(const struct prb_remote_job *job,
					struct prb_remote_talk **ret) PRB_MUST_CHECK;

/**
 * Says a text without a NUL; its answer is printed. Ctrl-C is handed on, for this text alone. An
 * error ends the conversation; it has no message if the command printed the reason.
 */
struct prb_error *prb_remote_talk_say(struct prb_remote_talk *talk, const char *text,
				      size_t length) PRB_MUST_CHECK;

/** The descriptor to poll while idle: mostly the end of the connection, as an error. */
int prb_remote_talk_descriptor(const struct prb_remote_talk *talk);
struct prb_error *prb_remote_talk_look(struct prb_remote_talk *talk) PRB_MUST_CHECK;

/** Ends the command. NULL is none. */
void prb_remote_talk_end(struct prb_remote_talk *talk);

/** Runs it at "ssh://[user@]host[:port]/TARGET". */
struct prb_error *prb_remote_ssh(const struct prb_remote_job *job,
				 struct prb_remote_end *ret) PRB_MUST_CHECK;

/** The error, or NULL, for the end of a command. */
struct prb_error *prb_remote_judge(const struct prb_remote_end *end) PRB_MUST_CHECK;

/** A prompt for the target: lines are edited here, by @p prompt, and run there with these words. */
struct prb_error *prb_remote_prompt(struct prb_remote_job *job,
				    struct prb_error *(*prompt)(const struct prb_prompt_runner *))
	PRB_MUST_CHECK;

/** Starts `agent relay` there and gives a connection to the agent, whose process it is a child of.
 */
struct prb_error *prb_remote_agent(const struct prb_cli *cli, bool may_load,
				   struct prb_agent **ret) PRB_MUST_CHECK;

#endif
