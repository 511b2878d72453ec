/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The one error type: what failed, where and why, and what a person can do next.
 *
 * Every function that can fail returns `struct prb_error *`; NULL means success. The caller owns a
 * returned error and ends it with prb_error_destroy(), or hands it up, with context put in front
 * by prb_error_prefix(). It is turned into something else once, at the outermost boundary (exit
 * code, SQL error, Python exception).
 *
 * Threading: an error belongs to one thread at a time. Creating one never fails: when memory is
 * short a static "out of memory" error is returned, which the other functions accept.
 */
#ifndef PRB_BASE_ERROR_H
#define PRB_BASE_ERROR_H

#include <stdbool.h>
#include <stdint.h>

/** The kind of failure, for programs; the message is for people. */
enum prb_error_code {
	PRB_ERROR_FAILED,      /**< none of the below: the message says it all */
	PRB_ERROR_NOMEM,       /**< out of memory in our own process */
	PRB_ERROR_OS,	       /**< a system call failed; `os_errno` is set */
	PRB_ERROR_FAULT,       /**< the target's memory at `address` cannot be read */
	PRB_ERROR_BAD_DATA,    /**< what was read contradicts itself or exceeds a bound */
	PRB_ERROR_UNSUPPORTED, /**< a kind of target, version or architecture we cannot handle */
	PRB_ERROR_NOT_FOUND,   /**< a symbol, type, file or section that does not exist */
	PRB_ERROR_PERMISSION,  /**< the kernel does not let us; the hint names the rule */
	PRB_ERROR_TIMEOUT,     /**< a deadline passed */
	PRB_ERROR_CANCELLED,   /**< the caller asked to stop */
	PRB_ERROR_USAGE,       /**< the user's words make no sense */
	PRB_ERROR_NO_PROCESS,  /**< the process or thread does not exist (any more) */
};

struct prb_error {
	enum prb_error_code code;
	int os_errno;	  /**< for PRB_ERROR_OS and PRB_ERROR_PERMISSION, else 0 */
	uint64_t address; /**< for PRB_ERROR_FAULT, else 0 */
	char *message;	  /**< one line, no full stop, never NULL */
	char *hint;	  /**< what to do next, one line, or NULL */
};

#define PRB_MUST_CHECK __attribute__((warn_unused_result))
#define PRB_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

/** Makes an error of @p code; the caller owns it. Never returns NULL. */
struct prb_error *prb_error_create(enum prb_error_code code, const char *format, ...) PRB_MUST_CHECK
	PRB_PRINTF(2, 3) __attribute__((returns_nonnull));

/**
 * Makes an error from an errno value: ": strerror(err)" is appended to the message. ESRCH gives
 * PRB_ERROR_NO_PROCESS, EPERM and EACCES PRB_ERROR_PERMISSION, ENOMEM PRB_ERROR_NOMEM, all others
 * PRB_ERROR_OS.
 */
struct prb_error *prb_error_os(int err, const char *format, ...) PRB_MUST_CHECK PRB_PRINTF(2, 3)
	__attribute__((returns_nonnull));

/** Makes a PRB_ERROR_FAULT for @p length bytes at @p address in the target. */
struct prb_error *prb_error_fault(uint64_t address, uint64_t length) PRB_MUST_CHECK
	__attribute__((returns_nonnull));

/** The static out-of-memory error. */
struct prb_error *prb_error_nomem(void) PRB_MUST_CHECK __attribute__((returns_nonnull));

/** Puts "context: " in front of the message. Returns @p err; NULL stays NULL. */
struct prb_error *prb_error_prefix(struct prb_error *err, const char *format, ...) PRB_MUST_CHECK
	PRB_PRINTF(2, 3);

/** Sets what the user can do next (replaces an earlier hint). Returns @p err; NULL stays NULL. */
struct prb_error *prb_error_hint(struct prb_error *err, const char *format, ...) PRB_MUST_CHECK
	PRB_PRINTF(2, 3);

/** Another one with the same code, words and hint, for whoever is to get it, too; NULL for NULL. */
struct prb_error *prb_error_copy(const struct prb_error *err) PRB_MUST_CHECK;

/** Ends an error; NULL is allowed. */
void prb_error_destroy(struct prb_error *err);

/** True, and *err ended and NULL, if it is an error of @p code: "this one I can live with". */
bool prb_error_catch(struct prb_error **err, enum prb_error_code code);

/**
 * Ends an error. If there was one, sets *failed (may be NULL) to true; otherwise leaves *failed
 * alone, so initialise it to false. Out of memory is not ended but returned.
 */
struct prb_error *prb_error_tolerate(struct prb_error *err, bool *failed) PRB_MUST_CHECK;

#endif
