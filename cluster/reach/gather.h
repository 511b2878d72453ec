/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Runs a program for each host or rank, side by side, and collects what they print. A host
 * that does not answer in time is one error, and never delays the others.
 *
 * Threading: one thread; children are reaped by their pid, and end with us.
 */
#ifndef PRB_CLUSTER_REACH_GATHER_H
#define PRB_CLUSTER_REACH_GATHER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "command/words.h"

struct prb_answer {
	const char *host;	/**< the host to ask, borrowed; NULL: this machine */
	struct prb_words words; /**< the program that asks; none: it is not asked */
	bool itself;		/**< that is this program */
	bool judges;		/**< exit codes from 10 to 99 are answers, too */
	int in;			/**< what it reads, owned; -1: nothing */
	bool spools;		/**< what it prints goes to a file without a name, else to `out` */
	int spool;		/**< that file, from its start on, owned; -1: none */
	uint64_t spooled;	/**< bytes in there */
	struct prb_str out;	/**< what it printed */
	double waited;		/**< seconds from its start to its end */
	char *error;		/**< why there is no answer, one line; NULL: there is one */
};

struct prb_answers {
	PRB_VEC(struct prb_answer) list;
};

/** Appends an answer without stdin and words. NULL when out of memory. */
struct prb_answer *prb_answers_add(struct prb_answers *answers, const char *host);

/** Opens that file. prb_gather() does so for each when it starts: thousands are not open at once.
 */
struct prb_error *prb_answer_spool(struct prb_answer *answer) PRB_MUST_CHECK;

/** Called with each answer as soon as it is complete; may take its `out`. Errors end all. */
typedef struct prb_error *prb_answer_handler(void *context, struct prb_answer *answer);

struct prb_gather_options {
	size_t at_once;		     /**< programs that run at a time, at most; 0: 256 */
	double deadline_s;	     /**< seconds that each has, from its start */
	prb_answer_handler *handler; /**< or NULL */
	void *context;
};

/** Runs the programs of @p answers. An answer may have 256 MiB, a spooled one 64 GiB. */
struct prb_error *prb_gather(struct prb_answers *answers,
			     const struct prb_gather_options *options) PRB_MUST_CHECK;
void prb_answers_deinit(struct prb_answers *answers);
#define prb_auto_answers __attribute__((cleanup(prb_answers_deinit)))

#endif
