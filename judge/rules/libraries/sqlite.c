/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread waits for a database of SQLite that another connection has locked. It sleeps for a
 * moment again and again, so that several looks are needed.
 */
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dump/dump.h"
#include "judge/facts.h"
#include "judge/threads.h"

enum { PAUSE_NS = 60000000, LOOKS = 5, ENOUGH = 3, MOST_THREADS = 4 };

/* Our words end there; what follows is the target's. */
static const char WORDS[] = ", for a lock of SQLite on ";

static bool waits(const struct prb_dump_thread *thread)
{
	const struct prb_enders *enders = &thread->enders;

	return enders->kind && !strcmp(enders->kind, "file lock") && !enders->endless &&
	       enders->count && strstr(thread->waits_for, WORDS);
}

/* Looks at the thread again; *ret: as it waits, in the dump, or NULL. */
static struct prb_error *look(const struct prb_case *c, pid_t tid, struct prb_dump_found *found,
			      struct prb_dump **dump, const struct prb_dump_thread **ret)
{
	const struct prb_dump_options options = {
		.tid = tid, .no_values = true, .no_modules = true, .no_command = true};
	struct prb_error *err;

	*ret = NULL;
	prb_dump_destroy(prb_steal(dump));
	err = prb_dump_create_with(c->target, &options, found, dump);
	PRB_TRY(prb_error_tolerate(err, NULL));
	if (*dump && (*dump)->threads.count && waits((*dump)->threads.items))
		*ret = (*dump)->threads.items;
	return NULL;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct prb_dump_thread *thread, struct prb_findings *ret)
{
	pid_t holder = thread->enders.pids[0];
	struct prb_finding *f;

	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = PRB_CONFIDENCE_MEDIUM;
	prb_str_puts(&f->brief, "waits for a database of SQLite");
	prb_str_puts(&f->sentence, "thread ");
	prb_case_put_thread(&f->sentence, thread);
	prb_str_puts(&f->sentence, " waits for a database of SQLite that ");
	if (holder == c->pid)
		prb_str_puts(&f->sentence, "another connection of this process");
	else
		prb_str_printf(&f->sentence, "process %d", (int)holder);
	prb_str_puts(&f->sentence, " has locked, in ");
	if (!prb_case_put_place(&f->sentence, thread))
		prb_str_puts(&f->sentence, "native code");
	PRB_TRY(prb_finding_thread(f, c, thread));
	if (holder != c->pid)
		PRB_TRY(prb_finding_pid(f, holder));
	prb_str_puts(&f->rests_on,
		     "three looks at the thread, and the kernel's list of file locks");
	prb_str_puts(&f->wrong_if, "the holder commits in a moment: look again");
	if (holder == c->pid)
		prb_case_put_command(&f->next, c, "dump --locals");
	else
		prb_str_printf(&f->next, "probing why %d", (int)holder);
	return NULL;
}

/* Between its sleeps it runs: of several looks most see it wait, and always for the same. */
static struct prb_error *judge(const struct prb_rule *rule, struct prb_case *c, pid_t tid,
			       struct prb_dump_found *found, struct prb_findings *ret)
{
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_thread *thread;
	unsigned seen = 0;
	pid_t holder = 0;

	for (unsigned n = 0; n < LOOKS; n++) {
		PRB_TRY(look(c, tid, found, &dump, &thread));
		if (thread && holder && holder != thread->enders.pids[0])
			return NULL;
		if (thread) {
			holder = thread->enders.pids[0];
			if (++seen == ENOUGH)
				return tell(rule, c, thread, ret);
		}
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
	}
	return NULL;
}

static bool has_sqlite(const struct prb_target *t)
{
	const struct prb_map *map;

	prb_vec_each (map, &t->maps.list)
		if (map->exec && strstr(map->path, "sqlite3"))
			return true;
	return false;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	struct prb_dump_found found = {};
	const struct prb_dump_thread *thread;
	struct prb_error *err = NULL;
	const double began = prb_clock_seconds();
	size_t before = ret->list.count;
	unsigned count = 0;

	if (c->patience <= 0 || !prb_case_is_here(c) || !has_sqlite(c->target))
		return NULL;
	prb_vec_each (thread, &c->dump->threads)
		if (!err && ret->list.count == before &&
		    (waits(thread) || prb_thread_is(thread, "running")) && count++ < MOST_THREADS)
			err = judge(rule, c, thread->tid, prb_case_found(c, &found), ret);
	prb_dump_found_deinit(&found);
	prb_case_spent(c, began);
	return err;
}

const struct prb_rule prb_rule_sqlite = {
	.rank = 31,
	.name = "sqlite",
	.kind = PRB_FINDING_LOCKS,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.waits = true,
	.proves = "a thread waits for a database of SQLite that is locked",
	.find = find,
};
