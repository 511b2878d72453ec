/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/task.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/text.h"

static bool parse_hex(const char **text, uint64_t *ret)
{
	char *end;

	if (strncmp(*text, " 0x", 3))
		return false;
	errno = 0;
	*ret = strtoull(*text + 1, &end, 16);
	*text = end;
	return !errno;
}

/* "running", "-1 SP PC", or "NUMBER ARGUMENTS SP PC"; anything else changes nothing. */
static void parse_syscall(const char *text, struct prb_task *task)
{
	struct prb_task parsed = *task;
	char *end;
	const char *rest;

	errno = 0;
	parsed.syscall = strtol(text, &end, 10);
	if (end == text || errno)
		return;
	rest = end;
	parsed.in_syscall = parsed.syscall >= 0;
	for (size_t i = 0; parsed.in_syscall && i < 6; i++) {
		if (!parse_hex(&rest, &parsed.args[i]))
			return;
	}
	if (parse_hex(&rest, &parsed.sp) && parse_hex(&rest, &parsed.pc))
		*task = parsed;
}

static void set_name(struct prb_task *task, const char *comm, size_t length)
{
	prb_auto_str struct prb_str raw = {}, name = {};

	prb_put_comm(&raw, comm, length);
	prb_text_escape_bytes(&name, prb_str_text(&raw), raw.length);
	snprintf(task->name, sizeof(task->name), "%s", prb_str_text(&name));
}

/*
 * The kernel of aarch64 shows no call of a thread that a debugger has stopped: it has set it back
 * to the instruction of the call, with all arguments.
 */
static struct prb_error *read_set_back(struct prb_target *t, struct prb_task *task)
{
	enum { INSTRUCTION = 4, NUMBER = 8 /* register */ };
	const uint32_t code_svc = 0xd4000001; /* svc #0 */
	struct prb_regs regs;
	uint64_t number;
	uint32_t code;

	if (!t->held || t->machine != EM_AARCH64 || task->in_syscall || !task->pc)
		return NULL;
	PRB_TRY(prb_mem_read_u32(t->mem, task->pc, &code));
	if (code != code_svc)
		return NULL;
	PRB_TRY(prb_target_registers(t, task->tid, &regs));
	task->in_syscall = prb_regs_get(&regs, NUMBER, &number);
	for (unsigned i = 0; i < PRB_ARRAY_SIZE(task->args); i++)
		task->in_syscall &= prb_regs_get(&regs, i, &task->args[i]);
	task->syscall = task->in_syscall ? (long)number : -1;
	task->pc += INSTRUCTION;
	return NULL;
}

struct prb_error *prb_task_read_call(struct prb_target *t, struct prb_task *task)
{
	prb_auto_str struct prb_str text = {};
	struct prb_error *err;

	if (strchr("RXZ", task->state))
		return NULL;
	err = prb_target_read_file(t, &text, "task/%d/syscall", task->tid);
	if (!err) {
		parse_syscall(prb_str_text(&text), task);
		err = read_set_back(t, task);
	}
	/* Not permitted, or gone by now: then less is filled in. */
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

struct prb_error *prb_task_read(struct prb_target *t, pid_t tid, struct prb_task *ret)
{
	prb_auto_str struct prb_str text = {};
	struct prb_stat stat;

	*ret = (struct prb_task){.tid = tid, .syscall = -1};

	struct prb_error *err = prb_target_read_file(t, &text, "task/%d/stat", tid);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND) ||
	    prb_error_catch(&err, PRB_ERROR_UNSUPPORTED)) {
		/* A core knows its threads but not what they did. */
		if (t->kind == PRB_TARGET_CORE || t->kind == PRB_TARGET_DEBUGGER)
			return NULL;
		return prb_error_create(PRB_ERROR_NO_PROCESS, "thread %d is gone", tid);
	}
	PRB_TRY(err);
	if (!prb_stat_parse(prb_str_text(&text), &stat))
		return prb_error_create(PRB_ERROR_BAD_DATA, "stat of thread %d is malformed", tid);
	ret->state = stat.state;
	set_name(ret, stat.comm, stat.comm_length);
	return prb_task_read_call(t, ret);
}

/* False if it is gone. */
static bool read_stat(struct prb_target *t, pid_t tid, struct prb_stat *ret)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(t, &text, "task/%d/stat", tid);

	return !err && prb_stat_parse(prb_str_text(&text), ret);
}

struct prb_error *prb_task_oldest_other(struct prb_target *t, pid_t *ret)
{
	prb_auto_str struct prb_str tids = {};
	uint64_t oldest = UINT64_MAX;
	struct prb_stat stat;

	*ret = 0;
	PRB_TRY(prb_target_list(t, &tids, "task"));
	for (const char *at = prb_str_text(&tids); *at;) {
		char *end;
		pid_t tid = (pid_t)strtol(at, &end, 10);

		at = *end ? end + 1 : end;
		if (tid == t->pid || !read_stat(t, tid, &stat) || stat.start_ticks >= oldest)
			continue;
		*ret = tid;
		oldest = stat.start_ticks;
	}
	return NULL;
}
