/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The formats that recordings are written in, for viewers: one const struct and file each.
 *
 * Names come from the target and may hold anything; each format escapes what it takes for its own.
 *
 * Threading: one thread at a time. Errors: of writing the file, and memory.
 */
#ifndef PRB_PROFILE_FORMATS_FORMAT_H
#define PRB_PROFILE_FORMATS_FORMAT_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "profile/recording/fold.h"
#include "profile/recording/recording.h"
#include "profile/recording/report.h"

/** Text that goes to a file piece by piece. */
struct prb_sink {
	struct prb_str text; /**< what is not written yet */
	int fd;		     /**< borrowed */
	const char *path;    /**< for messages */
};

/** Writes what there is if it is much; @p all: in any case. */
struct prb_error *prb_sink_flush(struct prb_sink *sink, bool all) PRB_MUST_CHECK;

/** Of a number that a file chose; 0 if it cannot be. */
static inline uint64_t prb_whole_ns(double ns)
{
	return ns > 0 && ns < 9.2e18 ? (uint64_t)ns : 0;
}

struct prb_profile_format {
	const char *name;	   /**< "collapsed" */
	const char *extensions[4]; /**< ".collapsed"; ends with NULL */
	bool any_order;	  /**< it sums up: runs of the same thread, stack and state may be one */
	bool basic_modes; /**< it has the times of all samples, and not what they waited for */
	bool bytes;	  /**< it also has weights that are bytes (struct prb_recording) */
	const char *does; /**< "stacks and weights, one a line" */
	struct prb_error *(*write)(const struct prb_recording *recording,
				   const struct prb_profile_choice *choice, struct prb_sink *sink);
};

/** All of them; ends with NULL. */
extern const struct prb_profile_format *const prb_profile_formats[];

/** The format that a path's ending stands for. PRB_ERROR_USAGE with the endings there are. */
struct prb_error *prb_profile_format_find(const char *path,
					  const struct prb_profile_format **ret) PRB_MUST_CHECK;

/** The format of that name. PRB_ERROR_USAGE with the names there are. */
struct prb_error *prb_profile_format_named(const char *name,
					   const struct prb_profile_format **ret) PRB_MUST_CHECK;

/**
 * Appends "Net.forward (net.py:12)" as it is: the line is that of the definition, or the one that
 * ran. A native function is "qsort [libc.so.6]", or "qsort (qsort.c:256) [libc.so.6]" with lines.
 */
void prb_profile_label(struct prb_str *s, struct prb_place place);

/** The name to show for a thread; never NULL. */
const char *prb_profile_thread_name(const struct prb_profile_thread *thread);

extern const struct prb_profile_format prb_format_collapsed;
extern const struct prb_profile_format prb_format_speedscope;
extern const struct prb_profile_format prb_format_html;
extern const struct prb_profile_format prb_format_svg;
extern const struct prb_profile_format prb_format_pprof;
extern const struct prb_profile_format prb_format_trace;
extern const struct prb_profile_format prb_format_gecko;
extern const struct prb_profile_format prb_format_otlp;

#endif
