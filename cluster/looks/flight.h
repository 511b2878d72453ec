/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the flight recorder of a rank says of each process group: the number of the last
 * collective that the rank called, and the numbers of collectives that have not ended.
 *
 * The recorder is asked by the agent. A rank without one is not asked: nothing is loaded.
 * All texts are the process's own, or another machine's: bounded here, escaped when printed.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_CLUSTER_LOOKS_FLIGHT_H
#define PRB_CLUSTER_LOOKS_FLIGHT_H

#include <jansson.h>
#include <stdbool.h>

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "target/target.h"

/** A collective that a rank has called and that has not ended there. */
struct prb_flight_call {
	long seq;	 /**< its number in the group, the same on all ranks */
	char *operation; /**< "all_reduce" */
	char *data;	 /**< "(4, 8) float32" of the first tensor; NULL: none */
};

struct prb_flight_group {
	char *name;    /**< torch's name of it: "0" */
	char *about;   /**< "default_pg"; NULL: the program has not said */
	char *members; /**< "0-3,7"; NULL: unknown */
	long entered;  /**< number of the last collective that the rank called; 0: none */
	PRB_VEC(struct prb_flight_call) open; /**< by number, the first few */
};

struct prb_flight {
	PRB_VEC(struct prb_flight_group) groups;
};

/** Why there is none, mostly. */
#define PRB_FLIGHT_NO_AGENT "no agent is loaded"

/**
 * Asks the recorder of @p target, for at most @p seconds. *ret stays NULL without one, and *why is
 * set to the reason, for the caller to free. PRB_ERROR_NOMEM is the only error.
 */
struct prb_error *prb_flight_read(struct prb_target *target, double seconds,
				  struct prb_flight **ret, char **why) PRB_MUST_CHECK;

/** Reads what the recorders have dumped as JSON (control/flight.h). PRB_ERROR_BAD_DATA. */
struct prb_error *prb_flight_parse(const struct prb_str *json,
				   struct prb_flight **ret) PRB_MUST_CHECK;

/** Notes the members of a group, also of one in which the rank has called nothing. */
struct prb_error *prb_flight_add_members(struct prb_flight *flight, const char *name,
					 const char *members) PRB_MUST_CHECK;

/** Appends it as a value of @p key, for prb_flight_take(). */
void prb_flight_put(struct prb_json *json, const char *key, const struct prb_flight *flight);

/** Reads such a value; *ret stays NULL if it is none. PRB_ERROR_NOMEM is the only error. */
struct prb_error *prb_flight_take(const json_t *value, struct prb_flight **ret) PRB_MUST_CHECK;

/** NULL is none. */
void prb_flight_destroy(struct prb_flight *flight);

/** True if no collective was called or has ended between the two; also if one of them is NULL. */
bool prb_flight_is_same(const struct prb_flight *a, const struct prb_flight *b);

/** The call with that number, or NULL. */
const struct prb_flight_call *prb_flight_find(const struct prb_flight_group *group, long seq);

/** Appends "all_reduce #57 of group default_pg". */
void prb_flight_put_call(struct prb_str *s, const struct prb_flight_group *group,
			 const struct prb_flight_call *call);

#endif
