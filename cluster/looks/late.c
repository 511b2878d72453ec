/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/late.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/looks/look.h"
#include "cluster/looks/thread_text.h"
#include "cluster/looks/training_thread.h"
#include "dump/model/program_frame.h"
#include "target/target.h"

/* With fewer steps, the ones cut off at both ends change the mean too much. */
enum { LEAST_STEPS = 5 };

/* Looks at the late rank, and those at one place that are enough to name it. */
enum { MOST_LOOKS = 60, ENOUGH = 4, MOST_PLACES = 8 };
static const struct timespec PAUSE = {.tv_nsec = 10000000};

/* Of the time that the others wait more than it, this part has to be at one place. */
static const double MOSTLY = 0.6;

static const char NAMES[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_.0123456789";

void prb_late_deinit(struct prb_late *late)
{
	prb_str_deinit(&late->place);
}

static const struct prb_spot *main_spot(const struct prb_round *round,
					const struct prb_slowness *found)
{
	const double least = MOSTLY * (found->others_wait - found->waits);
	const struct prb_spot *spot, *most = NULL;
	double more = 0;

	prb_vec_each (spot, &found->slow->pace->spots) {
		double own = prb_pace_share(found->slow->pace, spot->name) -
			     prb_pace_others(round, found->slow, spot->name);

		if (own > more) {
			more = own;
			most = spot;
		}
	}
	return more >= least ? most : NULL;
}

/* The function that the frame calls: "time.sleep" of "time.sleep(0.15)"; 0: not known. */
static size_t called_length(const struct prb_dump_frame *frame, const char **ret)
{
	size_t n;

	if (!frame->source || frame->col < 0 || frame->end_col <= frame->col ||
	    frame->end_line != frame->line || (size_t)frame->end_col > strlen(frame->source) ||
	    frame->source[frame->end_col - 1] != ')')
		return 0;
	*ret = frame->source + frame->col;
	n = strspn(*ret, NAMES);
	return (*ret)[n] == '(' ? n : 0;
}

static void put_spot(struct prb_str *s, const struct prb_dump_thread *thread,
		     const struct prb_dump_frame *frame)
{
	const struct prb_dump_frame *program =
		prb_dump_is_library(frame) ? prb_dump_program_frame(thread) : NULL;
	const char *name = NULL;
	size_t length = called_length(frame, &name);
	prb_auto_str struct prb_str text = {};

	prb_str_append(&text, length ? name : prb_frame_name(frame),
		       length ? length : strlen(prb_frame_name(frame)));
	prb_str_putc(s, '`');
	prb_text_escape(s, prb_str_text(&text));
	prb_str_puts(s, "` ");
	prb_put_place(s, frame);
	if (!program)
		return;
	prb_str_puts(s, ", called by ");
	prb_text_escape(s, prb_frame_name(program));
	prb_str_putc(s, ' ');
	prb_put_place(s, program);
}

/* Texts of places, each with how often it was seen. */
struct places {
	struct prb_str text[MOST_PLACES];
	unsigned count[MOST_PLACES];
};

static void places_deinit(struct places *places)
{
	for (size_t i = 0; i < MOST_PLACES; i++)
		prb_str_deinit(&places->text[i]);
}

/* How often this one has been seen now. */
static unsigned count(struct places *places, struct prb_str *text)
{
	size_t i = 0;

	while (i < MOST_PLACES && places->count[i] &&
	       strcmp(prb_str_text(&places->text[i]), prb_str_text(text)) != 0)
		i++;
	if (i == MOST_PLACES)
		return 0;
	if (!places->count[i]) {
		places->text[i] = *text;
		*text = (struct prb_str){};
	}
	return ++places->count[i];
}

/* One look at the rank; *ret is empty if it is elsewhere. */
static struct prb_error *look(struct prb_watch *watch, const struct prb_seen *rank,
			      const char *spot, struct prb_str *ret)
{
	struct prb_dump_options options = {
		.no_waits = true, .no_command = true, .source_innermost = true};
	__attribute__((cleanup(prb_seen_deinit))) struct prb_seen seen = {.trains = rank->trains};
	const struct prb_dump_frame *frame;
	prb_auto_str struct prb_str name = {};

	prb_training_thread_only(rank, &options);
	PRB_TRY(prb_dump_create_with(watch->target, &options, &watch->found, &seen.dump));
	if (!seen.dump->threads.count)
		return NULL;
	prb_seen_find(&seen);
	frame = seen.main && !seen.collective ? prb_dump_innermost(seen.main) : NULL;
	if (!frame)
		return NULL;
	prb_pace_spot_name(frame, &name);
	if (!strcmp(prb_str_text(&name), spot))
		put_spot(ret, seen.main, frame);
	return NULL;
}

/* The place that is seen most often where the spot is. */
static struct prb_error *find_place(const struct prb_seen *rank, const char *spot,
				    struct prb_str *ret)
{
	__attribute__((cleanup(prb_watch_deinit))) struct prb_watch watch = {};
	__attribute__((cleanup(places_deinit))) struct places places = {};
	size_t most = 0;

	PRB_TRY(prb_target_open_process(rank->rank->pid, &watch.target));
	for (unsigned n = 0; n < MOST_LOOKS; n++) {
		prb_auto_str struct prb_str text = {};

		PRB_TRY(look(&watch, rank, spot, &text));
		if (text.length && count(&places, &text) >= ENOUGH)
			break;
		if (nanosleep(&PAUSE, NULL))
			return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	}
	for (size_t i = 1; i < MOST_PLACES; i++)
		if (places.count[i] > places.count[most])
			most = i;
	if (places.count[most])
		prb_str_puts(ret, prb_str_text(&places.text[most]));
	return NULL;
}

/* Seconds for each step, of the rank that counts them. */
static void note_steps(const struct prb_round *round, const struct prb_slowness *found,
		       struct prb_late *ret)
{
	const struct prb_seen *seen;

	prb_vec_each (seen, &round->list)
		if (seen->pace && seen->pace->steps >= LEAST_STEPS && ret->steps < 0) {
			ret->steps = seen->pace->steps;
			ret->seconds = (found->others_wait - found->waits) * seen->pace->seconds /
				       (double)ret->steps;
		}
}

struct prb_error *prb_late_find(const struct prb_round *round, const struct prb_slowness *found,
				struct prb_late *ret)
{
	const struct prb_spot *spot;
	struct prb_error *err = NULL;

	*ret = (struct prb_late){.seconds = -1, .steps = -1, .others_wait = found->others_wait};
	if (!found->slow || !found->sure)
		return NULL;
	ret->rank = found->slow;
	note_steps(round, found, ret);
	spot = main_spot(round, found);
	if (!spot)
		return NULL;
	if (!found->slow->rank->host && found->slow->rank->pid)
		err = find_place(found->slow, spot->name, &ret->place);
	/* The rank may have ended meanwhile. */
	if (err && (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_CANCELLED))
		return err;
	prb_error_destroy(err);
	if (!ret->place.length) {
		prb_str_putc(&ret->place, '`');
		prb_text_escape(&ret->place, spot->name);
		prb_str_putc(&ret->place, '`');
	}
	return NULL;
}

void prb_late_text(const struct prb_late *late, struct prb_str *s)
{
	prb_str_printf(s, "rank %ld is ", late->rank->rank->rank);
	if (late->seconds > 0) {
		prb_text_duration(s, late->seconds);
		prb_str_puts(s, " late at each step");
	} else {
		prb_str_printf(s, "late: the others wait %.0f %% of their time for it",
			       100 * late->others_wait);
	}
	if (late->place.length)
		prb_str_printf(s, ", in %s", prb_str_text(&late->place));
}
