/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing check`: whether a process goes on, for health checks. */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/run/standstill.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"
#include "judge/facts.h"
#include "judge/threads.h"
#include "target/spec/target_spec.h"

enum { EXIT_STILL = PRB_FINDING_EXIT + PRB_FINDING_STILL };

static const double STILL = 60;

struct settings {
	double still;
	bool json;
};

struct answer {
	pid_t pid;
	const char *state; /**< static: "ok", "still", or the kind of a finding */
	int code;
	struct prb_str words;
};

static struct prb_error *open_target(const struct prb_cli *cli, pid_t *ret)
{
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &target));
	if (!target->live || !target->local)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"'%.200s' is no process of this machine: only those go on",
					cli->target);
	*ret = target->pid;
	return prb_target_check_memory(target);
}

/** Seconds since any thread of the Python processes ran; negative: not known. */
static double slept(const struct prb_standstill *s)
{
	struct prb_why_one *const *one;
	const struct prb_dump_thread *thread;
	double least = INFINITY;

	prb_vec_each (one, &s->why.list)
		if ((*one)->dump)
			prb_vec_each (thread, &(*one)->dump->threads)
				if (thread->tid)
					least = fmin(least, thread->idle_seconds);
	return isinf(least) ? -1 : least;
}

/** Seconds that the threads of a finding have slept; without any, the main thread. */
static double stopped_for(const struct prb_why_one *one, const struct prb_finding *finding)
{
	double least = -1;

	for (size_t i = 0; i < finding->tids.count; i++) {
		const struct prb_dump_thread *thread =
			prb_case_thread(&one->judged, finding->tids.items[i]);
		double idle = thread ? thread->idle_seconds : -1;

		if (idle >= 0 && (least < 0 || idle < least))
			least = idle;
	}
	return least < 0 ? prb_why_main(one)->idle_seconds : least;
}

/** A finding that somebody has stopped or paused the process @p pid, and for how long; or NULL. */
static const struct prb_finding *stopped(const struct prb_standstill *s, pid_t pid, double *seconds)
{
	struct prb_why_one *const *one;

	prb_vec_each (one, &s->why.list) {
		if ((*one)->process.pid != pid || !prb_why_main(*one))
			continue;
		for (size_t i = 0; i < (*one)->findings.list.count; i++) {
			const struct prb_finding *finding = (*one)->findings.list.items[i];

			if (finding->kind != PRB_FINDING_STOPPED)
				continue;
			*seconds = stopped_for(*one, finding);
			return finding;
		}
	}
	return NULL;
}

/** The usual main thread of a daemon: it waits for an event that a handler of a signal sets. */
static bool waits_for_signal(const struct prb_standstill *s, pid_t pid)
{
	static const char words[] = "futex: waiting in Event.wait";
	struct prb_why_one *const *one;

	prb_vec_each (one, &s->why.list) {
		const struct prb_dump_thread *main = prb_why_main(*one);

		if ((*one)->process.pid == pid && main && main->tid == pid && main->waits_for &&
		    !strcmp(main->waits_for, words))
			return prb_case_handles_signals(&(*one)->judged);
	}
	return false;
}

static void put_stopped(const struct prb_finding *finding, double seconds, double still,
			struct answer *ret)
{
	if (seconds >= still) {
		ret->state = prb_finding_kind_name(finding->kind);
		ret->code = PRB_FINDING_EXIT + (int)finding->kind;
	}
	prb_str_puts(&ret->words, prb_str_text(&finding->sentence));
	if (seconds < 0)
		return;
	prb_str_puts(&ret->words, ", for ");
	prb_text_duration(&ret->words, seconds);
}

static struct prb_error *judge(struct prb_tree *tree, double still, struct answer *ret)
{
	prb_auto_standstill struct prb_standstill s = {};
	const struct prb_finding *fatal, *stop;
	double seconds, since = -1;

	PRB_TRY(prb_tree_look(tree));
	PRB_TRY(prb_standstill_read(tree, ret->pid, &s));
	PRB_TRY(prb_standstill_search(tree, ret->pid, &s));
	PRB_TRY(prb_standstill_fill_idle(&s));
	PRB_TRY(prb_tree_look(tree));
	seconds = slept(&s);
	fatal = prb_standstill_fatal(&s, ret->pid, still);
	if (!fatal)
		fatal = prb_standstill_server(&s, still);
	stop = stopped(&s, ret->pid, &since);
	ret->state = "ok";
	if (fatal) {
		ret->state = prb_finding_kind_name(fatal->kind);
		ret->code = PRB_FINDING_EXIT + (int)fatal->kind;
		prb_str_puts(&ret->words, prb_str_text(&fatal->sentence));
	} else if (stop) {
		put_stopped(stop, since, still, ret);
	} else if (tree->moved) {
		prb_str_puts(&ret->words, "it runs");
	} else if (seconds >= 0 && seconds < still) {
		prb_str_puts(&ret->words, "it has run ");
		prb_text_duration(&ret->words, seconds);
		prb_str_puts(&ret->words, " ago");
	} else if (!s.hung || waits_for_signal(&s, ret->pid)) {
		prb_str_puts(&ret->words, "it waits for something from outside: ");
		prb_standstill_put_end(&ret->words, &s);
	} else if (seconds < 0) {
		prb_str_puts(&ret->words, "it is not known how long its threads have slept: ");
		prb_standstill_put_end(&ret->words, &s);
	} else {
		ret->state = "still";
		ret->code = EXIT_STILL;
		prb_str_puts(&ret->words, "nothing has run for ");
		prb_text_duration(&ret->words, seconds);
		prb_str_puts(&ret->words, ": ");
		prb_standstill_put_end(&ret->words, &s);
	}
	return ret->words.failed ? prb_error_nomem() : NULL;
}

static void put(struct prb_str *s, const struct answer *answer, bool as_json)
{
	struct prb_json json = {s};

	if (as_json) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "pid", answer->pid);
		prb_json_text(&json, "state", answer->state);
		prb_json_integer(&json, "exit_code", answer->code);
		prb_json_text(&json, "sentence", prb_str_text(&answer->words));
		prb_json_close(&json, '}');
		prb_str_putc(s, '\n');
		return;
	}
	prb_str_printf(s, "%s: %d: %s\n", answer->state, (int)answer->pid,
		       prb_str_text(&answer->words));
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct settings *s = settings;
	prb_auto_tree struct prb_tree tree = {.with_root = true};
	prb_auto_str struct prb_str text = {};
	struct answer answer = {};

	PRB_TRY(open_target(cli, &answer.pid));
	tree.root = answer.pid;
	struct prb_error *err = judge(&tree, s->still > 0 ? s->still : STILL, &answer);
	if (!err)
		put(&text, &answer, s->json);
	prb_str_deinit(&answer.words);
	PRB_TRY(err);
	PRB_TRY(prb_output_lines(&text, s->json));
	if (answer.code)
		prb_exit_pass(answer.code << 8);
	return NULL;
}

const struct prb_command prb_command_check = {
	.rank = 44,
	.name = "check",
	.summary = "Say whether a process goes on, for health checks",
	.description =
		"Prints one line. The exit code is 0 if a thread of the process, or of its "
		"children, has run in the last --still, or if it waits for something from outside: "
		"clients, input, a signal, a time, another program. It is 10, 11, 12 or 14, as in "
		"'probing why "
		"--rules', "
		"if threads are surely in a deadlock, wait for a lock that nobody can release, "
		"are stopped or paused, or hold the GIL and sleep, for as long; and 24 if the "
		"requests of an inference "
		"server have not moved for as long. It is 21 if nothing has run for as long, and "
		"only the process itself could end its wait. Where it is not known how long "
		"threads "
		"have slept, the code is 0.",
	.options =
		(const struct prb_option[]){{"still", 0, PRB_OPTION_SECONDS, "TIME",
					     "Time without progress that is too long (default 1m)",
					     PRB_COMPLETE_NOTHING,
					     offsetof(struct settings, still)},
					    {"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON",
					     PRB_COMPLETE_NOTHING, offsetof(struct settings, json)},
					    {}},
	.settings_size = sizeof(struct settings),
	.target_use = PRB_TARGET_ONE,
	.only_processes = true,
	.complete = PRB_COMPLETE_PROCESS,
	.examples = (const struct prb_example[]){{"probing check 4242", "Of one process"},
						 {"probing check --still 5m 1",
						  "In a container: of its first process"},
						 {}},
	.run = run,
};
