/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The main thread has waited for long for what a server is to answer. That server may be dead, or
 * its answer lost: TCP itself never says so while nothing is sent. Or it has nothing to say.
 */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"

/** Linux gives clients ports from here on: what waits for one is a server without requests. */
enum { EPHEMERAL = 32768 };

/** The place of "10.0.0.7:5432" in what a thread waits for; NULL: it waits for no server. */
static const char *server_of(const struct prb_dump_thread *thread)
{
	static const char SOCKET[] = "socket ", ARROW[] = " → ";
	const char *at = thread->waits_for ? strstr(thread->waits_for, SOCKET) : NULL;
	const char *port, *end;

	/* Not "unix socket". */
	if (!at || (at > thread->waits_for + 1 && at[-2] != ':' && at[-2] != ','))
		return NULL;
	at = strstr(at, ARROW);
	if (!at)
		return NULL;
	at += strlen(ARROW);
	end = at + strcspn(at, " ,;");
	port = memrchr(at, ':', (size_t)(end - at));
	if (!port || port[1] < '0' || port[1] > '9' || strtol(port + 1, NULL, 10) >= EPHEMERAL)
		return NULL;
	return at;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *main = c->dump->threads.count ? c->dump->threads.items : NULL;
	const char *server = main ? server_of(main) : NULL;
	double idle = server ? prb_case_idle(c, main) : -1;
	prb_auto_str struct prb_str name = {};
	struct prb_finding *f;

	if (!server || idle < prb_limit(PRB_LIMIT_PEER) || idle < 0)
		return NULL;
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_LOW;
	f->lasted = idle;
	prb_str_append(&name, server, strcspn(server, " ,;"));
	prb_str_puts(&f->brief, "has waited ");
	prb_text_duration(&f->brief, idle);
	prb_str_puts(&f->brief, " for ");
	prb_text_escape(&f->brief, prb_str_text(&name));
	prb_str_puts(&f->sentence, "the main thread ");
	prb_str_puts(&f->sentence, prb_str_text(&f->brief));
	prb_str_puts(&f->sentence, " in ");
	if (!prb_case_put_place(&f->sentence, main))
		prb_str_puts(&f->sentence, "C code");
	PRB_TRY(prb_finding_thread(f, c, main));
	prb_case_put_reading(&f->rests_on, c);
	prb_str_puts(&f->rests_on,
		     ", and how long the kernel says that it has slept; the other end "
		     "of the connection was not asked");
	prb_str_puts(&f->wrong_if, "the server has nothing to say for so long, as one that sends "
				   "notifications");
	prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

const struct prb_rule prb_rule_silent_peer = {
	.rank = 75,
	.name = "silent_peer",
	.kind = PRB_FINDING_PEER,
	.needs = PRB_RULE_THREADS,
	.proves = "the main thread has waited for a server for ten minutes",
	.find = find,
};
