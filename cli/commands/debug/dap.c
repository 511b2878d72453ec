/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/debug/dap.h"
#include "cli/commands/eval/console.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "remote/address.h"
#include "control/load.h"
#include "cli/commands/eval/eval.h"
#include "command/exit.h"
#include "command/interrupt.h"
#include "command/output.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/conflict.h"
#include "base/json.h"
#include "base/log.h"
#include "base/text.h"
#include "target/proc/inet_line.h"
#include "target/spec/target_spec.h"

/* The Python code that runs in the target, as text. */
__asm__(".pushsection .rodata\n"
	".global prb_dap_text\n"
	".hidden prb_dap_text\n"
	"prb_dap_text:\n"
	".incbin \"cli/commands/debug/dap.py\"\n"
	".byte 0\n"
	".popsection\n");
extern const char prb_dap_text[];

/* Seconds: debugpy starts a process for each target, and waits 30 s for it. */
static const double START_SECONDS = 40;

/* "listening HOST PORT VERSION" */
struct answer {
	char word[16], host[PRB_HOST_MAX + 1], version[64];
	int port;
	const char *rest; /* after the word */
};

/** The folder that holds the package, as import wants it. */
static struct prb_error *find_package(const char *path, struct prb_str *ret)
{
	static const char name[] = "/debugpy";
	prb_auto_free char *whole = realpath(path, NULL);

	if (!whole)
		return prb_error_hint(prb_error_os(errno, "--debugpy %.200s", path),
				      "it is the folder that holds the package debugpy, such as "
				      "a site-packages");
	prb_str_puts(ret, whole);
	size_t end = sizeof(name) - 1;
	prb_auto_free char *inner = prb_format("%s/__init__.py", whole);
	if (!inner)
		return prb_error_nomem();
	if (ret->length > end && !strcmp(whole + ret->length - end, name) && !access(inner, F_OK))
		prb_str_truncate(ret, ret->length - end);
	return ret->failed ? prb_error_nomem() : NULL;
}

static void put_code(struct prb_str *code, const struct prb_address *at, const struct prb_str *path)
{
	struct prb_json names = {.out = code};

	prb_str_puts(code, "exec(");
	prb_json_quote(code, prb_dap_text, strlen(prb_dap_text));
	prb_str_puts(code, ", ");
	prb_json_open(&names, NULL, '{');
	prb_json_text(&names, "host", at->host);
	prb_json_integer(&names, "port", at->port);
	prb_json_bytes(&names, "path", prb_str_text(path), path->length);
	prb_json_close(&names, '}');
	prb_str_putc(code, ')');
}

static void put_launch(const struct prb_target *t, const struct answer *answer)
{
	prb_auto_str struct prb_str host = {};

	prb_json_quote(&host, answer->host, strlen(answer->host));
	printf("{\n"
	       "  \"version\": \"0.2.0\",\n"
	       "  \"configurations\": [\n"
	       "    {\n"
	       "      \"name\": \"process %d\",\n"
	       "      \"type\": \"debugpy\",\n"
	       "      \"request\": \"attach\",\n"
	       "      \"connect\": {\"host\": %s, \"port\": %d},\n"
	       "      \"justMyCode\": false\n"
	       "    }\n"
	       "  ]\n"
	       "}\n",
	       t->pid, prb_str_text(&host), answer->port);
}

static struct prb_error *show(const struct prb_target *t, const struct prb_address *asked,
			      const struct answer *answer)
{
	bool begun = !strcmp(answer->word, "listening");
	prb_auto_str struct prb_str host = {}, version = {};

	prb_text_escape(&host, answer->host);
	prb_text_escape(&version, answer->version);
	fprintf(stderr, "debugpy %s listens on %s, port %d, in process %d %s.\n",
		prb_str_text(&version), prb_str_text(&host), answer->port, t->pid,
		begun ? "until that ends" : "already");
	if (!begun && asked->port && asked->port != answer->port)
		prb_warn("debugpy listens at one address only: the one that was asked for is "
			 "ignored");
	if (begun)
		fputs("Whoever can connect there can run code as its user.\n", stderr);
	put_launch(t, answer);
	return prb_output_flush();
}

/** Judges the target's answer, which is as untrusted as its memory. */
static struct prb_error *judge(const struct prb_target *t, const struct answer *answer)
{
	if (!strcmp(answer->word, "absent"))
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "the Python of process %d has no debugpy",
						       t->pid),
				      "install it there (pip install debugpy), or name the folder "
				      "of one that suits it with --debugpy PATH");
	if (!strcmp(answer->word, "broken"))
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "process %d cannot import debugpy: %.400s",
						       t->pid, answer->rest),
				      "--debugpy PATH names the folder of one that suits its "
				      "version of Python, as the process sees it");
	return prb_error_hint(prb_conflict_create("debugpy does not listen in process %d: %.400s",
						  t->pid, answer->rest),
			      "--dap=127.0.0.1:0 takes any port that is free");
}

/** True if a socket of the target's network listens at that port, or that cannot be seen. */
static bool listens(struct prb_target *t, int port)
{
	static const char *const tables[] = {"net/tcp", "net/tcp6"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(tables); i++) {
		prb_auto_str struct prb_str text = {};
		prb_auto_error struct prb_error *err =
			prb_target_read_file(t, &text, "%s", tables[i]);

		if (err)
			return true;
		for (const char *at = strchr(prb_str_text(&text), '\n'); at && at[1];
		     at = strchr(at + 1, '\n')) {
			struct prb_inet_line line;

			if (prb_inet_line_parse(at + 1, &line) && (int)line.near.port == port &&
			    line.state == PRB_INET_LISTENING)
				return true;
		}
	}
	return false;
}

/** debugpy gives up within 0.2 s if it sees no thread that lives. Looked at from here: a filter may
 * forbid the process to wait. */
static bool keeps_listening(struct prb_target *t, int port)
{
	const struct timespec nap = {.tv_nsec = 50000000};

	for (int looks = 8; looks > 0; looks--) {
		if (!listens(t, port))
			return false;
		nanosleep(&nap, NULL);
	}
	return true;
}

static struct prb_error *understand(struct prb_target *t, const struct prb_address *asked,
				    const struct prb_str *said)
{
	struct answer answer = {.rest = ""};
	const char *text = prb_str_text(said), *space = strchr(text, ' ');

	sscanf(text, "%15s", answer.word);
	if (space)
		answer.rest = space + 1;
	if ((!strcmp(answer.word, "listening") || !strcmp(answer.word, "already")) &&
	    sscanf(answer.rest, "%253s %d %63s", answer.host, &answer.port, answer.version) == 3) {
		if (keeps_listening(t, answer.port))
			return show(t, asked, &answer);
		answer.rest = "it stopped to listen at once: no thread of the program is one that "
			      "it can debug";
	}
	return judge(t, &answer);
}

static struct prb_error *start(struct prb_target *t, const struct prb_address *at,
			       const struct prb_str *code)
{
	__attribute__((cleanup(prb_eval_result_deinit))) struct prb_eval_result result = {};
	struct prb_eval_console console = {.patience = 1};
	struct prb_eval how = {.timeout = START_SECONDS};
	struct prb_agent *agent;

	prb_eval_console_use(&console, true, &how);
	PRB_TRY(prb_agent_reach(t, true, &agent));
	prb_interrupt_catch(NULL);
	prb_interrupt_hold(true);
	struct prb_error *err = prb_eval_run(agent, &how, "<probing debug --dap>", code, &result);
	prb_agent_close(agent);
	PRB_TRY(err);
	if (result.err.length)
		prb_log("dap", 1, "%s", prb_str_text(&result.err));
	if (result.has_traceback)
		return prb_error_create(PRB_ERROR_FAILED, "debugpy failed in process %d: %.2000s",
					t->pid, prb_str_text(&result.traceback));
	PRB_TRY(prb_eval_judge(t, (int)t->pid, &how, &result));
	return understand(t, at, &result.out);
}

struct prb_error *prb_dap(const struct prb_cli *cli, const char *address, const char *debugpy)
{
	prb_auto_str struct prb_str code = {}, path = {};
	struct prb_address at;
	prb_auto_target struct prb_target *t = NULL;

	PRB_TRY(prb_address_parse(address, &at));
	if (debugpy)
		PRB_TRY(find_package(debugpy, &path));
	put_code(&code, &at, &path);
	if (code.failed)
		return prb_error_nomem();
	PRB_TRY(prb_spec_open_in(cli->target, &cli->places, &t));
	return start(t, &at, &code);
}
