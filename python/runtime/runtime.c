/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Finding the CPython runtimes in a target. */
#include <elf.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "target/core/core.h"
#include "python/layout/debug_offsets.h"
#include "python/layout/load.h"
#include "python/repr/core/repr.h"
#include "python/python.h"
#include "python/runtime/record.h"
#include "python/runtime/scan.h"
#include "target/mem/view.h"

enum { ATTEMPTS = 5 /* times that a runtime is looked for in a process that changes */ };

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool find_symbol(struct prb_module *module, const char *name, uint64_t *ret)
{
	uint64_t size;
	prb_auto_error struct prb_error *err = prb_module_symbol(module, name, ret, &size);

	if (err)
		*ret = 0;
	return !err;
}

static uint64_t find_runtime(struct prb_module *module)
{
	uint64_t address, size;
	prb_auto_error struct prb_error *err =
		prb_module_section(module, ".PyRuntime", &address, &size);

	if (!err && size)
		return address;
	return find_symbol(module, "_PyRuntime", &address) ? address : 0;
}

/* "3.9" or "39" right behind @p text in a path: the minor version, or 0. */
static unsigned minor_after(const char *path, const char *text)
{
	for (const char *p = path; (p = strstr(p, text)); p++) {
		unsigned minor;
		const char *digits = p + strlen(text);

		if (*digits++ != '3')
			continue;
		if (*digits == '.')
			digits++;
		if (sscanf(digits, "%2u", &minor) == 1 && minor >= 1)
			return minor;
	}
	return 0;
}

/* The minor version by the names of files: this module's, then any extension module's. */
static uint32_t version_by_names(struct prb_modules *modules, struct prb_module *module)
{
	static const char *const marks[] = {"python", "/python", "cpython-"};
	unsigned minor = minor_after(base_name(module->path), "python");

	for (size_t m = 0; !minor && m < sizeof(marks) / sizeof(marks[0]); m++) {
		struct prb_module **other;

		prb_vec_each (other, &modules->list) {
			minor = minor_after((*other)->path, marks[m]);
			if (minor)
				break;
		}
	}
	return minor ? 0x03000000 | minor << 16 : 0;
}

/* Py_Version (3.11+), a constant. */
static bool read_constant(struct prb_module *module, struct prb_mem *mem, uint32_t *ret)
{
	uint64_t address;

	if (!find_symbol(module, "Py_Version", &address))
		return false;

	prb_auto_error struct prb_error *err = prb_mem_read_u32(mem, address, ret);

	return !err && *ret >> 24 == 3;
}

static uint32_t find_version(struct prb_modules *modules, struct prb_module *module,
			     struct prb_mem *mem, uint64_t runtime)
{
	uint32_t version;

	if (runtime && prb_debug_offsets_present(mem, runtime, &version))
		return version;
	if (read_constant(module, mem, &version))
		return version;
	return version_by_names(modules, module);
}

static void format_version(uint32_t hex, char *buffer, size_t size)
{
	unsigned level = hex >> 4 & 15, serial = hex & 15;
	int n = snprintf(buffer, size, "%u.%u.%u", hex >> 24, hex >> 16 & 255, hex >> 8 & 255);

	if (level >= 10 && level <= 12)
		snprintf(buffer + n, size - (size_t)n, "%s%u",
			 level == 10   ? "a"
			 : level == 11 ? "b"
				       : "rc",
			 serial);
}

/* sys.hexversion of one interpreter. */
static struct prb_error *read_hexversion(struct prb_python *py, struct prb_mem *mem,
					 uint64_t interp, uint32_t *ret)
{
	uint64_t sys, object;
	int64_t value;

	PRB_TRY(prb_mem_read_u64(mem, interp + (uint64_t)py->layout.interp_sysdict, &sys));
	PRB_TRY(prb_object_dict_get(py, mem, sys, "hexversion", &object));
	PRB_TRY(prb_object_int(py, mem, object, &value));
	*ret = (uint32_t)value;
	return NULL;
}

/* The version at the beginning of sys.version: "3.8.18 (default, …". */
static bool read_sys_version(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
			     uint32_t *ret)
{
	enum { MOST = 32, FINAL = 0xf0 };
	prb_auto_str struct prb_str text = {};
	unsigned major, minor, micro;
	uint64_t sys, object;
	prb_auto_error struct prb_error *err =
		prb_mem_read_u64(mem, interp + (uint64_t)py->layout.interp_sysdict, &sys);

	if (!err)
		err = prb_object_dict_get(py, mem, sys, "version", &object);
	if (!err)
		err = prb_object_str(py, mem, object, MOST, &text);
	if (err || sscanf(prb_str_text(&text), "%3u.%3u.%3u", &major, &minor, &micro) != 3 ||
	    major != 3 || minor > 255 || micro > 255)
		return false;
	*ret = major << 24 | minor << 16 | micro << 8 | FINAL;
	return true;
}

/* Whether a thread has memory for frames: `sys` was complete before the first frame was made. */
static bool has_run_code(struct prb_python *py, struct prb_mem *mem,
			 const struct prb_py_threads *threads)
{
	const struct prb_py_thread *thread;
	int64_t offset = py->layout.thread_datastack_chunk;

	if (offset < 0)
		return false;
	prb_vec_each (thread, &threads->list) {
		uint64_t chunk;
		prb_auto_error struct prb_error *err =
			prb_mem_read_u64(mem, thread->address + (uint64_t)offset, &chunk);

		if (!err && chunk)
			return true;
	}
	return false;
}

/* From 3.13 on, version and layout are in the runtime itself, and nothing else is needed. */
static bool says_version(struct prb_python *py, struct prb_mem *mem,
			 const struct prb_py_threads *threads, uint32_t *ret)
{
	return py->runtime && prb_debug_offsets_present(mem, py->runtime, ret) &&
	       has_run_code(py, mem, threads);
}

/*
 * The version, from objects in `sys`. A program may change these objects, and a stray write can
 * damage what they are made of: then the interpreter's own constant says it as well.
 */
static struct prb_error *read_version(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_threads *threads, uint32_t *ret)
{
	uint64_t interp = threads->interps.items[threads->interps.count - 1].address;
	uint32_t hex = 0;

	if (prb_target_is_remote(py->target) && says_version(py, mem, threads, ret))
		return NULL;

	struct prb_error *err = read_hexversion(py, mem, interp, &hex);

	if (err && (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS))
		return err;
	*ret = hex;
	if (!err && hex >> 16 == py->layout.version)
		return NULL;
	if (says_version(py, mem, threads, &hex) ||
	    (has_run_code(py, mem, threads) && read_constant(py->module, mem, &hex)) ||
	    read_sys_version(py, mem, interp, &hex)) {
		prb_error_destroy(prb_steal(&err));
		*ret = hex;
	}
	return err;
}

/*
 * A runtime is believed when its interpreters and threads hang together and `sys` inside of it
 * says the version whose layout we read it with.
 */
static struct prb_error *validate(struct prb_python *py, struct prb_mem *mem)
{
	struct prb_py_threads threads;
	uint32_t hex = 0;

	PRB_TRY(prb_python_threads(py, mem, &threads));

	struct prb_error *err = NULL;
	if (!threads.interps.count)
		err = prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED, "Python is not initialised (yet)"),
			"it is starting or exiting: try again");
	else
		err = read_version(py, mem, &threads, &hex);
	prb_py_threads_deinit(&threads);
	if (err && err->code != PRB_ERROR_NOMEM && err->code != PRB_ERROR_NO_PROCESS &&
	    err->code != PRB_ERROR_UNSUPPORTED) {
		prb_log("python", 2, "sys.hexversion: %s", err->message);
		prb_error_destroy(err);
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "Python is not initialised (yet): `sys` is not complete"),
			"it is starting or exiting: try again");
	}
	PRB_TRY(err);
	if (hex >> 16 != py->layout.version)
		return prb_error_create(PRB_ERROR_BAD_DATA, "sys.hexversion is %#x", hex);
	py->layout.micro = (uint8_t)(hex >> 8);
	format_version(hex, py->version, sizeof(py->version));
	return NULL;
}

static struct prb_error *try_version(struct prb_python *py, struct prb_mem *mem, uint32_t version)
{
	PRB_TRY(prb_layout_load(py->module, mem, py->runtime, version, &py->layout));
	if (!py->runtime && !py->interp_head)
		return prb_runtime_scan(py, mem, validate);
	return prb_error_prefix(validate(py, mem), "Python %u.%u in %s", version >> 24,
				version >> 16 & 255, py->module->path);
}

/* Statics of ceval.c, pystate.c and gcmodule.c, in `.symtab` where that was kept. */
static void find_statics(struct prb_python *py)
{
	find_symbol(py->module, "interp_head", &py->interp_head);
	find_symbol(py->module, "_PyThreadState_Current", &py->tstate_current);
	find_symbol(py->module, "collecting", &py->gc_collecting);
	find_symbol(py->module, "gil_cond", &py->gil_cond);
	find_symbol(py->module, "gil_mutex", &py->gil_mutex);
	find_symbol(py->module, "switch_cond", &py->switch_cond);
	find_symbol(py->module, "switch_mutex", &py->switch_mutex);
	find_symbol(py->module, "_PyGC_generation0", &py->gc_generation0);
	find_symbol(py->module, "enabled", &py->gc_enabled);
	find_symbol(py->module, "generation_stats", &py->gc_stats);
	find_symbol(py->module, "autoTLSkey", &py->auto_key);
}

static struct prb_error *try_module(struct prb_modules *modules, struct prb_module *module,
				    struct prb_mem *mem, bool may_scan, struct prb_python *py)
{
	*py = (struct prb_python){.target = modules->target, .module = module};
	py->runtime = find_runtime(module);
	if (!py->runtime)
		find_statics(py);

	if (!py->runtime && !py->interp_head && !py->tstate_current && !may_scan)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s holds no Python", module->path);
	if (!py->runtime && !py->interp_head)
		PRB_TRY(prb_runtime_scan_cookie(py, mem));

	uint32_t version = find_version(modules, module, mem, py->runtime);
	if (version)
		return try_version(py, mem, version);

	/* The version is unknown: take the one that fits. */
	bool has_symbols = py->runtime || py->interp_head || py->tstate_current;
	for (unsigned minor = 15; minor >= 4; minor--) {
		uint32_t guess = 0x03000000 | minor << 16;
		struct prb_error *err = try_version(py, mem, guess);

		if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
			return err;
		prb_log("python", 2, "not 3.%u: %s", minor, err->message);
		prb_error_destroy(err);
	}
	if (!has_symbols)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "%s holds no Python", module->path);
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "%s holds a Python of a version that cannot be found out",
				 module->path),
		"-vv shows what was tried; please report it");
}

/* Modules that are worth opening first: the executable and whatever is called python. */
static bool likely(const char *path, const char *exe)
{
	return strstr(base_name(path), "python") || !strcmp(path, exe);
}

/* An extension module (x.cpython-312-….so) is called python but is none. A program may have any
 * name. */
static bool is_extension(const char *path, const char *exe)
{
	return strstr(base_name(path), ".cpython-") && strcmp(path, exe) != 0;
}

static bool may_be_python(const void *exe, const char *path)
{
	return likely(path, exe) && !is_extension(path, exe);
}

struct finder {
	struct prb_modules *modules;
	struct prb_mem *mem;
	struct prb_pythons *found;
	struct prb_error *reason; /* the most telling failure so far */
	bool cheap;		  /* nothing else is tried than the cheapest */
};

static struct prb_error *consider(struct finder *finder, struct prb_module *module, bool may_scan)
{
	struct prb_python **slot, *py = calloc(1, sizeof(*py));

	if (!py)
		return prb_error_nomem();

	struct prb_error *err = try_module(finder->modules, module, finder->mem, may_scan, py);
	if (!err) {
		slot = prb_vec_push(&finder->found->list);
		if (!slot) {
			free(py);
			return prb_error_nomem();
		}
		*slot = py;
		prb_log("python", 1, "Python %s in %s, runtime at %#llx", py->version, module->path,
			(unsigned long long)py->runtime);
		return NULL;
	}
	free(py);
	if (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return err;
	prb_log("python", 2, "%s: %s", module->path, err->message);
	if (!finder->reason || finder->reason->code == PRB_ERROR_NOT_FOUND) {
		prb_error_destroy(finder->reason);
		finder->reason = err;
	} else {
		prb_error_destroy(err);
	}
	return NULL;
}

/*
 * Cheapest first: the likely modules by section and symbols, then all others the same way, then
 * the data of the likely ones, word by word.
 */
static struct prb_error *consider_all(struct finder *finder, const char *exe)
{
	static const struct {
		bool likely, scan;
	} passes[] = {{true, false}, {false, false}, {true, true}};

	size_t count = finder->cheap ? 1 : PRB_ARRAY_SIZE(passes);

	for (size_t i = 0; i < count && !finder->found->list.count; i++) {
		struct prb_module **module;

		prb_vec_each (module, &finder->modules->list)
			if (likely((*module)->path, exe) == passes[i].likely &&
			    !is_extension((*module)->path, exe))
				PRB_TRY(consider(finder, *module, passes[i].scan));
	}
	return NULL;
}

/* Data that a process is still building looks like this, and damaged data stays so. */
static bool is_torn(const struct prb_error *err)
{
	return err && (err->code == PRB_ERROR_FAULT || err->code == PRB_ERROR_BAD_DATA);
}

/* Names the kind of other program, for the message. */
static struct prb_error *no_python(struct finder *finder, const char *exe)
{
	bool live = finder->modules->target->live;
	struct prb_module **module;

	prb_vec_each (module, &finder->modules->list) {
		const char *name = base_name((*module)->path);

		if (strstr(name, "pypy"))
			return prb_error_hint(
				prb_error_create(PRB_ERROR_UNSUPPORTED, "this is PyPy (%s)", name),
				"only CPython can be read");
		if (!strncmp(name, "libpython2", 10) || !strncmp(name, "python2", 7))
			return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
							       "this is Python 2 (%s)", name),
					      "CPython 3.4 to 3.15 can be read");
	}
	if (live && is_torn(finder->reason))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "Python is not initialised (yet), or cannot be read: %s",
					 finder->reason->message),
			"it is starting or exiting: try again");
	if (finder->reason && finder->reason->code != PRB_ERROR_NOT_FOUND)
		return prb_steal(&finder->reason);
	if (live && !strncmp(base_name(exe), "python", 6))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "Python is not initialised (yet): %s has not loaded it",
					 exe),
			"it is starting or exiting: try again");
	const struct prb_core_info *core = prb_core_info(finder->modules->target);
	if (core && core->missing_bytes)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "no Python was found in the available part of this core: "
					 "%llu bytes of %u segments are missing",
					 (unsigned long long)core->missing_bytes,
					 core->missing_segments),
			"the file was cut off; see the limit for cores (ulimit -c) and the disk");
	const char *missing = prb_core_missing(finder->modules->target, 0);
	if (missing)
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_UNSUPPORTED,
				"no Python was found in the available part of this core: %s",
				missing),
			"--exe, --sysroot or --library-path says where the program's files are");

	struct prb_error *err =
		prb_error_create(PRB_ERROR_UNSUPPORTED, "this is not a Python process");
	if (!finder->modules->target->local)
		return err;
	return prb_error_hint(err,
			      "'probing list --tree' shows the Python processes; if this is a "
			      "launcher, 'probing %d dump --subprocesses' dumps those it started",
			      (int)finder->modules->target->pid);
}

static struct prb_error *find(struct prb_modules *modules, struct prb_view *view, bool cheap,
			      struct prb_pythons *ret)
{
	prb_auto_str struct prb_str exe = {};

	*ret = (struct prb_pythons){};
	struct prb_error *recalled = prb_pythons_recall(modules, ret);
	if (recalled || ret->list.count) {
		if (recalled)
			prb_pythons_deinit(ret);
		return recalled;
	}
	prb_error_destroy(prb_target_read_link(modules->target, &exe, "exe"));

	struct finder finder = {
		.modules = modules, .mem = prb_view_mem(view), .found = ret, .cheap = cheap};
	struct prb_error *err = NULL;
	for (int attempt = 0; !err && !ret->list.count && attempt < ATTEMPTS; attempt++) {
		/* It may have been torn: lists change while we walk them. */
		if (attempt && (!finder.reason || finder.reason->code == PRB_ERROR_NOT_FOUND))
			break;
		if (modules->target->live && is_torn(finder.reason))
			poll(NULL, 0, 1 << attempt);
		prb_error_destroy(prb_steal(&finder.reason));
		prb_view_new_epoch(view);
		err = consider_all(&finder, prb_str_text(&exe));
	}
	if (!err && !ret->list.count)
		err = prb_target_same_program(modules->target,
					      no_python(&finder, prb_str_text(&exe)));
	for (unsigned i = 0; !err && i < ret->list.count; i++)
		prb_python_remember(ret->list.items[i], i);
	prb_error_destroy(finder.reason);
	if (err)
		prb_pythons_deinit(ret);
	return err;
}

struct prb_error *prb_pythons_find(struct prb_modules *modules, struct prb_view *view,
				   struct prb_pythons *ret)
{
	return find(modules, view, false, ret);
}

/* By the names of files alone; *ret stays NULL if none of them holds a Python. */
static struct prb_error *open_likely(struct prb_target *target, struct prb_view *view,
				     struct prb_modules **ret, struct prb_pythons *ret_pythons)
{
	prb_auto_str struct prb_str exe = {};
	struct prb_modules *modules;

	prb_error_destroy(prb_target_read_link(target, &exe, "exe"));
	PRB_TRY(prb_modules_create_some(target, may_be_python, prb_str_text(&exe), &modules));

	struct prb_error *err = find(modules, view, true, ret_pythons);

	if (!err) {
		*ret = modules;
		return NULL;
	}
	prb_modules_destroy(modules);
	if (err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

struct prb_error *prb_pythons_open(struct prb_target *target, struct prb_view *view, bool all,
				   struct prb_modules **ret, struct prb_pythons *ret_pythons)
{
	*ret = NULL;
	if (!all && prb_target_is_remote(target))
		PRB_TRY(open_likely(target, view, ret, ret_pythons));
	if (*ret)
		return NULL;
	PRB_TRY(prb_modules_create(target, ret));
	return prb_pythons_find(*ret, view, ret_pythons);
}

struct prb_error *prb_python_identify(struct prb_modules *modules, struct prb_python_identity *ret)
{
	prb_auto_str struct prb_str exe = {};
	struct prb_module **slot;

	*ret = (struct prb_python_identity){};
	prb_error_destroy(prb_target_read_link(modules->target, &exe, "exe"));
	prb_vec_each (slot, &modules->list) {
		struct prb_mem *mem = modules->target->mem;
		uint64_t runtime, flag = 0;
		uint32_t version, ignored;

		if (!may_be_python(prb_str_text(&exe), (*slot)->path))
			continue;
		runtime = find_runtime(*slot);
		version = runtime ? find_version(modules, *slot, mem, runtime) : 0;
		if (!version)
			continue;
		if (prb_debug_offsets_present(mem, runtime, &ignored))
			PRB_TRY(prb_mem_read_u64(mem, runtime + 16, &flag));
		ret->free_threaded = flag != 0;
		if (version & 0xffff)
			format_version(version, ret->version, sizeof(ret->version));
		else
			snprintf(ret->version, sizeof(ret->version), "3.%u", version >> 16 & 255);
		return NULL;
	}
	return prb_error_create(PRB_ERROR_NOT_FOUND, "no runtime that can be told without reading");
}

void prb_pythons_deinit(struct prb_pythons *pythons)
{
	struct prb_python **py;

	prb_vec_each (py, &pythons->list)
		free(*py);
	prb_vec_free(&pythons->list);
}
