/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/facts.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/cgroup.h"
#include "target/proc/process.h"
#include "target/proc/text.h"

void prb_case_renew(struct prb_case *c)
{
	prb_str_deinit(&c->status);
	prb_str_deinit(&c->groups);
	prb_str_deinit(&c->mounts);
	c->status_read = c->groups_read = c->mounts_read = false;
}

bool prb_case_is_here(const struct prb_case *c)
{
	return c->target && c->target->live && c->target->local;
}

double prb_resident_bytes(struct prb_target *target)
{
	prb_auto_str struct prb_str text = {};
	unsigned long long pages;

	prb_error_destroy(prb_target_read_file(target, &text, "statm"));
	return sscanf(prb_str_text(&text), "%*u %llu", &pages) == 1
		       ? (double)pages * (double)sysconf(_SC_PAGESIZE)
		       : 0;
}

static const char *fact(struct prb_case *c, const char *name, bool *read, struct prb_str *text)
{
	if (!*read && c->target)
		prb_error_destroy(prb_target_read_file(c->target, text, "%s", name));
	*read = true;
	return prb_str_text(text);
}

int64_t prb_case_status(struct prb_case *c, const char *field)
{
	const char *value = prb_text_field(fact(c, "status", &c->status_read, &c->status), field);

	return value ? strtoll(value, NULL, 10) : -1;
}

/*
 * Neither Ctrl-C, nor what a thread itself does, nor those of the C library.
 */
bool prb_status_handles_signals(const char *status, bool children)
{
	static const int not_sent[] = {SIGINT,	SIGILL,	 SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
				       SIGSEGV, SIGPIPE, 32,	  33,	   34};
	const char *value = prb_text_field(status, "SigCgt");
	uint64_t caught = value ? strtoull(value, NULL, 16) : UINT64_MAX;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(not_sent); i++)
		caught &= ~(UINT64_C(1) << (not_sent[i] - 1));
	if (!children)
		caught &= ~(UINT64_C(1) << (SIGCHLD - 1));
	return caught;
}

bool prb_case_handles_signals(struct prb_case *c)
{
	return prb_status_handles_signals(fact(c, "status", &c->status_read, &c->status), true);
}

bool prb_case_handles_alarms(struct prb_case *c)
{
	static const int alarms[] = {SIGALRM, SIGVTALRM, SIGPROF};
	const char *value =
		prb_text_field(fact(c, "status", &c->status_read, &c->status), "SigCgt");
	uint64_t caught = value ? strtoull(value, NULL, 16) : 0;
	bool any = false;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(alarms); i++)
		any = any || caught & UINT64_C(1) << (alarms[i] - 1);
	return any;
}

int64_t prb_case_switches(const struct prb_case *c, pid_t tid)
{
	prb_auto_str struct prb_str text = {}, scheduled = {};
	const char *state, *own, *forced;
	long long runs;

	if (!c->target)
		return -1;
	/* Counted when the thread gets a processor. Read first, since the state may be older. */
	prb_error_destroy(
		prb_target_read_file(c->target, &scheduled, "task/%d/schedstat", (int)tid));
	prb_error_destroy(prb_target_read_file(c->target, &text, "task/%d/status", (int)tid));
	state = prb_text_field(prb_str_text(&text), "State");
	if (!state || *state != 'S')
		return state ? -2 : -1;
	if (sscanf(prb_str_text(&scheduled), "%*u %*u %lld", &runs) == 1 && runs > 0)
		return runs;
	own = prb_text_field(prb_str_text(&text), "voluntary_ctxt_switches");
	forced = prb_text_field(prb_str_text(&text), "nonvoluntary_ctxt_switches");
	return own && forced ? strtoll(own, NULL, 10) + strtoll(forced, NULL, 10) : -1;
}

static const char *groups(struct prb_case *c)
{
	return fact(c, "cgroup", &c->groups_read, &c->groups);
}

const struct prb_case_memory *prb_case_memory(struct prb_case *c)
{
	if (c->memory.read)
		return &c->memory;

	int64_t swap = prb_case_status(c, "VmSwap");

	c->memory = (struct prb_case_memory){true, -1, -1, swap < 0 ? -1 : swap * 1024};
	if (prb_case_is_here(c))
		prb_cgroup_memory(groups(c), &c->memory.limit, &c->memory.limit_used);
	return &c->memory;
}

bool prb_case_group(struct prb_case *c, const char *controller, const char *two, const char *one,
		    struct prb_str *ret)
{
	if (!prb_case_is_here(c))
		return false;
	if (!c->mounts_read)
		prb_cgroup_mounts(&c->mounts);
	c->mounts_read = true;
	return prb_cgroup_own_file(prb_str_text(&c->mounts), groups(c), controller, two, one, ret);
}

int64_t prb_group_number(const char *text, const char *name)
{
	size_t length = strlen(name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, length) && line[length] == ' ')
			return strtoll(line + length, NULL, 10);
	}
	return -1;
}

/* Threads of this machine that run or want to; 0: not known. */
static unsigned runnable(void)
{
	prb_auto_fclose FILE *file = fopen("/proc/loadavg", "re");
	unsigned count;

	/* "12.55 15.50 13.27 14/1177 4711" */
	return file && fscanf(file, "%*s %*s %*s %u/", &count) == 1 ? count : 0;
}

static unsigned processors(void)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	return count > 0 ? (unsigned)count : 1;
}

bool prb_machine_is_overloaded(void)
{
	enum { MANY = 3 }; /* for each processor */

	return runnable() >= MANY * processors();
}

void prb_machine_put_load(struct prb_str *s)
{
	unsigned count = processors();

	prb_str_printf(s, "the machine is overloaded: %u threads want its %u processor%s",
		       runnable(), count, count == 1 ? "" : "s");
}

bool prb_case_is_frozen(struct prb_case *c)
{
	struct prb_str text = {};
	bool frozen = prb_case_group(c, "freezer", "cgroup.events", "freezer.state", &text) &&
		      (prb_group_number(prb_str_text(&text), "frozen") == 1 ||
		       !strncmp(prb_str_text(&text), "FROZEN", strlen("FROZEN")));

	prb_str_deinit(&text);
	return frozen;
}

static bool is_zombie(pid_t pid)
{
	prb_auto_str struct prb_str line = {};
	struct prb_stat stat;

	return prb_proc_read(pid, "stat", &line) && prb_stat_parse(prb_str_text(&line), &stat) &&
	       stat.state == 'Z';
}

struct prb_error *prb_case_zombies(struct prb_case *c, struct prb_pids *ret)
{
	enum { MOST_THREADS = 256 };
	prb_auto_pids struct prb_pids children = {};
	const pid_t *child;

	if (!prb_case_is_here(c))
		return NULL;
	PRB_TRY(prb_target_children(c->target, MOST_THREADS, &children, NULL));
	prb_vec_each (child, &children.list) {
		pid_t *place;

		if (!is_zombie(*child))
			continue;
		place = prb_vec_push(&ret->list);
		if (!place)
			return prb_error_nomem();
		*place = *child;
	}
	return NULL;
}
