/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A thread asks again and again for a lock file: one that another process has locked, or one whose
 * being there is the lock, and which a process that was killed has left behind. It sleeps between,
 * so that several looks are needed.
 */
#include <linux/magic.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/inspect.h"
#include "judge/blamed.h"
#include "judge/chain.h"
#include "judge/facts.h"
#include "judge/peers.h"
#include "judge/threads.h"
#include "target/proc/openers.h"
#include "values/interpreters.h"

enum { PAUSE_NS = 250000000, LOOKS = 4, MOST_THREADS = 4 };

/* Where libraries ask for a lock file, and what its path is there. */
static const struct place {
	const char *file, *function, *path;
	bool made; /* it is locked while it is there; else the kernel knows the lock */
} places[] = {
	{"/torch/utils/file_baton.py", "wait", "self.lock_file_path", true},
	{"/filelock/_core/_acquire.py", "_poll_until_acquired", "lock_filename", false},
	{"/filelock/_api.py", "acquire", "lock_filename", false},
	{"/filelock/__init__.py", "acquire", "lock_filename", false},
	{"/filelock.py", "acquire", "lock_filename", false},
	{"/portalocker/utils.py", "acquire", "self.filename", false},
	{"/fasteners/process_lock.py", "acquire", "self.path", false},
};

/* A lock file as it was found. */
struct lock {
	const struct place *place;
	bool made; /* as in the place, or the class of the lock is such a one */
	struct prb_str path;
	int fd;
	struct stat file;
	struct prb_openers openers;
	pid_t holder; /* 0: nobody is seen */
};

static void lock_deinit(struct lock *lock)
{
	prb_str_deinit(&lock->path);
	prb_close_guard(&lock->fd);
	prb_openers_deinit(&lock->openers);
}
#define auto_lock __attribute__((cleanup(lock_deinit)))

static const struct place *place_of(const struct prb_dump_thread *thread)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++)
		if (prb_thread_frame(thread, places[i].function, places[i].file))
			return &places[i];
	return NULL;
}

struct text {
	uint64_t object;
	struct prb_str *ret;
};

static struct prb_error *read_text(void *context, const struct prb_inside *inside)
{
	const struct text *text = context;

	if (text->ret->length)
		return NULL;
	return prb_error_tolerate(
		prb_object_str(inside->py, inside->mem, text->object, PATH_MAX, text->ret), NULL);
}

/* The path is a str, or bytes whose repr() has them as they are. */
static struct prb_error *take_path(const struct prb_case *c, const struct prb_inspected *path,
				   struct prb_str *ret)
{
	struct text text = {.object = path->address, .ret = ret};
	const char *value = prb_str_text(&path->value);

	if (!strcmp(prb_str_text(&path->type), "str"))
		PRB_TRY(prb_inside_each(c->target, NULL, read_text, &text));
	else if (!strncmp(value, "b'/", 3) && !strchr(value, '\\') && prb_text_ends(value, "'"))
		prb_str_append(ret, value + 2, strlen(value) - 3);
	if (*prb_str_text(ret) != '/')
		ret->length = 0;
	return NULL;
}

/* Reads the path, which stays "" if it is none from the root on, and the class of the lock. */
static struct prb_error *read_path(const struct prb_case *c, pid_t tid, struct lock *lock)
{
	const struct prb_inspect_place place = {.tid = tid, .function = lock->place->function};
	const struct prb_repr_options options = {.max_text = PATH_MAX, .max_total = PATH_MAX};
	struct prb_inspected path = {}, self = {};
	struct prb_error *err = prb_inspect(c->target, &place, lock->place->path, &options, &path);

	if (!err)
		err = prb_inspect(c->target, &place, "self", &options, &self);
	if (!err)
		err = take_path(c, &path, &lock->path);
	lock->made = lock->place->made || strstr(prb_str_text(&self.type), "Soft");
	prb_inspected_deinit(&path);
	prb_inspected_deinit(&self);
	return prb_error_tolerate(err, NULL);
}

static void find_holder(struct lock *lock)
{
	const struct prb_opener *opener;

	prb_vec_each (opener, &lock->openers.list)
		if (!lock->holder && (lock->made || opener->locks))
			lock->holder = opener->pid;
}

/* *there: the file is, and, if the kernel has the lock, so is its holder. */
static struct prb_error *read_lock(const struct prb_case *c, const struct prb_dump_thread *thread,
				   struct lock *lock, bool *there)
{
	struct prb_error *err;
	bool failed = false;

	*there = false;
	lock->place = place_of(thread);
	if (!lock->place)
		return NULL;
	PRB_TRY(read_path(c, thread->tid, lock));
	if (!lock->path.length)
		return NULL;
	err = prb_target_open_file(c->target, prb_str_text(&lock->path), &lock->fd);
	PRB_TRY(prb_error_tolerate(err, &failed));
	if (failed || fstat(lock->fd, &lock->file))
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_openers_find(lock->fd, &lock->openers), &failed));
	find_holder(lock);
	*there = !failed && (lock->made || lock->holder);
	return NULL;
}

static bool is_same(const struct lock *a, const struct lock *b)
{
	return a->holder == b->holder && a->file.st_dev == b->file.st_dev &&
	       a->file.st_ino == b->file.st_ino;
}

/* What no other machine can have open. */
static bool is_on_this_machine(int fd)
{
	static const long kinds[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,	 BTRFS_SUPER_MAGIC,
				     TMPFS_MAGIC,      F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC};
	struct statfs fs;

	for (size_t i = 0; !fstatfs(fd, &fs) && i < PRB_ARRAY_SIZE(kinds); i++)
		if (fs.f_type == kinds[i])
			return true;
	return false;
}

/* Appends the way by which the holder waits for this process; nothing if it does not. */
static struct prb_error *put_circle(const struct prb_case *c, pid_t holder, struct prb_str *s)
{
	prb_auto_peers struct prb_peers peers = {};
	prb_auto_chain struct prb_chain chain = {};
	struct prb_peer_thread *step;
	size_t place;

	PRB_TRY(prb_peers_add(&peers, holder, &place));
	if (!peers.list.count || !peers.list.items[0].dump ||
	    !peers.list.items[0].dump->threads.count)
		return NULL;
	PRB_TRY(prb_chain_follow(&peers, holder, 0, &chain));
	prb_vec_each (step, &chain.list)
		if (peers.list.items[step->peer].pid == c->pid) {
			prb_chain_put(s, &peers, &chain);
			return NULL;
		}
	return NULL;
}

static void put_age(struct prb_str *s, const struct lock *lock)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	prb_text_duration(s, PRB_MAX((double)(now.tv_sec - lock->file.st_ctim.tv_sec), 0.0));
}

static void put_holder(struct prb_str *s, const struct prb_case *c, const struct lock *lock)
{
	const char *has = lock->made ? "has open" : "has locked";

	if (lock->holder == c->pid) {
		prb_str_printf(s, ", which this process %s itself", has);
	} else if (lock->holder) {
		prb_str_puts(s, ", which process ");
		prb_put_process(s, lock->holder);
		prb_str_printf(s, " %s", has);
	} else {
		prb_str_puts(s, ", which has been there for ");
		put_age(s, lock);
		prb_str_puts(s, " and which no process has open: it was left behind");
	}
}

static struct prb_error *put_evidence(struct prb_finding *f, const struct lock *lock)
{
	struct prb_str *line;

	PRB_TRY(prb_finding_line(f, 0, &line));
	prb_str_puts(line, "the file ");
	prb_text_escape(line, prb_str_text(&lock->path));
	prb_str_puts(line, ", changed ");
	put_age(line, lock);
	prb_str_printf(line, " ago, is open in %zu process%s", lock->openers.list.count,
		       lock->openers.list.count == 1 ? "" : "es");
	return NULL;
}

/* A program can name any file, and so any process that has it open. */
static enum prb_confidence confidence(const struct prb_case *c, const struct lock *lock)
{
	const bool sure = lock->holder ? prb_case_is_of_user(c, lock->holder)
				       : lock->place->made && lock->openers.all &&
						 is_on_this_machine(lock->fd);

	return sure ? PRB_CONFIDENCE_MEDIUM : PRB_CONFIDENCE_LOW;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct prb_dump_thread *thread, const struct lock *lock,
			      struct prb_findings *ret)
{
	prb_auto_str struct prb_str circle = {};
	struct prb_finding *f;
	struct prb_str *line;

	if (lock->holder && lock->holder != c->pid)
		PRB_TRY(put_circle(c, lock->holder, &circle));
	PRB_TRY(prb_finding_add(rule, ret, &f));
	f->confidence = confidence(c, lock);
	prb_str_puts(&f->brief,
		     lock->holder ? "waits for a lock file" : "a lock file is left over");
	prb_str_puts(&f->sentence, "thread ");
	prb_case_put_thread(&f->sentence, thread);
	prb_str_puts(&f->sentence, " waits for the lock file ");
	prb_text_escape(&f->sentence, prb_str_text(&lock->path));
	put_holder(&f->sentence, c, lock);
	if (circle.length)
		prb_str_printf(&f->sentence, ", and which waits for %d", (int)c->pid);
	prb_str_puts(&f->sentence, "; in ");
	prb_case_put_place(&f->sentence, thread);
	PRB_TRY(prb_finding_thread(f, c, thread));
	PRB_TRY(put_evidence(f, lock));
	if (circle.length) {
		PRB_TRY(prb_finding_line(f, 0, &line));
		prb_str_puts(line, prb_str_text(&circle));
	}
	if (lock->holder && lock->holder != c->pid)
		PRB_TRY(prb_finding_pid(f, lock->holder));
	prb_str_puts(&f->rests_on,
		     "several looks at the thread, the path in its lock, and the open "
		     "files of the processes that may be read");
	prb_str_puts(&f->wrong_if, lock->holder ? "the holder gives it back in a moment: look again"
						: "a process of another machine or container has "
						  "made it");
	if (lock->holder && lock->holder != c->pid)
		prb_str_printf(&f->next, "probing why %d", (int)lock->holder);
	else
		prb_case_put_command(&f->next, c, "dump --locals");
	return NULL;
}

/* *ret: at all looks the thread asks for a lock, in the dump at the end. */
static struct prb_error *still_asks(const struct prb_case *c, pid_t tid, struct prb_dump **dump,
				    bool *ret)
{
	const struct prb_dump_options options = {
		.tid = tid, .no_values = true, .no_modules = true, .no_command = true};

	*ret = true;
	for (unsigned n = 0; n < LOOKS && *ret; n++) {
		nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
		prb_dump_destroy(prb_steal(dump));
		PRB_TRY(prb_error_tolerate(prb_dump_create(c->target, &options, dump), NULL));
		*ret = *dump && (*dump)->threads.count && place_of((*dump)->threads.items);
	}
	return NULL;
}

static struct prb_error *judge(const struct prb_rule *rule, struct prb_case *c,
			       const struct prb_dump_thread *thread, struct prb_findings *ret)
{
	auto_lock struct lock before = {.fd = -1}, now = {.fd = -1};
	prb_auto_dump struct prb_dump *dump = NULL;
	bool there;

	PRB_TRY(read_lock(c, thread, &before, &there));
	if (there)
		PRB_TRY(still_asks(c, thread->tid, &dump, &there));
	if (there)
		PRB_TRY(read_lock(c, dump->threads.items, &now, &there));
	return there && is_same(&before, &now) ? tell(rule, c, dump->threads.items, &now, ret)
					       : NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	const struct prb_dump_thread *thread;
	const double began = prb_clock_seconds();
	const size_t before = ret->list.count;
	struct prb_error *err = NULL;
	unsigned count = 0;

	if (c->patience <= 0 || !prb_case_is_here(c))
		return NULL;
	prb_vec_each (thread, &c->dump->threads)
		if (!err && ret->list.count == before && place_of(thread) && count++ < MOST_THREADS)
			err = judge(rule, c, thread, ret);
	if (count)
		prb_case_spent(c, began);
	return err;
}

const struct prb_rule prb_rule_lock_file = {
	.rank = 34,
	.name = "lock_file",
	.kind = PRB_FINDING_LOCKS,
	.needs = PRB_RULE_THREADS | PRB_RULE_PROC,
	.waits = true,
	.proves = "a thread asks again and again for a lock file, which somebody holds or has left "
		  "behind",
	.find = find,
};
