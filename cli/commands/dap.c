/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing dap`: the Debug Adapter Protocol, for editors. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "command/command.h"
#include "command/exit.h"
#include "command/output.h"
#include "gateway/dap/dap.h"
#include "remote/serve/serve.h"

#define PRB_DAP_LISTEN "127.0.0.1:4711"

struct dap_settings {
	const char *listen;
	double within;
	bool once;
};

static struct prb_error *tell_address(const struct prb_cli *cli,
				      const struct prb_listener *listener,
				      const struct prb_token *token)
{
	const char *port = strrchr(listener->address, ':');
	prb_auto_str struct prb_str s = {};

	prb_str_printf(&s, "{\n"
			   "  \"version\": \"0.2.0\",\n"
			   "  \"configurations\": [\n"
			   "    {\n"
			   "      \"name\": \"probing\",\n"
			   "      \"type\": \"debugpy\",\n"
			   "      \"request\": \"attach\",\n");
	if (!cli->target)
		prb_str_puts(&s, "      \"processId\": \"${command:pickProcess}\",\n");
	if (!listener->loopback)
		prb_str_printf(&s, "      \"token\": \"%s\",\n", token->known ? "…" : token->text);
	prb_str_printf(&s, "      \"debugServer\": %s\n    }\n  ]\n}\n", port ? port + 1 : "4711");
	fprintf(stderr, "waiting for an editor at %s; Ctrl-C ends this\n", listener->address);
	PRB_TRY(prb_output(&s));
	return prb_output_flush();
}

/** One client after the other. */
static struct prb_error *serve(const struct prb_listener *listener, struct prb_dap_options *how,
			       bool once)
{
	bool once_more;

	do {
		struct pollfd wait = {.fd = listener->fd, .events = POLLIN};
		prb_auto_close int fd = poll(&wait, 1, -1) > 0
						? accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC)
						: -1;

		if (fd < 0 && (errno == EINTR || errno == EAGAIN || errno == ECONNABORTED)) {
			once_more = true;
			continue;
		}
		once_more = false;
		if (fd < 0)
			return prb_error_os(errno, "cannot accept a client");
		if (!how->token && !prb_dap_peer_is_ours(fd)) {
			prb_warn("a client of another user was refused");
			once_more = true;
			continue;
		}
		how->in = how->out = fd;
		prb_exit_report(prb_dap_run(how));
	} while (!once || once_more);
	return NULL;
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct dap_settings *s = settings;
	__attribute__((cleanup(prb_listener_close))) struct prb_listener listener = {.fd = -1};
	struct prb_dap_options how = {.target = cli->target,
				      .places = &cli->places,
				      .in = STDIN_FILENO,
				      .out = STDOUT_FILENO,
				      .within = s->within};
	struct prb_token token = {};

	if (cli->targets.count > 1)
		return prb_error_create(PRB_ERROR_USAGE, "one target is debugged");
	if (!how.target && cli->argument_count)
		how.target = cli->arguments[0];
	signal(SIGPIPE, SIG_IGN);
	/* Ctrl-Z would leave a process paused. */
	signal(SIGTSTP, SIG_IGN);
	if (!s->listen)
		return prb_dap_run(&how);
	PRB_TRY(prb_listener_open(s->listen, &listener));
	if (!listener.loopback) {
		PRB_TRY(prb_token_choose(NULL, &token));
		how.token = token.text;
		prb_warn("other machines can reach that address, and what is sent is not "
			 "encrypted: use it in a network that you trust");
	}
	PRB_TRY(tell_address(cli, &listener, &token));
	return serve(&listener, &how, s->once);
}

const struct prb_command prb_command_dap = {
	.rank = 118,
	.for_clients = true,
	.name = "dap",
	.summary = "Debug the target from an editor: the Debug Adapter Protocol",
	.description =
		"Speaks the Debug Adapter Protocol on stdin and stdout, or with --listen to one "
		"client after the other at an address. Threads, stacks, variables and source are "
		"read from outside. In a process, breakpoints, steps and code are the agent's, and "
		"no debugpy is needed; it runs on, without breakpoints, when the editor "
		"disconnects. A core file or a snapshot is debugged post mortem.\n\n"
		"Without TARGET, the editor's configuration names it: \"processId\", or "
		"\"target\".\n\n"
		"With --listen the output is a launch.json for VS Code. On the "
		"loopback interface only programs of your user, or root's, can connect; elsewhere "
		"\"token\" of the configuration has to be that of $PROBING_AUTH_TOKEN or the one "
		"that is printed.",
	.options =
		(const struct prb_option[]){
			{"listen", 0, PRB_OPTION_TEXT, "[ADDR]",
			 "Wait for editors at ADDR [" PRB_DAP_LISTEN "]", PRB_COMPLETE_NOTHING,
			 offsetof(struct dap_settings, listen), PRB_DAP_LISTEN},
			{"once", 0, PRB_OPTION_FLAG, NULL,
			 "With --listen: end with the first client", PRB_COMPLETE_NOTHING,
			 offsetof(struct dap_settings, once)},
			{"within", 0, PRB_OPTION_SECONDS, "TIME",
			 "Give up if not paused within TIME (default: 2 s)", PRB_COMPLETE_NOTHING,
			 offsetof(struct dap_settings, within), .for_clients = true},
			{}},
	.settings_size = sizeof(struct dap_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "[TARGET]",
	.max_arguments = 1,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 dap", "For an editor that starts it"},
			{"probing 4242 dap --listen > .vscode/launch.json", "For VS Code"},
			{"probing core.4242 dap --listen", "Post mortem"},
			{}},
	.run = run,
};
