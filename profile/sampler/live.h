/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A recording that is looked at while it is made.
 *
 * The sampler hands over what is new at fixed intervals, and keeps no samples that it handed over.
 * The viewer, another thread, appends them to a recording of its own. The sampler never waits for
 * the viewer: data that the viewer has not taken yet is handed over the next time.
 *
 * Threading: prb_live_is_due() and prb_live_put() are for the sampling thread, all others for the
 * viewer's. The viewer's recording shares the strings of the sampler's one, which has to stay until
 * the viewer is done. Errors: memory.
 */
#ifndef PRB_PROFILE_SAMPLER_LIVE_H
#define PRB_PROFILE_SAMPLER_LIVE_H

#include "base/error.h"
#include "profile/recording/recording.h"

struct prb_live;

/** An interval of @p seconds at least. */
struct prb_error *prb_live_create(double seconds, struct prb_live **ret) PRB_MUST_CHECK;
void prb_live_destroy(struct prb_live *live);

/** True if the interval has passed and the viewer has taken what was handed over before. */
bool prb_live_is_due(struct prb_live *live, int64_t now);

/** Copies what is new. The runs of @p recording are to be removed from it afterwards. */
struct prb_error *prb_live_put(struct prb_live *live, const struct prb_recording *recording,
			       int64_t now) PRB_MUST_CHECK;

/** Becomes readable, for poll(), when something is handed over or prb_live_wake() is called. */
int prb_live_fd(const struct prb_live *live);

/** From any thread or signal handler. */
void prb_live_wake(const struct prb_live *live);

/** Appends what was handed over to the viewer's recording; *ret_new is false if that is nothing. */
struct prb_error *prb_live_take(struct prb_live *live, bool *ret_new) PRB_MUST_CHECK;

/** The viewer's recording, borrowed; runs may be removed from it. */
struct prb_recording *prb_live_recording(struct prb_live *live);

#endif
