/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <stdio.h>
#include <string.h>

#include "control/client.h"
#include "control/load.h"
#include "control/remote_exec/remote_exec.h"
#include "control/socket.h"
#include "control/config.h"
#include "control/crash.h"
#include "command/command.h"
#include "cli/commands/eval/eval.h"
#include "cli/commands/eval/console.h"
#include "command/exit.h"
#include "cli/commands/inject/library.h"
#include "cli/commands/perf/record/background.h"
#include "command/output.h"
#include "gateway/adopted.h"
#include "remote/serve/background.h"
#include "remote/serve/known.h"
#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/json.h"
#include "base/text.h"
#include "target/spec/target_spec.h"

struct inject_settings {
	struct prb_inject_settings library;
	bool pprof, crash, background, once, bare;
	double hold;
	const char *listen, *address, *code, *by;
	struct prb_texts defines;
};

/** It is a recording from outside, which has results of its own. */
static struct prb_error *check_pprof(const struct inject_settings *s)
{
	const char *other = s->library.library		  ? "--library"
			    : s->code			  ? "--execute"
			    : s->listen			  ? "--listen"
			    : s->background || s->address ? "--background"
			    : s->crash && s->library.json ? "--crash --json"
							  : NULL;

	if (!s->pprof || !other)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_USAGE, "inject: '--pprof' with '%s'", other),
		"it loads nothing: run two commands");
}

static struct prb_error *check_by(const struct inject_settings *s)
{
	if (s->by && strcmp(s->by, "remote-exec") != 0)
		return prb_error_create(PRB_ERROR_USAGE,
					"inject: '--by %.100s': only 'remote-exec' is known",
					s->by);
	if (s->by && (s->library.library || s->pprof))
		return prb_error_create(PRB_ERROR_USAGE, "inject: '--by' with '%s'",
					s->pprof ? "--pprof" : "--library");
	return NULL;
}

/** Where to serve the process, or NULL. */
static const char *listen_address(const struct inject_settings *s)
{
	if (s->listen || s->address)
		return s->listen ? s->listen : s->address;
	return s->background ? PRB_SERVE_ADDRESS : NULL;
}

static struct prb_error *crash_settings(const struct inject_settings *s,
					struct prb_crash_settings *ret)
{
	for (size_t i = 0; i < s->defines.count; i++)
		PRB_TRY(prb_crash_set(ret, s->defines.items[i]));
	if (s->hold > 0)
		ret->hold = s->hold;
	return NULL;
}

static struct prb_error *check_settings(const struct inject_settings *s)
{
	struct prb_crash_settings unused = {};

	PRB_TRY(check_pprof(s));
	PRB_TRY(check_by(s));
	PRB_TRY(crash_settings(s, &unused));
	if (s->library.library && (s->crash || s->defines.count))
		return prb_error_create(PRB_ERROR_USAGE, "inject: '%s' with '--library'",
					s->crash ? "--crash" : "--define");
	if (!s->crash && (s->hold > 0 || s->defines.count))
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "inject: '%s' without '--crash'",
						       s->hold > 0 ? "--hold" : "--define"),
				      "settings of this version are those of crash records");
	if (s->library.library && s->code)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "inject: '--execute' with '--library'"),
			"code is run by the agent, which is loaded without "
			"'--library'");
	if (s->listen && s->address && strcmp(s->listen, s->address) != 0)
		return prb_error_create(PRB_ERROR_USAGE,
					"inject: two addresses given: '%.100s' and '%.100s'",
					s->listen, s->address);
	if (s->address && !s->listen && !s->background)
		return prb_error_create(PRB_ERROR_USAGE,
					"inject: '--address' without '--background'");
	if (s->once && !listen_address(s))
		return prb_error_create(PRB_ERROR_USAGE, "inject: '--once' without '--listen'");
	if (listen_address(s) && (s->library.library || s->code))
		return prb_error_create(PRB_ERROR_USAGE, "inject: '--listen' with '%s'",
					s->code ? "--execute" : "--library");
	return prb_inject_check(&s->library);
}

/** Loads the agent, unless it is there. */
static struct prb_error *inject_agent(struct prb_target *t, const struct inject_settings *s,
				      struct prb_inject_result *ret)
{
	struct prb_agent *agent = NULL;
	struct prb_error *err = prb_agent_is_mapped(t) ? prb_agent_connect(t, &agent) : NULL;

	if (agent) {
		prb_agent_close(agent);
		ret->already = true;
		return NULL;
	}
	if (err && !prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return err;
	err = s->by ? prb_remote_exec_agent(t, s->library.timeout, ret) : prb_agent_load(t, ret);
	/* One whose socket was removed has made another; no more was done. */
	ret->already = !err && ret->value > 0;
	/* Its return value is internal. */
	ret->called = false;
	return err;
}

/** What a process with torch records from now on, in one line; why it does not is no failure. */
static void record_torch(struct prb_target *t, const struct inject_settings *s, bool already)
{
	prb_auto_str struct prb_str text = {};
	bool begun = false;
	prb_auto_error struct prb_error *err =
		s->bare || already ? NULL : prb_config_record_torch(t, &begun);

	if (err) {
		prb_str_printf(&text, "steps of torch are not recorded: %s", err->message);
		prb_warn(prb_str_text(&text));
	}
	if (begun)
		fprintf(stderr,
			"probing: the next %d steps of torch are recorded, then one in 100, and "
			"memory each second ('probing %d config probing.torch.profiling=off' ends "
			"it, 'inject --bare' does without)\n",
			PRB_CONFIG_FIRST_STEPS, (int)t->pid);
}

/** Has the agent handle crashes; says where records go, on stderr if stdout has other results. */
static struct prb_error *handle_crashes(struct prb_target *t, const struct inject_settings *s)
{
	struct prb_crash_settings settings = {};
	prb_auto_str struct prb_str folder = {}, text = {};
	struct prb_agent *agent;
	bool hooks;

	PRB_TRY(crash_settings(s, &settings));
	PRB_TRY(prb_agent_connect(t, &agent));

	struct prb_error *err = prb_crash_install(agent, &settings, &folder, &hooks);
	prb_agent_close(agent);
	PRB_TRY(err);
	if (!hooks)
		prb_warn("uncaught exceptions, and overflows of the main thread's stack, are "
			 "recorded once the main thread runs Python code");
	if (s->library.json || s->code || listen_address(s))
		return NULL;
	prb_str_printf(&text, "crash records of process %d go to ", (int)t->pid);
	prb_text_escape(&text, prb_str_text(&folder));
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

/** Runs the code, whose output is the result then, as eval does. */
static struct prb_error *execute(struct prb_target *t, const struct inject_settings *s)
{
	struct prb_eval_console console = {.patience = 1};
	struct prb_eval how = {};
	prb_auto_str struct prb_str code = {};
	struct prb_agent *agent;

	prb_eval_console_use(&console, s->library.json, &how);
	prb_str_puts(&code, s->code);
	if (code.failed)
		return prb_error_nomem();
	if (code.length > PRB_EVAL_MAX_CODE)
		return prb_error_create(PRB_ERROR_USAGE, "the code has over %d bytes",
					PRB_EVAL_MAX_CODE);
	PRB_TRY(prb_agent_connect(t, &agent));
	return prb_eval_show(t, agent, &how, "<probing>", &code, s->library.json);
}

static struct prb_error *inject(struct prb_target *t, const struct inject_settings *s)
{
	struct prb_inject_settings shown = s->library;
	struct prb_inject_result result = {};

	PRB_TRY(shown.library ? prb_inject_library(t, &shown, &result)
			      : inject_agent(t, s, &result));
	if (!shown.library)
		record_torch(t, s, result.already);
	if (s->code) {
		if (s->crash)
			PRB_TRY(handle_crashes(t, s));
		return execute(t, s);
	}
	if (!shown.library)
		shown.library = "the agent";
	PRB_TRY(prb_inject_print(t, &shown, &result));
	return s->crash ? handle_crashes(t, s) : NULL;
}

static struct prb_error *tell_service(const struct prb_target *t,
				      const struct prb_listener *listener,
				      const struct prb_token *token,
				      const struct inject_settings *s)
{
	prb_auto_str struct prb_str text = {}, url = {};
	struct prb_json out = {.out = &text};
	bool http = listener->loopback && !s->once;

	prb_str_printf(&url, "http://%s/", listener->address);
	if (s->library.json) {
		prb_json_open(&out, NULL, '{');
		prb_json_integer(&out, "pid", t->pid);
		prb_json_text(&out, "address", listener->address);
		prb_json_text(&out, "token", token->known ? NULL : token->text);
		prb_json_text(&out, "url", http ? prb_str_text(&url) : NULL);
		prb_json_close(&out, '}');
		prb_str_putc(&text, '\n');
		return prb_output(&text);
	}
	prb_str_printf(&text, "process %d is served at %s until it ends or the agent is stopped\n",
		       (int)t->pid, listener->address);
	if (!token->known)
		prb_str_printf(&text, "PROBING_AUTH_TOKEN=%s\n", token->text);
	if (http)
		prb_str_printf(&text, "%s%s%s\n", prb_str_text(&url),
			       token->known ? "" : "?token=", token->known ? "" : token->text);
	return prb_output(&text);
}

/** Why it cannot listen at that address: the process is served there, mostly. */
static struct prb_error *explain_address(const struct prb_target *t, const char *address,
					 struct prb_error *err)
{
	prb_auto_str struct prb_str served = {};
	const char *port = strrchr(address, ':'), *at;

	prb_serve_known_find(t->pid, &served);
	at = err && port && served.length ? strstr(prb_str_text(&served), port) : NULL;
	if (!at || (at[strlen(port)] && at[strlen(port)] != ' '))
		return err;
	prb_error_destroy(err);
	return prb_error_hint(prb_conflict_create("process %d is served already, at %.200s",
						  (int)t->pid, prb_str_text(&served)),
			      "clients use that; 'probing %d agent stop' ends it", (int)t->pid);
}

/** Listens first, so that the process is left alone if that cannot be done. */
static struct prb_error *serve(struct prb_target *t, const struct inject_settings *s,
			       const char *token_file)
{
	__attribute__((cleanup(prb_listener_close))) struct prb_listener listener = {.fd = -1};
	struct prb_inject_result result = {};
	struct prb_token token;

	PRB_TRY(explain_address(t, listen_address(s),
				prb_listener_open(listen_address(s), &listener)));
	PRB_TRY(prb_token_choose(token_file, &token));
	PRB_TRY(inject_agent(t, s, &result));
	record_torch(t, s, result.already);
	if (s->crash)
		PRB_TRY(handle_crashes(t, s));
	PRB_TRY(prb_serve_background(t->pid, &listener, &token, s->once,
				     listener.loopback ? prb_gateway_adopted : NULL));
	if (!listener.loopback)
		prb_warn(
			"other machines can reach that address, and what is sent is not encrypted: "
			"use it in a network that you trust, or an ssh://HOST/PID target");
	return tell_service(t, &listener, &token, s);
}

/** For that nothing needs to be loaded. */
static struct prb_error *record(const struct prb_cli *cli, const struct inject_settings *s)
{
	return prb_performance_background(
		cli, &(const struct prb_performance_settings){.out.json = s->library.json});
}

static struct prb_error *inject_or_serve(const struct prb_cli *cli, const struct inject_settings *s)
{
	prb_auto_target struct prb_target *t = NULL;

	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &t));
	if (s->crash)
		PRB_TRY(prb_crash_allowed(t));
	return listen_address(s) ? serve(t, s, cli->token_file) : inject(t, s);
}

static struct prb_error *run(const struct prb_cli *cli, const void *settings)
{
	const struct inject_settings *s = settings;

	PRB_TRY(check_settings(s));
	if (!s->pprof || s->crash)
		PRB_TRY(inject_or_serve(cli, s));
	return s->pprof ? record(cli, s) : NULL;
}

const struct prb_command prb_command_inject = {
	.rank = 80,
	.for_clients = true,
	.name = "inject",
	.aliases = {"in", "i"},
	.summary = "Load the agent, or any shared library, into a running process",
	.description = "Loads the agent, which 'probing eval' needs, into a Python process. With "
		       "--library, loads a shared library into any dynamically linked program. "
		       "The program keeps running: one thread is hijacked for a fraction of a "
		       "millisecond, at a point where it holds no lock of the C library, and a "
		       "new thread does the rest. If that cannot be done safely, the command "
		       "fails with the reason and changes nothing.\n\n"
		       "In a process with torch the agent then records training steps, the next "
		       "ten and one in a hundred after them, and memory each second. --bare does "
		       "without, and so does PROBING_TORCH_PROFILING=off in its environment.\n\n"
		       "--listen leaves a server process of probing in the background. 'probing "
		       "-t HOST:PORT COMMAND' then works from wherever the address can be "
		       "reached, with a token: the one printed here, or the one given in "
		       "PROBING_AUTH_TOKEN or --token-file. The server ends when the target ends "
		       "or the agent is stopped.\n\n"
		       "--crash has the process write a crash record to a folder of its user when "
		       "it dies of SIGSEGV, SIGBUS, SIGABRT, SIGILL or SIGFPE, or an exception is "
		       "not caught. Handlers that were there before run afterwards, and the exit "
		       "status stays. 'probing crashes' lists the records, and 'probing FILE debug "
		       "--dump' reads one, as any core file.\n\n"
		       "--pprof loads nothing: a process of probing samples the target from "
		       "outside, and keeps the last ten minutes for 'probing PID perf --last "
		       "60s'. It ends with the target, or by 'perf --stop'.\n\n"
		       "Code that the library itself runs when it is loaded is not under our "
		       "control: if it crashes or hangs, so does the program.",
	.options =
		(const struct prb_option[]){
			PRB_INJECT_OPTIONS,
			{"execute", 'e', PRB_OPTION_TEXT, "CODE", "Then run CODE, as eval does",
			 PRB_COMPLETE_NOTHING, offsetof(struct inject_settings, code),
			 .for_clients = true},
			{"by", 0, PRB_OPTION_TEXT, "WAY",
			 "remote-exec: by sys.remote_exec() (3.14+), which hijacks no thread",
			 PRB_COMPLETE_NOTHING, offsetof(struct inject_settings, by)},
			{"pprof", 'P', PRB_OPTION_FLAG, NULL,
			 "Sample it in the background, from outside: 'perf --background'",
			 PRB_COMPLETE_NOTHING, offsetof(struct inject_settings, pprof)},
			{"crash", 'c', PRB_OPTION_FLAG, NULL,
			 "Write a crash record when the process dies of a fault or an exception",
			 PRB_COMPLETE_NOTHING, offsetof(struct inject_settings, crash)},
			{"hold", 0, PRB_OPTION_SECONDS, "TIME",
			 "With --crash: keep the dying process for that time", PRB_COMPLETE_NOTHING,
			 offsetof(struct inject_settings, hold)},
			{"listen", 'l', PRB_OPTION_TEXT, "ADDR",
			 "Serve the process to remote clients at HOST:PORT (:PORT: loopback)",
			 PRB_COMPLETE_NOTHING, offsetof(struct inject_settings, listen)},
			{"background", 'b', PRB_OPTION_FLAG, NULL,
			 "Same as --listen, at --address or " PRB_SERVE_ADDRESS,
			 PRB_COMPLETE_NOTHING, offsetof(struct inject_settings, background)},
			{"address", 'a', PRB_OPTION_TEXT, "ADDR", "Address for --background",
			 PRB_COMPLETE_NOTHING, offsetof(struct inject_settings, address)},
			{"bare", 0, PRB_OPTION_FLAG, NULL,
			 "Do not begin to record steps of torch and memory", PRB_COMPLETE_NOTHING,
			 offsetof(struct inject_settings, bare), .for_clients = true},
			{"once", 0, PRB_OPTION_FLAG, NULL,
			 "With --listen: exit after the first client", PRB_COMPLETE_NOTHING,
			 offsetof(struct inject_settings, once)},
			{"define", 'D', PRB_OPTION_TEXTS, "K=V",
			 "With --crash: crash.size=64M, crash.count=16, crash.folder=PATH",
			 PRB_COMPLETE_NOTHING, offsetof(struct inject_settings, defines)},
			{}},
	.settings_size = sizeof(struct inject_settings),
	.target_use = PRB_TARGET_ONE,
	.complete = PRB_COMPLETE_TARGET,
	.examples =
		(const struct prb_example[]){
			{"probing 4242 inject", "Load the agent"},
			{"probing 4242 inject -e \"import faulthandler; faulthandler.enable()\"",
			 "Load it and run code"},
			{"probing 4242 inject --listen 127.0.0.1:9922",
			 "Serve it to remote clients"},
			{"probing 4242 inject -c --hold 20s", "Write a crash record"},
			{"probing 4242 inject -P", "Sample it until 'perf --stop'"},
			{"probing -t 4242 inject --library ./libhook.so", "Load a library"},
			{"probing 4242 i -L ./libhook.so -s log --arg yes",
			 "Load it and call log(\"yes\")"},
			{}},
	.run = run,
};
