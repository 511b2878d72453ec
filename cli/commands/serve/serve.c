/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing serve`: an HTTP gateway, and the page. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "cli/commands/cluster/reach_options.h"
#include "cli/commands/serve/open_browser.h"
#include "cluster/reach/hosts.h"
#include "cluster/reach/reach.h"
#include "command/command.h"
#include "command/output.h"
#include "command/words.h"
#include "gateway/gateway.h"
#include "remote/serve/serve.h"

struct serve_settings {
	const char *address;
	const char *certificate, *key;
	struct prb_texts names;
	bool plain, allow_write, read_only, open, json;
	const char *job, *dashboards;
	PRB_REACH_MEMBERS;
};

static const struct prb_option reach_options[] = {PRB_REACH_OPTIONS(struct serve_settings), {}};

/** Signals end the gateway, which then cleans up: from before there is anything to clean up. */
static void block_signals(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

static struct prb_error *tell(const struct prb_gateway *gateway, const struct prb_token *token,
			      const struct serve_settings *s, char **opened)
{
	const char *url = prb_gateway_url(gateway);
	prb_auto_str struct prb_str text = {}, address = {};
	struct prb_json json = {&text};

	prb_str_puts(&address, url);
	if (!token->known)
		prb_str_printf(&address, "?token=%s", token->text);
	if (s->json) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "url", url);
		prb_json_text(&json, "token", token->known ? NULL : token->text);
		prb_json_close(&json, '}');
	} else {
		prb_str_puts(&text, prb_str_text(&address));
	}
	prb_str_putc(&text, '\n');
	PRB_TRY(prb_output(&text));
	PRB_TRY(prb_output_flush());
	if (address.failed)
		return prb_error_nomem();
	return s->open ? prb_serve_open(prb_str_text(&address), opened) : NULL;
}

/** Targets may be given before the command and after it. */
static struct prb_error *collect(const struct prb_cli *cli, struct prb_texts *ret)
{
	*ret = cli->targets;
	for (size_t i = 0; i < cli->argument_count; i++) {
		if (ret->count >= PRB_MAX_TEXTS)
			return prb_error_create(PRB_ERROR_USAGE, "at most %d targets are served",
						PRB_MAX_TEXTS);
		ret->items[ret->count++] = cli->arguments[i];
	}
	return NULL;
}

/** Options and JOB for `cluster` if the job runs on other machines; no words if it runs here. */
static struct prb_error *add_job(const struct serve_settings *s, const struct prb_texts *targets,
				 struct prb_words *ret)
{
	const struct prb_reach reach = PRB_REACH_OF(s);
	prb_auto_hosts struct prb_hosts hosts = {};
	char *const *host;

	PRB_TRY(prb_reach_check(&reach));
	if (!prb_reach_is_far(&reach))
		return s->job || s->tree ? prb_error_create(PRB_ERROR_USAGE,
							    "--job and --tree are for --hosts and "
							    "its like")
					 : NULL;
	if (targets->count)
		return prb_error_create(PRB_ERROR_USAGE,
					"a job on other machines is not served beside TARGET");
	if (s->hosts)
		PRB_TRY(prb_hosts_parse(s->hosts, &hosts));
	prb_vec_each (host, &hosts.list)
		if (prb_reach_is_served(*host))
			return prb_error_create(PRB_ERROR_USAGE,
						"'%s' is a served process, whose token 'serve' has "
						"not",
						*host);
	char **ignored;

	PRB_TRY(prb_words_add_options(ret, reach_options, s));
	if (s->job) {
		PRB_TRY(prb_words_add(ret, "--"));
		PRB_TRY(prb_words_add(ret, "%s", s->job));
	}
	return prb_words_end(ret, &ignored);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct serve_settings *s = settings;
	prb_auto_words struct prb_words job = {};
	struct prb_gateway *gateway;
	struct prb_texts targets;
	struct prb_token token;

	if (!s->certificate != !s->key)
		return prb_error_create(PRB_ERROR_USAGE, "--cert and --key belong together");
	if (s->allow_write && s->read_only)
		return prb_error_create(PRB_ERROR_USAGE,
					"--allow-write and --read-only are opposites");
	PRB_TRY(collect(cli, &targets));
	PRB_TRY(add_job(s, &targets, &job));
	PRB_TRY(prb_token_choose(cli->token_file, &token));
	block_signals();
	PRB_TRY(prb_gateway_create(
		&(struct prb_gateway_options){
			.address = s->address ? s->address : PRB_SERVE_ADDRESS,
			.token = &token,
			.targets = &targets,
			.places = &cli->places,
			.job = job.list.count ? &job : NULL,
			.dashboards = s->dashboards,
			.hosts = &s->names,
			.certificate = s->certificate,
			.key = s->key,
			.plain = s->plain,
			.allow_write = s->allow_write,
			.read_only = s->read_only,
			.adopted = -1,
		},
		&gateway));
	prb_auto_free char *opened = NULL;
	struct prb_error *err = tell(gateway, &token, s, &opened);

	if (!err)
		err = prb_gateway_run(gateway);
	if (opened)
		unlink(opened);
	prb_gateway_destroy(gateway);
	return err;
}

const struct prb_command prb_command_serve = {
	.rank = 85,
	.name = "serve",
	.summary = "Serve a page and an HTTP interface for the processes of this machine",
	.description =
		"Prints one address with a token: open it in a browser. Programs send the token as "
		"'Authorization: Bearer TOKEN'; docs/http-api.md lists the requests. Without "
		"TARGET, "
		"all processes that may be read are served. Ctrl-C ends it and leaves nothing "
		"behind.\n\n"
		"It listens on the loopback. Other machines can use it only with --cert and --key, "
		"or with --plain. ssh -L 9922:127.0.0.1:9922 HOST brings it to another machine.\n\n"
		"Over a port, targets are only read; --allow-write lets whoever has the token "
		"pause "
		"them and run code in them. At a unix socket your own user may do so, unless "
		"--read-only is given. Each such request is told on stderr.\n\n"
		"With --hosts and its like, the panel Job has the ranks of these machines, read as "
		"'cluster dump' does. No request can name another one.",
	.options =
		(const struct prb_option[]){
			{"address", 'a', PRB_OPTION_TEXT, "ADDR",
			 "Listen at HOST:PORT or unix:PATH [" PRB_SERVE_ADDRESS "]",
			 PRB_COMPLETE_NOTHING, offsetof(struct serve_settings, address)},
			{"open", 'o', PRB_OPTION_FLAG, NULL, "Open the address in a browser",
			 PRB_COMPLETE_NOTHING, offsetof(struct serve_settings, open)},
			{"host", 0, PRB_OPTION_TEXTS, "NAME:PORT",
			 "Another name by which browsers reach it", PRB_COMPLETE_NOTHING,
			 offsetof(struct serve_settings, names)},
			{"cert", 0, PRB_OPTION_TEXT, "FILE", "Certificate for TLS, PEM",
			 PRB_COMPLETE_FILE, offsetof(struct serve_settings, certificate)},
			{"key", 0, PRB_OPTION_TEXT, "FILE", "Its key, PEM", PRB_COMPLETE_FILE,
			 offsetof(struct serve_settings, key)},
			{"plain", 0, PRB_OPTION_FLAG, NULL, "Let other machines use it without TLS",
			 PRB_COMPLETE_NOTHING, offsetof(struct serve_settings, plain)},
			{"allow-write", 0, PRB_OPTION_FLAG, NULL,
			 "Let requests over a port pause targets and run code in them",
			 PRB_COMPLETE_NOTHING, offsetof(struct serve_settings, allow_write)},
			{"read-only", 0, PRB_OPTION_FLAG, NULL,
			 "Let no request change a target, not even at a unix socket",
			 PRB_COMPLETE_NOTHING, offsetof(struct serve_settings, read_only)},
			{"dashboards", 0, PRB_OPTION_TEXT, "FOLDER",
			 "Keep dashboards there, as files of JSON", PRB_COMPLETE_FILE,
			 offsetof(struct serve_settings, dashboards)},
			PRB_REACH_OPTIONS(struct serve_settings),
			{"job", 0, PRB_OPTION_TEXT, "JOB",
			 "The job on these machines, if they have several: a part of its name",
			 PRB_COMPLETE_NOTHING, offsetof(struct serve_settings, job)},
			{"json", 0, PRB_OPTION_FLAG, NULL, "Print the address as JSON",
			 PRB_COMPLETE_NOTHING, offsetof(struct serve_settings, json)},
			{},
		},
	.settings_size = sizeof(struct serve_settings),
	.target_use = PRB_TARGET_ANY,
	.argument = "TARGET…",
	.max_arguments = PRB_MAX_TEXTS,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing serve --open", "All processes, in a browser"},
			{"probing serve 4242 train.py", "Two processes"},
			{"probing serve core.4242 hang.snapshot", "Files"},
			{"probing serve --dashboards ops/boards", "Keep dashboards in a folder"},
			{"probing serve --hosts node[01-16]", "A job on sixteen machines, too"},
			{"probing serve -a unix:/run/user/1000/probing.sock", "For programs here"},
			{},
		},
	.run = run,
};
