/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What makes training steps long, in a sentence each, with its evidence and what would
 * refute it. A recording that shows none of it gives none.
 */
#ifndef PRB_CLI_COMMANDS_PERF_TORCH_VERDICT_H
#define PRB_CLI_COMMANDS_PERF_TORCH_VERDICT_H

#include "base/error.h"
#include "base/json.h"
#include "base/str.h"
#include "base/vec.h"
#include "profile/recording/step_parts.h"

struct prb_torch_verdict {
	enum prb_step_part part; /**< PRB_STEP_PARTS: none, it is about the others */
	double share;
	char *text, *evidence;	/**< sentences */
	const char *refuted_by; /**< an observation */
};

/** The largest share first. */
struct prb_torch_verdicts {
	PRB_VEC(struct prb_torch_verdict) list;
};

struct prb_recording;
struct prb_target;
struct prb_torch_growth;
struct prb_torch_ranks;
struct prb_torch_tree;

/** Adds to `verdicts` of the tree, which was made from @p recording of @p target, by function. */
struct prb_error *prb_torch_judge(const struct prb_recording *recording, struct prb_target *target,
				  const struct prb_torch_ranks *ranks,
				  const struct prb_torch_growth *growth,
				  struct prb_torch_tree *tree) PRB_MUST_CHECK;
void prb_torch_verdicts_deinit(struct prb_torch_verdicts *verdicts);
void prb_torch_verdicts_text(const struct prb_torch_verdicts *verdicts, struct prb_str *s);
void prb_torch_verdicts_json(const struct prb_torch_verdicts *verdicts, struct prb_json *json);

#endif
