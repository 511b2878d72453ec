/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A target that a debugger holds: its face. */
#include "target/debugger/debugger.h"

#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/file.h"
#include "target/mem/local_file.h"
#include "target/debugger/mem.h"
#include "target/debugger/filled_mem.h"
#include "target/architecture.h"

enum { FACT_MAX = 64 << 20 /* bytes */ };

struct held_target {
	struct prb_target target;
	struct prb_debugger debugger;
	struct prb_target *process; /* of this machine, or NULL; its memory is ours */
	struct prb_mem *told;	    /* what the debugger itself can read; part of target.mem */
};

static struct held_target *of(struct prb_target *t)
{
	return (struct held_target *)t;
}

static int put_fact(void *to, const char *text, size_t length)
{
	struct prb_str *s = to;

	if (length > FACT_MAX || s->length > FACT_MAX - length)
		return 1;
	prb_str_append(s, text, length);
	return s->failed;
}

static struct prb_error *ask_fact(struct prb_target *t, const char *name, struct prb_str *ret)
{
	const struct prb_debugger *d = &of(t)->debugger;
	prb_auto_str struct prb_str text = {};

	if (d->fact(d->context, name, put_fact, &text))
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the debugger does not provide '%s'",
					name);
	prb_str_append(ret, prb_str_text(&text), text.length);
	return text.failed ? prb_error_nomem() : NULL;
}

/* Files of this machine replace those of the process if they are the same build. */
static struct prb_error *open_local_map(struct prb_target *t, const struct prb_map *map,
					int *ret_fd)
{
	struct prb_local_file file = {
		.path = map->path, .mem = of(t)->told, .believed_until = t->time};

	if (!prb_local_file_base(&t->maps, map, &file.base))
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"where the file %s begins in memory is not known",
					map->path);
	return prb_local_file_open(&file, ret_fd);
}

static struct prb_error *open_for_memory(void *context, const struct prb_map *map, int *ret_fd)
{
	return open_local_map(context, map, ret_fd);
}

static struct prb_error *open_local_file(struct prb_target *t, const char *path, int *ret_fd)
{
	const struct prb_map *map;

	prb_vec_each (map, &t->maps.list)
		if (!strcmp(map->path, path))
			return open_local_map(t, map, ret_fd);
	return prb_file_open(-1, path, ret_fd);
}

static struct prb_error *ask_registers(struct prb_target *t, pid_t tid, struct prb_regs *ret)
{
	const struct prb_debugger *d = &of(t)->debugger;

	*ret = (struct prb_regs){.machine = t->machine};
	if (d->registers && !d->registers(d->context, tid, ret)) {
		ret->machine = t->machine;
		ret->known &= (1ULL << PRB_REG_COUNT) - 1;
		return NULL;
	}
	*ret = (struct prb_regs){.machine = t->machine};
	return prb_error_create(PRB_ERROR_NOT_FOUND,
				"the debugger does not provide the registers of thread %d", tid);
}

static void held_destroy(struct prb_target *t)
{
	prb_target_destroy(of(t)->process);
	free(t);
}

static const struct prb_target_ops debugger_ops = {
	.read_file = ask_fact,
	.read_link = ask_fact,
	.list = ask_fact,
	.open_file = open_local_file,
	.open_map = open_local_map,
	.registers = ask_registers,
	.destroy = held_destroy,
};

static struct prb_error *process_file(struct prb_target *t, const char *name, struct prb_str *ret)
{
	return of(t)->process->ops->read_file(of(t)->process, name, ret);
}

static struct prb_error *process_link(struct prb_target *t, const char *name, struct prb_str *ret)
{
	return of(t)->process->ops->read_link(of(t)->process, name, ret);
}

static struct prb_error *process_list(struct prb_target *t, const char *name, struct prb_str *ret)
{
	return of(t)->process->ops->list(of(t)->process, name, ret);
}

static struct prb_error *process_fact(struct prb_target *t, const char *name, int *ret_fd)
{
	return of(t)->process->ops->open_fact(of(t)->process, name, ret_fd);
}

static struct prb_error *process_path(struct prb_target *t, const char *path, int *ret_fd)
{
	return of(t)->process->ops->open_file(of(t)->process, path, ret_fd);
}

static struct prb_error *process_map(struct prb_target *t, const struct prb_map *map, int *ret_fd)
{
	return of(t)->process->ops->open_map(of(t)->process, map, ret_fd);
}

static const struct prb_target_ops process_ops = {
	.read_file = process_file,
	.read_link = process_link,
	.list = process_list,
	.open_fact = process_fact,
	.open_file = process_path,
	.open_map = process_map,
	.registers = ask_registers,
	.destroy = held_destroy,
};

static struct prb_error *open_process(struct held_target *h)
{
	struct prb_target *process;

	PRB_TRY(prb_target_open_process(h->debugger.pid, &process));
	h->process = process;
	h->target.ops = &process_ops;
	h->target.kind = PRB_TARGET_PROCESS;
	h->target.live = h->target.local = h->target.loadable = true;
	h->target.moves = !h->target.held;
	h->target.distant = false;
	h->target.machine = process->machine;
	h->target.mem = prb_steal(&process->mem);
	return prb_target_refresh_maps(&h->target);
}

static struct prb_error *open_by_functions(struct held_target *h)
{
	if (!prb_architecture_find(h->target.machine))
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the debugger holds a program for a machine that is "
					"neither x86_64 nor aarch64");
	PRB_TRY(prb_debugger_mem_create(&h->debugger, &h->target.maps, h->debugger.held, &h->told));
	h->target.mem = h->told;
	PRB_TRY(prb_filled_mem_create(h->told, &h->target.maps, open_for_memory, &h->target,
				      &h->target.mem));
	return prb_error_hint(
		prb_error_prefix(prb_target_refresh_maps(&h->target),
				 "the memory map of the process is not available"),
		"its stub does not report the memory map: run 'probing' on that machine");
}

struct prb_error *prb_target_open_debugger(const struct prb_debugger *debugger,
					   struct prb_target **ret)
{
	struct held_target *h = calloc(1, sizeof(*h));

	if (!h)
		return prb_error_nomem();
	h->debugger = *debugger;
	h->target = (struct prb_target){
		.ops = &debugger_ops,
		.kind = PRB_TARGET_DEBUGGER,
		.held = debugger->held,
		.distant = true,
		.pid = debugger->pid,
		.machine = debugger->machine,
		.time = prb_clock_calendar_seconds(),
	};

	struct prb_error *err = debugger->read ? open_by_functions(h) : open_process(h);
	if (err)
		prb_target_destroy(&h->target);
	else
		*ret = &h->target;
	return err;
}
