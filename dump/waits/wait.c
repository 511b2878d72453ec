/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Describes what a thread waits for; other files describe single system calls. */
#include "target/task.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"
#include "target/restarted_call.h"

struct prb_error *prb_wait_context_create(struct prb_target *t, struct prb_wait_context **ret)
{
	struct prb_wait_context *c = calloc(1, sizeof(*c));

	if (!c)
		return prb_error_nomem();
	c->target = t;
	c->pidfd = -1;
	*ret = c;
	return NULL;
}

void prb_wait_context_destroy(struct prb_wait_context *c)
{
	if (!c)
		return;
	prb_fd_peers_destroy(c->holders);
	prb_socket_tables_destroy(c->sockets);
	prb_shared_maps_destroy(c->maps);
	prb_wait_zeromq_destroy(c->zeromq);
	prb_search_destroy(c->own_search);
	prb_str_deinit(&c->root);
	prb_str_deinit(&c->named.words);
	if (c->pidfd >= 0)
		close(c->pidfd);
	free(c);
}

bool prb_wait_ok(struct prb_str *s, struct prb_error *err)
{
	if (!err)
		return true;
	if (err->code == PRB_ERROR_NOMEM)
		s->failed = true;
	prb_error_destroy(err);
	return false;
}

bool prb_is_called_by(struct prb_wait_context *c, const char *name, struct prb_str *s)
{
	enum { CALLERS = 24 }; /* words of the stack, among them the address that it returns to */
	uint64_t stack[CALLERS];

	if (!c->sp || !prb_wait_ok(s, prb_mem_read(c->mem, c->sp, stack, sizeof(stack))))
		return false;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(stack); i++) {
		const struct prb_map *map = prb_shared_map_at(c, stack[i]);
		const char *slash = map && map->exec ? strrchr(map->path, '/') : NULL;

		if (slash && !strncmp(slash + 1, name, strlen(name)))
			return true;
	}
	return false;
}

static bool read_memory(void *context, uint64_t address, void *buffer, size_t length)
{
	struct prb_error *err = prb_mem_read(context, address, buffer, length);

	prb_error_destroy(err);
	return !err;
}

static void describe_stop(struct prb_wait_context *c, const struct prb_task *task,
			  struct prb_str *s)
{
	prb_auto_str struct prb_str status = {};
	const char *tracer;

	if (task->state == 'T') {
		prb_str_puts(s, "a signal to continue");
		return;
	}
	prb_str_puts(s, "its debugger");
	if (!prb_wait_ok(s, prb_target_read_file(c->target, &status, "task/%d/status", task->tid)))
		return;
	tracer = prb_text_field(prb_str_text(&status), "TracerPid");
	if (!tracer || atoi(tracer) <= 0)
		return;
	prb_str_putc(s, ' ');
	prb_describe_process(atoi(tracer), s);
}

/* Appends the kernel function that a thread sleeps in, which names the hardware or server. */
static void put_kernel_function(struct prb_wait_context *c, pid_t tid, struct prb_str *s)
{
	prb_auto_str struct prb_str name = {};

	if (!prb_wait_ok(s, prb_target_read_file(c->target, &name, "task/%d/wchan", tid)) ||
	    !name.length || name.data[0] == '0')
		return;
	prb_str_puts(s, s->length ? " (kernel: " : "the kernel (");
	prb_text_escape_bytes(s, name.data, strcspn(name.data, "\n"));
	prb_str_putc(s, ')');
}

static void begin_enders(struct prb_wait_context *c, struct prb_enders *enders)
{
	*enders = (struct prb_enders){.certain = true, .endless = true};
	c->enders = enders;
	c->kind = NULL;
	c->objects = c->complete = c->instances = 0;
}

/* What waits for nothing that is known has enders that are not known, and no limit either. */
static void finish_enders(struct prb_wait_context *c)
{
	struct prb_enders *e = c->enders;

	c->enders = NULL;
	e->all = c->objects && c->objects == c->complete && e->count <= PRB_MOST_ENDERS;
	e->certain = e->certain && e->all;
	e->likely = c->objects > c->instances && c->objects == c->complete + c->instances &&
		    e->count <= PRB_MOST_ENDERS;
	e->count = PRB_MIN(e->count, (unsigned)PRB_MOST_ENDERS);
	if (!c->objects)
		*e = (struct prb_enders){
			.endless = e->endless, .outside = e->outside, .any_child = e->any_child};
}

/* Describes the system call of the thread and returns its number. */
static long describe(struct prb_wait_context *c, const struct prb_task *task, struct prb_wait *ret,
		     struct prb_str *s)
{
	long number = task->in_syscall ? task->syscall : -1;
	const char *name = prb_syscall_name(c->target->machine, number);

	if (name && !strcmp(name, "restart_syscall")) {
		long original = prb_restarted_call(c->target->machine, task->pc, task->sp,
						   read_memory, c->mem);

		if (original >= 0)
			number = original;
		else
			prb_str_puts(s, "a call that was interrupted");
		name = prb_syscall_name(c->target->machine, number);
	}
	if (name)
		prb_describe_call(c, name, task, ret, s);
	if (task->state == 'D')
		put_kernel_function(c, task->tid, s);
	return number;
}

/* A core has the memory that a futex is described from, and not the processes of other calls. */
static long describe_in_core(struct prb_wait_context *c, const struct prb_task *task,
			     struct prb_wait *ret, struct prb_str *s)
{
	const char *name = prb_syscall_name(c->target->machine, task->syscall);

	if (!task->in_syscall || !name || strncmp(name, "futex", strlen("futex")) != 0)
		return -1;
	begin_enders(c, &ret->enders);
	prb_describe_call(c, name, task, ret, s);
	finish_enders(c);
	return task->syscall;
}

/*
 * A description needs memory and other processes that a snapshot lacks, so the snapshot stores the
 * description itself: "CALL FUTEX OWNER ASKED LEFT WORDS". CALL is the number of the call that the
 * program made, which may differ from the call that the kernel restarted.
 */
static void remember(struct prb_wait_context *c, const char *key, long number,
		     const struct prb_wait *wait)
{
	prb_auto_str struct prb_str s = {};

	prb_str_printf(&s, "%ld %#llx %d %.9g %.9g %s", number, (unsigned long long)wait->futex,
		       wait->owner, wait->asked, wait->left, wait->what ? wait->what : "");
	if (!s.failed)
		prb_target_remember(c->target, key, prb_str_text(&s), s.length);
}

static void recall(struct prb_wait_context *c, const char *key, long *number, struct prb_wait *ret,
		   struct prb_str *s)
{
	prb_auto_str struct prb_str known = {};
	unsigned long long futex;
	long call;
	int owner, words = 0;
	double asked, left;

	if (!prb_target_recall(c->target, key, &known) ||
	    sscanf(prb_str_text(&known), "%ld %llx %d %lf %lf%n", &call, &futex, &owner, &asked,
		   &left, &words) != 5 ||
	    known.data[words] != ' ')
		return;
	*number = call;
	ret->futex = futex;
	ret->owner = owner;
	if (owner)
		ret->enders = (struct prb_enders){.kind = "lock", .tid = owner, .alone = true};
	ret->asked = asked;
	ret->left = left;
	prb_str_puts(s, known.data + words + 1);
}

struct prb_error *prb_wait_describe(struct prb_wait_context *c, struct prb_mem *mem,
				    const struct prb_task *task, struct prb_wait *ret)
{
	prb_auto_str struct prb_str s = {};
	bool local = c->target->local;
	/* A user in a debugger knows that the thread is stopped, and wants to know where. */
	bool held = c->target->held && task->state == 't';
	bool stopped = task->state == 'T' || (task->state == 't' && !held);
	long number = -1;
	char key[32];

	*ret = (struct prb_wait){.asked = -1, .left = -1};
	if (held && !task->in_syscall)
		return NULL;
	if (!stopped && !held && task->state != 'S' && task->state != 'D')
		return NULL;

	snprintf(key, sizeof(key), "task-wait:%d", task->tid);
	c->mem = mem;
	c->state = task->state;
	c->sp = task->sp;
	if (c->target->distant)
		number = task->syscall; /* a remote description would take several requests */
	else if (c->target->partial)
		number = describe_in_core(c, task, ret, &s);
	else if (!local)
		recall(c, key, &number, ret, &s);
	else if (stopped)
		describe_stop(c, task, &s);
	else {
		begin_enders(c, &ret->enders);
		number = describe(c, task, ret, &s);
		finish_enders(c);
	}
	ret->call = prb_syscall_name(c->target->machine, number);

	if (s.failed)
		return prb_error_nomem();
	if (s.length && !(ret->what = prb_str_take(&s)))
		return prb_error_nomem();
	if (local)
		remember(c, key, number, ret);
	return NULL;
}

struct prb_error *prb_wait_peers(struct prb_wait_context *c, int fd, struct prb_enders *ret)
{
	prb_auto_str struct prb_str words = {};
	unsigned others = 0;

	*ret = (struct prb_enders){};
	if (!c->target->local)
		return NULL;
	c->mem = c->target->mem;
	c->state = 'S';
	begin_enders(c, ret);
	prb_describe_fd(c, fd, PRB_EITHER_WAY, &words);
	finish_enders(c);
	/* Its own threads can always close the descriptor. */
	for (unsigned i = 0; i < ret->count; i++)
		if (ret->pids[i] != c->target->pid)
			ret->pids[others++] = ret->pids[i];
	ret->count = others;
	return words.failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_task_wait(struct prb_target *t, const struct prb_task *task,
				struct prb_wait *ret)
{
	struct prb_wait_context *c;

	*ret = (struct prb_wait){.asked = -1, .left = -1};
	PRB_TRY(prb_wait_context_create(t, &c));

	struct prb_error *err = prb_wait_describe(c, t->mem, task, ret);
	prb_wait_context_destroy(c);
	return err;
}

struct prb_error *prb_wait_words(const struct prb_wait *wait, char **ret)
{
	*ret = NULL;
	if (!wait->call && !wait->what)
		return NULL;
	*ret = wait->call && wait->what ? prb_format("%s: %s", wait->call, wait->what)
					: strdup(wait->call ? wait->call : wait->what);
	return *ret ? NULL : prb_error_nomem();
}

void prb_wait_deinit(struct prb_wait *wait)
{
	free(wait->what);
	wait->what = NULL;
}
