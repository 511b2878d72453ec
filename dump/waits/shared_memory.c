/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Futexes in memory that processes share: semaphores of multiprocessing, process-shared mutexes.
 * Only the maps of each process show who else has that memory, at some fifty microseconds a
 * process, so they are read only where all who can end a wait are asked for.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "dump/waits/wait_private.h"
#include "target/mem/maps.h"
#include "target/proc/pids.h"

enum {
	SCAN_MS = 200, /* of CPU time */
	MOST_LINES = 20000,
};

static const char SEMAPHORE[] = "/dev/shm/sem.";

void prb_shared_maps_destroy(struct prb_maps *maps)
{
	if (!maps)
		return;
	prb_maps_deinit(maps);
	free(maps);
}

const struct prb_map *prb_shared_map_at(struct prb_wait_context *c, uint64_t address)
{
	if (!c->maps) {
		c->maps = calloc(1, sizeof(*c->maps));
		if (!c->maps)
			return NULL;
		prb_error_destroy(prb_target_read_maps(c->target, c->maps));
	}
	return prb_maps_find(c->maps, address);
}

static struct prb_shared_word word_in(const struct prb_map *map, uint64_t address)
{
	return (struct prb_shared_word){
		.major = map->major,
		.minor = map->minor,
		.inode = map->inode,
		.offset = map->offset + (address - map->start),
	};
}

bool prb_shared_word_find(struct prb_wait_context *c, uint64_t address, struct prb_shared_word *ret)
{
	const struct prb_map *map = prb_shared_map_at(c, address);

	*ret = (struct prb_shared_word){};
	if (!map || !map->shared || !map->inode)
		return false;
	*ret = word_in(map, address);
	return true;
}

/* True if a line of the maps is shared, and of the same file and the page of the word. */
static bool line_has(const struct prb_map *line, const struct prb_shared_word *word)
{
	return line->inode == word->inode && line->major == word->major &&
	       line->minor == word->minor && line->offset <= word->offset &&
	       word->offset - line->offset < line->end - line->start;
}

static bool parse_line(const char *line, struct prb_map *ret)
{
	unsigned long long start, end, offset, inode;
	unsigned major, minor;
	char shared;

	if (sscanf(line, "%llx-%llx %*c%*c%*c%c %llx %x:%x %llu", &start, &end, &shared, &offset,
		   &major, &minor, &inode) != 7 ||
	    shared != 's')
		return false;
	*ret = (struct prb_map){.start = start,
				.end = end,
				.offset = offset,
				.major = major,
				.minor = minor,
				.inode = inode};
	return true;
}

/* Calls @p see for each shared mapping of a process, until it is false. *unknown is set if not all
 * is known about the process. */
static void each_shared(pid_t pid, bool (*see)(void *context, const struct prb_map *map),
			void *context, bool *unknown)
{
	char path[32], line[512];
	struct prb_map map;
	unsigned lines = 0;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);

	prb_auto_fclose FILE *file = fopen(path, "re");
	if (!file) {
		/* It is gone, or the kernel's. */
		*unknown = *unknown || (errno != ENOENT && errno != ESRCH);
		return;
	}
	while (fgets(line, sizeof(line), file)) {
		/* The rest of a long path is no line. */
		if (!strchr(line, '\n'))
			(void)!fscanf(file, "%*[^\n]");
		if (parse_line(line, &map) && !see(context, &map))
			return;
		if (++lines < MOST_LINES)
			continue;
		*unknown = true;
		return;
	}
	*unknown = *unknown || (ferror(file) && errno != ESRCH);
}

struct sharing {
	struct prb_sharers *list;
	size_t count;
	pid_t pid;
	size_t left; /* words that the process is not known to have */
	bool failed;
};

static bool see_any(void *context, const struct prb_map *map)
{
	struct sharing *sharing = context;

	for (size_t i = 0; i < sharing->count; i++) {
		struct prb_sharers *sharers = &sharing->list[i];
		size_t count = sharers->pids.list.count;
		pid_t *slot;

		if (!line_has(map, &sharers->word) ||
		    (count && sharers->pids.list.items[count - 1] == sharing->pid))
			continue;
		slot = prb_vec_push(&sharers->pids.list);
		sharing->failed = sharing->failed || !slot;
		if (slot)
			*slot = sharing->pid;
		sharing->left--;
	}
	return !sharing->failed && sharing->left;
}

/* Finds them for all of the list; *cut: time was up before all processes were read. */
static struct prb_error *scan(struct prb_sharers *list, size_t count, bool *unknown, bool *cut)
{
	prb_auto_pids struct prb_pids pids = {};
	int64_t end = prb_clock_thread_ns() + SCAN_MS * 1000000;
	struct sharing sharing = {.list = list, .count = count};
	const pid_t *pid;

	*unknown = !prb_pids_are_all();
	*cut = false;
	PRB_TRY(prb_pids_of_all(&pids));
	prb_vec_each (pid, &pids.list) {
		*cut = prb_clock_thread_ns() > end;
		if (*cut)
			return NULL;
		sharing.pid = *pid;
		sharing.left = count;
		each_shared(*pid, see_any, &sharing, unknown);
		if (sharing.failed)
			return prb_error_nomem();
	}
	return NULL;
}

struct prb_error *prb_sharers_find(struct prb_sharers *list, size_t count, bool *all)
{
	bool unknown, cut;

	*all = false;
	if (!count)
		return NULL;
	PRB_TRY(scan(list, count, &unknown, &cut));
	*all = !unknown && !cut;
	return NULL;
}

/* Each word is searched once: hundreds of a pool wait for the same one. NULL: no memory. */
static const struct prb_known_sharers *find_sharers(struct prb_search *search,
						    const struct prb_shared_word *word,
						    struct prb_str *s)
{
	struct prb_known_sharers *known;

	prb_vec_each (known, &search->sharers)
		if (prb_shared_word_same(&known->found.word, word))
			return known;
	known = prb_vec_push(&search->sharers);
	if (!known) {
		s->failed = true;
		return NULL;
	}
	*known = (struct prb_known_sharers){.found = {.word = *word}};
	if (!prb_wait_ok(s, scan(&known->found, 1, &known->unknown, &known->cut)))
		known->unknown = true;
	return known;
}

static bool is_semaphore(const struct prb_map *map)
{
	return !strncmp(map->path, SEMAPHORE, strlen(SEMAPHORE));
}

/*
 * True if the semaphore has a name, by which anybody may open and post it; multiprocessing removes
 * its names at once. The maps of its creator show a name of glibc's that is gone in either case.
 */
static bool has_name(const struct prb_wait_context *c, const struct prb_map *map)
{
	char path[64];
	const struct dirent *entry;

	if (!c->target->live || !c->target->local)
		return !map->deleted;
	snprintf(path, sizeof(path), "/proc/%d/root/dev/shm", (int)c->target->pid);

	prb_auto_closedir DIR *folder = opendir(path);
	for (unsigned n = 0; folder && n < MOST_LINES && (entry = readdir(folder)); n++)
		if (entry->d_ino == map->inode && !strncmp(entry->d_name, "sem.", strlen("sem.")))
			return true;
	return !map->deleted;
}

static void note_sharers(struct prb_wait_context *c, const struct prb_map *map,
			 const struct prb_shared_word *word, struct prb_str *s)
{
	const struct prb_known_sharers *known = find_sharers(c->search, word, s);
	const pid_t *pid;

	if (!known)
		return;
	prb_vec_each (pid, &known->found.pids.list)
		prb_enders_add(c, *pid);
	/* Whoever has the file open can map it later. */
	if (!known->cut && !c->enders->outside)
		prb_enders_all(c, !known->unknown && is_semaphore(map));
}

bool prb_describe_shared_futex(struct prb_wait_context *c, uint64_t address, struct prb_str *s)
{
	const struct prb_map *map = c->enders ? prb_shared_map_at(c, address) : NULL;
	bool semaphore;

	if (!map)
		return false;
	if (!map->shared) {
		if (!map->inode) /* nobody else has that memory */
			prb_enders_thread(c, "lock", 0, false);
		return false;
	}
	if (!map->inode)
		return false;
	semaphore = is_semaphore(map);
	prb_enders_object(c, semaphore ? "semaphore" : "shared memory");
	c->enders->word = word_in(map, address);
	if (semaphore && has_name(c, map))
		prb_enders_outside(c);
	if (c->search)
		note_sharers(c, map, &c->enders->word, s);
	prb_str_puts(s, semaphore ? "a semaphore of several processes"
				  : "a lock or condition of several processes");
	return true;
}
