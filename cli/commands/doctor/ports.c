/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Debuggers that listen at ports of the network. A process that listens and has a debugger's
 * modules, or is called as one, looks like it; no connection is made, since some debuggers stop the
 * program on any connection.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands/doctor/doctor.h"
#include "remote/serve/known.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "values/modules.h"
#include "python/python.h"
#include "target/proc/text.h"
#include "dump/waits/descriptors.h"

enum { MAX_FDS = 20000, MAX_NAMES = 3 };

/** Where NCCL's service listens, unless NCCL_RAS_ADDR says otherwise. */
static const char ras_address[] = "localhost:28028";

static const char name[] = "debug port";
static const char runs_code[] = "whoever connects can run code as its user";

/** How a debugger shows. */
static const struct sign {
	const char *title;
	const char *modules[MAX_NAMES]; /* in sys.modules */
	const char *words[MAX_NAMES];	/* in the command line */
	const char *danger, *todo;
} signs[] = {
	{"debugpy",
	 {"debugpy.server", "debugpy.adapter"},
	 {"debugpy"},
	 runs_code,
	 "end the session in the editor, or restart it with --listen 127.0.0.1:PORT"},
	{"pydevd",
	 {"pydevd", "_pydevd_bundle"},
	 {"pydevd.py"},
	 runs_code,
	 "end the session in the editor"},
	{"a Jupyter kernel",
	 {"ipykernel.kernelapp"},
	 {"ipykernel_launcher", "ipykernel"},
	 "whoever has the key in its connection file can run code as its user",
	 "chmod 600 its connection file (jupyter --runtime-dir has it), and keep it at 127.0.0.1"},
	{"a Jupyter server",
	 {"jupyter_server.serverapp", "notebook.notebookapp"},
	 {"jupyter-lab", "jupyter-notebook", "jupyter-server"},
	 "whoever has its token or password can run code as its user",
	 "jupyter server list shows it; jupyter server stop PORT ends it"},
	{"rpdb", {"rpdb"}, {NULL}, runs_code, "continue the program from a client, which ends it"},
	{"remote-pdb",
	 {"remote_pdb"},
	 {NULL},
	 runs_code,
	 "continue the program from a client, which ends it"},
	{"web-pdb",
	 {"web_pdb"},
	 {NULL},
	 runs_code,
	 "continue the program from a browser, which ends it"},
	{"the debugger of Werkzeug (Flask)",
	 {"werkzeug.debug"},
	 {NULL},
	 "whoever has or guesses its PIN can run code as its user",
	 "restart it without --debug, FLASK_DEBUG and use_debugger"},
	{"the debug server of torch.distributed",
	 {"torch.distributed.debug"},
	 {NULL},
	 "whoever connects can read the state of the job",
	 "restart it without that server"},
	{"a console of gevent or eventlet",
	 {"gevent.backdoor", "eventlet.backdoor"},
	 {NULL},
	 runs_code,
	 "restart it without the backdoor"},
	{"aiomonitor", {"aiomonitor"}, {NULL}, runs_code, "restart it without the monitor"},
};

struct listening {
	struct prb_str addresses; /* "127.0.0.1:5678, …" */
	size_t count;
	bool network; /* one of them can be reached from other machines */
	bool cut;     /* not all descriptors were looked at */
};

static bool is_loopback(const char *address)
{
	return !strncmp(address, "127.", 4) || !strcmp(address, "::1");
}

static void add_address(struct listening *l, const struct prb_descriptor *descriptor)
{
	const char *const *socket = descriptor->socket;
	const char *address, *open = "", *close = "";

	if (!socket[PRB_SOCKET_PROTOCOL] || strncmp(socket[PRB_SOCKET_PROTOCOL], "tcp", 3) != 0 ||
	    strcmp(socket[PRB_SOCKET_STATE], "listen") != 0)
		return;
	address = socket[PRB_SOCKET_LOCAL_ADDRESS];
	if (strchr(address, ':')) {
		open = "[";
		close = "]";
	}
	prb_str_printf(&l->addresses, "%s%s%s%s:%s", l->count++ ? ", " : "", open, address, close,
		       socket[PRB_SOCKET_LOCAL_PORT]);
	l->network |= !is_loopback(address);
}

static void find_listening(struct prb_target *target, struct listening *ret)
{
	struct prb_descriptors *descriptors = NULL;
	prb_auto_str struct prb_str names = {};
	prb_auto_error struct prb_error *err = prb_descriptors_create(target, &descriptors);
	unsigned count = 0;

	if (!err)
		err = prb_target_list(target, &names, "fd");
	for (char *at = names.data, *end; !err && at && *at; at = end + (*end == '\n')) {
		struct prb_descriptor descriptor;
		long fd = strtol(at, &end, 10);

		if (end == at || (ret->cut = ++count > MAX_FDS))
			break;
		struct prb_error *unread = prb_descriptor_read(descriptors, (int)fd,
							       PRB_DESCRIPTOR_SOCKET, &descriptor);
		if (!unread) {
			add_address(ret, &descriptor);
			prb_descriptor_deinit(&descriptor);
		}
		prb_error_destroy(unread); /* closed since, or closed to us */
	}
	prb_descriptors_destroy(descriptors);
}

/** sys.modules of the first interpreter; an error if it cannot be read. */
static struct prb_error *read_modules(struct prb_target *target, struct prb_imports *ret)
{
	struct prb_modules *modules = NULL;
	struct prb_pythons pythons = {};
	struct prb_py_threads threads = {};
	struct prb_view *view;

	PRB_TRY(prb_view_create(target->mem, &view));

	struct prb_error *err = prb_pythons_open(target, view, false, &modules, &pythons);
	struct prb_python *py = err ? NULL : pythons.list.items[0];
	if (py)
		err = prb_python_threads(py, target->mem, &threads);
	if (!err && threads.interps.count)
		err = prb_imports_read(py, target->mem,
				       threads.interps.items[threads.interps.count - 1].address,
				       ret);
	prb_py_threads_deinit(&threads);
	prb_pythons_deinit(&pythons);
	prb_modules_destroy(modules);
	prb_view_destroy(view);
	return err;
}

static const char *loaded_module(const struct sign *sign, const struct prb_imports *imports)
{
	const struct prb_import *import;

	for (size_t i = 0; i < MAX_NAMES && sign->modules[i]; i++)
		prb_vec_each (import, &imports->list)
			if (import->name && !strcmp(import->name, sign->modules[i]))
				return sign->modules[i];
	return NULL;
}

/** True if the word ends where @p length bytes end, or a folder or an ending follows. */
static bool is_part(const char *found, size_t length)
{
	return !isalnum((unsigned char)found[length]) && found[length] != '_';
}

static const char *named_word(const struct sign *sign, const struct prb_process *p)
{
	char *const *argument;

	for (size_t i = 0; i < MAX_NAMES && sign->words[i]; i++)
		prb_vec_each (argument, &p->argv) {
			const char *found = strstr(*argument, sign->words[i]);

			if (found && is_part(found, strlen(sign->words[i])))
				return sign->words[i];
		}
	return NULL;
}

static void put_evidence(struct prb_str *s, const char *module, const char *word)
{
	if (module)
		prb_str_printf(s, "the module %s is loaded", module);
	if (word)
		prb_str_printf(s, "%sthe command line has '%s'", module ? ", " : "", word);
}

static void report(struct prb_doctor *d, const struct prb_process *p, const struct sign *sign,
		   const struct listening *l, const char *evidence)
{
	if (!l)
		prb_remarks_add(
			&d->report, name, PRB_VERDICT_UNKNOWN,
			"%d (%s) looks like %s (%s), and its ports may not be looked at. If "
			"it listens, %s",
			(int)p->pid, p->comm, sign->title, evidence, sign->danger);
	else if (!l->count)
		prb_remarks_add(
			&d->report, name, PRB_VERDICT_UNKNOWN,
			"%d (%s) looks like %s (%s), and listens at no port itself; another "
			"process may do so for it: 'probing doctor' looks at all",
			(int)p->pid, p->comm, sign->title, evidence);
	else
		prb_remarks_add(
			&d->report, name, l->network ? PRB_VERDICT_NO : PRB_VERDICT_LIMITED,
			"%d (%s) looks like %s (%s), and listens on %s%s, %s: %s", (int)p->pid,
			p->comm, sign->title, evidence, prb_str_text(&l->addresses),
			l->count > 1 ? " (one of them, or another part of the program)" : "",
			l->network ? "which other machines may reach"
				   : "which only this machine can reach",
			sign->danger);
	if (!l || l->count)
		prb_remarks_advise(&d->report, "%s", sign->todo);
}

static bool uses_nccl(struct prb_target *target)
{
	struct prb_maps maps = {};
	const struct prb_map *map;
	bool found = false;

	prb_error_destroy(prb_target_read_maps(target, &maps));
	prb_vec_each (map, &maps.list) {
		const char *file = strrchr(map->path, '/');

		/* Wheels have a library of its own, other builds have it inside of torch's. */
		found |= file && (!strncmp(file, "/libnccl.so", 11) ||
				  !strncmp(file, "/libtorch_cuda.so", 17));
	}
	prb_maps_deinit(&maps);
	return found;
}

/** NCCL's service for reliability: a thread of each rank, which answers any client. */
static void report_ras(struct prb_doctor *d, const struct prb_process *p, struct prb_target *target,
		       const struct listening *l)
{
	prb_auto_str struct prb_str environment = {};
	const char *said, *port;

	if (!l->count || !uses_nccl(target))
		return;
	prb_error_destroy(prb_target_read_file(target, &environment, "environ"));
	said = prb_text_variable(&environment, "NCCL_RAS_ADDR");
	port = strrchr(said && strchr(said, ':') ? said : ras_address, ':');
	for (const char *at = prb_str_text(&l->addresses); *at; at += strspn(at, ", ")) {
		size_t length = strcspn(at, ","), tail = strlen(port);
		bool loopback = !strncmp(at, "127.", 4) || !strncmp(at, "[::1]", 5);

		if (length > tail && !strncmp(at + length - tail, port, tail)) {
			prb_remarks_add(&d->report, name,
					loopback ? PRB_VERDICT_LIMITED : PRB_VERDICT_NO,
					"%d (%s) looks like NCCL's RAS service (NCCL is loaded, "
					"and this is its port), and listens on %.*s, %s: whoever "
					"connects can read the state of the job",
					(int)p->pid, p->comm, (int)length, at,
					loopback ? "which only this machine can reach"
						 : "which other machines may reach");
			prb_remarks_advise(&d->report,
					   "NCCL_RAS_ENABLE=0 switches it off, "
					   "NCCL_RAS_ADDR=127.0.0.1:PORT keeps it here");
		}
		at += length;
	}
}

static void examine(struct prb_doctor *d, const struct prb_process *p, const struct listening *l,
		    const struct prb_imports *imports)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(signs); i++) {
		prb_auto_str struct prb_str evidence = {};
		const char *module = loaded_module(&signs[i], imports);
		const char *word = named_word(&signs[i], p);

		if (!module && !word)
			continue;
		put_evidence(&evidence, module, word);
		report(d, p, &signs[i], l, prb_str_text(&evidence));
	}
}

/** Our own server asks for a token. */
static void report_served(struct prb_doctor *d, pid_t pid)
{
	prb_auto_str struct prb_str addresses = {};

	prb_serve_known_find(pid, &addresses);
	if (!addresses.length)
		return;
	prb_remarks_add(&d->report, name, PRB_VERDICT_LIMITED,
			"%d is served by probing at %s: whoever has its token can run code as its "
			"user",
			(int)pid, prb_str_text(&addresses));
}

void prb_doctor_ports(struct prb_doctor *d, const struct prb_process *p, struct prb_target *target)
{
	struct listening l = {};
	struct prb_imports imports = {};

	report_served(d, p->pid);
	if (target)
		find_listening(target, &l);
	/* For a process named by the user, report its modules in any case. */
	if (l.count || (target && d->process))
		prb_error_destroy(read_modules(target, &imports));
	if (l.cut)
		prb_remarks_add(
			&d->report, name, PRB_VERDICT_UNKNOWN,
			"%d (%s) has more than %d files open: the others were not looked at",
			(int)p->pid, p->comm, MAX_FDS);
	if (l.count || !target || d->process)
		examine(d, p, target ? &l : NULL, &imports);
	if (target)
		report_ras(d, p, target, &l);
	prb_imports_deinit(&imports);
	d->report.failed |= l.addresses.failed;
	prb_str_deinit(&l.addresses);
}

static void check_ports(struct prb_doctor *d, const struct prb_check *check)
{
	size_t before = d->report.list.count, closed = 0;
	const struct prb_python_process *p;

	if (!d->pythons) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"the Python processes could not be looked at");
		return;
	}
	prb_vec_each (p, &d->pythons->list) {
		prb_auto_target struct prb_target *target = NULL;

		if (!p->refusal)
			prb_error_destroy(prb_target_open_process(p->process.pid, &target));
		closed += !target;
		prb_doctor_ports(d, &p->process, target);
	}
	if (d->report.list.count == before)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"no Python process looks like a debugger that listens");
	if (closed)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"ports and modules of %zu Python process%s may not be looked at",
				closed, closed > 1 ? "es" : "");
}

static const struct prb_check checks[] = {{name, check_ports}, {}};

const struct prb_section prb_section_ports = {"Debug ports of Python processes", checks};
