/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/run/saving.h"

#include <unistd.h>

#include "base/cleanup.h"
#include "base/new_file.h"
#include "cli/commands/run/report.h"
#include "command/exit.h"

enum { MOST_SAVED = 3 }; /* bundles of one process */

static const double SAVING = 30; /* seconds for the snapshots of one bundle */

void prb_saving_deinit(struct prb_saving *saving)
{
	struct prb_unsaved *unsaved;

	prb_vec_each (unsaved, &saving->list)
		prb_watched_news_deinit(&unsaved->news);
	prb_vec_free(&saving->list);
}

struct prb_error *prb_saving_add(struct prb_saving *saving, struct prb_watched *w,
				 struct prb_watched_news *news)
{
	struct prb_unsaved *place;

	if (w->saved >= MOST_SAVED)
		return NULL;
	place = prb_vec_push(&saving->list);
	if (!place)
		return prb_error_nomem();
	/* One that may be killed in a moment is saved before the others. */
	if (news->code == PRB_FINDING_EXIT + PRB_FINDING_MEMORY)
		for (; place > saving->list.items; place--)
			*place = place[-1];
	*place = (struct prb_unsaved){w->pid, ++w->saved, *news};
	*news = (struct prb_watched_news){};
	return NULL;
}

static struct prb_error *save_text(const char *path, const struct prb_watched_news *news)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%s: %s\n", news->verdict, prb_str_text(&news->sentence));
	PRB_TRY(prb_report_text(&news->still, 1, &text));
	file.replaces_links = true;
	PRB_TRY(prb_new_file_open(&file, path));
	if (write(file.fd, prb_str_text(&text), text.length) != (ssize_t)text.length)
		return prb_error_create(PRB_ERROR_FAILED, "cannot write %s", path);
	return prb_new_file_finish(&file);
}

static struct prb_error *save(const struct prb_saving *saving, const struct prb_unsaved *unsaved,
			      char **name)
{
	const char *folder = saving->folder ? saving->folder : ".";
	prb_auto_free char *path = prb_format("%s/probing-watch-%d-%u.probing", folder,
					      (int)unsaved->pid, unsaved->number);
	prb_auto_free char *text = prb_format("%s/probing-watch-%d-%u.txt", folder,
					      (int)unsaved->pid, unsaved->number);
	size_t count, left;

	if (!path || !text)
		return prb_error_nomem();
	PRB_TRY(save_text(text, &unsaved->news));
	PRB_TRY(prb_report_save(&unsaved->news.still, path, false, saving->redact, SAVING, &count,
				&left));
	if (count)
		*name = prb_steal(&path);
	return NULL;
}

struct prb_error *prb_saving_next(struct prb_saving *saving, pid_t *pid, const char **verdict,
				  char **name)
{
	struct prb_unsaved *first = saving->list.items;
	prb_auto_error struct prb_error *err = NULL;

	*name = NULL;
	*pid = first->pid;
	*verdict = first->news.verdict;
	err = save(saving, first, name);
	prb_watched_news_deinit(&first->news);
	for (size_t i = 1; i < saving->list.count; i++)
		first[i - 1] = first[i];
	saving->list.count--;
	if (err && err->code == PRB_ERROR_NOMEM)
		return prb_steal(&err);
	if (err)
		prb_warn(err->message);
	return NULL;
}
