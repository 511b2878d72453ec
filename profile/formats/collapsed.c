/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "outermost;…;innermost MICROSECONDS", one line for each stack. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/cleanup.h"
#include "target/proc/text.h"
#include "profile/recording/fold.h"
#include "profile/formats/format.h"

/* A frame with nothing in it that divides frames or lines, or that a terminal would obey. */
static void put_frame(struct prb_str *s, struct prb_place place)
{
	prb_auto_str struct prb_str label = {};
	size_t begin = s->length;

	prb_profile_label(&label, place);
	for (const char *at = prb_str_text(&label); *at;) {
		size_t part = strcspn(at, ";");

		prb_text_escape_bytes(s, at, part);
		at += part;
		if (*at) {
			prb_str_puts(s, "\\x3b");
			at++;
		}
	}
	s->failed |= label.failed;
	if (s->length == begin)
		prb_str_puts(s, "?");
}

static struct prb_error *put_stack(struct prb_str *s, const struct prb_tree *tree, uint32_t stack,
				   bool lines)
{
	uint32_t depth = tree->stacks.items[stack].depth;
	prb_auto_free uint32_t *places = NULL;

	PRB_TRY(prb_fold_places(tree, lines, stack, &places));
	for (uint32_t i = 0; i < depth; i++) {
		if (i)
			prb_str_putc(s, ';');
		put_frame(s, prb_place_get(tree, lines, places[i]));
	}
	return NULL;
}

static struct prb_error *write_collapsed(const struct prb_recording *recording,
					 const struct prb_profile_choice *choice,
					 struct prb_sink *sink)
{
	const long long unit = recording->bytes ? 1 : 1000;
	const struct prb_tree *tree = recording->tree;
	prb_auto_free int64_t *weights = calloc(tree->stacks.count, sizeof(*weights));
	prb_auto_free uint32_t *folded = NULL;
	const struct prb_run *run;

	if (!weights)
		return prb_error_nomem();
	PRB_TRY(prb_fold_stacks(tree, choice->lines, &folded));
	prb_vec_each (run, &recording->runs)
		weights[folded[run->stack]] += prb_run_weight(run, choice);
	for (uint32_t stack = 1; stack < tree->stacks.count; stack++) {
		long long weight = (weights[stack] + unit / 2) / unit;

		if (weight <= 0)
			continue;
		PRB_TRY(put_stack(&sink->text, tree, stack, choice->lines));
		prb_str_printf(&sink->text, " %lld\n", weight);
		PRB_TRY(prb_sink_flush(sink, false));
	}
	return prb_sink_flush(sink, true);
}

const struct prb_profile_format prb_format_collapsed = {
	.name = "collapsed",
	.extensions = {".collapsed", ".txt"},
	.any_order = true,
	.bytes = true,
	.does = "stacks and their weights, one a line",
	.write = write_collapsed,
};
