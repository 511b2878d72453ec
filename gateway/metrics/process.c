/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/metrics/process.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cluster/jobs/job.h"
#include "dump/text/paths.h"
#include "target/proc/process.h"
#include "target/proc/user.h"

/** Characters of a name: a series is no place for more. */
enum { MOST = 100 };

/** A name that a process has chosen, as text that every receiver takes. */
static char *clean(const char *name)
{
	prb_auto_str struct prb_str text = {};

	for (size_t count = 0; *name && count < MOST; count++) {
		uint32_t c;
		size_t length = prb_text_decode(name, &c);

		prb_text_put(&text, c, (unsigned char)*name);
		name += length;
	}
	return text.failed ? NULL : strdup(prb_str_text(&text));
}

static bool is_python(const char *program)
{
	return !strncmp(program, "python", 6) || !strncmp(program, "pypy", 4);
}

/** Options of python that take the next word. */
static bool takes_a_word(const char *option)
{
	return !strcmp(option, "-W") || !strcmp(option, "-X") ||
	       !strcmp(option, "--check-hash-based-pycs");
}

/** The script among the words of python; no other word, which could be a secret. */
static void put_script(struct prb_str *s, const struct prb_process *process)
{
	for (size_t i = 1; i < process->argv.count; i++) {
		const char *word = process->argv.items[i];

		if (!strcmp(word, "-c"))
			break;
		if (!strcmp(word, "-m") && i + 1 < process->argv.count) {
			prb_str_printf(s, "-m %s", process->argv.items[i + 1]);
			return;
		}
		if (takes_a_word(word)) {
			i++;
		} else if (*word != '-') {
			prb_str_puts(s, prb_path_last(word));
			return;
		}
	}
	prb_str_puts(s, prb_path_last(process->argv.items[0]));
}

static char *script_of(const struct prb_process *process)
{
	prb_auto_str struct prb_str text = {}, cut = {};
	const char *program;

	if (!process->argv.count)
		return process->comm ? clean(process->comm) : NULL;
	program = prb_path_last(process->argv.items[0]);
	if (is_python(program)) {
		put_script(&text, process);
	} else {
		/* A title that it gave itself may have anything in it. */
		prb_text_cut_command(&cut, process->argv.items[0],
				     strlen(process->argv.items[0]) + 1);
		prb_str_puts(&text, prb_path_last(prb_str_text(&cut)));
	}
	return text.failed || cut.failed ? NULL : clean(prb_str_text(&text));
}

static char *user_of(const struct prb_process *process)
{
	prb_auto_str struct prb_str name = {};

	if (!prb_user_name(process->uid, &name))
		prb_str_printf(&name, "%u", (unsigned)process->uid);
	return name.failed ? NULL : clean(prb_str_text(&name));
}

static void read_job(pid_t pid, struct prb_metric_process *ret)
{
	prb_auto_str struct prb_str environment = {};

	if (!prb_proc_read(pid, "environ", &environment))
		return;
	ret->rank = prb_process_job(&environment).rank;
	prb_auto_free char *name = ret->rank >= 0 ? prb_job_name_of_all(&environment, pid) : NULL;
	if (name)
		ret->job = clean(name);
}

struct prb_error *prb_metric_process_read(pid_t pid, struct prb_metric_process *ret)
{
	struct prb_process process;
	struct prb_error *err = prb_process_describe(pid, &process);

	*ret = (struct prb_metric_process){.pid = pid, .rank = -1};
	if (err)
		return err;
	ret->user = user_of(&process);
	ret->script = script_of(&process);
	if (process.exe)
		ret->executable = clean(prb_path_last(process.exe));
	prb_process_deinit(&process);
	read_job(pid, ret);
	return NULL;
}

void prb_metric_process_deinit(struct prb_metric_process *process)
{
	free(process->user);
	free(process->script);
	free(process->executable);
	free(process->job);
}
