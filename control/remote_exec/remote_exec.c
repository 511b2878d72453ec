/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/remote_exec/remote_exec.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/urgent.h"
#include "control/interpreters.h"
#include "control/load.h"
#include "control/pause_state.h"
#include "control/socket.h"
#include "control/stop_threads.h"
#include "injector/hijack/mailbox.h"
#include "injector/target_copy.h"
#include "python/layout/debug_offsets.h"
#include "dump/tasks/tasks.h"

enum {
	PLEASE_STOP = 1 << 5, /* a bit of eval_breaker: _PY_EVAL_PLEASE_STOP_BIT */
	SAID_MAX = 400,	      /* bytes of what the script says */
	LOOK_NS = 1000000,
	TIMEOUT = 10, /* seconds */
};

/** Says "=VALUE" or what was raised, in its own file. A Ctrl-C is the program's. */
static const char script[] = "def load():\n"
			     "    import ctypes, _ctypes, os\n"
			     "    library = ctypes.CDLL(os.fsdecode(bytes.fromhex('%s')))\n"
			     "    start = library.probing_agent_start\n"
			     "    start.restype = ctypes.c_ssize_t\n"
			     "    value = start(b'')\n"
			     "    _ctypes.dlclose(library._handle)\n"
			     "    return '=%%d' %% value\n"
			     "try:\n"
			     "    said = load()\n"
			     "except KeyboardInterrupt:\n"
			     "    import _thread\n"
			     "    _thread.interrupt_main()\n"
			     "    said = 'interrupted'\n"
			     "except BaseException as error:\n"
			     "    said = type(error).__name__ + ': ' + str(error)\n"
			     "with open('%s', 'wb') as file:\n"
			     "    file.write(said.encode('utf-8', 'replace') + b'\\n')\n";

struct request {
	struct prb_target *t;
	struct prb_remote_exec_offsets at;
	uint64_t state;	     /**< of the main thread; 0: not found */
	int enabled, memory; /**< of the target */
	bool withdrawn;
	struct prb_error *err;
	struct prb_target_copy file;
	struct prb_inject_result *result;
};

static void find_main(void *context, struct prb_python *py, const struct prb_py_threads *threads)
{
	struct request *r = context;
	const struct prb_py_thread *thread;
	const struct prb_interp *interp;
	pid_t main = prb_task_inner_tid(r->t, r->t->pid);

	if (r->err || r->state || !threads)
		return;
	r->err = prb_debug_offsets_remote_exec(r->t->mem, py->runtime, &r->at);
	prb_vec_each (interp, &threads->interps)
		if (!r->err && interp->main)
			r->err = prb_mem_read(r->t->mem, interp->address + r->at.enabled,
					      &r->enabled, sizeof(r->enabled));
	prb_vec_each (thread, &threads->list)
		if (thread->interp_id == 0 && thread->tid == main)
			r->state = thread->address;
}

static struct prb_error *find(struct request *r)
{
	prb_interpreters_look(r->t, find_main, r);
	PRB_TRY(r->err);
	if (!r->state)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"process %d has no main thread that runs Python",
					(int)r->t->pid);
	if (r->enabled == 1)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "Python of process %d forbids sys.remote_exec()", (int)r->t->pid),
		"it was started with -X disable-remote-debug or PYTHON_DISABLE_REMOTE_DEBUG, or "
		"built without remote debugging; 'inject' without '--by' does not need it");
}

static struct prb_error *write_script(struct request *r, const char *library)
{
	static const char *const folders[] = {"/tmp", "/dev/shm", "/var/tmp", "/run"};
	prb_auto_str struct prb_str hex = {}, text = {};
	struct prb_error *err = NULL;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(folders) && !r->file.name; i++) {
		prb_error_destroy(err);
		err = prb_target_copy_create(r->t, folders[i], &r->file);
		if (err)
			prb_target_copy_remove(&r->file);
	}
	PRB_TRY(err);
	for (const char *at = library; *at; at++)
		prb_str_printf(&hex, "%02x", (unsigned char)*at);
	prb_str_printf(&text, script, prb_str_text(&hex), r->file.path);
	if (hex.failed || text.failed)
		return prb_error_nomem();
	if (write(r->file.fd, prb_str_text(&text), text.length) != (ssize_t)text.length)
		return prb_error_os(errno, "cannot write %s", r->file.path);
	return NULL;
}

static struct prb_error *is_pending(struct request *r, bool *ret)
{
	int32_t flag;

	PRB_TRY(prb_mail_read(r->memory, r->state + r->at.pending, &flag, sizeof(flag)));
	*ret = flag != 0;
	return NULL;
}

static struct prb_error *place(struct request *r)
{
	const int32_t flag = 1;
	bool pending;
	uint64_t breaker;

	PRB_TRY(is_pending(r, &pending));
	if (pending)
		return prb_error_hint(
			prb_error_create(
				PRB_ERROR_TIMEOUT,
				"another request for sys.remote_exec() waits in process %d",
				(int)r->t->pid),
			"its main thread executes no Python code; 'inject' without '--by' need not "
			"wait for it");
	PRB_TRY(prb_mail_read(r->memory, r->state + r->at.eval_breaker, &breaker, sizeof(breaker)));
	breaker |= PLEASE_STOP;
	PRB_TRY(prb_mail_write(r->memory, r->state + r->at.path, r->file.path,
			       strlen(r->file.path) + 1));
	PRB_TRY(prb_mail_write(r->memory, r->state + r->at.pending, &flag, sizeof(flag)));
	return prb_mail_write(r->memory, r->state + r->at.eval_breaker, &breaker, sizeof(breaker));
}

/** Unless it was taken, or another debugger's has replaced it. */
static struct prb_error *withdraw(struct request *r)
{
	char path[sizeof(r->file.path)];
	const int32_t flag = 0;

	PRB_TRY(is_pending(r, &r->withdrawn));
	PRB_TRY(prb_mail_read(r->memory, r->state + r->at.path, path, sizeof(path)));
	if (!r->withdrawn || strncmp(path, r->file.path, sizeof(path)) != 0)
		return NULL;
	return prb_mail_write(r->memory, r->state + r->at.pending, &flag, sizeof(flag));
}

/** While no thread runs. */
static struct prb_error *while_stopped(struct request *r,
				       struct prb_error *(*act)(struct request *))
{
	struct prb_stopped_threads stopped = {};
	prb_auto_urgent struct prb_urgent urgent = {};
	double begin;

	prb_urgent_begin(&urgent);
	begin = prb_clock_seconds();

	struct prb_error *err = prb_stop_threads_all(&stopped, r->t->pid);

	if (!err)
		err = act(r);
	r->result->stops += (unsigned)stopped.stops.count;
	prb_stop_threads_end(&stopped);
	r->result->pause_us += (prb_clock_seconds() - begin) * 1e6;
	return err;
}

/** What the script has said; false if nothing so far. */
static bool has_said(struct request *r, char ret[SAID_MAX])
{
	char path[32];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->file.fd);
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd < 0 ? -1 : pread(fd, ret, SAID_MAX - 1, 0);
	ret[PRB_MAX(length, 0)] = 0;
	return length > 0 && (ret[length - 1] == '\n' || length == SAID_MAX - 1) &&
	       strncmp(ret, script, 4) != 0;
}

static struct prb_error *take_result(struct request *r, char said[SAID_MAX])
{
	prb_auto_str struct prb_str text = {};
	char *end = said;

	r->result->value = *said == '=' ? strtoll(said + 1, &end, 10) : 0;
	if (*said == '=' && *end == '\n')
		return NULL;
	said[strcspn(said, "\n")] = 0;
	prb_text_escape(&text, said);
	return prb_error_create(PRB_ERROR_FAILED, "process %d cannot load the agent: %s",
				(int)r->t->pid, prb_str_text(&text));
}

static struct prb_error *too_late(struct request *r, double timeout)
{
	if (!r->withdrawn)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT,
					 "Python of process %d took the request, and the script "
					 "has not ended within %g s",
					 (int)r->t->pid, timeout),
			"a hook for audits (cpython.remote_debugger_script) may refuse it, of "
			"which the program's stderr tells");
	return prb_error_hint(
		prb_error_create(
			PRB_ERROR_TIMEOUT,
			"the main thread of process %d executed no Python code within %g s, and "
			"the request was withdrawn",
			(int)r->t->pid, timeout),
		"'inject' without '--by' need not wait for it");
}

static struct prb_error *await(struct request *r, double timeout)
{
	double until = prb_clock_seconds() + timeout;
	char said[SAID_MAX];

	while (prb_clock_seconds() < until) {
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
		if (has_said(r, said))
			return take_result(r, said);
	}
	PRB_TRY(while_stopped(r, withdraw));
	return has_said(r, said) ? take_result(r, said) : too_late(r, timeout);
}

static struct prb_error *ask(struct request *r, const char *library, double timeout)
{
	PRB_TRY(find(r));
	PRB_TRY(prb_inject_check_other_way(r->t, library));
	PRB_TRY(write_script(r, library));
	PRB_TRY(prb_mail_open(r->t->pid, &r->memory));
	if (strlen(r->file.path) >= r->at.path_size)
		return prb_error_create(PRB_ERROR_BAD_DATA, "sys.remote_exec() has no room for %s",
					r->file.path);
	PRB_TRY(while_stopped(r, place));
	return await(r, timeout);
}

struct prb_error *prb_remote_exec_agent(struct prb_target *t, double timeout,
					struct prb_inject_result *ret)
{
	struct request r = {.t = t, .memory = -1, .file = PRB_NO_TARGET_COPY, .result = ret};
	prb_auto_free char *library = NULL;

	*ret = (struct prb_inject_result){.way = "by sys.remote_exec()"};
	PRB_TRY(prb_agent_library(&library));

	struct prb_error *err = ask(&r, library, timeout > 0 ? timeout : TIMEOUT);
	prb_target_copy_remove(&r.file);
	if (r.memory >= 0)
		close(r.memory);
	PRB_TRY(prb_pause_state_blame(t, err));
	prb_agent_tidy(t);
	return prb_agent_started(t, ret->value);
}
