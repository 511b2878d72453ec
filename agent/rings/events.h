/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file probing.event() and probing.span() as functions of C: the same as those in
 * package/probing/_events.py, which do what is rare (see there), and several times as fast.
 *
 * Threading: with the GIL held, or in a build without one by any attached thread. Ownership: what
 * is given by setup stays referenced for good; so the library must never be unmapped, which ctypes
 * guarantees that calls us. Errors: Python's exceptions.
 */
#ifndef PRB_AGENT_RINGS_EVENTS_H
#define PRB_AGENT_RINGS_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/inside/export.h"
#include "agent/inside/python_table.h"

/**
 * Takes the dictionary of helpers: `inner` (the context variable), `open`, `sample`, `event`,
 * `decorate`, `to_json` (functions). Gives a dictionary with `event` and `span`, False if this
 * interpreter cannot have them (3.6, or another one of the process has), or NULL with an exception.
 */
PRBA_EXPORT object *probing_recorder(object *helpers);

/** The step that rows get from now on; INT64_MIN: none. */
void prba_recorder_set_step(int64_t step);

/** The step that rows get; INT64_MIN: none. */
int64_t prba_recorder_step(void);

/** Children after fork() continue with span numbers of their own. */
PRBA_EXPORT void probing_recorder_forked(void);

/* Shared by events.c, attributes.c and spans.c. */

enum prba_record { PRBA_EVENT, PRBA_BEGIN, PRBA_END, PRBA_RECORDS };
enum { PRBA_JSON_SIZE = 2600 /* more than a row can take */ };

struct prba_recorder {
	object *inner, *open, *sample, *event, *decorate, *to_json;
};
extern struct prba_recorder prba_recorder;

/** A row without its time and writer. */
struct prba_record_row {
	enum prba_record kind;
	object *name;		/**< a str */
	int64_t span, parent;	/**< 0: none */
	double duration;	/**< ms; negative: none */
	const char *attributes; /**< JSON; NULL: none */
	uint32_t attributes_length;
};

/** Opens the ring if need be, and writes the row. False if nothing is written. */
bool prba_recorder_write(const struct prba_record_row *row);

/** True if events and spans inside @p parent (0: no span; -1: an unrecorded span) are recorded. */
bool prba_recorder_chosen(int64_t parent);

/** The span that the calling task is in, as in prba_recorder_chosen(). */
int64_t prba_recorder_parent(void);

/**
 * Writes a dictionary of simple values as JSON, as json.dumps() would. Gives the length; -1: it
 * has others, which to_json() knows.
 */
int prba_recorder_json(object *attributes, char ret[PRBA_JSON_SIZE]);

/** The type of spans, or NULL with an exception. */
object *prba_recorder_span_type(void);

#endif
