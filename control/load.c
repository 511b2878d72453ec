/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "control/embedded.h"
#include "control/socket.h"
#include "control/forked.h"
#include "control/pause_state.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/package_place.h"
#include "base/str.h"
#include "python/python.h"

static const char library_name[] = "libprobing-agent.so";

/** The file that this code is in: our library, or else our program, whatever it was called. */
static void find_own_file(char ret[PATH_MAX])
{
	struct link_map *map = NULL;
	ssize_t length;
	Dl_info info;

	if (dladdr1((void *)find_own_file, &info, (void **)&map, RTLD_DL_LINKMAP) && map &&
	    *map->l_name && realpath(map->l_name, ret))
		return;
	length = readlink("/proc/self/exe", ret, PATH_MAX - 1);
	ret[PRB_MAX(length, 0)] = 0;
}

struct prb_error *prb_agent_library(char **ret)
{
	static const char *const places[] = {"", "/probing", "/../lib/probing"};
	const char *said = getenv("PROBING_AGENT");
	char file[PATH_MAX];
	char *slash;

	if (said && *said) {
		*ret = prb_format("%s", said);
		return *ret ? NULL : prb_error_nomem();
	}
	find_own_file(file);
	slash = strrchr(file, '/');
	if (slash)
		*slash = 0;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++) {
		prb_auto_free char *path = prb_format("%s%s/%s", file, places[i], library_name);

		if (!path)
			return prb_error_nomem();
		if (!access(path, R_OK)) {
			*ret = prb_steal(&path);
			return NULL;
		}
	}
	*ret = prb_package_file(file, library_name);
	if (!*ret)
		PRB_TRY(prb_agent_embedded(library_name, ret));
	if (*ret)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_NOT_FOUND,
				 "the agent's library, %s, was not found beside probing",
				 library_name),
		"set PROBING_AGENT to its path");
}

/** Only a process whose Python runs is given an agent. */
static struct prb_error *check_python(struct prb_modules *modules)
{
	struct prb_pythons pythons = {};
	struct prb_view *view;

	PRB_TRY(prb_view_create(modules->target->mem, &view));

	struct prb_error *err = prb_pythons_find(modules, view, &pythons);
	prb_pythons_deinit(&pythons);
	prb_view_destroy(view);
	return err;
}

struct prb_error *prb_agent_started(const struct prb_target *t, int64_t value)
{
	if (value >= 0)
		return NULL;
	if (value == -EBUSY)
		return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
						       "the agent of process %d is still "
						       "stopping",
						       (int)t->pid),
				      "it is waiting for interrupted code to end");

	struct prb_error *err =
		prb_error_create(PRB_ERROR_FAILED, "the agent cannot start in process %d: %s",
				 (int)t->pid, strerror((int)-value));
	if (value != -EACCES)
		return err;
	return prb_error_hint(err, "it can write to no folder for its socket, and in its user "
				   "namespace other users look like its own");
}

/** Starts it. While another command starts or stops it, again and again, for some seconds. */
static struct prb_error *start(struct prb_target *t, const struct prb_inject_request *request,
			       struct prb_inject_result *ret)
{
	const long first_ns = 10000000, last_ns = 640000000;

	for (long ns = first_ns;; ns *= 2) {
		PRB_TRY(prb_pause_state_blame(t, prb_inject(t, request, ret)));
		if (ret->value != -EBUSY || ns > last_ns)
			return NULL;
		nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
	}
}

struct prb_error *prb_agent_load(struct prb_target *t, struct prb_inject_result *ret)
{
	struct prb_inject_request request = {.symbol = "probing_agent_start", .again = true};
	prb_auto_free char *library = NULL;

	PRB_TRY(prb_agent_library(&library));
	request.library = library;
	PRB_TRY(prb_modules_create(t, &request.modules));

	struct prb_error *err = check_python(request.modules);
	if (!err)
		err = start(t, &request, ret);
	prb_modules_destroy(request.modules);
	PRB_TRY(err);
	prb_agent_tidy(t);
	return prb_agent_started(t, ret->value);
}

/** Explains a result of probing_agent_stop("unload"). */
static const char *why_it_stays(const struct prb_inject_result *r)
{
	if (r->unloaded)
		return NULL;
	if (!r->called)
		return "the loader does not report the library's name";
	switch ((enum prb_agent_stays)r->value) {
	case PRB_AGENT_STAYS_BUSY:
		return "another command is starting or stopping the agent";
	case PRB_AGENT_STAYS_CALL:
		return "the main thread has still to make a call of it, which it does as soon as "
		       "it executes Python code";
	case PRB_AGENT_STAYS_OBJECTS:
		return "Python objects implemented by it are in use";
	case PRB_AGENT_STAYS_ENDING:
		return "Python is shutting down, and may call it";
	case PRB_AGENT_STAYS_LIBC:
		return "this C library unmaps no library";
	case PRB_AGENT_STAYS_ALLOCATOR:
		return "allocators of 'memory --sites' may still be called: by one that was "
		       "installed later (tracemalloc?), by another interpreter, or by a thread "
		       "that needs no GIL";
	}
	return "something else has opened it as well";
}

struct prb_error *prb_agent_unload(struct prb_target *t, struct prb_inject_result *ret,
				   const char **why)
{
	struct prb_inject_request request = {
		.symbol = "probing_agent_stop", .argument = "unload", .unload = true};
	prb_auto_free char *library = NULL;

	PRB_TRY(prb_agent_library(&library));
	request.library = library;
	PRB_TRY(prb_pause_state_blame(t, prb_inject(t, &request, ret)));
	prb_agent_tidy(t);
	*why = why_it_stays(ret);
	return NULL;
}

struct prb_error *prb_agent_reach(struct prb_target *t, bool may_load, struct prb_agent **ret)
{
	struct prb_inject_result result;

	PRB_TRY(prb_forked_check(t));

	struct prb_error *err = prb_agent_connect(t, ret);
	if (!err || err->code != PRB_ERROR_NOT_FOUND)
		return err;
	if (!may_load)
		return prb_error_hint(err, "omit --no-inject to load it");
	prb_error_destroy(err);
	PRB_TRY(prb_agent_load(t, &result));
	return prb_agent_connect(t, ret);
}
