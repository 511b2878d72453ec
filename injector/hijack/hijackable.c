/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/hijack/hijackable.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/task.h"

enum { CODE_MAX = 8 /* bytes of an instruction that enters the kernel */ };

struct search {
	struct prb_target *t;
	struct prb_modules *modules;
	struct prb_unwinder *unwinder;
	struct prb_libc libc;
	struct prb_safe_point safe;
};

static void search_deinit(struct search *s)
{
	if (s->unwinder)
		prb_unwinder_destroy(s->unwinder);
	prb_libc_deinit(&s->libc);
	prb_modules_destroy(s->modules);
}
#define prb_auto_search __attribute__((cleanup(search_deinit)))

static struct prb_error *begin(struct prb_target *t, struct search *ret)
{
	const struct prb_machine *machine = prb_machine(t->machine);

	ret->t = t;
	if (!machine)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"nothing is known of this processor's calls of functions");
	PRB_TRY(prb_modules_create(t, &ret->modules));
	PRB_TRY(prb_libc_find(ret->modules, PRB_HIJACK_CALL, &ret->libc));
	PRB_TRY(prb_unwinder_create(ret->modules, &ret->unwinder));
	ret->safe = (struct prb_safe_point){ret->modules, ret->unwinder, &ret->libc, machine};
	return NULL;
}

/* Is the instruction that enters the kernel at this address? */
static bool enters(const struct search *s, uint64_t address)
{
	const struct prb_machine *machine = s->safe.machine;
	uint8_t code[CODE_MAX];
	struct prb_error *err = prb_mem_read(s->t->mem, address, code, machine->enter_length);
	bool same = !err && !memcmp(code, machine->enter_code, machine->enter_length);

	prb_error_destroy(err);
	return same;
}

/* Results of an interrupted call: EINTR, and the codes after which the kernel restarts it. */
static bool is_interrupted(uint64_t result)
{
	static const int numbers[] = {4, 512, 513, 514, 516};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(numbers); i++)
		if (result == (uint64_t) - (int64_t)numbers[i])
			return true;
	return false;
}

/*
 * Without /proc the code shows whether the thread is in the kernel. musl's allocator, a leaf, has
 * returned from its call unless the result is that of an interrupted one.
 */
static bool is_behind_call(const struct search *s, const struct prb_regs *regs)
{
	const struct prb_machine *machine = s->safe.machine;
	uint64_t result;

	if (!enters(s, regs->pc - machine->enter_length) &&
	    !(machine->sets_back && enters(s, regs->pc)))
		return false;
	return !s->libc.musl || machine->sets_back ||
	       !prb_regs_get(regs, machine->result, &result) || is_interrupted(result);
}

/* Calls of musl's allocator, which end by themselves. */
static bool ends_soon(uint16_t machine, long number)
{
	static const char *const names[] = {"mmap",    "munmap",   "mremap",
					    "madvise", "mprotect", "brk"};
	const char *name = prb_syscall_name(machine, number);

	for (size_t i = 0; name && i < PRB_ARRAY_SIZE(names); i++)
		if (!strcmp(name, names[i]))
			return true;
	return false;
}

static struct prb_error *find_place(struct search *s, pid_t tid, struct prb_place *ret)
{
	/* The debugger has stopped it, so only its call has to be asked for. */
	struct prb_task task = {.tid = tid, .state = 't', .syscall = -1};

	PRB_TRY(prb_target_registers(s->t, tid, &ret->regs));
	PRB_TRY(prb_task_read_call(s->t, &task));
	ret->call = task.in_syscall ? task.syscall : -1;
	ret->in_call = task.in_syscall || is_behind_call(s, &ret->regs);
	ret->thread_pointer = ret->regs.thread_pointer;
	memcpy(ret->arguments, task.args, sizeof(ret->arguments));
	if (s->libc.musl && ends_soon(s->t->machine, ret->call)) {
		ret->in_call = false;
		ret->call = -1;
	}
	return NULL;
}

static struct prb_error *judge(struct search *s, pid_t tid, struct prb_verdict *ret)
{
	struct prb_place place = {};
	struct prb_error *err = find_place(s, tid, &place);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) {
		*ret = (struct prb_verdict){.why = "without known registers"};
		return NULL;
	}
	PRB_TRY(err);
	return prb_safe_point_judge(&s->safe, tid, &place, ret);
}

static struct prb_error *check_target(const struct prb_target *t)
{
	if (t->held && t->ops->registers)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "threads are judged only where a debugger keeps all of them "
				 "stopped"),
		"'probing inject' finds one of a running process by itself");
}

struct prb_error *prb_hijackable(struct prb_target *t, prb_hijackable_handler *handler,
				 void *context)
{
	prb_auto_search struct search s = {};
	prb_auto_str struct prb_str tids = {};
	struct prb_verdict verdict;

	PRB_TRY(check_target(t));
	PRB_TRY(begin(t, &s));
	PRB_TRY(prb_target_list(t, &tids, "task"));
	for (const char *at = prb_str_text(&tids); *at;) {
		char *end;
		long tid = strtol(at, &end, 10);

		PRB_TRY(judge(&s, (pid_t)tid, &verdict));
		if (handler(context, (pid_t)tid, &verdict))
			break;
		at = *end ? end + 1 : end;
	}
	return NULL;
}

struct prb_error *prb_left_breakpoints(struct prb_target *t, prb_trap_handler *handler,
				       void *context)
{
	prb_auto_search struct search s = {};

	PRB_TRY(begin(t, &s));
	return prb_loader_breakpoints_find(s.modules, s.safe.machine, &s.libc, handler, context);
}
