/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/source_text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "python/repr/core/items.h"
#include "values/interpreters.h"

enum { MAX_LINES = 20 /* of one expression */, MAX_FILE = 64 << 20, MAX_CACHED = 1 << 20 };

struct file {
	const char *path; /* borrowed from a frame */
	char *text;	  /* a copy; NULL if it cannot be read */
	size_t size;
};

struct sources {
	struct prb_target *target;
	const struct prb_pythons *pythons;
	struct prb_dump *dump;
	struct prb_str cwd;
	double started; /* seconds since the epoch; 0 if unknown */
	PRB_VEC(struct file) files;
};

/* Start of the process: field 22 of its stat, in ticks since boot. */
static double start_time(struct prb_target *t)
{
	prb_auto_str struct prb_str stat = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(t, &stat, "stat");
	const char *close = err ? NULL : strrchr(prb_str_text(&stat), ')');
	unsigned long long ticks, boot = 0;
	char line[128];

	if (!close || sscanf(close + 1,
			     " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
			     "%*d %*d %*d %*d %*d %llu",
			     &ticks) != 1)
		return 0;
	prb_auto_fclose FILE *file = fopen("/proc/stat", "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "btime %llu", &boot) == 1)
			break;
	return boot ? (double)boot + (double)ticks / (double)sysconf(_SC_CLK_TCK) : 0;
}

static struct prb_error *warn(struct sources *s, char *text)
{
	char **slot = text ? prb_vec_push(&s->dump->warnings) : NULL;

	if (!slot) {
		free(text);
		return prb_error_nomem();
	}
	*slot = text;
	return NULL;
}

static struct prb_error *check_age(struct sources *s, const char *path, const struct stat *st)
{
	/* btime is whole seconds, rounded. */
	if (!s->started || (double)st->st_mtim.tv_sec <= s->started + 2)
		return NULL;
	return warn(s, prb_format("%s was changed after the process started: its lines may not be "
				  "those that run",
				  path));
}

/*
 * A relative path counts from the process's current directory, which may differ from that at
 * compile time.
 */
static struct prb_error *open_source(struct sources *s, const char *path, int *fd)
{
	if (path[0] == '/')
		return prb_target_open_file(s->target, path, fd);
	prb_auto_free char *whole = prb_format("%s/%s", prb_str_text(&s->cwd), path);
	if (!whole)
		return prb_error_nomem();
	return prb_target_open_file(s->target, whole, fd);
}

/* Of a file that changes meanwhile, the text is what was read. */
static struct prb_error *read_text(int fd, size_t size, struct file *file)
{
	prb_auto_free char *text = malloc(size);

	if (!text)
		return prb_error_nomem();
	while (file->size < size) {
		ssize_t n = pread(fd, text + file->size, size - file->size, (off_t)file->size);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		file->size += (size_t)n;
	}
	file->text = prb_steal(&text);
	return NULL;
}

static struct prb_error *left_out(struct sources *s, struct prb_error *err)
{
	prb_auto_error struct prb_error *why = err;

	if (why->code == PRB_ERROR_NOMEM)
		return prb_steal(&why);
	if (!s->target->ops->open_file)
		return NULL; /* a snapshot has either the lines or nothing */
	return warn(s, prb_format("source lines are left out: %s", why->message));
}

/* The lines of one file in the module `linecache`. */
struct cached {
	const char *expression;
	const struct prb_inside *inside;
	struct prb_str text;
	struct prb_error *err;
};

static bool add_line(void *context, uint64_t key __attribute__((unused)), uint64_t line)
{
	struct cached *c = context;

	c->err = prb_object_str(c->inside->py, c->inside->mem, line, MAX_CACHED, &c->text);
	return !c->err && c->text.length < MAX_CACHED;
}

static struct prb_error *read_cached(void *context, const struct prb_inside *inside)
{
	struct cached *c = context;
	uint64_t lines;
	bool torn;

	if (c->text.length)
		return NULL;
	PRB_TRY(prb_inside_find(inside, c->expression, &lines));
	c->inside = inside;

	struct prb_error *err =
		prb_object_items(inside->py, inside->mem, lines, false, add_line, c, &torn);
	if (!err)
		err = prb_steal(&c->err);
	prb_error_destroy(c->err);
	c->err = NULL;
	if (err || torn)
		prb_str_truncate(&c->text, 0);
	return err;
}

/* Code that was in no file: what a notebook, a doctest or a code generator noted for tracebacks. */
static struct prb_error *load_cached(struct sources *s, struct file *file)
{
	prb_auto_free char *expression = prb_format("linecache.cache['%s'][2]", file->path);
	struct cached c = {.expression = expression};
	struct prb_error *err;

	if (!expression)
		return prb_error_nomem();
	if (strpbrk(file->path, "'\\\n") || !s->pythons)
		return NULL;
	err = prb_inside_each(s->target, s->pythons, read_cached, &c);
	if (!err && c.text.failed)
		err = prb_error_nomem();
	if (!err && c.text.length) {
		file->size = c.text.length;
		file->text = prb_str_take(&c.text);
		return file->text ? NULL : prb_error_nomem();
	}
	prb_str_deinit(&c.text);
	return err;
}

static struct prb_error *load(struct sources *s, struct file *file)
{
	prb_auto_close int fd = -1;
	struct prb_error *err = open_source(s, file->path, &fd);
	struct stat st;

	/* "<string>", a file in an archive, deleted, or a cell of a notebook. */
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		return load_cached(s, file);
	if (err)
		return left_out(s, err);
	if (fstat(fd, &st) || !st.st_size || st.st_size > MAX_FILE)
		return NULL;
	PRB_TRY(read_text(fd, (size_t)st.st_size, file));
	return check_age(s, file->path, &st);
}

static struct prb_error *find_file(struct sources *s, const char *path, struct file **ret)
{
	struct file *file;

	prb_vec_each (file, &s->files) {
		if (strcmp(file->path, path))
			continue;
		*ret = file;
		return NULL;
	}
	*ret = prb_vec_push(&s->files);
	if (!*ret)
		return prb_error_nomem();
	(*ret)->path = path;
	return load(s, *ret);
}

/* Lines first to last, from 1, without the newline of the last; NULL if they do not exist. */
static char *copy_lines(const struct file *file, int32_t first, int32_t last)
{
	const char *p = file->text, *end = file->text + file->size, *start = NULL;

	for (int32_t line = 1; p < end; line++) {
		const char *newline = memchr(p, '\n', (size_t)(end - p));
		const char *stop = newline ? newline : end;

		if (line == first)
			start = p;
		if (line == last || (start && !newline))
			return start ? strndup(start, (size_t)(stop - start)) : NULL;
		p = stop + 1;
	}
	return NULL;
}

static struct prb_error *fill_frame(struct sources *s, struct prb_dump_frame *frame)
{
	int32_t last = frame->end_line > frame->line ? frame->end_line : frame->line;
	prb_auto_str struct prb_str recorded = {};
	struct file *file;

	if (!frame->file || frame->line < 1)
		return NULL;
	if (last - frame->line >= MAX_LINES)
		last = frame->line + MAX_LINES - 1;

	prb_auto_free char *key = prb_format("source:%d:%d:%s", frame->line, last, frame->file);
	if (!key)
		return prb_error_nomem();
	if (prb_target_recall(s->target, key, &recorded)) {
		frame->source = prb_str_take(&recorded);
		return frame->source ? NULL : prb_error_nomem();
	}
	PRB_TRY(find_file(s, frame->file, &file));
	if (!file->text)
		return NULL;
	frame->source = copy_lines(file, frame->line, last);
	if (frame->source)
		prb_target_remember(s->target, key, frame->source, strlen(frame->source));
	return NULL;
}

static struct prb_error *fill_all(struct sources *s, bool innermost)
{
	struct prb_dump_thread *thread;
	struct prb_dump_frame *frame;

	prb_vec_each (thread, &s->dump->threads) {
		prb_vec_each (frame, &thread->frames) {
			if (frame->kind != PRB_FRAME_PYTHON)
				continue;
			PRB_TRY(fill_frame(s, frame));
			if (innermost)
				break;
		}
	}
	return NULL;
}

struct prb_error *prb_source_fill(struct prb_target *target, const struct prb_pythons *pythons,
				  struct prb_dump *dump, bool innermost)
{
	struct sources s = {.target = target, .pythons = pythons, .dump = dump};
	struct file *file;

	if (target->local)
		s.started = start_time(target);
	prb_error_destroy(prb_target_read_link(target, &s.cwd, "cwd"));

	struct prb_error *err = fill_all(&s, innermost);
	prb_vec_each (file, &s.files)
		free(file->text);
	prb_vec_free(&s.files);
	prb_str_deinit(&s.cwd);
	return err;
}

/** With the interpreters of the target, which are found for it. */
static struct prb_error *find_cached(struct sources *s, struct file *file)
{
	struct prb_modules *modules = NULL;
	struct prb_pythons pythons = {};
	struct prb_view *view;

	PRB_TRY(prb_view_create(s->target->mem, &view));

	struct prb_error *err = prb_pythons_open(s->target, view, false, &modules, &pythons);

	s->pythons = &pythons;
	if (!err)
		err = load_cached(s, file);
	s->pythons = NULL;
	prb_pythons_deinit(&pythons);
	if (modules)
		prb_modules_destroy(modules);
	prb_view_destroy(view);
	return err;
}

struct prb_error *prb_source_read(struct prb_target *target, const char *path, struct prb_str *ret)
{
	struct prb_dump nothing = {};
	struct sources s = {.target = target, .dump = &nothing};
	struct file file = {.path = path};
	char **warning;

	prb_error_destroy(prb_target_read_link(target, &s.cwd, "cwd"));

	struct prb_error *err = load(&s, &file);
	if (!err && !file.text)
		err = find_cached(&s, &file);
	if (!err && file.text)
		prb_str_append(ret, file.text, file.size);
	free(file.text);
	prb_vec_each (warning, &nothing.warnings)
		free(*warning);
	prb_vec_free(&nothing.warnings);
	prb_str_deinit(&s.cwd);
	return !err && ret->failed ? prb_error_nomem() : err;
}
