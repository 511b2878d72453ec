/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The threads of a recording to be shown, and the weight of samples. */
#include "cli/commands/perf/show/performance.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "base/regex.h"

void prb_performance_choice_deinit(struct prb_performance_choice *choice)
{
	free(prb_steal(&choice->threads));
}

static void regex_guard(struct prb_regex **regex)
{
	if (*regex)
		prb_regex_destroy(*regex);
}

#define auto_regex __attribute__((cleanup(regex_guard)))

static struct prb_error *compile(const char *pattern, struct prb_regex **ret)
{
	return prb_error_prefix(prb_regex_compile(pattern, strlen(pattern), 0, ret), "--threads");
}

struct prb_error *prb_performance_check_choice(const struct prb_performance_settings *settings)
{
	auto_regex struct prb_regex *regex = NULL;
	enum prb_weight weight;

	PRB_TRY(prb_weight_parse(settings->show.mode, &weight));
	return settings->show.threads ? compile(settings->show.threads, &regex) : NULL;
}

static struct prb_error *matches(struct prb_regex *regex, const char *name, bool *ret)
{
	bool found = false;

	if (!name || *ret)
		return NULL;
	PRB_TRY(prb_regex_match(regex, name, strlen(name), 0, &found));
	*ret = found;
	return NULL;
}

/* Chooses threads by Python's name or the kernel's. */
static struct prb_error *choose_by_name(const struct prb_recording *recording, const char *pattern,
					bool *chosen)
{
	auto_regex struct prb_regex *regex = NULL;

	PRB_TRY(compile(pattern, &regex));
	for (size_t i = 0; i < recording->threads.count; i++) {
		const struct prb_profile_thread *thread = &recording->threads.items[i];

		PRB_TRY(matches(regex, thread->name, &chosen[i]));
		PRB_TRY(matches(regex, thread->os_name, &chosen[i]));
	}
	return NULL;
}

static void put_names(struct prb_str *s, const struct prb_recording *recording)
{
	enum { MOST = 8 };

	for (size_t i = 0; i < recording->threads.count && i < MOST; i++) {
		const struct prb_profile_thread *thread = &recording->threads.items[i];

		prb_str_puts(s, i ? ", " : "");
		prb_text_escape(s, thread->name ? thread->name : thread->os_name);
	}
	if (recording->threads.count > MOST)
		prb_str_puts(s, ", …");
}

static struct prb_error *none_chosen(const struct prb_recording *recording,
				     const struct prb_performance_settings *settings)
{
	prb_auto_str struct prb_str names = {};

	put_names(&names, recording);
	if (settings->show.threads)
		return prb_error_hint(prb_error_create(PRB_ERROR_NO_PROCESS,
						       "no thread of process %d has a name that "
						       "matches '%.200s'",
						       recording->pid, settings->show.threads),
				      "there are %s", prb_str_text(&names));
	return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has no thread %d", recording->pid,
				settings->record.tid);
}

struct prb_error *prb_performance_choose(const struct prb_recording *recording,
					 const struct prb_performance_settings *settings,
					 struct prb_performance_choice *ret)
{
	size_t count = recording->threads.count;
	bool any = false;

	*ret = (struct prb_performance_choice){.choice.lines = settings->show.lines};
	PRB_TRY(prb_weight_parse(settings->show.mode, &ret->choice.weight));
	if (!settings->show.threads && !settings->record.tid)
		return NULL;
	ret->threads = calloc(count + 1, sizeof(*ret->threads));
	if (!ret->threads)
		return prb_error_nomem();
	ret->choice.threads = ret->threads;
	if (settings->show.threads)
		PRB_TRY(choose_by_name(recording, settings->show.threads, ret->threads));
	for (size_t i = 0; i < count; i++) {
		if (settings->record.tid)
			ret->threads[i] = (!settings->show.threads || ret->threads[i]) &&
					  recording->threads.items[i].tid == settings->record.tid;
		any |= ret->threads[i];
	}
	return any ? NULL : none_chosen(recording, settings);
}
