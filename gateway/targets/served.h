/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The targets that a gateway serves: all processes, or the named ones.
 *
 * A target has an id: a process "PID-START" (target/proc/instance.h), a file "f1", "f2" and so on.
 * A client that gives a pid alone means whatever process has it now. A command gets the id, and
 * refuses another process by itself; of a file, the name that the user of the gateway gave.
 */
#ifndef PRB_GATEWAY_TARGETS_SERVED_H
#define PRB_GATEWAY_TARGETS_SERVED_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "command/command.h"
#include "command/words.h"
#include "target/proc/instance.h"
#include "target/target.h"

struct prb_served_target {
	char id[PRB_INSTANCE_SIZE];
	pid_t pid;    /**< 0: a file */
	int pidfd;    /**< of the process; -1 for a file */
	char *name;   /**< for -t: the id, or as the user gave it */
	char *bundle; /**< the file of a whole job that it is a rank of; NULL: none */
	bool recording;
};

/** Starts as {}. */
struct prb_served {
	PRB_VEC(struct prb_served_target) named; /**< none: all processes */
	size_t files;				 /**< of these */
	struct prb_core_places places; /**< of core files among them; the caller's texts */
};
void prb_served_deinit(struct prb_served *served);

/**
 * Names are resolved once; PRB_ERROR_USAGE if one is no target, or if @p places are given and one
 * is no core file. NULL: there are no places.
 */
struct prb_error *prb_served_init(struct prb_served *served, const struct prb_texts *targets,
				  const struct prb_core_places *places) PRB_MUST_CHECK;

/**
 * Makes a pid alone the id of the process that has it now, so that whatever follows is of that one.
 * Other ids stay as they are.
 */
void prb_served_settle(const struct prb_served *served, char id[PRB_INSTANCE_SIZE]);

/**
 * Appends "-t TARGET" for that id; "" is the only target there is. PRB_ERROR_NO_PROCESS if it is
 * not served, or has ended.
 */
struct prb_error *prb_served_words(const struct prb_served *served, const char *id,
				   struct prb_words *words) PRB_MUST_CHECK;

/** Appends that target as a word by itself, for a command that compares two. */
struct prb_error *prb_served_word(const struct prb_served *served, const char *id,
				  struct prb_words *words) PRB_MUST_CHECK;

/** Appends what means all of them to 'query' and 'export'. */
struct prb_error *prb_served_words_all(const struct prb_served *served,
				       struct prb_words *words) PRB_MUST_CHECK;

/** Appends the named targets that are running processes. Appends nothing if no target was named. */
struct prb_error *prb_served_words_processes(const struct prb_served *served,
					     struct prb_words *words) PRB_MUST_CHECK;

/** Appends `cluster ACTION --json`, which merges the stacks of a job, and @p flags, which end with
 * NULL. */
struct prb_error *prb_served_words_merge(struct prb_words *words, const char *action,
					 const char *const *flags) PRB_MUST_CHECK;

/**
 * Appends the command that merges the stacks of a job as JSON: of the job that the target @p id is
 * a rank of; "": of the only one. Of a job that runs, only ranks that are served are in it.
 * @p flags: further options, ending with NULL.
 */
struct prb_error *prb_served_words_job(const struct prb_served *served, const char *id,
				       const char *const *flags,
				       struct prb_words *words) PRB_MUST_CHECK;

/** Changes what `list --json` printed into the answer to "what is served here?". */
struct prb_error *prb_served_list(const struct prb_served *served,
				  struct prb_str *text) PRB_MUST_CHECK;

/** The path of a recording that was named and has this id; NULL if none has. */
const char *prb_served_recording(const struct prb_served *served, const char *id);
/** Puts an object for each of them. */
void prb_served_put_recordings(const struct prb_served *served, struct prb_json *json);

/** Adds named targets that have ended to the output of `overview --json`, if it lacks them. */
struct prb_error *prb_served_overview(const struct prb_served *served,
				      struct prb_str *text) PRB_MUST_CHECK;

/** PRB_ERROR_NO_PROCESS if that target is known to have ended. */
struct prb_error *prb_served_check(const struct prb_served *served, const char *id) PRB_MUST_CHECK;

/** The pid of a target; 0 for a file. */
pid_t prb_served_pid(const struct prb_served *served, const char *id);

#endif
