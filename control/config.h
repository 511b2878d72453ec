/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Settings of a process with the agent (agent/config_keys.h), read and changed from outside.
 *
 * Threading: one thread at a time per target. Errors: those of control/client.h, and
 * PRB_ERROR_USAGE for keys and values that make no sense.
 */
#ifndef PRB_CONTROL_CONFIG_H
#define PRB_CONTROL_CONFIG_H

#include <stdbool.h>

#include "agent/config_keys.h"
#include "base/error.h"
#include "base/str.h"
#include "target/target.h"

struct prb_config {
	bool loaded; /**< the process has an agent; else these are the initial values */
	struct prb_str values[PRB_CONFIG_KEYS];
	struct prb_str told; /**< of a change: what came of it in the process, if it said so */
};
void prb_config_deinit(struct prb_config *config);

/** Reads all. A process without an agent is no error. */
struct prb_error *prb_config_read(struct prb_target *t, struct prb_config *ret) PRB_MUST_CHECK;

/**
 * Changes one, and reads all. Loads the agent if there is none and @p may_load. @p key may lack
 * its "probing.".
 */
struct prb_error *prb_config_change(struct prb_target *t, const char *key, const char *value,
				    bool may_load, struct prb_config *ret) PRB_MUST_CHECK;

/** True if the process has loaded torch. */
bool prb_target_has_torch(const struct prb_target *t);

enum { PRB_CONFIG_FIRST_STEPS = 10 };

/**
 * If the process has loaded torch, and its environment does not say otherwise, begins to record its
 * steps at the share that "on" means, the next PRB_CONFIG_FIRST_STEPS all, and memory each second.
 * The process has an agent. An error changes nothing.
 */
struct prb_error *prb_config_record_torch(struct prb_target *t, bool *begun) PRB_MUST_CHECK;

/** Appends the keys that @p key may be meant for: "'a' or 'b'". */
void prb_config_near(const char *key, struct prb_str *ret);

/** The index of a key; an unknown one is an error with the nearest names. */
struct prb_error *prb_config_key_find(const char *key, unsigned *ret) PRB_MUST_CHECK;

/** Appends what a value can be: "a number from 0 to 1". */
void prb_config_describe(const struct prb_config_key *key, struct prb_str *ret);

#endif
