/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Processes seen from outside: their description, why one may not be read, and which are
 * Python programs.
 *
 * Everything comes from /proc as we see it: pids are those of our pid namespace. Names and command
 * lines are bytes that the processes chose themselves: escape them before showing them on a
 * terminal. Errors have done so already.
 *
 * Threading: all functions may be called from any thread. Strings are the caller's, freed with
 * the deinit function of their struct.
 */
#ifndef PRB_TARGET_PROC_PROCESS_H
#define PRB_TARGET_PROC_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/error.h"
#include "base/str.h"
#include "base/vec.h"

enum prb_process_kind {
	PRB_PROCESS_PROGRAM, /**< an ordinary process with memory of its own */
	PRB_PROCESS_ZOMBIE,  /**< it ended; its parent has not taken notice yet */
	PRB_PROCESS_KERNEL,  /**< a thread of the kernel */
};

struct prb_process {
	pid_t pid;
	pid_t ppid; /**< 0 if its parent is not in our pid namespace */
	enum prb_process_kind kind;
	char state;  /**< as in stat: R S D T t Z X I */
	bool forked; /**< it was forked, and has executed no program since */
	uid_t uid;   /**< effective */
	unsigned threads;
	double start_time;    /**< seconds since the epoch */
	uint64_t start_ticks; /**< since boot: a pid that is used again has another one */
	int elf_class;	      /**< 32 or 64; 0 if the executable may not be read */
	char *comm;	      /**< the kernel's name of it, mostly at most 15 bytes */
	char *exe;	      /**< path of the executable; NULL if it may not be read */
	PRB_VEC(char *) argv; /**< command line; empty for zombies and the kernel's */
};

/** Opens /proc/PID/@p name for reading; -1 with errno if it cannot be. */
int prb_proc_open(pid_t pid, const char *name);

/** Appends the file, up to a megabyte of it; false if it cannot be read. */
bool prb_proc_read(pid_t pid, const char *name, struct prb_str *ret);

/** True if @p ancestor is the parent of @p pid, or the parent's, and so on; false: not known. */
bool prb_proc_is_ancestor(pid_t ancestor, pid_t pid);

/** Seconds since a process or thread was started, by its start in ticks since boot (text.h). */
double prb_proc_age(uint64_t start_ticks);

/** Appends what a link points to; false if it cannot be read. */
bool prb_proc_link(pid_t pid, const char *name, struct prb_str *ret);

/** Reads what there is about @p pid. PRB_ERROR_NO_PROCESS if it does not exist. */
struct prb_error *prb_process_describe(pid_t pid, struct prb_process *ret) PRB_MUST_CHECK;
void prb_process_deinit(struct prb_process *process);

/** True if a word of the process's command line contains @p part. */
bool prb_process_has_word(const struct prb_process *process, const char *part);
/** The word by which multiprocessing's helper is told that frees what processes share. */
#define PRB_RESOURCE_TRACKER "from multiprocessing.resource_tracker import main"

/** True if @p pid is no process, or a zombie; false also if that cannot be found out. */
bool prb_process_has_ended(pid_t pid);

/**
 * Finds out why @p pid may not be read. *ret stays NULL if it may; else it is an error that names
 * the rule and has a hint that says what to do: PRB_ERROR_NO_PROCESS, PRB_ERROR_UNSUPPORTED for
 * what has no memory to read (zombie, kernel thread) or is 32-bit, PRB_ERROR_PERMISSION for all
 * rules of the kernel: another user's process, Yama, not dumpable, a user namespace above ours,
 * seccomp on us, a security module.
 */
void prb_process_refusal(pid_t pid, struct prb_error **ret);

/** The value of kernel.yama.ptrace_scope; -1 if the kernel has no Yama. */
int prb_process_ptrace_scope(void);

/** True if this program runs in a user namespace other than the first one. */
bool prb_process_in_user_namespace(void);

/** True if this program seems to run in a container: files and variables of the usual runtimes. */
bool prb_process_in_container(void);

/** A process's place in its distributed job; -1 where it has none. */
struct prb_process_job {
	long rank;
	long local_rank; /**< on its host */
	long world_size;
};

/**
 * Reads it from an environment, in the form of environ, by the variables of the usual launchers.
 */
struct prb_process_job prb_process_job(const struct prb_str *environment);

/** A process that runs Python, or may do so. */
struct prb_python_process {
	struct prb_process process;
	char *version; /**< "3.12" as the name of its library or executable says; NULL if unknown */
	long rank;     /**< of its distributed job; -1 if it has none */
	long local_rank; /**< on its host; -1 if it has none */
	char *refusal;	 /**< why it may not be read; NULL if it may */
};

struct prb_python_processes {
	PRB_VEC(struct prb_python_process) list; /**< by pid */
};

/**
 * Lists the Python processes: by the executable's name, and where that says nothing by the
 * libpython that is mapped or the marks of an interpreter in the executable. Processes that start
 * or exit meanwhile are left out silently; unreadable ones are listed, with the reason, if they are
 * named like Python.
 */
struct prb_error *prb_process_list(struct prb_python_processes *ret) PRB_MUST_CHECK;
void prb_python_processes_deinit(struct prb_python_processes *processes);
void prb_python_process_deinit(struct prb_python_process *process);

/** Cache of facts about executables, for repeated looks at processes. Starts as {}. */
struct prb_python_judge {
	PRB_VEC(struct prb_python_executable) executables;
};
void prb_python_judge_deinit(struct prb_python_judge *judge);

/** Appends @p pid to @p ret if it belongs into that list, as prb_process_list() decides. */
struct prb_error *prb_process_judge(struct prb_python_judge *judge, pid_t pid,
				    struct prb_python_processes *ret) PRB_MUST_CHECK;

/** The kernel's counters of a process: cheap to read, and they show whether it ran. */
struct prb_pulse {
	uint64_t start_ticks; /**< since boot: a pid that is used again has another one */
	/**
	 * CPU time in nanoseconds of all its threads, ended ones too. While this stays the same, no
	 * thread of it has run, so nothing that it does can have changed.
	 */
	uint64_t ran;
	double cpu_seconds; /**< the same in seconds; rounded where that clock cannot be read */
	char state;	    /**< of the first thread, as in stat */
	unsigned threads;
	int64_t rss; /**< bytes */
	/** The executable: another one after execve(). Both 0 if it may not be seen. */
	uint64_t device, inode;
};

/** Reads `ran` alone, with one system call. False: there is no such process, or no such clock. */
bool prb_pulse_clock(pid_t pid, uint64_t *ret);
/** False if there is no such process, or it is a zombie. */
bool prb_pulse_read(pid_t pid, struct prb_pulse *ret);
/**
 * The same for a process that was read before. If none of its threads has run since, what was read
 * is given again, without a file being opened: only memory that the kernel took away would differ.
 * A process that ends or executes another program has run.
 */
bool prb_pulse_again(pid_t pid, const struct prb_pulse *before, struct prb_pulse *ret);

#endif
