/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/verdict/signs.h"

#include <string.h>

const char *prb_sign_source_name(enum prb_sign_source source)
{
	static const char *const names[] = {
		[PRB_SIGN_WAITERS] = "waiting ranks", [PRB_SIGN_STACK] = "own stack",
		[PRB_SIGN_SCHEDULER] = "scheduler",   [PRB_SIGN_STATE] = "process state",
		[PRB_SIGN_OWNER] = "owner",	      [PRB_SIGN_RECORDER] = "flight recorder",
		[PRB_SIGN_RAS] = "RAS service",	      [PRB_SIGN_END] = "end of the process"};

	return names[source];
}

void prb_signs_deinit(struct prb_signs *signs)
{
	struct prb_sign *sign;

	prb_vec_each (sign, &signs->list)
		prb_str_deinit(&sign->text);
	prb_vec_free(&signs->list);
}

struct prb_error *prb_signs_add(struct prb_signs *signs, enum prb_sign_source source, long rank,
				struct prb_str **text)
{
	struct prb_sign *sign;

	prb_vec_each (sign, &signs->list) {
		if (sign->source != source || sign->rank != rank)
			continue;
		prb_str_puts(&sign->text, "; ");
		*text = &sign->text;
		return NULL;
	}
	sign = prb_vec_push(&signs->list);
	if (!sign)
		return prb_error_nomem();
	sign->source = source;
	sign->rank = rank;
	*text = &sign->text;
	return NULL;
}

const char *prb_signs_confidence(const struct prb_signs *signs, const char *wanted)
{
	return signs->list.count < 2 && !strcmp(wanted, "high") ? "medium" : wanted;
}

void prb_signs_put(const struct prb_signs *signs, struct prb_str *s)
{
	const struct prb_sign *sign;

	prb_vec_each (sign, &signs->list)
		prb_str_printf(s, "%s: %s\n", prb_sign_source_name(sign->source),
			       prb_str_text(&sign->text));
}
