/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The two functions that the agent exports, and what it does when its process forks or ends.
 */
#include "agent/socket/agent.h"

#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "agent/crash/crash.h"
#include "agent/eval/bootstrap.h"
#include "agent/eval/debugger.h"
#include "agent/eval/main_thread.h"
#include "agent/inside/config.h"
#include "agent/inside/finalization.h"
#include "agent/inside/libc.h"
#include "agent/inside/python.h"
#include "agent/inside/python_table.h"
#include "agent/inside/thread.h"
#include "agent/pause/pause.h"
#include "agent/protocol.h"
#include "agent/socket/server.h"
#include "agent/socket/unload.h"
#include "agent/trace/breaks.h"
#include "agent/trace/standing.h"
#include "agent/trace/stepping.h"
#include "agent/trace/tracing.h"

extern void *__dso_handle;

static atomic_flag taken =
	ATOMIC_FLAG_INIT; /* held during start and stop; a concurrent caller gets EBUSY */
static bool watches_fork, never_unmapped;
static void *own; /* our library, opened by us */

static void in_child(void)
{
	int error = errno;

	prba_server_forked();
	prba_debugger_forked();
	prba_breaks_forked();
	prba_standing_forked();
	prba_tracing_forked();
	prba_pause_forked();
	prba_stepping_forked();
	prba_bootstrap_forked();
	prba_main_forked();
	prba_finalization_forked();
	prba_thread_forked();
	prba_crash_forked();
	atomic_flag_clear(&taken);
	errno = error;
}

/**
 * glibc's pthread_atfork() is a part of each program, which we are not; what it registers for us is
 * taken back when we are unmapped. musl has only that, and never unmaps.
 */
static void watch_fork(void)
{
	int (*glibc)(void (*)(void), void (*)(void), void (*)(void), void *);
	int (*other)(void (*)(void), void (*)(void), void (*)(void));

	if (watches_fork)
		return;
	watches_fork = true;
	*(void **)&glibc = dlsym(RTLD_DEFAULT, "__register_atfork");
	*(void **)&other = dlsym(RTLD_DEFAULT, "pthread_atfork");
	never_unmapped = !glibc;
	if (glibc)
		glibc(NULL, NULL, in_child, &__dso_handle);
	else if (other)
		other(NULL, NULL, in_child);
}

__attribute__((destructor)) static void at_exit(void)
{
	prba_server_unlink();
}

/** "folder=PATH" or nothing. */
static bool parse(const char *config, char folder[sizeof(((struct sockaddr_un *)0)->sun_path)],
		  const char **ret)
{
	static const char key[] = "folder=";
	size_t length;

	*ret = NULL;
	if (!config || !*config)
		return true;
	if (strncmp(config, key, strlen(key)) != 0)
		return false;
	config += strlen(key);
	length = strlen(config);
	if (*config != '/' || length >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return false;
	memcpy(folder, config, length + 1);
	*ret = folder;
	return true;
}

struct name {
	char text[4096];
};

/** Finds the loader's name of our library: the library that contains this function. */
static int find_name(struct dl_phdr_info *info, size_t size, void *argument)
{
	struct name *name = argument;
	uintptr_t here = (uintptr_t)find_name - info->dlpi_addr;

	(void)size;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &info->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && here - part->p_vaddr < part->p_memsz) {
			snprintf(name->text, sizeof(name->text), "%s", info->dlpi_name);
			return 1;
		}
	}
	return 0;
}

/** While `taken`. */
static bool keep_open(void)
{
	struct name name = {};

	if (!own && !never_unmapped && dl_iterate_phdr(find_name, &name))
		own = dlopen(name.text, RTLD_NOW | RTLD_NOLOAD);
	return own || never_unmapped;
}

/** While `taken`. */
static intptr_t start(const char *config)
{
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
	const char *chosen;
	bool opened = !own;
	intptr_t rc;

	if (!parse(config, folder, &chosen))
		return -EINVAL;
	watch_fork();
	if (!keep_open())
		return -ELIBACC;
	prba_breaks_remember();
	prba_python_find();
	prba_config_read();
	rc = prba_server_start(chosen);
	if (rc < 0 && opened && own) {
		dlclose(own); /* the caller has it open, too */
		own = NULL;
	}
	return rc;
}

PRBA_EXPORT intptr_t probing_agent_start(const char *config)
{
	intptr_t rc;

	if (!prba_libc_complete())
		return -ENOSYS;
	if (atomic_flag_test_and_set(&taken))
		return -EBUSY;
	rc = start(config);
	atomic_flag_clear(&taken);
	return rc;
}

/* All by the thread that forks. */
static struct {
	bool parked;
	uintptr_t frame; /**< calls os.fork() */
	unsigned tries;
} forking;

PRBA_EXPORT intptr_t probing_agent_park(void)
{
	forking.parked = prba_server_park();
	return forking.parked;
}

/** A pending call. The functions that os.fork() runs come to it first, and 3.13 counts threads
 * after them: it is put off until the frame that forks goes on. */
static int unpark(void *argument)
{
	enum { MOST = 100000 };

	(void)argument;
	if (prba_python.PyEval_GetFrame && forking.tries++ < MOST &&
	    (uintptr_t)prba_python.PyEval_GetFrame() != forking.frame &&
	    !prba_python.Py_AddPendingCall(unpark, NULL))
		return 0;
	prba_server_unpark();
	return 0;
}

PRBA_EXPORT intptr_t probing_agent_unpark(const char *frame)
{
	if (!forking.parked)
		return 0;
	forking.parked = false;
	forking.frame = strtoull(frame, NULL, 10);
	forking.tries = 0;
	if (!prba_python_find() || prba_python.Py_AddPendingCall(unpark, NULL))
		prba_server_unpark();
	return 0;
}

/** While `taken`, with the agent stopped: enum prb_agent_stays or 0. */
static intptr_t why_it_stays(bool clean)
{
	if (!clean)
		return PRB_AGENT_STAYS_OBJECTS;
	if (never_unmapped)
		return PRB_AGENT_STAYS_LIBC;
	switch (prba_unload_leave()) {
	case PRBA_LEFT:
		return 0;
	case PRBA_CALLS:
		return PRB_AGENT_STAYS_CALL;
	case PRBA_ALLOCATES:
		return PRB_AGENT_STAYS_ALLOCATOR;
	case PRBA_ENDS:
		break;
	}
	return PRB_AGENT_STAYS_ENDING;
}

PRBA_EXPORT intptr_t probing_agent_stop(const char *how)
{
	intptr_t result = 0;
	bool clean;

	if (!prba_libc_complete())
		return 0;
	if (atomic_flag_test_and_set(&taken))
		return PRB_AGENT_STAYS_BUSY;
	prba_debugger_stop();
	clean = prba_server_stop();
	clean = prba_crash_stop() && clean;
	if (how && !strcmp(how, "unload")) {
		result = why_it_stays(clean);
		if (!result) {
			result = (intptr_t)own;
			own = NULL;
		}
	}
	atomic_flag_clear(&taken);
	return result;
}

PRBA_EXPORT intptr_t probing_agent_crash(const char *config)
{
	char folder[PRBA_CRASH_PATH];
	intptr_t rc;

	if (!prba_libc_complete())
		return -ENOSYS;
	if (atomic_flag_test_and_set(&taken))
		return -EBUSY;
	prba_python_find();
	rc = keep_open() ? prba_crash_start(config, folder) : -ELIBACC;
	atomic_flag_clear(&taken);
	return rc;
}
