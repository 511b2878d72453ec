/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing doctor`: what allows or prevents reading, of this machine or of one process. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command/commands.h"
#include "cli/commands/doctor/doctor.h"
#include "cli/commands/doctor/trial.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "target/spec/command_line.h"
#include "target/spec/target_spec.h"

struct doctor_settings {
	bool json;
};

static void doctor_deinit(struct prb_doctor *d)
{
	prb_remarks_deinit(&d->report);
	prb_str_deinit(&d->own_status);
	prb_str_deinit(&d->status);
	prb_target_destroy(d->target);
}

static void read_status(pid_t pid, struct prb_str *ret)
{
	prb_auto_free char *path = prb_format("/proc/%d/status", (int)pid);
	prb_auto_fclose FILE *file = path ? fopen(path, "re") : NULL;
	char chunk[4096];
	size_t n;

	while (file && (n = fread(chunk, 1, sizeof(chunk), file)))
		prb_str_append(ret, chunk, n);
}

static void run_section(struct prb_doctor *d, const struct prb_section *section)
{
	d->report.section = section->title;
	for (const struct prb_check *check = section->checks; check->name; check++)
		check->run(d, check);
}

/** The findings are printed already, so the error has no message. */
static struct prb_error *silent(enum prb_error_code code)
{
	return prb_error_create(code, "%s", "");
}

static struct prb_error *examine_machine(struct prb_doctor *d, bool json)
{
	static const struct prb_section *const of_us[] = {
		&prb_section_reading,
		&prb_section_rights,
		&prb_section_kernel,
		&prb_section_proc,
	};
	static const struct prb_section *const of_others[] = {
		&prb_section_interpreters,
		&prb_section_ports,
		&prb_section_tools,
	};
	struct prb_python_processes pythons = {};
	struct prb_trial trial;
	struct prb_error *err = prb_trial_start(&trial);

	if (!err)
		d->trial = &trial;
	prb_error_destroy(err);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(of_us); i++)
		run_section(d, of_us[i]);
	/* Looking at others would end us where a filter kills for it. */
	err = d->killed ? NULL : prb_process_list(&pythons);
	if (!err && !d->killed)
		d->pythons = &pythons;
	prb_error_destroy(err);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(of_others); i++)
		run_section(d, of_others[i]);
	prb_python_processes_deinit(&pythons);
	if (d->trial)
		prb_trial_end(&trial);
	PRB_TRY(prb_remarks_print(&d->report,
				  &(struct prb_remarks_subject){.readable = d->readable}, json));
	return d->readable ? NULL : silent(PRB_ERROR_PERMISSION);
}

static struct prb_error *examine_process(struct prb_doctor *d, const struct prb_process *process,
					 bool json)
{
	prb_auto_str struct prb_str command = {};
	struct prb_error *err = prb_target_open_process(process->pid, &d->target);
	enum prb_error_code code = err ? err->code : PRB_ERROR_FAILED;

	prb_error_destroy(err);
	d->process = process;
	d->readable = d->target;
	read_status(process->pid, &d->status);
	run_section(d, &prb_section_process);
	run_section(d, &prb_section_python);
	prb_command_line_text(&command, process);
	PRB_TRY(prb_remarks_print(&d->report,
				  &(struct prb_remarks_subject){.pid = process->pid,
								.command = prb_str_text(&command),
								.readable = d->readable},
				  json));
	return d->readable ? NULL : silent(code);
}

/** The pid that @p text names; the process need not be readable. */
static struct prb_error *find_pid(const char *text, pid_t *ret)
{
	enum prb_spec_kind kind = prb_spec_kind(text);
	bool regex = kind == PRB_SPEC_REGEX;
	prb_auto_target struct prb_target *target = NULL;

	if (kind == PRB_SPEC_PID) {
		errno = 0;
		long pid = strtol(text, NULL, 10);

		if (errno || pid < 1 || pid > INT_MAX)
			return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is not a process id",
						text);
		*ret = (pid_t)pid;
		return NULL;
	}
	if (regex || kind == PRB_SPEC_NAME) {
		prb_auto_free char *pattern = strndup(text + regex, strlen(text) - 2 * regex);

		return pattern ? prb_command_line_find(pattern, regex, ret) : prb_error_nomem();
	}
	PRB_TRY(prb_spec_open(text, NULL, &target));
	*ret = target->pid;
	if (target->local)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "'doctor' is about processes that run, and '%.200s' is "
				 "a file",
				 text),
		"'probing %.200s debug --dump' says what it cannot read of it", text);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct doctor_settings *s = settings;
	__attribute__((cleanup(doctor_deinit))) struct prb_doctor d = {};
	const char *text = cli->argument_count ? cli->arguments[0] : cli->target;
	struct prb_process process;
	pid_t pid;

	read_status(getpid(), &d.own_status);
	if (!text)
		return examine_machine(&d, s->json);
	PRB_TRY(prb_spec_refuse_places(text, &cli->places));
	if (cli->targets.count + cli->argument_count > 1)
		return prb_error_create(PRB_ERROR_USAGE, "'doctor' takes one target");
	PRB_TRY(find_pid(text, &pid));
	PRB_TRY(prb_process_describe(pid, &process));

	struct prb_error *err = examine_process(&d, &process, s->json);
	prb_process_deinit(&process);
	return err;
}

const struct prb_command prb_command_doctor = {
	.rank = 145,
	.for_clients = true,
	.name = "doctor",
	.aliases = {},
	.summary = "Say what allows or prevents reading processes",
	.description =
		"Without TARGET, looks at this machine: our rights, what the kernel lets us do to "
		"a "
		"process of our own that is started for that, settings, entries of /proc, the "
		"Pythons that run, and which of them look like a debugger that listens at a port. "
		"With TARGET, the same questions about that process.\n\n"
		"Each line says ok, limited, no or unknown, what that means, and below it what to "
		"do. No process of anybody else is stopped, and nothing is changed. The exit "
		"status "
		"is 0 if processes of our own, or the TARGET, can be read.",
	.options =
		(const struct prb_option[]){
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print JSON", PRB_COMPLETE_NOTHING,
			 offsetof(struct doctor_settings, json), .for_clients = true},
			{}},
	.settings_size = sizeof(struct doctor_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[TARGET]",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_PROCESS,
	.examples = (const struct prb_example[]){{"probing doctor", "This machine, for our user"},
						 {"probing 4242 doctor", "One process"},
						 {}},
	.run = run,
};
