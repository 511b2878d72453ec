/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where the layout and the lines of interpreters come from. */
#include <stdio.h>
#include <sys/stat.h>

#include "cli/commands/doctor/doctor.h"
#include "base/cleanup.h"
#include "python/python.h"

/* Different interpreters that are looked at; each may take a second when it is met first. */
enum { MAX_INTERPRETERS = 16 };

static const char *const sources[] = {
	[PRB_LAYOUT_DEBUG_OFFSETS] = "the process itself (_Py_DebugOffsets)",
	[PRB_LAYOUT_DWARF] = "debug information (DWARF)",
	[PRB_LAYOUT_TABLE] = "the built-in table of that version",
};

static void add_interpreter(struct prb_doctor *d, const struct prb_python *py)
{
	struct prb_elf *debug;
	prb_auto_error struct prb_error *err = prb_module_debug(py->module, &debug);

	prb_remarks_add(&d->report, "interpreter", err ? PRB_VERDICT_LIMITED : PRB_VERDICT_OK,
			"Python %s%s%s, %s: layout from %s; %s", py->version,
			py->layout.free_threaded ? " free-threaded" : "",
			py->layout.debug_build ? " debug" : "", py->module->path,
			sources[py->layout.source],
			err ? "no debug information: --native has no lines of its C code"
			    : "debug information found");
	if (err)
		prb_remarks_advise(&d->report,
				   "install its debug package (Debian's Python: apt install "
				   "python%u.%u-dbg)",
				   py->layout.version >> 8, py->layout.version & 0xff);
}

void prb_doctor_interpreters(struct prb_doctor *d, struct prb_target *target)
{
	struct prb_modules *modules = NULL;
	struct prb_pythons pythons = {};
	struct prb_view *view = NULL;
	struct prb_python **py;
	struct prb_error *err = prb_view_create(target->mem, &view);

	if (!err)
		err = prb_pythons_open(target, view, true, &modules, &pythons);
	if (err) {
		prb_remarks_add(&d->report, "interpreter", PRB_VERDICT_NO, "process %d: %s",
				(int)target->pid, err->message);
		if (err->hint)
			prb_remarks_advise(&d->report, "%s", err->hint);
	} else {
		prb_vec_each (py, &pythons.list)
			add_interpreter(d, *py);
	}
	prb_error_destroy(err);
	prb_pythons_deinit(&pythons);
	prb_modules_destroy(modules);
	prb_view_destroy(view);
}

/** False if a process before has the same executable. */
static bool is_first(const struct prb_python_processes *all, size_t index, struct stat *known)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)all->list.items[index].process.pid);
	if (stat(path, &known[index]))
		known[index] = (struct stat){};
	for (size_t i = 0; i < index; i++)
		if (known[i].st_ino && known[i].st_dev == known[index].st_dev &&
		    known[i].st_ino == known[index].st_ino)
			return false;
	return true;
}

static void look_at(struct prb_doctor *d, pid_t pid)
{
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_error struct prb_error *err = prb_target_open_process(pid, &target);

	if (!err) /* it has not ended since */
		prb_doctor_interpreters(d, target);
}

static void check_interpreters(struct prb_doctor *d, const struct prb_check *check)
{
	size_t count = d->pythons ? d->pythons->list.count : 0, seen = 0, closed = 0;
	prb_auto_free struct stat *known = calloc(count + 1, sizeof(*known));

	if (!d->pythons) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"the Python processes could not be looked at");
		return;
	}
	for (size_t i = 0; known && i < count; i++) {
		const struct prb_python_process *p = &d->pythons->list.items[i];

		closed += p->refusal != NULL;
		if (!p->refusal && is_first(d->pythons, i, known) && seen++ < MAX_INTERPRETERS)
			look_at(d, p->process.pid);
	}
	if (seen > MAX_INTERPRETERS)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_UNKNOWN,
				"%zu more interpreters were not looked at",
				seen - MAX_INTERPRETERS);
	if (closed)
		prb_remarks_add(
			&d->report, check->name, PRB_VERDICT_LIMITED,
			"%zu Python process%s may not be read; 'probing list' has the reasons",
			closed, closed > 1 ? "es" : "");
	if (!seen && !closed)
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "no Python runs here");
}

static const struct prb_check checks[] = {{"interpreter", check_interpreters}, {}};

const struct prb_section prb_section_interpreters = {"Python interpreters that run", checks};
