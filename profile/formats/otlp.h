/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Recordings as OpenTelemetry's profiles, in the version v1development: a file's ProfilesData
 * and the body of a request to a receiver are the same bytes.
 *
 * Each process is a resource, with a profile for each weight; the chosen weight is the first, which
 * viewers show. Texts come from the target: they are escaped as for a terminal.
 *
 * Threading: any thread. Errors: memory.
 */
#ifndef PRB_PROFILE_FORMATS_OTLP_H
#define PRB_PROFILE_FORMATS_OTLP_H

#include "base/error.h"
#include "base/str.h"
#include "profile/recording/report.h"

/** Appends all of @p recording. */
struct prb_error *prb_otlp_put_profiles(struct prb_str *ret, const struct prb_recording *recording,
					const struct prb_profile_choice *choice) PRB_MUST_CHECK;

#endif
