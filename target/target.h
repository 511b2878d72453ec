/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A target: the process, core file or snapshot that is being read.
 *
 * Besides memory a dump needs facts that lie outside of it: the texts of /proc, links of
 * descriptors, registers, names of functions found in debug files. A target answers for all of
 * them, whichever kind it is; each kind says what it cannot do (PRB_ERROR_UNSUPPORTED). A recorder
 * may wrap it (target/snapshot/snapshot.h): then what passes through its ops becomes a snapshot
 * that answers the same questions elsewhere.
 *
 * Capabilities in struct prb_target describe the differences between targets. The kind is only the
 * name of the source: other folders print it, and never ask for it.
 *
 * Names of facts are the paths under /proc/PID: "maps", "cmdline", "task/42/stat", "fd/3". A core
 * reconstructs some from its notes ("maps", "cmdline", "task").
 *
 * Threading: one thread at a time. Strings and vectors returned are the caller's.
 */
#ifndef PRB_TARGET_TARGET_H
#define PRB_TARGET_TARGET_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"
#include "target/mem/maps.h"
#include "target/mem/mem.h"
#include "target/proc/pids.h"
#include "target/regs.h"

enum prb_target_kind {
	PRB_TARGET_PROCESS,  /**< live; its threads run while we read */
	PRB_TARGET_CORE,     /**< a core file */
	PRB_TARGET_SNAPSHOT, /**< a file made by `probing snapshot` */
	PRB_TARGET_RECORDED, /**< a .profile: samples alone (see target/recorded/recorded.h) */
	PRB_TARGET_DEBUGGER, /**< what a debugger reads for us (see target/debugger/debugger.h) */
};

/** For messages: "process", "core file", "snapshot", "recording", "debugger's process". */
const char *prb_target_kind_name(enum prb_target_kind kind);
/** For programs: "process", "core", "snapshot", "recording", "debugger". */
const char *prb_target_kind_key(enum prb_target_kind kind);

struct prb_target;
struct prb_view;

struct prb_target_ops {
	/** Reads the fact @p name whole into @p ret. PRB_ERROR_NOT_FOUND if there is none. */
	struct prb_error *(*read_file)(struct prb_target *t, const char *name, struct prb_str *ret);
	/** Reads a symbolic link ("exe", "fd/3", "cwd"). */
	struct prb_error *(*read_link)(struct prb_target *t, const char *name, struct prb_str *ret);
	/** Names in a folder ("task", "fd"), one a line, sorted as numbers. */
	struct prb_error *(*list)(struct prb_target *t, const char *name, struct prb_str *ret);
	/** Opens the fact @p name of a live process; the caller closes. */
	struct prb_error *(*open_fact)(struct prb_target *t, const char *name, int *ret_fd);
	/** Opens @p path as the target sees it (its own root), read-only; the caller closes. */
	struct prb_error *(*open_file)(struct prb_target *t, const char *path, int *ret_fd);
	/** Opens the file behind a mapping, also when it was deleted or replaced. */
	struct prb_error *(*open_map)(struct prb_target *t, const struct prb_map *map, int *ret_fd);
	/** Registers of a thread that does not run (core, snapshot, debugger). */
	struct prb_error *(*registers)(struct prb_target *t, pid_t tid, struct prb_regs *ret);
	/** A recorded derived fact (see prb_target_recall()); false if there is none. */
	bool (*recall)(struct prb_target *t, const char *key, struct prb_str *ret);
	/* Only recorders have these: see the functions of these names. */
	void (*remember)(struct prb_target *t, const char *key, const void *value, size_t length);
	void (*note_registers)(struct prb_target *t, pid_t tid, const struct prb_regs *regs);
	void (*note_pages)(struct prb_target *t, pid_t tid, const struct prb_view *view);
	void (*destroy)(struct prb_target *t);
};

struct prb_custom;

struct prb_target {
	const struct prb_target_ops *ops;
	enum prb_target_kind kind; /**< for names only */
	/* Capabilities, set by the source when it is opened. */
	bool live;     /**< it may change and end while it is read: what does not fit together then
			* is read again, and says nothing about its health */
	bool moves;    /**< its threads run while they are read, and we can stop them */
	bool held;     /**< a debugger keeps all its threads stopped */
	bool local;    /**< of this machine: our kernel, clocks and other processes can be asked
			* about it */
	bool loadable; /**< libraries can be loaded into it, and it may have our agent */
	bool partial;  /**< a copy that somebody wrote of its memory, which may lack parts; the
			* threads are not there any more */
	bool replayed; /**< knows what was read when it was recorded, and nothing else: what was
			* derived then is recalled and not derived anew */
	bool distant;  /**< each fact may be a request to another machine: what only describes is
			* not asked for */
	pid_t pid;     /**< as the target's tools would say it; 0 if unknown */
	uint16_t machine;     /**< ELF e_machine: EM_X86_64 or EM_AARCH64 */
	uint64_t program;     /**< of a live process: a number for what it runs; else 0 */
	double time;	      /**< seconds since the epoch of what is read; live: opening time */
	struct prb_mem *mem;  /**< owned; all memory as it is now (uncached for a process) */
	struct prb_maps maps; /**< owned; see prb_target_refresh_maps() */
	struct prb_str maps_text; /**< owned; the text of these */
	/** Set by a caller that opens it, looks once and closes it: "maps" is read only once. */
	bool one_look;
	uint64_t summed; /**< bytes of other people's debug files that were summed up */
	const struct prb_custom
		*custom; /**< borrowed; what the user's extensions say; NULL: none */
};

/**
 * True if each read may be a network round trip: skip redundant validation reads. False while it is
 * recorded: a snapshot has to hold them.
 */
static inline bool prb_target_is_remote(const struct prb_target *t)
{
	return t->mem->kept;
}

/**
 * True while a snapshot is recorded of it, which has to hold all that is needed to read it anew:
 * nothing may be left out then because it is known from elsewhere. NULL, of memory alone, is not.
 */
static inline bool prb_target_is_recorded(const struct prb_target *t)
{
	return t && t->ops->remember;
}

/**
 * Opens the live process @p pid. Fails at once, with the rule that forbids it and a hint, if it
 * does not exist, is a zombie, is 32-bit, or may not be read.
 */
struct prb_error *prb_target_open_process(pid_t pid, struct prb_target **ret) PRB_MUST_CHECK;

/** Opens a core file; @p exe names the executable if the core's own path for it is wrong, or NULL.
 */
struct prb_error *prb_target_open_core(const char *path, const char *exe,
				       struct prb_target **ret) PRB_MUST_CHECK;

/** Where the files that a core names are by now; each may be NULL. */
struct prb_core_places {
	const char *exe;	  /**< the executable */
	const char *sysroot;	  /**< folder below which all paths of the core are looked for */
	const char *library_path; /**< folders with libraries, divided by colons */
};

struct prb_error *prb_target_open_core_in(const char *path, const struct prb_core_places *places,
					  struct prb_target **ret) PRB_MUST_CHECK;

/** Opens a snapshot file. */
struct prb_error *prb_target_open_snapshot(const char *path,
					   struct prb_target **ret) PRB_MUST_CHECK;

/** NULL is no target. */
void prb_target_destroy(struct prb_target *t);

static inline void prb_target_guard(struct prb_target **t)
{
	prb_target_destroy(*t);
}
#define prb_auto_target __attribute__((cleanup(prb_target_guard)))

/**
 * Asked after reading: a live process that runs another program than when it was opened was read
 * in parts of both. Gives PRB_ERROR_FAILED then, and else @p err, which is taken over and may be
 * NULL.
 */
struct prb_error *prb_target_same_program(struct prb_target *t,
					  struct prb_error *err) PRB_MUST_CHECK;

/** PRB_ERROR_UNSUPPORTED if there is nothing but samples of it. */
struct prb_error *prb_target_check_memory(const struct prb_target *t) PRB_MUST_CHECK;

/** Reads "maps" as it is now, for the caller to end with prb_maps_deinit(). */
struct prb_error *prb_target_read_maps(struct prb_target *t, struct prb_maps *ret) PRB_MUST_CHECK;

/** Reads "maps" anew; the old entries become invalid. */
struct prb_error *prb_target_refresh_maps(struct prb_target *t) PRB_MUST_CHECK;

/* The ops. Names are printf formats. */
struct prb_error *prb_target_read_file(struct prb_target *t, struct prb_str *ret, const char *name,
				       ...) PRB_MUST_CHECK PRB_PRINTF(3, 4);
struct prb_error *prb_target_read_link(struct prb_target *t, struct prb_str *ret, const char *name,
				       ...) PRB_MUST_CHECK PRB_PRINTF(3, 4);
struct prb_error *prb_target_list(struct prb_target *t, struct prb_str *ret, const char *name,
				  ...) PRB_MUST_CHECK PRB_PRINTF(3, 4);
/**
 * Opens a fact that is to be read again and again, which is not recorded; the caller closes.
 * PRB_ERROR_UNSUPPORTED for all but live processes.
 */
struct prb_error *prb_target_open_fact(struct prb_target *t, int *ret_fd, const char *name,
				       ...) PRB_MUST_CHECK PRB_PRINTF(3, 4);
struct prb_error *prb_target_open_file(struct prb_target *t, const char *path,
				       int *ret_fd) PRB_MUST_CHECK;
struct prb_error *prb_target_open_map(struct prb_target *t, const struct prb_map *map,
				      int *ret_fd) PRB_MUST_CHECK;
struct prb_error *prb_target_registers(struct prb_target *t, pid_t tid,
				       struct prb_regs *ret) PRB_MUST_CHECK;

/**
 * Appends the children of all threads, or of the first @p most; *more, which may be NULL, says that
 * there are more threads. None where the kernel has no such lists.
 */
struct prb_error *prb_target_children(struct prb_target *t, unsigned most, struct prb_pids *ret,
				      bool *more) PRB_MUST_CHECK;

/** 1 if the process sees the same pids as we do: those of one namespace; 0 if it sees others, -1 if
 * that is not known. */
int prb_target_sees_our_pids(struct prb_target *t);

/**
 * Derived facts: results that cost much or need files that another machine does not have (a pc's
 * function and line, a layout, a source line, the process at the other end of a pipe). Before
 * computing one, call prb_target_recall(); afterwards, prb_target_remember(). Keys look like
 * "pc:BUILDID:OFFSET". Values are bytes; their form is the business of the caller.
 */
bool prb_target_recall(struct prb_target *t, const char *key, struct prb_str *ret);
void prb_target_remember(struct prb_target *t, const char *key, const void *value, size_t length);

/** Notes registers of a stopped thread for the snapshot being recorded, if there is one. */
void prb_target_note_registers(struct prb_target *t, pid_t tid, const struct prb_regs *regs);

/** As above, for all pages that @p view holds in its present epoch: as thread @p tid saw them, or
 * of the image that all threads share (0). Pages that were noted before get their new content.
 */
void prb_target_note_pages(struct prb_target *t, pid_t tid, const struct prb_view *view);

#endif
