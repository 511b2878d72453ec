/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A target behind ssh: probing is run at the other end, which has the target as a local one. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/command.h"
#include "remote/remote.h"
#include "remote/ssh_words.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "command/start.h"

enum { SSH_FAILED = 255 };

/** The parts of "ssh://[user@]host[:port]/TARGET". */
struct place {
	char *host; /**< with the user */
	char *port; /**< or NULL */
	const char *target;
};

static void place_deinit(struct place *place)
{
	free(place->host);
	free(place->port);
}

static struct prb_error *no_place(const char *text)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "'%.200s' names no target behind ssh", text),
		"for example ssh://node7/4242, or ssh://me@node7:2222/train.py");
}

static struct prb_error *divide(const char *text, struct place *ret)
{
	const char *host = text + strlen("ssh://");
	size_t length = strcspn(host, "/"), bracket = *host == '[' ? strcspn(host, "]") : 0;
	const char *colon = memchr(host + bracket, ':', length > bracket ? length - bracket : 0);
	size_t name = colon ? (size_t)(colon - host) : length;

	ret->target = host + length + (host[length] == '/');
	/* A host that begins with a dash would be an option of ssh. */
	if (!name || *host == '-' || !*ret->target)
		return no_place(text);
	ret->host = *host == '[' && name > 2 ? strndup(host + 1, name - 2) : strndup(host, name);
	if (colon)
		ret->port = strndup(colon + 1, length - name - 1);
	if (!ret->host || (colon && !ret->port))
		return prb_error_nomem();
	if (colon && (!*ret->port || strspn(ret->port, "0123456789") != strlen(ret->port)))
		return no_place(text);
	return NULL;
}

/** The command line of the other end. Its target is not to be ours, from the environment. */
static struct prb_error *write_line(const struct prb_remote_job *job, const struct place *place,
				    struct prb_str *line)
{
	const char *program = getenv("PROBING_REMOTE_PROGRAM");
	const struct prb_command *command = prb_command_find(job->words.list.items[0]);
	char *const *word;

	/* No shell is to stay: it would take a Ctrl-C, which is for the program, for its own end.
	 */
	prb_str_puts(line, "exec");
	prb_ssh_quote(line, program && *program ? program : "probing");
	if (!command || command->target_use != PRB_TARGET_NONE) {
		prb_ssh_quote(line, "-t");
		prb_ssh_quote(line, place->target);
	}
	prb_vec_each (word, &job->words.list)
		prb_ssh_quote(line, *word);
	return line->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *make_words(const struct prb_remote_job *job, const struct place *place,
				    struct prb_words *ret)
{
	prb_auto_str struct prb_str line = {};
	bool terminal = job->out == STDOUT_FILENO && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);

	PRB_TRY(prb_words_add(ret, "ssh"));
	/* With a terminal of its own the other end has colours, its width and a prompt. */
	PRB_TRY(prb_words_add(ret, terminal ? "-t" : "-T"));
	PRB_TRY(prb_words_add(ret, "-oLogLevel=ERROR"));
	if (place->port) {
		PRB_TRY(prb_words_add(ret, "-p"));
		PRB_TRY(prb_words_add(ret, "%s", place->port));
	}
	PRB_TRY(prb_words_add(ret, "--"));
	PRB_TRY(prb_words_add(ret, "%s", place->host));
	PRB_TRY(write_line(job, place, &line));
	return prb_words_add(ret, "%s", prb_str_text(&line));
}

static void become(const struct prb_remote_job *job, char **words)
{
	bool terminal = !strcmp(words[1], "-t");

	/* ssh may ask for a password there. Without a terminal it reads what the command does. */
	if (job->in >= 0)
		dup2(job->in, STDIN_FILENO);
	else if (!terminal && !freopen("/dev/null", "r", stdin))
		_exit(SSH_FAILED);
	dup2(job->out, STDOUT_FILENO);
	dup2(job->err, STDERR_FILENO);
	signal(SIGINT, SIG_DFL);
	signal(SIGQUIT, SIG_DFL);
	dprintf(STDERR_FILENO, "probing: cannot run ssh: %s\n", strerror(prb_start_become(words)));
	_exit(SSH_FAILED);
}

/** Waits for ssh, which a terminal's Ctrl-C is for. */
static struct prb_error *wait_for(pid_t pid, int *status)
{
	while (waitpid(pid, status, 0) < 0)
		if (errno != EINTR)
			return prb_error_os(errno, "cannot wait for ssh");
	return NULL;
}

struct prb_error *prb_remote_ssh(const struct prb_remote_job *job, struct prb_remote_end *ret)
{
	__attribute__((cleanup(place_deinit))) struct place place = {};
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before, before_quit;
	prb_auto_words struct prb_words words = {};
	char **list;
	int status = 0;
	pid_t pid;

	PRB_TRY(divide(job->target, &place));
	PRB_TRY(make_words(job, &place, &words));
	PRB_TRY(prb_words_end(&words, &list));
	sigaction(SIGINT, &ignore, &before);
	sigaction(SIGQUIT, &ignore, &before_quit);
	pid = fork();
	if (!pid)
		become(job, list);

	struct prb_error *err =
		pid < 0 ? prb_error_os(errno, "cannot start ssh") : wait_for(pid, &status);
	sigaction(SIGINT, &before, NULL);
	sigaction(SIGQUIT, &before_quit, NULL);
	PRB_TRY(err);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SSH_FAILED)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_FAILED,
					 "ssh did not reach %.200s, or was cut off", place.host),
			"its output is above; 'ssh %.200s probing --version' tries it", place.host);
	if (WIFEXITED(status) && (WEXITSTATUS(status) == 127 || WEXITSTATUS(status) == 126))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_FAILED, "there is no probing at %.200s",
					 place.host),
			"set PROBING_REMOTE_PROGRAM to its path if it is not in PATH");
	*ret = (struct prb_remote_end){.code = WIFEXITED(status) ? WEXITSTATUS(status) : 1,
				       .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0};
	/* A shell's status for a command killed by SIGINT. */
	if (ret->code == 128 + SIGINT)
		ret->signal = SIGINT;
	return NULL;
}
