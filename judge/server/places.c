/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Ranks of a model that are in a step. In a collective each waits for all others, so where most are
 * at one place, the rank that is elsewhere keeps them; and where no rank is, none is to be blamed.
 */
#include <string.h>

#include "base/text.h"
#include "dump/model/program_frame.h"
#include "judge/server/private.h"

enum { MOST_NAMED = 4 };

static const struct prb_dump_frame *place(const struct prb_server_process *p)
{
	const struct prb_dump_thread *main = prb_server_main(p);
	const struct prb_dump_frame *frame;

	if (main)
		prb_vec_each (frame, &main->frames)
			if (frame->kind == PRB_FRAME_PYTHON && frame->func && frame->file)
				return frame;
	return NULL;
}

/** A function, at whichever line: it may wait for several things. */
static bool at_one_place(const struct prb_server_process *a, const struct prb_server_process *b)
{
	const struct prb_dump_frame *one = place(a), *other = place(b);

	return one && other && !strcmp(one->func, other->func) && !strcmp(one->file, other->file);
}

bool prb_server_are_together(const struct prb_server_ranks *ranks)
{
	for (size_t i = 1; i < ranks->count; i++)
		if (!at_one_place(ranks->list[0], ranks->list[i]))
			return false;
	return ranks->count > 1;
}

const struct prb_server_process *prb_server_odd_rank(const struct prb_server_ranks *ranks)
{
	struct prb_server_ranks others;

	for (size_t i = 0; i < ranks->count && ranks->count > 2; i++) {
		others.count = 0;
		for (size_t j = 0; j < ranks->count; j++)
			if (j != i)
				others.list[others.count++] = ranks->list[j];
		if (prb_server_are_together(&others) &&
		    !at_one_place(ranks->list[i], others.list[0]))
			return ranks->list[i];
	}
	return NULL;
}

static void put_place(struct prb_str *s, const struct prb_server_process *p)
{
	const struct prb_dump_frame *frame = place(p);

	if (frame) {
		prb_str_puts(s, "in ");
		prb_case_put_frame(s, frame);
	} else {
		prb_server_put_doing(s, p);
	}
}

void prb_server_put_others(struct prb_str *s, const struct prb_server_ranks *ranks,
			   const struct prb_server_process *odd, const char *what)
{
	size_t other = ranks->list[0] == odd;

	prb_str_puts(s, ", and ");
	prb_server_put_count(s, ranks->count - 1, what);
	prb_str_puts(s, " are ");
	put_place(s, ranks->list[other]);
}

void prb_server_put_places(struct prb_str *s, const struct prb_server_ranks *ranks)
{
	if (prb_server_are_together(ranks)) {
		prb_str_puts(s, "all are ");
		put_place(s, ranks->list[0]);
		return;
	}
	for (size_t i = 0; i < ranks->count && i < MOST_NAMED; i++) {
		prb_str_puts(s, i ? ", " : "");
		prb_server_put(s, ranks->list[i]);
		prb_str_puts(s, " is ");
		put_place(s, ranks->list[i]);
	}
	if (ranks->count > MOST_NAMED)
		prb_str_printf(s, ", and %zu others", ranks->count - MOST_NAMED);
}
