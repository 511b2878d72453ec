/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The command `top`: what is looked at of a recording that goes on, and how it is shown.
 *
 * One thread samples; the other one, which calls all functions here, shows. Texts of the target are
 * escaped where they are put into a page.
 *
 * Threading: one thread. Errors: memory, and what printing or saving gives.
 */
#ifndef PRB_CLI_COMMANDS_TOP_TOP_H
#define PRB_CLI_COMMANDS_TOP_TOP_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/regex.h"
#include "base/str.h"
#include "base/vec.h"
#include "profile/sampler/live.h"
#include "profile/recording/report.h"

enum prb_top_view {
	PRB_TOP_FUNCTIONS,
	PRB_TOP_TREE,
	PRB_TOP_THREADS,
	PRB_TOP_STACK,
	PRB_TOP_HELP,
};
enum prb_top_sort { PRB_TOP_BY_SELF, PRB_TOP_BY_TOTAL, PRB_TOP_BY_NAME, PRB_TOP_SORTS };

/** One batch from the sampler. */
struct prb_top_part {
	size_t first_run;
	int64_t begin, end; /**< ns from the start of the recording */
	int64_t process_cpu;
	struct prb_profile_cost cost; /**< until its end */
};

struct prb_top {
	struct prb_live *live;
	/** Held while another reads the process: the sampler holds no thread meanwhile. */
	pthread_mutex_t *gate;
	atomic_bool *native;		    /**< whether C frames are read */
	PRB_VEC(struct prb_top_part) parts; /**< from the last reset on */
	enum prb_top_view view;
	enum prb_top_sort sort;
	enum prb_weight weight;
	bool lines;
	size_t held;   /**< while paused: so many parts are shown; else 0 */
	double window; /**< seconds that are shown; 0: all since the reset */
	pid_t tid;     /**< of the only thread that is shown; 0: all */
	char *filter;  /**< as it was typed; NULL: none */
	struct prb_regex *regex;
	pid_t stack_of;		/**< the thread whose stack is shown */
	struct prb_str stack;	/**< as it was read last */
	struct prb_str message; /**< for the last line */
};

/** A page: lines, each with a line feed, of which the first `head` ones stay when it is scrolled.
 */
struct prb_top_page {
	struct prb_str text;
	size_t head;
};

/** Takes what the sampler has handed over; *ret_new is false if there was nothing. */
struct prb_error *prb_top_take(struct prb_top *top, bool *ret_new) PRB_MUST_CHECK;

/** Only samples from now on are shown. */
void prb_top_reset(struct prb_top *top);

/** Shows what matches @p pattern, a regular expression; "" shows all. */
struct prb_error *prb_top_set_filter(struct prb_top *top, const char *pattern) PRB_MUST_CHECK;
bool prb_top_matches(const struct prb_top *top, const char *name);

/** How many parts there are to be shown. */
static inline size_t prb_top_end(const struct prb_top *top)
{
	return top->held ? top->held : top->parts.count;
}

/** The part that the window begins with; there is at least one part. */
size_t prb_top_first_part(const struct prb_top *top);

/** The recording with the runs of the parts from @p part up to @p end; borrows all. */
struct prb_recording prb_top_slice(const struct prb_top *top, size_t part, size_t end);

/** Appends the page; @p most_rows: no more rows of the table, 0: all. */
struct prb_error *prb_top_page(const struct prb_top *top, size_t most_rows,
			       struct prb_top_page *ret) PRB_MUST_CHECK;
struct prb_error *prb_top_put_functions(const struct prb_top *top, size_t most_rows,
					struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_top_put_tree(const struct prb_top *top, size_t most_rows,
				   struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_top_put_threads(const struct prb_top *top, size_t most_rows,
				      struct prb_str *s) PRB_MUST_CHECK;
/** Reads the stack of the thread `stack_of`, with variables and source. */
struct prb_error *prb_top_read_stack(struct prb_top *top) PRB_MUST_CHECK;
void prb_top_put_stack(const struct prb_top *top, struct prb_str *s);
/** The tid in a row of the page of threads; 0 if it is none. */
pid_t prb_top_tid_in(const char *line);

/** Writes what was seen since the reset to a new .profile here; the message says its name. */
struct prb_error *prb_top_save(struct prb_top *top) PRB_MUST_CHECK;

void prb_top_deinit(struct prb_top *top);

/**
 * Shows it on the terminal until the user or a signal, which is left in @p *signal, ends it or the
 * sampler has: @p *over, which is set before prb_live_wake(). The terminal is as it was then.
 */
struct prb_error *prb_top_screen(struct prb_top *top, const volatile bool *over,
				 const volatile sig_atomic_t *signal) PRB_MUST_CHECK;

#endif
