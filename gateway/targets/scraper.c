/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/targets/scraper.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MOST = 64 << 20 };

/** Seconds: without a request for so long, the command ends, as Prometheus asks each minute by
 * default; an answer that takes longer than that never comes. */
static const double UNASKED = 130, STUCK = 60;

/** The line that ends an answer. */
static const char END[] = "# EOF\n";

void prb_scraper_init(struct prb_scraper *s)
{
	*s = (struct prb_scraper){.child = {.out = -1, .err = -1}};
}

void prb_scraper_deinit(struct prb_scraper *s)
{
	prb_child_deinit(&s->child);
	prb_str_deinit(&s->in);
	prb_str_deinit(&s->last);
	prb_scraper_init(s);
}

static struct prb_error *start(struct prb_scraper *s, const struct prb_served *served)
{
	__attribute__((cleanup(prb_words_deinit))) struct prb_words words = {};

	PRB_TRY(prb_words_add(&words, "export"));
	PRB_TRY(prb_words_add(&words, "prometheus"));
	PRB_TRY(prb_words_add(&words, "--each-line"));
	PRB_TRY(prb_served_words_processes(served, &words));
	return prb_child_start_talk(&s->child, &words);
}

static struct prb_error *begin(struct prb_scraper *s, const struct prb_served *served, double now)
{
	if (!s->child.pid)
		PRB_TRY(start(s, served));
	if (write(s->child.out, "\n", 1) != 1)
		return prb_error_os(errno, "cannot ask for metrics");
	s->reads = true;
	s->began = now;
	return NULL;
}

struct prb_error *prb_scraper_ask(struct prb_scraper *s, const struct prb_served *served,
				  double since, double now, const struct prb_str **ret)
{
	struct prb_error *err = NULL;

	*ret = NULL;
	s->asked = now;
	if (s->child.ended) {
		err = prb_child_judge(&s->child);
		if (!err)
			err = prb_error_create(PRB_ERROR_FAILED, "the command has ended");
		prb_scraper_deinit(s);
		return err;
	}
	if (s->last.length && s->came >= since)
		*ret = &s->last;
	else if (!s->reads)
		err = begin(s, served, now);
	return err;
}

/** Takes the answer if it is whole. */
static void take(struct prb_scraper *s, double now)
{
	size_t end = strlen(END);

	if (s->in.failed || s->in.length < end ||
	    memcmp(s->in.data + s->in.length - end, END, end) != 0)
		return;
	prb_str_truncate(&s->last, 0);
	prb_str_append(&s->last, s->in.data, s->in.length - end);
	prb_str_truncate(&s->in, 0);
	s->reads = false;
	s->came = now;
}

void prb_scraper_tend(struct prb_scraper *s, double now)
{
	if (!s->child.pid && s->child.out < 0)
		return;
	prb_child_receive(&s->child, MOST, &s->in);
	take(s, now);
	if (s->child.pid &&
	    ((s->reads && now > s->began + STUCK) || s->in.failed || s->in.length >= MOST)) {
		s->child.late = true;
		prb_child_kill(&s->child, now);
	}
	prb_child_tend(&s->child, now);
	if (now > s->asked + UNASKED)
		prb_scraper_deinit(s);
}
