/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach/reach.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "command/program.h"
#include "remote/ssh_words.h"

enum { MAX_LINE = 1 << 16 };

/* Seconds that squeue and kubectl have to say where the job is. */
static const double PATIENCE = 30;

/*
 * Takes a program from stdin and runs it with the words that follow. The folder is new and private;
 * it is removed at the end in any case.
 */
static const char BRING[] =
	"d=$(mktemp -d \"${TMPDIR:-/tmp}/probing.XXXXXX\") || exit 1; "
	"trap 'rm -rf \"$d\"' EXIT; trap 'exit 1' HUP INT TERM PIPE; "
	"cat >\"$d/probing\" && chmod 700 \"$d/probing\" && \"$d/probing\" \"$@\" </dev/null";

bool prb_reach_is_far(const struct prb_reach *reach)
{
	return reach->hosts || reach->host_file || reach->slurm || reach->kubernetes || reach->ras;
}

bool prb_reach_is_served(const char *host)
{
	const char *colon = strrchr(host, ':');

	return colon && colon > host && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")];
}

struct prb_error *prb_reach_check(const struct prb_reach *r)
{
	if (!!r->hosts + !!r->host_file + !!r->slurm + !!r->kubernetes + !!r->ras > 1)
		return prb_error_create(PRB_ERROR_USAGE,
					"--hosts, --host-file, --slurm, "
					"--kubernetes and --ras exclude each other");
	if ((r->space || r->container) && !r->kubernetes)
		return prb_error_create(PRB_ERROR_USAGE,
					"--namespace and --container are for --kubernetes");
	if (r->bring && !prb_reach_is_far(r))
		return prb_error_create(PRB_ERROR_USAGE, "--bring is for other machines");
	if (r->slurm && strspn(r->slurm, "0123456789_+") != strlen(r->slurm))
		return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no number of a Slurm job",
					r->slurm);
	if (r->kubernetes && (!*r->kubernetes || *r->kubernetes == '-'))
		return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no label selector",
					r->kubernetes);
	return NULL;
}

static struct prb_error *read_file(const char *path, struct prb_hosts *ret)
{
	prb_auto_fclose FILE *file = fopen(path, "re");
	prb_auto_free char *line = malloc(MAX_LINE);

	if (!file)
		return prb_error_os(errno, "cannot open %s", path);
	if (!line)
		return prb_error_nomem();
	while (fgets(line, MAX_LINE, file)) {
		/* Words after a name, as in host files of MPI ("slots=8"), are ignored. */
		char *name = line + strspn(line, " \t");

		name[strcspn(name, " \t\r\n#:")] = '\0';
		if (*name)
			PRB_TRY(prb_hosts_parse(name, ret));
	}
	if (ferror(file))
		return prb_error_os(errno, "cannot read %s", path);
	return ret->list.count ? NULL : prb_error_create(PRB_ERROR_USAGE, "%s names no host", path);
}

/** Runs a program of the scheduler, and gives what it prints. */
static struct prb_error *run(struct prb_words *words, struct prb_str *ret)
{
	prb_auto_answers struct prb_answers answers = {};
	struct prb_answer *answer = prb_answers_add(&answers, NULL);

	if (!answer)
		return prb_error_nomem();
	answer->words = *words;
	*words = (struct prb_words){};
	PRB_TRY(prb_gather(&answers, &(struct prb_gather_options){.deadline_s = PATIENCE}));
	if (answer->error)
		return prb_error_create(PRB_ERROR_FAILED, "%s: %s", answer->words.list.items[0],
					answer->error);
	*ret = answer->out;
	answer->out = (struct prb_str){};
	return NULL;
}

static struct prb_error *find_nodes(const struct prb_reach *r, struct prb_hosts *ret)
{
	static const char *const list[] = {"squeue", "--noheader", "--format=%N", NULL};
	prb_auto_words struct prb_words words = {};
	prb_auto_str struct prb_str out = {};

	PRB_TRY(prb_words_add_ours(&words, list));
	PRB_TRY(prb_words_add(&words, "--jobs=%s", r->slurm));
	PRB_TRY(run(&words, &out));
	for (char *line = out.data, *rest; line && *line; line = rest) {
		rest = strchrnul(line, '\n');
		if (*rest)
			*rest++ = '\0';
		if (*line)
			PRB_TRY(prb_hosts_parse(line, ret));
	}
	if (!ret->list.count)
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "Slurm job %s runs on no node", r->slurm),
				      "'squeue' lists the jobs");
	return NULL;
}

static struct prb_error *find_pods(struct prb_reach *r, struct prb_hosts *ret)
{
	static const char *const list[] = {"kubectl", "get", "pods", "--output=json", NULL};
	prb_auto_words struct prb_words words = {};
	prb_auto_str struct prb_str out = {}, selector = {};

	prb_pods_selector(&selector, r->kubernetes);
	PRB_TRY(prb_words_add_ours(&words, list));
	if (prb_pods_one(r->kubernetes))
		PRB_TRY(prb_words_add(&words, "--field-selector=metadata.name=%s",
				      prb_pods_one(r->kubernetes)));
	else
		PRB_TRY(prb_words_add(&words, "--selector=%s", prb_str_text(&selector)));
	if (r->space)
		PRB_TRY(prb_words_add(&words, "--namespace=%s", r->space));
	PRB_TRY(run(&words, &out));
	PRB_TRY(prb_pods_parse(&out, ret, &r->other_pods));
	if (!ret->list.count)
		return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
						       "no running pod has the labels '%.200s'",
						       prb_str_text(&selector)),
				      "'kubectl get pods --show-labels' lists them; --namespace "
				      "chooses another namespace");
	return NULL;
}

static struct prb_error *find_hosts(struct prb_reach *reach, struct prb_hosts *ret)
{
	if (reach->bring) {
		reach->bring_fd = open(reach->bring, O_RDONLY | O_CLOEXEC);
		if (reach->bring_fd < 0)
			return prb_error_os(errno, "cannot open %s", reach->bring);
	}
	if (reach->slurm)
		return find_nodes(reach, ret);
	if (reach->kubernetes)
		return find_pods(reach, ret);
	if (reach->ras) {
		PRB_TRY(prb_ras_read(reach->ras, &reach->ras_said));
		return prb_ras_hosts(reach->ras_said, reach->ras, ret);
	}
	return reach->host_file ? read_file(reach->host_file, ret)
				: prb_hosts_parse(reach->hosts, ret);
}

struct prb_error *prb_reach_find(struct prb_reach *reach, struct prb_hosts *ret)
{
	PRB_TRY(find_hosts(reach, ret));
	/* A host that is asked twice has its ranks twice. */
	return prb_hosts_unite(ret);
}

void prb_reach_close(struct prb_reach *reach)
{
	if (reach->bring_fd >= 0)
		close(reach->bring_fd);
	reach->bring_fd = -1;
	prb_ras_destroy(reach->ras_said);
	reach->ras_said = NULL;
	prb_pods_deinit(&reach->other_pods);
}

static struct prb_error *add_slurm(const struct prb_reach *r, const char *host,
				   struct prb_words *ret)
{
	static const char *const options[] = {"srun",	    "--overlap", "--quiet",    "--nodes=1",
					      "--ntasks=1", "--mem=0",	 "--mpi=none", NULL};

	PRB_TRY(prb_words_add_ours(ret, options));
	PRB_TRY(prb_words_add(ret, r->bring ? "--input=0" : "--input=none"));
	PRB_TRY(prb_words_add(ret, "--jobid=%s", r->slurm));
	return prb_words_add(ret, "--nodelist=%s", host);
}

static struct prb_error *add_kubernetes(const struct prb_reach *r, const char *pod,
					struct prb_words *ret)
{
	PRB_TRY(prb_words_add(ret, "kubectl"));
	PRB_TRY(prb_words_add(ret, "exec"));
	if (r->bring)
		PRB_TRY(prb_words_add(ret, "--stdin"));
	if (r->space)
		PRB_TRY(prb_words_add(ret, "--namespace=%s", r->space));
	if (r->container)
		PRB_TRY(prb_words_add(ret, "--container=%s", r->container));
	PRB_TRY(prb_words_add(ret, "%s", pod));
	return prb_words_add(ret, "--");
}

/** The program and its words: one for each, since no shell is between us and it. */
static struct prb_error *add_program(const struct prb_reach *r, const char *const *words,
				     struct prb_words *ret)
{
	const char *program = getenv("PROBING_REMOTE_PROGRAM");

	if (r->bring) {
		PRB_TRY(prb_words_add(ret, "sh"));
		PRB_TRY(prb_words_add(ret, "-c"));
		PRB_TRY(prb_words_add(ret, "%s", BRING));
	}
	PRB_TRY(prb_words_add(ret, "%s", program && *program ? program : "probing"));
	return prb_words_add_ours(ret, words);
}

/** ssh gives one line to a shell. */
static struct prb_error *bring_by_ssh(const char *host, const char *const *words,
				      struct prb_words *ret)
{
	prb_auto_str struct prb_str line = {};

	prb_str_puts(&line, "exec sh -c");
	prb_ssh_quote(&line, BRING);
	prb_ssh_quote(&line, "probing");
	for (; *words; words++)
		prb_ssh_quote(&line, *words);
	return line.failed ? prb_error_nomem() : prb_ssh_line(host, prb_str_text(&line), ret);
}

/** Asks a served process, which knows only itself. */
static struct prb_error *ask_served(struct prb_answer *answer, const char *const *words)
{
	static const char *const look[] = {"cluster", "own", NULL}, *const rows[] = {
									    "query",
									    "--format=json", "-",
									    NULL};
	bool looks = !strcmp(words[1], "look");

	answer->itself = true;
	PRB_TRY(prb_words_add(&answer->words, "probing"));
	PRB_TRY(prb_words_add(&answer->words, "--target=%s", answer->host));
	PRB_TRY(prb_words_add_ours(&answer->words, looks ? look : rows));
	/*
	 * Options of a look; of rows, "--json" and the statement, which only reads, since it is not
	 * typed. The job is the process's.
	 */
	if (!looks)
		return prb_program_text(words[3], strlen(words[3]), &answer->in);
	for (words += 2; *words; words++)
		if (**words == '-')
			PRB_TRY(prb_words_add_ours(&answer->words,
						   (const char *const[]){*words, NULL}));
	return NULL;
}

struct prb_error *prb_reach_ask(const struct prb_reach *reach, struct prb_answer *answer,
				const char *const *words)
{
	if (reach->hosts && prb_reach_is_served(answer->host))
		return ask_served(answer, words);
	if (reach->bring) {
		/* Each reads it from its beginning. */
		prb_auto_free char *path = prb_format("/proc/self/fd/%d", reach->bring_fd);

		if (!path)
			return prb_error_nomem();
		answer->in = open(path, O_RDONLY | O_CLOEXEC);
		if (answer->in < 0)
			return prb_error_os(errno, "cannot open %s", reach->bring);
	}
	if (reach->slurm)
		PRB_TRY(add_slurm(reach, answer->host, &answer->words));
	else if (reach->kubernetes)
		PRB_TRY(add_kubernetes(reach, answer->host, &answer->words));
	else if (reach->bring)
		return bring_by_ssh(answer->host, words, &answer->words);
	else
		return prb_ssh_words(answer->host, words, &answer->words);
	return add_program(reach, words, &answer->words);
}

static void put_option(struct prb_str *s, const char *name, const char *value)
{
	if (!value)
		return;
	prb_str_printf(s, " --%s=", name);
	prb_text_argument(s, value);
}

void prb_reach_put_options(const struct prb_reach *reach, struct prb_str *s)
{
	put_option(s, "hosts", reach->hosts);
	put_option(s, "host-file", reach->host_file);
	put_option(s, "slurm", reach->slurm);
	put_option(s, "kubernetes", reach->kubernetes);
	put_option(s, "namespace", reach->space);
	put_option(s, "container", reach->container);
	put_option(s, "ras", reach->ras);
	put_option(s, "bring", reach->bring);
}

void prb_reach_put_way(const struct prb_reach *reach, const char *host, struct prb_str *s)
{
	if (reach->slurm)
		prb_str_printf(s, "srun --overlap --jobid=%s --nodelist=", reach->slurm);
	else
		prb_str_puts(s, reach->kubernetes ? "kubectl exec " : "ssh ");
	prb_text_escape(s, host);
	if (reach->kubernetes) {
		put_option(s, "namespace", reach->space);
		put_option(s, "container", reach->container);
	}
	prb_str_puts(s, reach->kubernetes ? " -- " : " ");
}

void prb_reach_suggest(const struct prb_reach *reach, const char *host, int pid, struct prb_str *s)
{
	if (reach && reach->hosts && prb_reach_is_served(host)) {
		prb_str_puts(s, "probing ");
		prb_text_escape(s, host);
		prb_str_puts(s, " dump --locals");
		return;
	}
	if (reach && (reach->slurm || reach->kubernetes)) {
		prb_reach_put_way(reach, host, s);
		prb_str_puts(s, "probing ");
	} else {
		prb_str_puts(s, "probing ssh://");
		prb_text_escape(s, host);
		prb_str_putc(s, '/');
	}
	prb_str_printf(s, "%d dump --locals", pid);
}
