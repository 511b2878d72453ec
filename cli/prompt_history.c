/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The history of a prompt: a file in $XDG_STATE_HOME/probing, readable by its user only. */
#include "cli/prompt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <readline/history.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/str.h"

enum { MAX_ENTRIES = 2000 };

static char *history_file;

/** Makes the folders of @p path that are missing. */
static void make_folders(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(path, 0700);
		*p = '/';
	}
}

static char *find_file(const char *name)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && state[0] == '/')
		return prb_format("%s/probing/%s", state, name);
	if (home && home[0] == '/')
		return prb_format("%s/.local/state/probing/%s", home, name);
	return NULL;
}

void prb_prompt_history_begin(const char *name)
{
	using_history();
	stifle_history(MAX_ENTRIES);
	history_file = find_file(name);
	if (!history_file)
		return;
	make_folders(history_file);

	prb_auto_close int fd = open(history_file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	read_history(history_file);
	history_truncate_file(history_file, MAX_ENTRIES);
}

/** An entry is one line of the file. */
static void put_entry(struct prb_str *s, const char *text)
{
	for (; *text; text++)
		prb_str_putc(s, *text == '\n' || *text == '\t' ? ' ' : *text);
}

void prb_prompt_history_add(const char *text)
{
	prb_auto_str struct prb_str entry = {};
	HIST_ENTRY *last = history_length ? history_get(history_base + history_length - 1) : NULL;

	put_entry(&entry, text);
	if (entry.failed || (last && !strcmp(last->line, prb_str_text(&entry))))
		return;
	add_history(prb_str_text(&entry));
	if (history_file)
		append_history(1, history_file);
}
