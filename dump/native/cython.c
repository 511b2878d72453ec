/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/native/cython.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/pool.h"
#include "base/str.h"

enum { MAX_FILE = 64 << 20, MAX_SEARCHED = 512 << 20, MAX_PARTS = 32, MAX_LENGTH = 4096 };

struct file {
	const char *path; /* borrowed from a frame */
	char *text;	  /* NULL if it cannot be read */
};

struct files {
	struct prb_target *target;
	struct prb_dump *dump;
	size_t searched; /* bytes of files, for all frames; bounded, since the user of the target
			    chooses the files */
	PRB_VEC(struct file) list;
};

/*
 * Reads "5cymod_", "6Worker_": a name after its length. @p counted: a number must follow, by which
 * Cython tells functions of the same name apart. 0: no such part.
 */
static size_t take_part(const char *at, bool counted, const char **ret)
{
	char *end;
	unsigned long length;

	if (!isdigit((unsigned char)*at))
		return 0;
	length = strtoul(at, &end, 10);
	if (!length || length > MAX_LENGTH || strnlen(end, length + 1) <= length ||
	    end[length] != '_' || (counted && !isdigit((unsigned char)end[length + 1])))
		return 0;
	*ret = end;
	return length;
}

bool prb_cython_name(const char *func, struct prb_str *ret)
{
	static const char *const prefixes[] = {"__pyx_pw_", "__pyx_pf_", "__pyx_f_"};
	const char *at = NULL, *part;
	bool counted = false, may_count = false;
	size_t length, start = ret->length;

	for (size_t i = 0; i < 3 && !at; i++) {
		size_t prefix = strlen(prefixes[i]);

		if (!strncmp(func, prefixes[i], prefix)) {
			at = func + prefix;
			counted = i == 0;
			may_count = i < 2;
		}
	}
	for (int i = 0; at && i < MAX_PARTS && (length = take_part(at, counted, &part)); i++) {
		prb_str_printf(ret, "%.*s.", (int)length, part);
		at = part + length + 1;
	}
	if (!at || ret->length == start)
		return false;
	while (may_count && isdigit((unsigned char)*at))
		at++;
	prb_str_puts(ret, at);
	return true;
}

static struct prb_error *read_file(struct files *files, const char *path, char **ret)
{
	prb_auto_close int fd = -1;
	prb_auto_free char *text = NULL;
	size_t size = 0;
	struct stat st;

	PRB_TRY(prb_target_open_file(files->target, path, &fd));
	if (fstat(fd, &st) || st.st_size <= 0 || st.st_size > MAX_FILE)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it is no source file");
	text = malloc((size_t)st.st_size + 1);
	if (!text)
		return prb_error_nomem();
	while (size < (size_t)st.st_size) {
		ssize_t n = pread(fd, text + size, (size_t)st.st_size - size, (off_t)size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size += (size_t)n;
	}
	text[size] = '\0';
	*ret = prb_steal(&text);
	return NULL;
}

static struct prb_error *warn(struct prb_dump *dump, const char *path, const char *why)
{
	char **slot = prb_vec_push(&dump->warnings);

	if (!slot)
		return prb_error_nomem();
	*slot = prb_format("lines of Cython in %s are those of that file: the .pyx is not in the "
			   "debug information, and %s",
			   path, why);
	if (*slot)
		return NULL;
	dump->warnings.count--;
	return prb_error_nomem();
}

static struct prb_error *find_file(struct files *files, const char *path, struct file **ret)
{
	struct file *file;

	prb_vec_each (file, &files->list) {
		*ret = file;
		if (!strcmp(file->path, path))
			return NULL;
	}
	*ret = prb_vec_push(&files->list);
	if (!*ret)
		return prb_error_nomem();
	(*ret)->path = path;
	prb_auto_error struct prb_error *err = read_file(files, path, &(*ret)->text);
	if (!err)
		return NULL;
	return err->code == PRB_ERROR_NOMEM ? prb_steal(&err)
					    : warn(files->dump, path, err->message);
}

/* Comments begin with "cymod.pyx":13 in quotes; the last one up to the line counts. */
bool prb_cython_place(const char *text, int32_t line, char path[PRB_CYTHON_PATH], int32_t *ret,
		      size_t *searched)
{
	bool found = false;

	for (int32_t at = 1; *text && at <= line; at++) {
		size_t length = strcspn(text, "\n");
		const char *begin = text + strspn(text, " \t");
		char name[PRB_CYTHON_PATH];
		int number;

		if (!strncmp(begin, "/* \"", 4) &&
		    sscanf(begin + 4, "%4095[^\"\n]\":%d", name, &number) == 2 && number > 0 &&
		    strstr(name, ".p")) {
			snprintf(path, PRB_CYTHON_PATH, "%s", name);
			*ret = number;
			found = true;
		}
		*searched += length + 1;
		text += length + (text[length] == '\n');
	}
	return found;
}

/* "LINE PATH" in the .pyx; "" if unknown. */
static struct prb_error *look_up(struct files *files, const struct prb_dump_frame *frame,
				 struct prb_str *ret)
{
	prb_auto_str struct prb_str key = {};
	const char *slash = strrchr(frame->file, '/');
	char path[PRB_CYTHON_PATH];
	struct file *file;
	int32_t line;

	prb_str_printf(&key, "pyx:%d:%s", frame->line, frame->file);
	if (prb_target_recall(files->target, prb_str_text(&key), ret))
		return NULL;
	PRB_TRY(find_file(files, frame->file, &file));
	if (file->text && files->searched < MAX_SEARCHED &&
	    prb_cython_place(file->text, frame->line, path, &line, &files->searched))
		prb_str_printf(ret, "%d %.*s%s", line,
			       *path == '/' || !slash ? 0 : (int)(slash + 1 - frame->file),
			       frame->file, path);
	prb_target_remember(files->target, prb_str_text(&key), prb_str_text(ret), ret->length);
	return ret->failed ? prb_error_nomem() : NULL;
}

static bool is_c_file(const char *path)
{
	const char *dot = path ? strrchr(path, '.') : NULL;

	return dot && (!strcmp(dot, ".c") || !strcmp(dot, ".cpp") || !strcmp(dot, ".cc"));
}

static struct prb_error *fill_frame(struct files *files, struct prb_dump_frame *frame)
{
	prb_auto_str struct prb_str name = {}, place = {};
	struct prb_pool *pool = files->dump->pool;
	int line, used;

	if (!prb_cython_name(frame->func, &name))
		return NULL;
	frame->full_func = frame->func;
	PRB_TRY(prb_pool_share(pool, prb_str_text(&name), &frame->func));
	if (!is_c_file(frame->file) || frame->line < 1)
		return NULL;
	PRB_TRY(look_up(files, frame, &place));
	if (sscanf(prb_str_text(&place), "%d %n", &line, &used) != 1)
		return NULL;
	frame->line = line;
	return prb_pool_share(pool, prb_str_text(&place) + used, &frame->file);
}

struct prb_error *prb_cython_fill(struct prb_target *target, struct prb_dump *dump)
{
	struct files files = {.target = target, .dump = dump};
	struct prb_dump_thread *thread;
	struct prb_dump_frame *frame;
	struct prb_error *err = NULL;
	struct file *file;

	prb_vec_each (thread, &dump->threads)
		prb_vec_each (frame, &thread->frames)
			if (!err && frame->kind != PRB_FRAME_PYTHON && frame->func)
				err = fill_frame(&files, frame);
	prb_vec_each (file, &files.list)
		free(file->text);
	prb_vec_free(&files.list);
	return err;
}
