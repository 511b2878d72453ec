/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing watch`: says and saves when a process gets stuck. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/local_time.h"
#include "base/own_file.h"
#include "base/text.h"
#include "cli/commands/run/saving.h"
#include "command/command.h"
#include "command/descriptors.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "judge/judge.h"
#include "target/spec/target_spec.h"

enum { MEMORY_LOOKS = 10 }; /* the memory is looked at once in so many looks */

static const double EVERY = 2, HANG = 20;

struct settings {
	double every, hang;
	const char *wanted, *output;
	bool redact, once, json;
};

/** `why != none`, `why = deadlock`. */
struct wanted {
	const char *word;
	bool negated;
};

struct watch {
	const struct settings *s;
	struct wanted wanted;
	PRB_VEC(struct prb_watched) list;
	struct prb_saving saving;
	int code; /**< of the first verdict; 0: none yet */
};

static void watch_deinit(struct watch *watch)
{
	struct prb_watched *w;

	prb_vec_each (w, &watch->list)
		prb_watched_deinit(w);
	prb_vec_free(&watch->list);
	prb_saving_deinit(&watch->saving);
}

static bool is_verdict(const char *word)
{
	if (!strcmp(word, "none") || !strcmp(word, "memory"))
		return true;
	for (const struct prb_rule *const *rule = prb_rules; *rule; rule++)
		if (!strcmp(word, (*rule)->name))
			return true;
	return false;
}

static struct prb_error *no_verdict(const char *word)
{
	prb_auto_str struct prb_str names = {};

	for (const struct prb_rule *const *rule = prb_rules; *rule; rule++)
		prb_str_printf(&names, "%s, ", (*rule)->name);
	prb_str_puts(&names, "memory, none");
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no rule", word), "%s",
			      prb_str_text(&names));
}

static struct prb_error *parse_wanted(const char *text, struct wanted *ret)
{
	static const char why[] = "why";
	const char *at = text + strspn(text, " ");

	if (!strncmp(at, why, strlen(why))) {
		at += strlen(why);
		at += strspn(at, " ");
		ret->negated = *at == '!';
		at += *at == '!';
		if (*at == '=') {
			at++;
			at += *at == '=';
			at += strspn(at, " ");
			ret->word = at;
			if (*at && at[strcspn(at, " '\"")] == '\0')
				return is_verdict(at) ? NULL : no_verdict(at);
		}
	}
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no condition of 'watch'", text),
		"for example 'why != none' or 'why = deadlock'; the words are the rules "
		"of 'probing why --rules', 'still' and 'memory'");
}

static bool is_wanted(const struct watch *watch, const char *verdict)
{
	return (strcmp(verdict, watch->wanted.word) != 0) == watch->wanted.negated;
}

static struct prb_error *add(struct watch *watch, const char *text)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_watched *w;

	PRB_TRY(prb_spec_open(text, NULL, &target));
	if (!target->live || !target->local)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"%s is no process of this machine: only those are watched",
					text);
	PRB_TRY(prb_target_check_memory(target));
	w = prb_vec_push(&watch->list);
	if (!w)
		return prb_error_nomem();
	*w = (struct prb_watched){.pid = target->pid,
				  .tree = {.root = target->pid, .with_root = true}};
	return NULL;
}

static void put(struct prb_str *s, const struct watch *watch, const struct prb_watched *w,
		const struct prb_watched_news *news)
{
	struct prb_json json = {s};
	time_t now = time(NULL);

	if (!watch->s->json) {
		prb_str_printf(s, "%s  %d %s: %s\n", prb_local_time(now, PRB_LOCAL_DAY).text,
			       (int)w->pid, news->verdict, prb_str_text(&news->sentence));
		return;
	}
	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "timestamp", now);
	prb_json_integer(&json, "pid", w->pid);
	prb_json_text(&json, "verdict", news->verdict);
	prb_json_integer(&json, "exit_code", news->code);
	prb_json_text(&json, "sentence", prb_str_text(&news->sentence));
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

static struct prb_error *print(const struct watch *watch, const struct prb_str *text)
{
	PRB_TRY(prb_output_lines(text, watch->s->json));
	return prb_output_flush();
}

static struct prb_error *tell(struct watch *watch, struct prb_watched *w,
			      struct prb_watched_news *news)
{
	prb_auto_str struct prb_str text = {};

	if (!is_wanted(watch, news->verdict))
		return NULL;
	watch->code = watch->code ? watch->code : news->code;
	put(&text, watch, w, news);
	PRB_TRY(print(watch, &text));
	return prb_saving_add(&watch->saving, w, news);
}

/** Saves one report, and names the file. */
static struct prb_error *save_one(struct watch *watch)
{
	prb_auto_free char *name = NULL;
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	const char *verdict;
	pid_t pid;

	PRB_TRY(prb_saving_next(&watch->saving, &pid, &verdict, &name));
	if (!name)
		return NULL;
	if (watch->s->json) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "timestamp", time(NULL));
		prb_json_integer(&json, "pid", pid);
		prb_json_text(&json, "verdict", verdict);
		prb_json_text(&json, "saved", name);
		prb_json_close(&json, '}');
	} else {
		prb_str_printf(&text, "  saved       ");
		prb_text_escape(&text, name);
	}
	prb_str_putc(&text, '\n');
	return print(watch, &text);
}

/** One at least, and more until the next look; @p all: all of them. */
static struct prb_error *save_some(struct watch *watch, double next, bool all)
{
	size_t count = 0;

	while (watch->saving.list.count && !prb_interrupted() &&
	       (all || !count++ || prb_clock_seconds() < next))
		PRB_TRY(save_one(watch));
	return NULL;
}

static struct prb_error *look_at(struct watch *watch, struct prb_watched *w, bool memory,
				 bool *gone)
{
	prb_auto_news struct prb_watched_news news = {};

	PRB_TRY(prb_watched_look(w, prb_clock_seconds(), watch->s->hang > 0 ? watch->s->hang : HANG,
				 memory, gone, &news));
	return news.verdict ? tell(watch, w, &news) : NULL;
}

/** Until all have ended, or the first verdict if that is all that is wanted. */
static struct prb_error *follow(struct watch *watch)
{
	double every = watch->s->every > 0 ? watch->s->every : EVERY;

	for (unsigned n = 0; watch->list.count && !prb_interrupted(); n++) {
		double next = prb_clock_seconds() + every, left;

		for (size_t i = 0; i < watch->list.count; i++) {
			bool gone = false;

			PRB_TRY(look_at(watch, &watch->list.items[i], !(n % MEMORY_LOOKS), &gone));
			if (watch->s->once && watch->code)
				return save_some(watch, 0, true);
			if (!gone)
				continue;
			fprintf(stderr, "probing: %d has ended\n", (int)watch->list.items[i].pid);
			prb_watched_deinit(&watch->list.items[i]);
			watch->list.items[i--] = watch->list.items[--watch->list.count];
		}
		PRB_TRY(save_some(watch, next, !watch->list.count));
		/* Looks that take longer are not made without a pause. */
		left = PRB_MAX(next - prb_clock_seconds(), every / 4);
		if (watch->list.count)
			poll(NULL, 0, (int)PRB_MIN(left * 1000, 1e9));
	}
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct settings *s = settings;
	__attribute__((cleanup(watch_deinit))) struct watch watch = {
		.s = s, .saving = {.folder = s->output, .redact = s->redact}};
	prb_auto_close int folder = -1;

	PRB_TRY(parse_wanted(s->wanted ? s->wanted : "why != none", &watch.wanted));
	if (s->output)
		PRB_TRY(prb_own_folder_named(s->output, &folder));
	if (!cli->targets.count && !cli->argument_count)
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "no target given"),
				      "for example 'probing watch 4242'");
	prb_descriptors_raise();
	for (size_t i = 0; i < cli->targets.count; i++)
		PRB_TRY(add(&watch, cli->targets.items[i]));
	for (size_t i = 0; i < cli->argument_count; i++)
		PRB_TRY(add(&watch, cli->arguments[i]));
	prb_interrupt_catch_ends();
	PRB_TRY(follow(&watch));
	if (watch.saving.list.count)
		fprintf(stderr, "probing: interrupted: %zu reports were not saved\n",
			watch.saving.list.count);
	if (s->once && watch.code)
		prb_exit_pass(watch.code << 8);
	return NULL;
}

const struct prb_command prb_command_watch = {
	.rank = 46,
	.name = "watch",
	.summary = "Look at processes until one gets stuck, and save what it is in",
	.description =
		"Looks at each TARGET every two seconds, by the kernel's clocks of its processes. "
		"It "
		"is read only when none of them has run for --hang, and now and then while they "
		"hardly run. A verdict that lasts, or grows, is printed as one line; the report of "
		"'probing run' and a bundle of snapshots are saved, at most three for a process. "
		"So "
		"they are when the control group of a process uses over 95 % of its memory limit. "
		"The command ends when all targets have ended.",
	.options =
		(const struct prb_option[]){
			{"for", 0, PRB_OPTION_TEXT, "CONDITION",
			 "Verdicts to report: 'why = deadlock' (default: 'why != none')",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, wanted)},
			{"hang", 0, PRB_OPTION_SECONDS, "TIME",
			 "Time without progress that is a hang (default 20s)", PRB_COMPLETE_NOTHING,
			 offsetof(struct settings, hang)},
			{"every", 0, PRB_OPTION_SECONDS, "TIME", "Time between looks (default 2s)",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, every)},
			{"once", 0, PRB_OPTION_FLAG, NULL,
			 "End at the first verdict, with the exit code of 'probing check'",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, once)},
			{"output", 'o', PRB_OPTION_TEXT, "FOLDER",
			 "Where to save (default: the current folder)", PRB_COMPLETE_FILE,
			 offsetof(struct settings, output)},
			{"redact", 0, PRB_OPTION_FLAG, NULL, "Omit values of variables",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, redact)},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print each verdict as a line of JSON",
			 PRB_COMPLETE_NOTHING, offsetof(struct settings, json)},
			{}},
	.settings_size = sizeof(struct settings),
	.target_use = PRB_TARGET_ANY,
	.only_processes = true,
	.argument = "TARGET…",
	.max_arguments = PRB_MAX_TEXTS,
	.complete = PRB_COMPLETE_PROCESS,
	.examples =
		(const struct prb_example[]){
			{"probing watch 4242", "One process"},
			{"probing watch 4242 4243 -o hangs", "Two, and where to save"},
			{"probing watch 4242 --for 'why = deadlock' --once", "Wait for a deadlock"},
			{}},
	.run = run,
};
