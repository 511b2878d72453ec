/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The history of a prompt: a file in $XDG_STATE_HOME/probing, readable by its user only. A folder
 * or file of another user is left alone, as with a HOME that sudo has kept: then nothing is kept.
 */
#include "command/prompt/prompt.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <readline/history.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "base/str.h"

enum { MAX_ENTRIES = 2000 };

/** Our own folder, and the file's name in it; -1: nothing is kept. */
static int history_folder = -1;
static const char *history_name;

static int open_folder(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && state[0] == '/')
		return prb_own_folder_make(state, "", true);
	if (home && home[0] == '/')
		return prb_own_folder_make(home, "/.local/state", true);
	errno = ENOENT;
	return -1;
}

static int open_file(int flags)
{
	uint64_t size;

	return prb_own_file_use(history_folder, history_name, flags, &size);
}

static void append(struct prb_str *s, const char *text)
{
	prb_str_puts(s, text);
	prb_str_putc(s, '\n');
}

static bool write_all(int fd, const struct prb_str *s)
{
	return !s->failed && write(fd, s->data, s->length) == (ssize_t)s->length;
}

/** Writes the entries that are kept into a new file, and puts that in the place of the old one. */
static void shorten(void)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_str struct prb_str text = {};

	for (int i = 0; i < history_length; i++)
		append(&text, history_get(history_base + i)->line);

	prb_auto_error struct prb_error *err =
		prb_new_file_open_in(&file, history_folder, history_name);
	if (!err && write_all(file.fd, &text))
		err = prb_new_file_place(&file);
}

/** Counts the lines of the file, and leaves the last of them in the history. */
static size_t read_file(int fd)
{
	prb_auto_free char *line = NULL;
	size_t room = 0, count = 0;
	ssize_t length;
	FILE *file = fdopen(dup(fd), "re");

	while (file && (length = getline(&line, &room, file)) > 0) {
		if (line[length - 1] == '\n')
			line[length - 1] = '\0';
		if (*line)
			add_history(line);
		count++;
	}
	if (file)
		fclose(file);
	return count;
}

void prb_prompt_history_begin(const char *name)
{
	using_history();
	stifle_history(MAX_ENTRIES);
	history_name = name;
	history_folder = open_folder();

	prb_auto_close int fd = history_folder < 0 ? -1 : open_file(O_RDWR);
	if (fd < 0) {
		prb_log("prompt", 1, "no history: %s", strerror(errno));
		if (history_folder >= 0)
			close(prb_steal_fd(&history_folder));
	} else if (read_file(fd) > MAX_ENTRIES) {
		shorten();
	}
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
	if (history_folder < 0)
		return;

	prb_auto_close int fd = open_file(O_WRONLY | O_APPEND);
	prb_str_putc(&entry, '\n');
	if (fd >= 0 && !write_all(fd, &entry))
		prb_log("prompt", 1, "cannot write the history: %s", strerror(errno));
}
