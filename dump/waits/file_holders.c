/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Finds the processes that have a file open. Only the links under each /proc/PID/fd show that, at
 * some twenty microseconds a process. Pipes are inherited, so the target's family is searched
 * first: its parent, its siblings of the nearest pids, and its children. If none of them has the
 * file, all processes are searched, the nearest pids first, until the time is up.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/text.h"
#include "base/vec.h"
#include "target/proc/text.h"
#include "dump/waits/wait_private.h"
#include "target/proc/pids.h"

enum {
	SCAN_MS = 20,	   /* of CPU time: a loaded machine does not hide the peers */
	SCAN_ALL_MS = 200, /* the same, where all are wanted */
	MAX_DESCRIPTORS = 1 << 20,
	MAX_LINK = 256, /* of the relevant ones: pipes, sockets, paths of fifos */
	MAX_CHILDREN = 512,
	MAX_SIBLINGS = 32,
};

struct open_file {
	uint64_t link; /* hash of it */
	pid_t pid;
	int fd;
};

struct prb_fd_peers {
	PRB_VEC(struct open_file) list; /* by hash, then pid */
	bool family, all;		/* processes whose links are in the list */
	bool cut;			/* time or room was up before all were read */
	bool unreadable;		/* a process may not be read, or is not in /proc */
};

/* Adds the links of a process; none if it is gone or not readable for us. */
static bool scan_process(struct prb_fd_peers *h, int proc, pid_t pid)
{
	char path[32], link[MAX_LINK];

	snprintf(path, sizeof(path), "%d/fd", pid);

	int fd = openat(proc, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		h->unreadable = h->unreadable || errno != ENOENT;
		return true;
	}
	prb_auto_closedir DIR *dir = fdopendir(fd);
	if (!dir) {
		/* fdopendir() calls stat on the folder, which is gone with the process. */
		bool gone = errno != ENOMEM;

		close(fd);
		return gone;
	}
	for (struct dirent *entry; (entry = readdir(dir));) {
		if (entry->d_name[0] < '0' || entry->d_name[0] > '9')
			continue;
		ssize_t n = readlinkat(fd, entry->d_name, link, sizeof(link));
		if (n <= 0 || n == sizeof(link))
			continue;
		if (h->list.count >= MAX_DESCRIPTORS) {
			h->cut = true;
			return true;
		}
		struct open_file *file = prb_vec_push(&h->list);
		if (!file)
			return false;
		*file = (struct open_file){
			.link = prb_hash_bytes(PRB_HASH_START, link, (size_t)n),
			.pid = pid,
			.fd = atoi(entry->d_name),
		};
	}
	return true;
}

static int compare_files(const void *a, const void *b)
{
	const struct open_file *x = a, *y = b;

	if (x->link != y->link)
		return x->link < y->link ? -1 : 1;
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->fd < y->fd ? -1 : x->fd > y->fd;
}

struct candidate {
	pid_t pid;
	unsigned distance; /* from the target's */
};

struct candidates {
	PRB_VEC(struct candidate) list;
};

static void candidates_deinit(struct candidates *candidates)
{
	prb_vec_free(&candidates->list);
}
#define auto_candidates __attribute__((cleanup(candidates_deinit)))

static int compare_candidates(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->distance != y->distance)
		return x->distance < y->distance ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static bool add_candidate(struct candidates *candidates, pid_t pid, pid_t target)
{
	struct candidate *candidate = prb_vec_push(&candidates->list);

	if (candidate)
		*candidate = (struct candidate){pid, (unsigned)abs(pid - target)};
	return candidate;
}

static bool add_children(struct candidates *candidates, pid_t pid, pid_t target)
{
	prb_auto_pids struct prb_pids pids = {};
	const pid_t *child;
	bool listed;
	struct prb_error *err = prb_pids_of_children(pid, pid, &pids, &listed);

	prb_error_destroy(err);
	prb_vec_each (child, &pids.list)
		if (candidates->list.count < MAX_CHILDREN &&
		    !add_candidate(candidates, *child, target))
			return false;
	return !err;
}

static void sort(struct candidates *candidates)
{
	if (candidates->list.count)
		qsort(candidates->list.items, candidates->list.count,
		      sizeof(*candidates->list.items), compare_candidates);
}

static bool add_family(struct prb_wait_context *c, struct candidates *candidates)
{
	auto_candidates struct candidates siblings = {};
	prb_auto_str struct prb_str line = {};
	pid_t target = c->target->pid;
	struct prb_stat stat;

	if (!add_candidate(candidates, target, target) || !add_children(candidates, target, target))
		return false;
	if (!prb_wait_ok(&line, prb_target_read_file(c->target, &line, "stat")) ||
	    !prb_stat_parse(prb_str_text(&line), &stat) || stat.ppid <= 0)
		return !line.failed;
	if (!add_candidate(candidates, stat.ppid, target))
		return false;
	/* The children of the first process are not a family. */
	if (stat.ppid != 1 && !add_children(&siblings, stat.ppid, target))
		return false;
	sort(&siblings);
	for (size_t i = 0; i < siblings.list.count && i < MAX_SIBLINGS; i++) {
		if (!add_candidate(candidates, siblings.list.items[i].pid, target))
			return false;
	}
	return true;
}

static bool add_all(struct candidates *candidates, pid_t target)
{
	prb_auto_pids struct prb_pids pids = {};
	prb_auto_error struct prb_error *err = prb_pids_of_all(&pids);
	const pid_t *pid;

	if (err)
		return true;
	prb_vec_each (pid, &pids.list)
		if (!add_candidate(candidates, *pid, target))
			return false;
	return true;
}

static bool scan(struct prb_fd_peers *h, struct candidates *candidates, unsigned ms)
{
	prb_auto_close int proc = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int64_t end = prb_clock_thread_ns() + (int64_t)ms * 1000000;
	const struct candidate *candidate;
	pid_t last = 0;

	h->list.count = 0;
	h->cut = false;
	h->unreadable = !prb_pids_are_all();
	sort(candidates);
	prb_vec_each (candidate, &candidates->list) {
		if (proc < 0 || prb_clock_thread_ns() > end) {
			h->cut = true;
			break;
		}
		if (candidate->pid != last && !scan_process(h, proc, candidate->pid))
			return false;
		last = candidate->pid;
	}
	if (h->list.count)
		qsort(h->list.items, h->list.count, sizeof(*h->list.items), compare_files);
	return true;
}

/* Checks that the descriptor still has that link; the mode of the link shows the access. */
static bool confirmed(const struct open_file *file, const char *link, enum prb_access access)
{
	char path[64], text[MAX_LINK];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", file->pid, file->fd);

	ssize_t n = readlink(path, text, sizeof(text));
	if (n <= 0 || n == sizeof(text) || (size_t)n != strlen(link) || memcmp(text, link, n))
		return false;
	if (access == PRB_HAS_OPEN)
		return true;
	return !lstat(path, &st) && st.st_mode & (access == PRB_CAN_READ ? S_IRUSR : S_IWUSR);
}

static const struct open_file *first_with(const struct prb_fd_peers *h, uint64_t link)
{
	size_t low = 0, high = h->list.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (h->list.items[middle].link < link)
			low = middle + 1;
		else
			high = middle;
	}
	return low < h->list.count ? &h->list.items[low] : NULL;
}

struct found {
	pid_t first; /* of the other processes */
	unsigned others;
	bool itself;
};

static void search(struct prb_wait_context *c, const struct prb_fd_peers *h, const char *link,
		   enum prb_access access, struct found *found)
{
	uint64_t key = prb_hash_bytes(PRB_HASH_START, link, strlen(link));
	const struct open_file *file = first_with(h, key);
	const struct open_file *end = file ? h->list.items + h->list.count : NULL;
	pid_t last = 0, target = c->target->pid;

	for (; file < end && file->link == key; file++) {
		if (file->pid == last || !confirmed(file, link, access))
			continue;
		last = file->pid;
		prb_enders_add(c, file->pid);
		if (file->pid == target) {
			found->itself = true;
			continue;
		}
		if (!found->others++)
			found->first = file->pid;
	}
}

/*
 * The process that made a socket has it, or its children do: then the family need not be searched.
 * The list is not cached, since it is about this socket only.
 */
static bool find_hinted(struct prb_wait_context *c, const char *link, enum prb_access access,
			pid_t hint, struct found *found)
{
	auto_candidates struct candidates few = {};
	struct prb_fd_peers h = {};
	pid_t target = c->target->pid;
	bool ok = add_candidate(&few, target, target) && add_candidate(&few, hint, target) &&
		  add_children(&few, target, target) && scan(&h, &few, SCAN_MS);

	if (ok)
		search(c, &h, link, access, found);
	prb_vec_free(&h.list);
	return ok;
}

static bool find(struct prb_wait_context *c, const char *link, enum prb_access access, pid_t hint,
		 struct found *found)
{
	auto_candidates struct candidates family = {}, all = {};
	pid_t target = c->target->pid;

	struct prb_fd_peers **place = c->search ? &c->search->holders : &c->holders;

	if (!*place)
		*place = calloc(1, sizeof(**place));

	struct prb_fd_peers *h = *place;
	if (!h || (hint && !c->search && !find_hinted(c, link, access, hint, found)))
		return false;
	if (found->others || found->itself)
		return true;
	if (!c->search && !h->family && !h->all) {
		h->family = true;
		if (!add_family(c, &family) || !scan(h, &family, SCAN_MS))
			return false;
	}
	if (!c->search || h->all)
		search(c, h, link, access, found);
	if (!h->all && !found->others && !found->itself) {
		h->all = true;
		if (!add_all(&all, target) || !scan(h, &all, c->search ? SCAN_ALL_MS : SCAN_MS))
			return false;
		search(c, h, link, access, found);
	}
	if (h->all && !h->cut)
		prb_enders_all(c, !h->unreadable);
	return true;
}

bool prb_note_holders(struct prb_wait_context *c, const char *link, enum prb_access access)
{
	struct found found = {};

	find(c, link, access, 0, &found);
	return found.others || found.itself;
}

void prb_describe_holders(struct prb_wait_context *c, const char *link, enum prb_access access,
			  pid_t hint, struct prb_str *s)
{
	struct found found = {};

	if (!find(c, link, access, hint, &found))
		s->failed = true;
	if (found.others)
		prb_describe_process(found.first, s);
	else if (found.itself)
		prb_str_puts(s, "itself");
	if (found.others > 1)
		prb_str_printf(s, " and %u more", found.others - 1);
}

void prb_fd_peers_destroy(struct prb_fd_peers *holders)
{
	if (!holders)
		return;
	prb_vec_free(&holders->list);
	free(holders);
}

void prb_describe_process(pid_t pid, struct prb_str *s)
{
	char path[32], comm[64];

	prb_str_printf(s, "%d", pid);
	snprintf(path, sizeof(path), "/proc/%d/comm", pid);
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, comm, sizeof(comm));
	if (n > 0 && comm[n - 1] == '\n')
		n--;
	if (n > 0) {
		prb_str_puts(s, " (");
		prb_text_escape_bytes(s, comm, (size_t)n);
		prb_str_puts(s, ")");
	}
}
