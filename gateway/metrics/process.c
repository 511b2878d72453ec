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
#include "values/environment.h"

enum {
	MOST = 100,	/* characters of a name: a series is no place for more */
	JOB_EVERY = 16, /* readings: a process may become a rank later, by its own memory */
};

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

/** Its place in a job, for which it may have written over its environment. */
static struct prb_error *read_job(const struct prb_process *process, struct prb_target *target,
				  struct prb_metric_process *ret)
{
	prb_auto_str struct prb_str environment = {};

	PRB_TRY(prb_error_tolerate(prb_environment_read(target, &environment, NULL), NULL));
	ret->rank = prb_process_job(&environment).rank;
	prb_auto_free char *name =
		ret->rank >= 0 ? prb_job_name_of_all(&environment, process->pid) : NULL;
	if (name)
		ret->job = clean(name);
	return NULL;
}

static void replace(char **place, char *text)
{
	free(*place);
	*place = text;
}

struct prb_error *prb_metric_process_read(const struct prb_process *process,
					  struct prb_target *target, struct prb_metric_process *ret)
{
	replace(&ret->script, script_of(process));
	replace(&ret->executable, process->exe ? clean(prb_path_last(process->exe)) : NULL);
	/* The files of users are long on some machines. */
	if (!ret->user)
		ret->user = user_of(process);
	if (target && ret->rank < 0 && ret->readings++ % JOB_EVERY == 0)
		return read_job(process, target, ret);
	return NULL;
}

void prb_metric_process_deinit(struct prb_metric_process *process)
{
	free(process->user);
	free(process->script);
	free(process->executable);
	free(process->job);
}
