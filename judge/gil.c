/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/gil.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/model/program_frame.h"
#include "judge/threads.h"

/* Looks that are kept, functions of one, and different functions of all. */
enum { LOOKS = 32, DEEP = 16, MOST_PLACES = 512 };

struct look {
	double time;
	pid_t tid;
	unsigned count; /* 0: nobody held it, or nobody else wanted it */
	uint16_t places[DEEP];
};

struct prb_gil_history {
	struct look looks[LOOKS]; /* the oldest first */
	unsigned count;
	PRB_VEC(char *) places;
};

static void forget(struct prb_gil_history *h)
{
	char **place;

	prb_vec_each (place, &h->places)
		free(*place);
	prb_vec_free(&h->places);
	h->count = 0;
}

void prb_gil_history_destroy(struct prb_gil_history *h)
{
	if (h)
		forget(h);
	free(h);
}

/* The number of a function; the line in it is another at each look. */
static struct prb_error *number_of(struct prb_gil_history *h, const struct prb_dump_frame *frame,
				   uint16_t *ret)
{
	struct prb_dump_frame function = *frame;
	prb_auto_str struct prb_str text = {};
	char **place;

	function.line = 0;
	prb_case_put_frame(&text, &function);
	prb_vec_each (place, &h->places)
		if (!strcmp(*place, prb_str_text(&text))) {
			*ret = (uint16_t)(place - h->places.items);
			return NULL;
		}
	*ret = (uint16_t)h->places.count;
	place = prb_vec_push(&h->places);
	if (!place)
		return prb_error_nomem();
	*place = strdup(prb_str_text(&text));
	return *place ? NULL : prb_error_nomem();
}

static struct prb_error *note_holder(struct prb_gil_history *h,
				     const struct prb_dump_thread *holder, struct look *look)
{
	const struct prb_dump_frame *frame;

	look->tid = holder->tid;
	prb_vec_each (frame, &holder->frames) {
		if (frame->kind != PRB_FRAME_PYTHON || prb_dump_is_library(frame))
			continue;
		if (look->count == DEEP)
			break;
		PRB_TRY(number_of(h, frame, &look->places[look->count++]));
	}
	return NULL;
}

/* The thread that holds the GIL, while another one waits for it. */
static const struct prb_dump_thread *wanted_holder(const struct prb_dump *dump)
{
	const struct prb_dump_thread *thread, *holder = NULL;
	bool wanted = false;

	prb_vec_each (thread, &dump->threads) {
		wanted |= prb_thread_waits_for_gil(thread);
		if (prb_thread_holds_gil(thread) && !prb_thread_is_agents(thread))
			holder = thread;
	}
	return wanted ? holder : NULL;
}

struct prb_error *prb_case_note_gil(struct prb_case *c, const struct prb_dump *dump, double now)
{
	const struct prb_dump_thread *holder = dump ? wanted_holder(dump) : NULL;
	struct prb_gil_history *h = c->gil;
	struct look *look;

	if (!h && !holder)
		return NULL;
	if (!h)
		h = c->gil = calloc(1, sizeof(*h));
	if (!h)
		return prb_error_nomem();
	if (h->count && h->looks[h->count - 1].time >= now)
		return NULL;
	if (h->places.count > MOST_PLACES)
		forget(h);
	if (h->count == LOOKS)
		memmove(h->looks, h->looks + 1, sizeof(*h->looks) * --h->count);
	look = &h->looks[h->count++];
	*look = (struct look){.time = now};
	return holder ? note_holder(h, holder, look) : NULL;
}

static bool has(const struct look *look, uint16_t place)
{
	for (unsigned i = 0; i < look->count; i++)
		if (look->places[i] == place)
			return true;
	return false;
}

static unsigned count_looks(const struct prb_gil_history *h, uint16_t place)
{
	unsigned count = 0;

	for (unsigned i = 0; i < h->count; i++)
		count += has(&h->looks[i], place);
	return count;
}

struct prb_gil_share prb_case_gil_share(const struct prb_case *c, double least)
{
	const struct prb_gil_history *h = c->gil;
	struct prb_gil_share share = {};

	if (!h || !h->count)
		return share;
	share.looks = h->count;
	share.seconds = h->looks[h->count - 1].time - h->looks[0].time;
	for (unsigned i = h->count; i-- > 0;) {
		const struct look *look = &h->looks[i];

		for (unsigned k = 0; k < look->count; k++) {
			share.held = count_looks(h, look->places[k]);
			share.tid = look->tid;
			share.place = h->places.items[look->places[k]];
			if (share.held >= least * share.looks)
				return share;
		}
	}
	share.place = NULL;
	return share;
}
