/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/targets/overview.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

enum { MAX_LOOK = 64 << 20 };

/** Seconds between two looks; without a request for so long, the command ends; a look that takes
 * longer than that never comes. */
static const double EVERY = 2, UNASKED = 15, STUCK = 30;

void prb_overview_keeper_init(struct prb_overview_keeper *k)
{
	*k = (struct prb_overview_keeper){.child = {.out = -1, .err = -1}};
}

static void forget(struct prb_overview_keeper *k)
{
	prb_child_deinit(&k->child);
	k->child = (struct prb_child){.out = -1, .err = -1};
	prb_str_deinit(&k->in);
	prb_str_deinit(&k->last);
	k->in = k->last = (struct prb_str){};
	k->pending = false;
}

void prb_overview_keeper_deinit(struct prb_overview_keeper *k)
{
	forget(k);
}

static struct prb_error *start(struct prb_overview_keeper *k, const struct prb_served *served,
			       double now)
{
	__attribute__((cleanup(prb_words_deinit))) struct prb_words words = {};

	PRB_TRY(prb_words_add(&words, "overview"));
	PRB_TRY(prb_words_add(&words, "--json"));
	PRB_TRY(prb_words_add(&words, "--watch=%.1fs", EVERY));
	if (served->named.count)
		PRB_TRY(prb_served_words_all(served, &words));
	k->began = k->came = now;
	return prb_child_start(&k->child, &words, NULL, -1);
}

struct prb_error *prb_overview_keeper_ask(struct prb_overview_keeper *k,
					  const struct prb_served *served, bool early, double now,
					  const struct prb_str **ret)
{
	*ret = NULL;
	k->asked = now;
	if (k->child.ended) {
		struct prb_error *err = prb_child_judge(&k->child);

		if (!err)
			err = prb_error_create(PRB_ERROR_FAILED, "the overview has ended");
		forget(k);
		return err;
	}
	if (!k->child.pid) {
		struct prb_error *err = start(k, served, now);

		if (!prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
			return err;
		/* All have ended: there is nothing to run. */
		prb_str_truncate(&k->last, 0);
		prb_str_puts(&k->last, "{\"time\":null,\"seconds\":0,\"pending\":false,"
				       "\"judged\":0,\"findings\":[],\"jobs\":[],"
				       "\"targets\":[]}");
		PRB_TRY(prb_served_overview(served, &k->last));
	}
	if (k->last.length && (early || !k->pending))
		*ret = &k->last;
	return NULL;
}

/** Whether a look says so, before anything that a process has a say in. */
static bool is_pending(const struct prb_str *look)
{
	static const char WORDS[] = "\"pending\":true", NEXT[] = "\"judged\":";
	const char *next = strstr(prb_str_text(look), NEXT);
	const char *at = strstr(prb_str_text(look), WORDS);

	return at && next && at < next;
}

/** Takes the lines that are whole; the last one counts. */
static void take_lines(struct prb_overview_keeper *k, const struct prb_served *served, double now)
{
	const char *end = k->in.length ? memrchr(k->in.data, '\n', k->in.length) : NULL, *begin;

	if (!end)
		return;
	size_t whole = (size_t)(end - k->in.data);
	begin = memrchr(k->in.data, '\n', whole);
	begin = begin ? begin + 1 : k->in.data;
	prb_str_truncate(&k->last, 0);
	prb_str_append(&k->last, begin, (size_t)(end - begin));
	prb_str_remove(&k->in, 0, whole + 1);
	k->pending = is_pending(&k->last);
	prb_error_destroy(prb_served_overview(served, &k->last));
	k->came = now;
}

void prb_overview_keeper_tend(struct prb_overview_keeper *k, const struct prb_served *served,
			      double now)
{
	if (!k->child.pid && k->child.out < 0)
		return;
	prb_child_receive(&k->child, MAX_LOOK, &k->in);
	take_lines(k, served, now);
	if (k->child.pid && (now > k->came + STUCK || k->in.failed || k->in.length >= MAX_LOOK)) {
		k->child.late = true;
		prb_child_kill(&k->child, now);
	}
	prb_child_tend(&k->child, now);
	if (now > k->asked + UNASKED)
		forget(k);
}
