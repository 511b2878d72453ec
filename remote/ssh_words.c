/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/ssh_words.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"

void prb_ssh_quote(struct prb_str *s, const char *word)
{
	prb_str_puts(s, s->length ? " '" : "'");
	for (; *word; word++) {
		if (*word == '\'')
			prb_str_puts(s, "'\\''");
		else
			prb_str_putc(s, *word);
	}
	prb_str_putc(s, '\'');
}

struct prb_error *prb_ssh_line(const char *host, const char *line, struct prb_words *ret)
{
	static const char *const before[] = {
		"ssh", "-T", "-oLogLevel=ERROR", "-oBatchMode=yes", "-oConnectTimeout=10",
		"--",  NULL};

	PRB_TRY(prb_words_add_ours(ret, before));
	PRB_TRY(prb_words_add(ret, "%s", host));
	return prb_words_add(ret, "%s", line);
}

struct prb_error *prb_ssh_words(const char *host, const char *const *command, struct prb_words *ret)
{
	const char *program = getenv("PROBING_REMOTE_PROGRAM");
	prb_auto_str struct prb_str line = {};

	prb_str_puts(&line, "exec");
	prb_ssh_quote(&line, program && *program ? program : "probing");
	for (; *command; command++)
		prb_ssh_quote(&line, *command);
	return line.failed ? prb_error_nomem() : prb_ssh_line(host, prb_str_text(&line), ret);
}
