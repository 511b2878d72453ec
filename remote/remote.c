/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Splits a command into the part sent to its target's machine and the part done here: files are
 * local.
 */
#include "remote/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "command/commands.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "dump/text/paths.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/str.h"
#include "base/text.h"
#include "target/spec/target_spec.h"

static bool is_ssh(const char *target)
{
	return !strncmp(target, "ssh://", 6);
}

bool prb_remote_is(const char *target)
{
	return target && (is_ssh(target) || prb_spec_kind(target) == PRB_SPEC_REMOTE);
}

/** A command as it is run elsewhere, and the files that it is about here. */
struct plan {
	struct prb_remote_job job;
	int input;	    /**< a file that is open, or -1 */
	const char *output; /**< the file that a snapshot goes to, or NULL */
	bool streams;	    /**< a snapshot is for stdout */
	bool prompts;	    /**< its lines are typed here: SQL, or those of `debug` */
	bool debugs;	    /**< `debug` without an option that says what it does */
	bool stays;	    /**< its output is only of use there, during the command or later */
};

static void plan_deinit(struct plan *plan)
{
	prb_words_deinit(&plan->job.words);
	if (plan->input >= 0)
		close(plan->input);
}

static struct prb_error *plan_input(struct plan *plan, const char *path)
{
	if (!strcmp(path, "-")) {
		plan->job.in = STDIN_FILENO;
		return NULL;
	}
	plan->input = open(path, O_RDONLY | O_CLOEXEC);
	if (plan->input < 0)
		return prb_error_os(errno, "cannot open %.200s", path);
	plan->job.in = plan->input;
	return NULL;
}

/** An option that names a file: it is read, or written, at this end. */
static struct prb_error *plan_file(struct plan *plan, const struct prb_command *command,
				   const char *option, const char *path, bool *reads)
{
	if (command == &prb_command_snapshot) {
		plan->output = path;
		plan->streams = !strcmp(path, "-");
		return NULL;
	}
	if (command != &prb_command_query && command != &prb_command_eval) {
		if (is_ssh(plan->job.target))
			return prb_words_add(&plan->job.words, "--%s=%s", option, path);
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "'%s --%s' is about a file of the machine "
						       "where the target runs",
						       command->name, option),
				      "run it there, or with an ssh:// target; eval can have the "
				      "process load a library: __import__('ctypes').CDLL(PATH)");
	}
	*reads = true;
	if (command == &prb_command_eval && strcmp(path, "-") != 0)
		PRB_TRY(prb_words_add(&plan->job.words, "--name=%s", path));
	return plan_input(plan, path);
}

static struct prb_error *plan_options(struct plan *plan, const struct prb_command *command,
				      const void *settings, bool *reads)
{
	plan->debugs = command == &prb_command_debug;
	for (const struct prb_option *o = command->options; o && o->name; o++) {
		if (!prb_option_is_set(o, settings))
			continue;
		plan->debugs &= strcmp(o->name, "dump") && strcmp(o->name, "pause") &&
				strcmp(o->name, "dap");
		plan->stays |= command == &prb_command_debug &&
			       (!strcmp(o->name, "pause") || !strcmp(o->name, "dap"));
		if (o->complete == PRB_COMPLETE_FILE)
			PRB_TRY(plan_file(plan, command, o->name,
					  *(char *const *)((const char *)settings + o->place),
					  reads));
		else
			PRB_TRY(prb_words_add_option(&plan->job.words, o, settings));
	}
	if (command == &prb_command_snapshot)
		PRB_TRY(prb_words_add(&plan->job.words, "--output=-"));
	return NULL;
}

/** Whether the command reads our stdin depends on its words. */
static struct prb_error *plan_words(struct plan *plan, const struct prb_cli *cli, bool reads)
{
	bool asks = !reads &&
		    (cli->command == &prb_command_query ? !cli->argument_count : plan->debugs);

	plan->prompts = asks && isatty(STDIN_FILENO) && !is_ssh(cli->target);
	if (plan->prompts)
		return NULL;
	PRB_TRY(prb_words_add(&plan->job.words, "--"));
	for (size_t i = 0; i < cli->argument_count; i++) {
		PRB_TRY(prb_words_add(&plan->job.words, "%s", cli->arguments[i]));
		if (!strcmp(cli->arguments[i], "-"))
			plan->job.in = STDIN_FILENO;
	}
	if (reads)
		return prb_words_add(&plan->job.words, "-");
	/* Code that is not among the words is piped. */
	if (cli->command == &prb_command_eval && !cli->argument_count && !isatty(STDIN_FILENO))
		plan->job.in = STDIN_FILENO;
	if (cli->command == &prb_command_repl || cli->command == &prb_command_dap || asks)
		plan->job.in = STDIN_FILENO;
	return NULL;
}

static struct prb_error *make_plan(struct plan *plan, const struct prb_cli *cli,
				   const void *settings)
{
	bool reads = false;

	plan->job = (struct prb_remote_job){.target = cli->target,
					    .token_file = cli->token_file,
					    .in = -1,
					    .out = STDOUT_FILENO,
					    .err = STDERR_FILENO};
	plan->input = -1;
	PRB_TRY(prb_words_add(&plan->job.words, "%s", cli->command->name));
	for (unsigned i = 0; i < cli->verbose; i++)
		PRB_TRY(prb_words_add(&plan->job.words, "--verbose"));
	PRB_TRY(plan_options(plan, cli->command, settings, &reads));
	return plan_words(plan, cli, reads);
}

struct prb_error *prb_remote_judge(const struct prb_remote_end *end)
{
	static const enum prb_error_code codes[] = {
		PRB_ERROR_FAILED,     PRB_ERROR_FAILED,	 PRB_ERROR_USAGE,     PRB_ERROR_UNSUPPORTED,
		PRB_ERROR_PERMISSION, PRB_ERROR_TIMEOUT, PRB_ERROR_NO_PROCESS};

	if (end->signal == SIGINT)
		prb_interrupt_end();
	if (end->signal)
		return prb_error_create(PRB_ERROR_FAILED,
					"the command was ended at the other end by signal %d (%s)",
					end->signal, strsignal(end->signal));
	if (!end->code)
		return NULL;
	/* It said why. */
	return prb_error_create(
		codes[(size_t)end->code < PRB_ARRAY_SIZE(codes) ? end->code : PRB_EXIT_FAILED],
		"%s", "");
}

static struct prb_error *run(const struct prb_remote_job *job)
{
	struct prb_remote_end end = {};

	PRB_TRY(is_ssh(job->target) ? prb_remote_ssh(job, &end) : prb_remote_run(job, &end));
	return prb_remote_judge(&end);
}

/**
 * Prints the remote output beside the snapshot, with the path of the local file, if there is one.
 */
static struct prb_error *tell(const char *path, const struct prb_str *text)
{
	static const char mark[] = "-: ";
	prb_auto_str struct prb_str line = {};
	const char *at = prb_str_text(text);

	for (const char *end; *at; at = end) {
		end = at + strcspn(at, "\n");
		end += *end == '\n';
		if (strncmp(at, mark, strlen(mark)) != 0) {
			fprintf(stderr, "%.*s", (int)(end - at), at);
			continue;
		}
		prb_text_escape(&line, path ? path : "-");
		prb_str_append(&line, at + 1, (size_t)(end - at) - 1);
	}
	return prb_output(&line);
}

static struct prb_error *read_back(int fd, struct prb_str *ret)
{
	char chunk[4096];
	ssize_t got;

	if (lseek(fd, 0, SEEK_SET))
		return prb_error_os(errno, "cannot read the answer");
	while ((got = read(fd, chunk, sizeof(chunk))) > 0)
		prb_str_append(ret, chunk, (size_t)got);
	return ret->failed ? prb_error_nomem() : NULL;
}

/** The line that goes with the file; without -o it has the pid that the file is called by. */
static struct prb_error *name_file(struct prb_new_file *file, const struct prb_str *text)
{
	const char *of = strstr(prb_str_text(text), " threads of ");
	prb_auto_free char *name = prb_format(
		"probing-%ld.snapshot", of ? strtol(of + strlen(" threads of "), NULL, 10) : 0);

	return name ? prb_new_file_rename(file, name) : prb_error_nomem();
}

/** A snapshot is made there and written here. */
static struct prb_error *save(struct plan *plan)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_close int said = memfd_create("probing", MFD_CLOEXEC);
	prb_auto_str struct prb_str text = {};

	if (said < 0)
		return prb_error_os(errno, "cannot make a buffer");
	file.replaces_links = !plan->output;
	PRB_TRY(prb_new_file_open(&file, plan->output ? plan->output : "probing.snapshot"));
	plan->job.out = file.fd;
	plan->job.err = said;

	struct prb_error *err = run(&plan->job), *other = read_back(said, &text);
	if (!err && !other && !plan->output)
		err = name_file(&file, &text);
	if (!err && !other)
		err = prb_new_file_finish(&file);
	if (!other)
		other = tell(err	    ? NULL
			     : plan->output ? plan->output
					    : prb_path_last(file.path),
			     &text);
	if (err)
		prb_error_destroy(other);
	return err ? err : other;
}

struct prb_error *prb_remote_command(const struct prb_cli *cli, const void *settings)
{
	__attribute__((cleanup(plan_deinit))) struct plan plan = {};

	/* Its prompt is here, and talks to the agent there. */
	if (cli->command == &prb_command_repl && isatty(STDIN_FILENO) && !is_ssh(cli->target))
		return cli->command->run(cli, settings);
	PRB_TRY(make_plan(&plan, cli, settings));
	if (plan.stays)
		fprintf(stderr,
			"Pids and addresses are named as they are at the other end; the process is "
			"-t %s here.\n",
			cli->target);
	if (plan.prompts)
		return prb_remote_prompt(&plan.job,
					 plan.debugs ? prb_prompt_debug : prb_prompt_sql);
	if (cli->command == &prb_command_snapshot && !plan.streams)
		return save(&plan);
	return run(&plan.job);
}
