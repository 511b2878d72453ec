/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Crash records, shared by the handler (crash.c), the helper (record.c), and the helper's
 * parts: threads (threads.c), notes (notes.c), memory (memory.c) and the file (file.c). Internal to
 * agent/crash/.
 *
 * All of it lies in one mapping that is made when the handlers are installed: nothing is allocated
 * when the process crashes. Its pages take up no memory until then.
 */
#ifndef PRB_AGENT_CRASH_PRIVATE_H
#define PRB_AGENT_CRASH_PRIVATE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/procfs.h>

#include "agent/crash/crash.h"
#include "agent/crash/raw.h"

enum {
	PRBA_CRASH_PAGE = 4096,
	PRBA_CRASH_THREADS = 4096,
	PRBA_CRASH_MAPS = 1 << 16,
	PRBA_CRASH_MAPS_TEXT = 16 << 20,
	PRBA_CRASH_NOTES = 32 << 20,
	PRBA_CRASH_RUNS = 32000,
	PRBA_CRASH_PAGES = 1 << 18, /**< of 4 KiB: no record is larger than 1 GiB */
	PRBA_CRASH_STACK = 128 << 10,
	PRBA_CRASH_LINKS = 1024, /**< descriptors whose links are kept */
};

struct prba_crash_thread {
	int32_t tid;
	bool traced;	/**< stopped by us, to be resumed */
	bool registers; /**< `regs` are those of a stopped thread, else guessed */
	int32_t signal; /**< to be delivered when it is resumed */
	elf_gregset_t regs;
};

/** A line of maps. */
struct prba_crash_map {
	uint64_t start, end, offset;
	const char *path; /**< in the text, up to its line feed */
	uint32_t path_length;
	bool read, write, exec, shared;
	bool wanted; /**< its pages may be stored */
};

struct prba_crash_run {
	uint64_t start, length, offset; /**< offset in the file */
	uint32_t flags;			/**< PF_… */
};

struct prba_crash {
	/* How it works: set by prba_crash_start(). */
	uint64_t hold_ms, max_bytes, max_files;
	char folder[PRBA_CRASH_PATH];
	uint64_t python, own; /**< addresses in Python's library and in ours */

	/* The request: set by the thread that records. */
	int32_t signal; /**< 0: none */
	siginfo_t info;
	elf_gregset_t registers;
	int32_t pid, tid;
	int64_t seconds, microseconds; /**< since the epoch */
	int64_t deadline;  /**< of CLOCK_MONOTONIC in ns: memory that is left is left out */
	const char *words; /**< of an exception; or NULL */
	size_t words_length;
	bool traces;	/**< other threads are to be stopped */
	bool own_files; /**< the helper has descriptors of its own */

	/* Between the helper and that thread. */
	_Atomic uint32_t helper; /**< its pid; the kernel sets 0 when it ends */
	_Atomic uint32_t asks;	 /**< it may not trace us: Yama */
	_Atomic uint32_t answered;
	_Atomic uint32_t written; /**< the record is complete */

	/* The helper's. */
	int proc, file, directory; /**< descriptors */
	int32_t failed;		   /**< negative errno value of the first thing that failed */
	uint64_t at;		   /**< end of the file */
	uint64_t left_out;	   /**< bytes of memory that had no room or no time */
	unsigned unreached;	   /**< threads whose registers are unknown */
	char temporary[64], name[64], said[PRBA_CRASH_PATH + 256];
	size_t thread_count, map_count, run_count, page_count, maps_length;
	struct prba_crash_thread threads[PRBA_CRASH_THREADS];
	struct prba_crash_map maps[PRBA_CRASH_MAPS];
	struct prba_crash_run runs[PRBA_CRASH_RUNS];
	uint64_t pages[PRBA_CRASH_PAGES];
	uint32_t places[2 * PRBA_CRASH_PAGES]; /**< hash of pages: index + 1 */
	uint64_t scratch[PRBA_CRASH_PAGE / sizeof(uint64_t)];
	char maps_text[PRBA_CRASH_MAPS_TEXT];
	char notes[PRBA_CRASH_NOTES];
	char stack[PRBA_CRASH_STACK] __attribute__((aligned(64)));
};

/** Nanoseconds of CLOCK_MONOTONIC. */
int64_t prba_crash_clock(void);

/** The helper, or where there can be none the thread itself: writes the record. */
int prba_crash_write(void *crash);

/** Reads a file of /proc/PID into @p to; gives its length, 0 if it cannot be read. */
size_t prba_crash_read(struct prba_crash *c, const char *name, char *to, size_t size);

/** Stops all other threads and reads their registers. */
void prba_crash_stop_threads(struct prba_crash *c);
/** Lets them go. */
void prba_crash_release_threads(struct prba_crash *c);

/** Reads the memory map. False if it cannot be read. */
bool prba_crash_read_maps(struct prba_crash *c);
/** The mapping that has @p address, or NULL. */
const struct prba_crash_map *prba_crash_map_at(const struct prba_crash *c, uint64_t address);
/** Chooses the pages to be stored, in ascending order. */
void prba_crash_choose_pages(struct prba_crash *c);

/** Makes the notes; gives their length. */
size_t prba_crash_make_notes(struct prba_crash *c);

/** Opens the folder and a new file in it, after old records were removed. 0 or -errno. */
int prba_crash_open_file(struct prba_crash *c);
/** Writes notes, memory and headers. */
void prba_crash_fill_file(struct prba_crash *c, size_t notes);
/** Gives the file its name, or removes it. */
void prba_crash_close_file(struct prba_crash *c);

/** Makes the folder of records, or checks @p chosen; its path goes to @p ret. 0 or -errno. */
int prba_crash_find_folder(const char *chosen, char ret[PRBA_CRASH_PATH]);

/** Has the main thread give itself an alternate stack and hooks for exceptions. */
void prba_crash_prepare_main(void);
/** Has its hooks do nothing from now on. */
void prba_crash_leave_main(void);

#endif
