/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/inject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/clock.h"
#include "base/urgent.h"
#include "injector/inject_private.h"
#include "injector/libc/code.h"
#include "injector/libc/loader_breakpoints.h"

enum {
	SHORT_SLEEP_NS = 20000,
	LONG_SLEEP_NS = 10000000, /* few, since each takes longer on a busy machine */
	WAIT_NS = 1000000,
	ENDING_LOOKS = 100,
	MAIL_OFFSET = PRB_SCRATCH_CODE + PRB_SCRATCH_STACK,
	TEXT_OFFSET = MAIL_OFFSET + PRB_SCRATCH_DATA - PRB_SCRATCH_TEXT,
};
static const double create_timeout = 1.0;
static const double meet_timeout = 5.0; /* no thread of the program is stopped meanwhile */
static const double quit_timeout = 1.0;
static const double start_timeout = 0.5; /* for the loader of a program that has just begun */

struct injection {
	struct prb_hijack hijack;
	struct prb_target *t;
	struct prb_target *own; /* the same by another thread, where the first one has ended */
	const struct prb_inject_arch *arch;
	struct prb_modules *modules;
	struct prb_modules *listed; /* the same, where it is ours to destroy */
	struct prb_unwinder *unwinder;
	struct prb_inject_result *result;
	uint64_t base; /* of the scratch mapping; 0: none */
	struct prb_library library;
	struct prb_mail mail;
	struct prb_libc libc;
	int memory;	  /* of the target */
	bool calls_again; /* the library is there, and its symbol is called */
};

static void forget(struct injection *in)
{
	prb_library_deinit(&in->library);
	prb_libc_deinit(&in->libc);
	if (in->unwinder)
		prb_unwinder_destroy(in->unwinder);
	prb_modules_destroy(in->listed);
	if (in->memory >= 0)
		close(in->memory);
	in->memory = -1;
	in->library = (struct prb_library){.fd = -1};
	in->libc = (struct prb_libc){};
	in->unwinder = NULL;
	in->modules = in->listed = NULL;
}

static void injection_deinit(struct injection *in)
{
	double pause;

	/* Nothing is left to report to when this fails: the thread finds its own way back. */
	prb_error_destroy(prb_hijack_give_back(&in->hijack, &pause));
	prb_mail_release(&in->mail);
	forget(in);
	prb_target_destroy(in->own);
}

static struct prb_error *hint_why(struct injection *in, int os_errno, struct prb_error *err)
{
	if (os_errno == EPERM || os_errno == EACCES)
		return prb_error_hint(err, "nothing was changed in it; a security module (SELinux, "
					   "AppArmor) or a filter keeps it from that");
	return prb_error_hint(err,
			      "nothing was changed in it; see what it may have in /proc/%d/limits, "
			      "/proc/sys/vm/max_map_count and its control group",
			      in->t->pid);
}

static struct prb_error *check_result(struct injection *in, const char *name, int64_t result)
{
	prb_log("inject", 3, "%s in the target: %lld", name, (long long)result);
	if (result >= 0 || result <= -4096)
		return NULL;
	return hint_why(in, (int)-result,
			prb_error_create(PRB_ERROR_FAILED, "%s() in process %d: %s", name,
					 in->t->pid, strerror((int)-result)));
}

static struct prb_error *fill_scratch(struct injection *in)
{
	const struct prb_inject_arch *arch = in->arch;
	const struct prb_return_frame *frame = &in->hijack.frame;
	struct prb_mailbox box = {
		.create = in->libc.pthread_create,
		.frame = frame->back,
		.munmap = in->libc.munmap,
		.base = in->base,
		.size = PRB_SCRATCH_SIZE,
		.fd = -1,
		.trampoline = frame->trampoline,
		.nap = frame->nap,
		.short_sleep = {0, SHORT_SLEEP_NS},
		.long_sleep = {0, LONG_SLEEP_NS},
		.entry = in->base + (uint64_t)(arch->thread_code - arch->code),
		.self = in->libc.pthread_self,
		.detach = in->libc.pthread_detach,
		.unmap = frame->unmap,
		.gadget = in->libc.code.gadget,
	};

	PRB_TRY(prb_mail_write(in->memory, in->base, arch->code,
			       (size_t)(arch->code_end - arch->code)));
	PRB_TRY(prb_mail_write(in->memory, in->base + MAIL_OFFSET, &box, sizeof(box)));
	in->mail = (struct prb_mail){
		.target = in->t,
		.memory = in->memory,
		.code = in->base,
		.code_end = in->base + (uint64_t)(arch->code_end - arch->code),
		.address = in->base + MAIL_OFFSET,
		.text = in->base + TEXT_OFFSET,
		.raw_syscall = in->base + (uint64_t)(arch->raw_syscall_code - arch->code),
	};
	return NULL;
}

static struct prb_error *protect_scratch(struct injection *in, size_t size, int protection)
{
	const uint64_t arguments[6] = {in->base, size, (uint64_t)protection};
	int64_t result;

	PRB_TRY(prb_hijack_syscall(&in->hijack, in->arch->sys_mprotect, arguments, &result));
	return check_result(in, "mprotect", result);
}

/*
 * Executable memory is never writable. A tracer may write to it all the same, unless the kernel
 * forbids that (proc_mem.force_override).
 */
static struct prb_error *fill_protected(struct injection *in)
{
	struct prb_error *err = fill_scratch(in);

	if (!prb_error_catch(&err, PRB_ERROR_FAULT))
		return err;
	PRB_TRY(protect_scratch(in, PRB_SCRATCH_SIZE, PROT_READ | PROT_WRITE));
	PRB_TRY(fill_scratch(in));
	return protect_scratch(in, PRB_SCRATCH_CODE, PROT_READ | PROT_EXEC);
}

static struct prb_error *map_scratch(struct injection *in)
{
	int64_t result;

	PRB_TRY(prb_hijack_map(&in->hijack, &result));
	PRB_TRY(check_result(in, "mmap", result));
	in->base = (uint64_t)result;
	return fill_protected(in);
}

/* The thread is not there to do it, so that the hijacked one has to. */
static struct prb_error *unmap_scratch(struct injection *in)
{
	uint64_t base = in->base;
	int64_t result;

	in->base = 0;
	PRB_TRY(prb_hijack_unmap(&in->hijack, base, &result));
	return check_result(in, "munmap", result);
}

static struct prb_error *create_thread(struct injection *in)
{
	int64_t result = 0, refused = 0;

	PRB_TRY(prb_hijack_run(&in->hijack, in->base, in->base + MAIL_OFFSET, in->mail.address,
			       create_timeout, &refused));
	if (!refused)
		PRB_TRY(prb_mail_read(
			in->memory, in->mail.address + offsetof(struct prb_mailbox, create_result),
			&result, sizeof(result)));
	if (!refused && !result)
		return NULL;
	/* It may be back already where it was, and is not to be taken away again for this. */
	if (in->hijack.changed)
		PRB_TRY(unmap_scratch(in));
	PRB_TRY(check_result(in, "mprotect", refused));
	return hint_why(in, (int)result,
			prb_error_create(PRB_ERROR_FAILED, "process %d cannot create a thread: %s",
					 in->t->pid, strerror((int)result)));
}

/* The steps while the hijacked thread is stopped. */
static struct prb_error *start_helper(struct injection *in, const struct prb_pick *search)
{
	struct prb_error *err = map_scratch(in);

	if (err && in->base && in->hijack.stop.seized)
		prb_error_destroy(unmap_scratch(in));
	if (!err)
		err = create_thread(in);

	struct prb_error *back = prb_pick_give_back(search);
	if (err)
		prb_error_destroy(back);
	return err ? err : back;
}

static struct prb_error *hijack_thread(struct injection *in)
{
	unsigned makers = PRB_CALL_LOADS | (in->library.agent ? PRB_CALL_SERVES : 0);
	struct prb_pick_cost cost = {};
	const struct prb_pick search = {
		.t = in->t,
		.modules = in->modules,
		.unwinder = in->unwinder,
		.libc = &in->libc,
		.hijack = &in->hijack,
		.cost = &cost,
		.calls = prb_filters_calls(&in->libc, makers),
	};

	struct prb_error *err = prb_pick_thread(&search);
	if (!err)
		err = start_helper(in, &search);
	in->result->hijacked = cost.hijacked;
	in->result->stops = cost.stops;
	in->result->pause_us = cost.pause_us;
	return err;
}

/* There is nothing to do. */
static bool is_settled(const struct injection *in)
{
	return (in->result->already && !in->calls_again) || in->result->absent;
}

static struct prb_error *list_modules(struct injection *in, struct prb_modules *known)
{
	if (!known || known->target != in->t)
		PRB_TRY(prb_modules_create(in->t, &in->listed));
	in->modules = in->listed ? in->listed : known;
	return NULL;
}

static struct prb_error *prepare(struct injection *in, const struct prb_inject_request *request,
				 struct prb_modules *known)
{
	struct prb_target *t = in->t;

	in->arch = prb_inject_arch();
	PRB_TRY(prb_library_open(request->library, request->symbol, t->machine, &in->library));
	PRB_TRY(list_modules(in, known));
	bool loaded = prb_library_loaded(&in->library, in->modules);

	in->result->already = loaded && !request->again && !request->unload;
	in->calls_again = in->result->already && request->symbol;
	in->result->absent = !loaded && request->unload;
	if (is_settled(in))
		return NULL;
	PRB_TRY(prb_libc_find(in->modules, PRB_HIJACK_CREATE, &in->libc));
	/* The agent says which one it is, and an older one serves as well. */
	if (!request->again && !request->unload)
		PRB_TRY(prb_library_check_path(&in->library, in->modules, &in->libc));
	PRB_TRY(prb_libc_find_code(in->modules, in->arch, &in->libc));
	PRB_TRY(prb_loader_breakpoints_check(in->modules, in->arch->machine, &in->libc));
	PRB_TRY(prb_unwinder_create(in->modules, &in->unwinder));
	PRB_TRY(prb_mail_open(t->pid, &in->memory));
	in->hijack.memory = in->memory;
	in->hijack.arch = in->arch;
	in->hijack.target = t;
	in->hijack.code = in->libc.code;
	return NULL;
}

/*
 * A program that has just begun is waited for until its loader has brought in the C library, and
 * for a moment if it has no loader yet.
 */
static struct prb_error *prepare_patiently(struct injection *in,
					   const struct prb_inject_request *request)
{
	double begin = prb_clock_seconds();

	for (struct prb_modules *known = request->modules;; known = NULL) {
		struct prb_error *err = prepare(in, request, known);
		size_t parts = in->libc.parts.count;
		double patience = parts ? start_timeout : start_timeout / 10;

		if (!err || err->code != PRB_ERROR_UNSUPPORTED || parts > 1 ||
		    prb_clock_seconds() - begin > patience)
			return err;
		prb_error_destroy(err);
		forget(in);
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
		PRB_TRY(prb_target_refresh_maps(in->t));
	}
}

/* Where it has crashed meanwhile, there is nothing left to load into. */
static struct prb_error *name_end(struct injection *in, struct prb_error *err)
{
	uint8_t byte;

	if (!err || (err->code != PRB_ERROR_NO_PROCESS && err->code != PRB_ERROR_FAULT))
		return err;
	prb_error_destroy(err);
	/* An ending process loses its threads a moment before its memory. */
	for (int i = 0; i < ENDING_LOOKS; i++) {
		err = prb_mail_read(in->memory, in->libc.code.gadget, &byte, sizeof(byte));
		if (err)
			break;
		nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
	}
	if (!err)
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_FAILED,
				"process %d: the helper thread timed out while %s was loaded",
				in->t->pid, in->library.path),
			"this command was stopped for seconds; try again");
	prb_error_destroy(err);
	return prb_error_hint(prb_error_create(PRB_ERROR_NO_PROCESS,
					       "process %d ended while %s was loaded", in->t->pid,
					       in->library.path),
			      "if it crashed, code of the library that runs at its loading did "
			      "that; if it lives, it has executed another program");
}

static struct prb_error *serve(struct injection *in, const struct prb_inject_request *request)
{
	struct prb_error *err = prb_mail_meet(&in->mail, prb_clock_seconds() + meet_timeout);

	if (!err)
		err = prb_library_load(&in->library, in->modules, &in->libc, &in->mail, request,
				       in->result);
	/* The call in progress is not interrupted; the thread ends after it. */
	if (err && err->code == PRB_ERROR_TIMEOUT)
		return err;
	struct prb_error *late = prb_mail_quit(&in->mail, prb_clock_seconds() + quit_timeout);
	if (err || prb_error_catch(&late, PRB_ERROR_TIMEOUT)) {
		prb_error_destroy(late);
		return name_end(in, err);
	}
	return name_end(in, late);
}

struct prb_error *prb_inject(struct prb_target *t, const struct prb_inject_request *request,
			     struct prb_inject_result *ret)
{
	struct injection *in = calloc(1, sizeof(*in));
	prb_auto_urgent struct prb_urgent urgent = {};

	if (!in)
		return prb_error_nomem();
	prb_urgent_begin(&urgent);
	*ret = (struct prb_inject_result){};
	in->t = t;
	in->result = ret;
	in->library.fd = in->memory = -1;

	struct prb_error *err = t->loadable ? prb_candidates_alive(t, &in->own) : NULL;
	if (in->own)
		in->t = in->own;
	if (!err)
		err = prb_inject_preflight(in->t);
	if (!err)
		err = prepare_patiently(in, request);
	if (!err && !is_settled(in))
		err = hijack_thread(in);
	if (!err && !is_settled(in))
		err = serve(in, request);
	injection_deinit(in);
	free(in);
	return err;
}
