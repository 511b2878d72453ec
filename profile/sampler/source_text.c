/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/source_text.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/map.h"
#include "target/proc/rights.h"

enum { MAX_FILE = 4 << 20, MAX_LINE = 300, MAX_LINES = 20000, AROUND = 4, NOBODY = 65534 };

/* Words of a path that hint at secrets. */
static const char *const secrets[] = {
	"secret",      "secrets", "password", "passwords", "passwd", "credential",
	"credentials", "apikey",  "apikeys",  "token",	   "tokens", NULL,
};

static bool is_secret(const char *path)
{
	size_t length;

	for (const char *at = path; *at; at += length) {
		length = 0;
		while (isalpha((unsigned char)at[length]))
			length++;
		for (const char *const *word = secrets; *word; word++)
			if (length == strlen(*word) && !strncasecmp(at, *word, length))
				return true;
		length += !length;
	}
	return false;
}

static bool is_python(const char *path)
{
	size_t length = strlen(path);

	return length > 3 && !strcmp(path + length - 3, ".py");
}

/* Where there is a process, as it sees the file. A relative path counts from where it is. */
static struct prb_error *open_live(struct prb_target *target, const char *path, int *fd)
{
	prb_auto_str struct prb_str whole = {};

	if (!target)
		return prb_error_os(ESRCH, "cannot open %s", path);
	if (path[0] == '/')
		return prb_target_open_file(target, path, fd);
	PRB_TRY(prb_target_read_link(target, &whole, "cwd"));
	prb_str_printf(&whole, "/%s", path);
	return prb_target_open_file(target, prb_str_text(&whole), fd);
}

/*
 * A program that we started may have ended. It chose the names, perhaps as another user: files that
 * are not world-readable are not read for it.
 */
static struct prb_error *open_source(struct prb_target *target, bool started, const char *path,
				     int *fd)
{
	const struct prb_rights everybody = {.uid = NOBODY, .gid = NOBODY};
	struct prb_error *err = open_live(target, path, fd);

	if (!err || !started || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return prb_rights_are_special() ? prb_rights_open(&everybody, -1, path, fd)
					: prb_file_open(-1, path, fd);
}

static struct prb_error *read_all(int fd, size_t size, struct prb_str *ret)
{
	char part[1 << 14];

	while (ret->length < size) {
		ssize_t n = pread(fd, part, sizeof(part), (off_t)ret->length);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		prb_str_append(ret, part, (size_t)n);
	}
	return ret->failed ? prb_error_nomem() : NULL;
}

/* *ret stays empty where the file is not to be had. */
static struct prb_error *load(const struct prb_recording *recording, struct prb_target *target,
			      bool started, const char *path, struct prb_str *ret)
{
	prb_auto_close int fd = -1;
	struct prb_error *err = open_source(target, started, path, &fd);
	struct stat st;

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (err || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE ||
	    (double)st.st_mtim.tv_sec > recording->started)
		return NULL;
	return read_all(fd, (size_t)st.st_size, ret);
}

/* Marks the lines of @p file that are wanted; @p count is how many it has. */
static void want_lines(const struct prb_recording *recording, const char *file, bool *wanted,
		       int32_t count)
{
	const struct prb_tree *tree = recording->tree;
	const struct prb_tree_frame *frame;

	prb_vec_each (frame, &tree->frames) {
		const struct prb_tree_function *f = &tree->functions.items[frame->function];

		if (f->file != file || f->kind != PRB_FUNCTION_PYTHON)
			continue;
		if (f->first_line > 0 && f->first_line <= count)
			wanted[f->first_line] = true;
		for (int32_t i = -AROUND; i <= AROUND; i++)
			if (frame->line > 0 && frame->line <= count && frame->line + i > 0 &&
			    frame->line + i <= count)
				wanted[frame->line + i] = true;
	}
}

static struct prb_error *add_line(struct prb_recording *recording, const char *file, int32_t line,
				  const char *text, size_t length)
{
	struct prb_profile_line *slot = prb_vec_push(&recording->lines);

	if (!slot)
		return prb_error_nomem();
	*slot = (struct prb_profile_line){file, line,
					  strndup(text, length > MAX_LINE ? MAX_LINE : length)};
	return slot->text ? NULL : prb_error_nomem();
}

static struct prb_error *add_lines(struct prb_recording *recording, const char *file,
				   const struct prb_str *text)
{
	prb_auto_free bool *wanted = NULL;
	int32_t count = 1, line = 1;

	for (size_t i = 0; i < text->length; i++)
		count += text->data[i] == '\n';
	wanted = calloc((size_t)count + 1, sizeof(*wanted));
	if (!wanted)
		return prb_error_nomem();
	want_lines(recording, file, wanted, count);
	for (size_t at = 0; at < text->length && recording->lines.count < MAX_LINES; line++) {
		size_t length = 0;

		while (at + length < text->length && text->data[at + length] != '\n')
			length++;
		if (wanted[line])
			PRB_TRY(add_line(recording, file, line, text->data + at, length));
		at += length + 1;
	}
	return NULL;
}

struct prb_error *prb_profile_add_source(struct prb_recording *recording, struct prb_target *target,
					 bool started)
{
	const struct prb_tree *tree = recording->tree;
	struct prb_number_map seen = {};
	struct prb_error *err = NULL;

	for (size_t i = 0; i < tree->functions.count && !err; i++) {
		const char *file = tree->functions.items[i].file;
		uint64_t key = (uint64_t)(uintptr_t)file;
		prb_auto_str struct prb_str text = {};
		size_t number;

		if (!file || !is_python(file) || is_secret(file) ||
		    prb_number_map_get(&seen, key, &number))
			continue;
		err = prb_number_map_put(&seen, key, i)
			      ? load(recording, target, started, file, &text)
			      : prb_error_nomem();
		if (!err)
			err = add_lines(recording, file, &text);
	}
	prb_number_map_deinit(&seen);
	return err;
}
