/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The face of a target: calls its ops, and says which of them it has not. */
#include "target/target.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "target/proc/text.h"

const char *prb_target_kind_name(enum prb_target_kind kind)
{
	static const char *const names[] = {
		[PRB_TARGET_PROCESS] = "process",
		[PRB_TARGET_CORE] = "core file",
		[PRB_TARGET_SNAPSHOT] = "snapshot",
		[PRB_TARGET_RECORDED] = "recording",
		[PRB_TARGET_DEBUGGER] = "debugger's process",
	};

	return names[kind];
}

const char *prb_target_kind_key(enum prb_target_kind kind)
{
	static const char *const keys[] = {
		[PRB_TARGET_PROCESS] = "process",   [PRB_TARGET_CORE] = "core",
		[PRB_TARGET_SNAPSHOT] = "snapshot", [PRB_TARGET_RECORDED] = "recording",
		[PRB_TARGET_DEBUGGER] = "debugger",
	};

	return keys[kind];
}

static struct prb_error *unsupported(const struct prb_target *t, const char *what, const char *name)
{
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "a %s has no %s '%s'",
				prb_target_kind_name(t->kind), what, name);
}

typedef struct prb_error *text_op(struct prb_target *t, const char *name, struct prb_str *ret);

static struct prb_error *ask(struct prb_target *t, text_op *op, struct prb_str *ret,
			     const char *format, va_list args)
{
	prb_auto_str struct prb_str name = {};

	prb_str_vprintf(&name, format, args);
	if (name.failed)
		return prb_error_nomem();
	if (!op)
		return unsupported(t, "fact", prb_str_text(&name));

	struct prb_error *err = op(t, prb_str_text(&name), ret);
	if (!err && ret->failed)
		err = prb_error_nomem();
	return err;
}

struct prb_error *prb_target_read_file(struct prb_target *t, struct prb_str *ret, const char *name,
				       ...)
{
	va_list args;

	va_start(args, name);
	struct prb_error *err = ask(t, t->ops->read_file, ret, name, args);
	va_end(args);
	return err;
}

struct prb_error *prb_target_read_link(struct prb_target *t, struct prb_str *ret, const char *name,
				       ...)
{
	va_list args;

	va_start(args, name);
	struct prb_error *err = ask(t, t->ops->read_link, ret, name, args);
	va_end(args);
	return err;
}

struct prb_error *prb_target_list(struct prb_target *t, struct prb_str *ret, const char *name, ...)
{
	va_list args;

	va_start(args, name);
	struct prb_error *err = ask(t, t->ops->list, ret, name, args);
	va_end(args);
	return err;
}

struct prb_error *prb_target_open_fact(struct prb_target *t, int *ret_fd, const char *name, ...)
{
	prb_auto_str struct prb_str text = {};
	va_list args;

	va_start(args, name);
	prb_str_vprintf(&text, name, args);
	va_end(args);
	if (text.failed)
		return prb_error_nomem();
	if (!t->ops->open_fact)
		return unsupported(t, "fact", prb_str_text(&text));
	return t->ops->open_fact(t, prb_str_text(&text), ret_fd);
}

struct prb_error *prb_target_open_file(struct prb_target *t, const char *path, int *ret_fd)
{
	if (!t->ops->open_file)
		return unsupported(t, "file", path);
	return t->ops->open_file(t, path, ret_fd);
}

struct prb_error *prb_target_open_map(struct prb_target *t, const struct prb_map *map, int *ret_fd)
{
	if (!t->ops->open_map)
		return unsupported(t, "file behind the mapping", map->path);
	return t->ops->open_map(t, map, ret_fd);
}

struct prb_error *prb_target_registers(struct prb_target *t, pid_t tid, struct prb_regs *ret)
{
	if (!t->ops->registers)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"registers of thread %d cannot be read while it runs", tid);
	return t->ops->registers(t, tid, ret);
}

bool prb_target_recall(struct prb_target *t, const char *key, struct prb_str *ret)
{
	return t->ops->recall && t->ops->recall(t, key, ret);
}

void prb_target_remember(struct prb_target *t, const char *key, const void *value, size_t length)
{
	if (t->ops->remember)
		t->ops->remember(t, key, value, length);
}

void prb_target_note_registers(struct prb_target *t, pid_t tid, const struct prb_regs *regs)
{
	if (t->ops->note_registers)
		t->ops->note_registers(t, tid, regs);
}

void prb_target_note_pages(struct prb_target *t, pid_t tid, const struct prb_view *view)
{
	if (t->ops->note_pages)
		t->ops->note_pages(t, tid, view);
}

static struct prb_error *parse_anew(struct prb_target *t, struct prb_str *text,
				    struct prb_maps *ret)
{
	prb_str_truncate(text, 0);
	PRB_TRY(prb_target_read_file(t, text, "maps"));
	return prb_maps_parse(prb_str_text(text), ret);
}

static struct prb_error *read_maps(struct prb_target *t, struct prb_str *text, struct prb_maps *ret)
{
	enum { ATTEMPTS = 10 };
	struct prb_error *err = parse_anew(t, text, ret);

	/* The text comes in pieces, between which mappings grow together: pieces may overlap. */
	for (int attempt = 1;
	     attempt < ATTEMPTS && t->live && prb_error_catch(&err, PRB_ERROR_BAD_DATA); attempt++)
		err = parse_anew(t, text, ret);
	return err;
}

struct prb_error *prb_target_read_maps(struct prb_target *t, struct prb_maps *ret)
{
	prb_auto_str struct prb_str text = {};

	if (t->one_look && t->maps_text.length)
		return prb_maps_parse(prb_str_text(&t->maps_text), ret);
	return read_maps(t, &text, ret);
}

struct prb_error *prb_target_refresh_maps(struct prb_target *t)
{
	prb_auto_str struct prb_str text = {};
	struct prb_maps maps;

	PRB_TRY(read_maps(t, &text, &maps));
	prb_maps_deinit(&t->maps);
	prb_str_deinit(&t->maps_text);
	t->maps = maps;
	t->maps_text = text;
	text = (struct prb_str){};
	return NULL;
}

void prb_target_destroy(struct prb_target *t)
{
	if (!t)
		return;
	prb_maps_deinit(&t->maps);
	prb_str_deinit(&t->maps_text);
	prb_mem_destroy(t->mem);
	t->ops->destroy(t);
}

static struct prb_error *add_children(struct prb_target *t, pid_t tid, struct prb_pids *ret)
{
	prb_auto_str struct prb_str list = {};

	PRB_TRY(prb_target_read_file(t, &list, "task/%d/children", (int)tid));
	return prb_pids_parse(prb_str_text(&list), ret);
}

struct prb_error *prb_target_children(struct prb_target *t, unsigned most, struct prb_pids *ret,
				      bool *more)
{
	prb_auto_str struct prb_str tasks = {};
	prb_auto_pids struct prb_pids tids = {};

	PRB_TRY(prb_error_tolerate(prb_target_list(t, &tasks, "task"), NULL));
	PRB_TRY(prb_pids_parse(prb_str_text(&tasks), &tids));
	if (more)
		*more = tids.list.count > most;
	for (size_t i = 0; i < tids.list.count && i < most; i++)
		PRB_TRY(prb_error_tolerate(add_children(t, tids.list.items[i], ret), NULL));
	return NULL;
}

int prb_target_sees_our_pids(struct prb_target *t)
{
	prb_auto_str struct prb_str status = {};
	const char *pids;
	char *end;

	prb_error_destroy(prb_target_read_file(t, &status, "status"));
	pids = prb_text_field(prb_str_text(&status), "NSpid");
	if (!pids)
		return -1;
	return strtol(pids, &end, 10) == t->pid && *end == '\n';
}
