/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Facts that only a core file has: the cause of death, and what the file lacks.
 *
 * prb_target_open_core() reads cores of x86_64 and aarch64 as written by the kernel and by gdb's
 * gcore, and crash records, which a process with our agent writes itself; also compressed by zstd,
 * gzip or xz (unpacked into an unlinked temporary file), and also truncated ones. Memory that is
 * not in the file but was mapped read-only from an ELF file is read from that file, if it is the
 * same build (see local_file.h).
 */
#ifndef PRB_TARGET_CORE_CORE_H
#define PRB_TARGET_CORE_CORE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/target.h"

/* Bounds; going over one is an error that names it. */
enum {
	PRB_CORE_MAX_NOTES = 256 << 20,	  /**< bytes of notes, also decompressed */
	PRB_CORE_MAX_SEGMENTS = 4 << 20,  /**< program headers; the kernel allows 64 Ki mappings */
	PRB_CORE_MAX_UNPACKED_GIB = 1024, /**< of a core that is compressed as a whole */
};

struct prb_core_info {
	int signal;		   /**< that ended the process; 0: none (gcore) or unknown */
	bool signal_told;	   /**< there is a NT_SIGINFO note: the next four are known */
	int signal_code;	   /**< si_code */
	bool fault_told;	   /**< the kernel sent it because of an address */
	uint64_t fault_address;	   /**< si_addr of SIGSEGV, SIGBUS, SIGILL, SIGFPE; else 0 */
	pid_t signal_sender;	   /**< process that sent it by kill() and the like; else 0 */
	pid_t signal_tid;	   /**< the thread it hit; 0 if `signal` is 0 */
	uint64_t missing_bytes;	   /**< of segments behind the end of a truncated file */
	unsigned missing_segments; /**< how many of those there are, whole or in part */
	/* Of a crash record (agent/crash/crash.h) alone. */
	bool recorded;		    /**< it is one */
	uint64_t left_out;	    /**< bytes of memory that had no room, as far as counted */
	unsigned without_registers; /**< threads that could not be stopped */
	const char *exception;	    /**< text of an uncaught exception, the core's; or NULL */
	size_t exception_length;
};

/**
 * True if the file at @p path is an ELF core, or is compressed and so may be one: one read of a
 * few bytes.
 */
bool prb_core_probe(const char *path);

/**
 * Why a file that the process had mapped could not be read, although the core lacks what was asked
 * for of it: "PATH is not on this machine"; the core's. Programs and libraries only. NULL behind
 * the last. Each file that was needed since the core was opened is there once for each place that
 * it was mapped at.
 */
const char *prb_core_missing(const struct prb_target *t, size_t index);

/** Facts of a core target, owned by it; NULL if @p t is no core. */
const struct prb_core_info *prb_core_info(const struct prb_target *t);

#endif
