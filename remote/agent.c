/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent of a process elsewhere: a child of ours has `agent relay` run there, and is its socket.
 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "command/exit.h"
#include "remote/remote.h"
#include "base/cleanup.h"

static struct prb_error *relay(const struct prb_cli *cli, bool may_load, int fd)
{
	struct prb_remote_job job = {.target = cli->target,
				     .token_file = cli->token_file,
				     .in = fd,
				     .out = fd,
				     .err = STDERR_FILENO};
	struct prb_remote_end end = {};

	PRB_TRY(prb_words_add(&job.words, "agent"));
	if (!may_load)
		PRB_TRY(prb_words_add(&job.words, "--no-inject"));
	PRB_TRY(prb_words_add(&job.words, "relay"));
	PRB_TRY(prb_remote_run(&job, &end));
	return prb_remote_judge(&end);
}

/** In the child: until one side ends. */
static void be_socket(const struct prb_cli *cli, bool may_load, int fd)
{
	/* Ctrl-C is for the prompt, which hands it on in its own way. */
	setpgid(0, 0);
	signal(SIGINT, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
	_exit((int)prb_exit_report(relay(cli, may_load, fd)));
}

/** The child ended: it said why, unless nothing was wrong. */
static struct prb_error *explain(pid_t pid, struct prb_error *err)
{
	struct prb_remote_end end = {};
	int status;

	if (waitpid(pid, &status, 0) != pid || !WIFEXITED(status) || !WEXITSTATUS(status))
		return err;
	prb_error_destroy(err);
	end.code = WEXITSTATUS(status);
	return prb_remote_judge(&end);
}

struct prb_error *prb_remote_agent(const struct prb_cli *cli, bool may_load, struct prb_agent **ret)
{
	struct prb_error *err;
	int pair[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return prb_error_os(errno, "cannot make a pair of sockets");
	pid = fork();
	if (pid < 0) {
		close(pair[0]);
		close(pair[1]);
		return prb_error_os(errno, "cannot start a process");
	}
	if (!pid) {
		close(pair[0]);
		be_socket(cli, may_load, pair[1]);
	}
	close(pair[1]);
	err = prb_agent_attach(pair[0], ret);
	return err && err->code == PRB_ERROR_NO_PROCESS ? explain(pid, err) : err;
}
