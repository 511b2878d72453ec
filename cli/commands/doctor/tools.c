/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checks of probing's own parts: its cache, the agent, the plugins of debuggers. */
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/load.h"
#include "cli/commands/debuggers/start_debugger.h"
#include "cli/commands/doctor/doctor.h"
#include "base/cleanup.h"
#include "dwarf/cache/cache.h"
#include "gateway/mhd.h"
#include "gateway/page_files.h"
#include "profile/sampler/sampler.h"

static void check_cache(struct prb_doctor *d, const struct prb_check *check)
{
	prb_auto_close int folder = prb_cache_folder();
	char link[64], path[4096] = "";

	if (folder >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", folder);
		ssize_t length = readlink(link, path, sizeof(path) - 1);

		path[length > 0 ? length : 0] = '\0';
	}
	if (folder >= 0 && !faccessat(folder, ".", W_OK | X_OK, AT_EACCESS)) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "%s", path);
		return;
	}
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
			"there is no folder that is ours alone and can be written to: what is "
			"learnt about a build is learnt each time anew%s%s",
			*path ? ": " : "", path);
	prb_remarks_advise(&d->report, "mkdir -m 700 /tmp/probing-%u", (unsigned)geteuid());
}

static void check_agent(struct prb_doctor *d, const struct prb_check *check)
{
	prb_auto_free char *path = NULL;
	prb_auto_error struct prb_error *err = prb_agent_library(&path);

	if (err) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_NO,
				"%s: inject, eval, repl and debug --pause do not work",
				err->message);
		prb_remarks_advise(&d->report, "%s", err->hint ? err->hint : "make install");
	} else if (access(path, R_OK)) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_NO,
				"%s, which PROBING_AGENT names, cannot be read", path);
		prb_remarks_advise(&d->report, "unset PROBING_AGENT");
	} else {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK, "%s", path);
	}
}

static void check_debugger(struct prb_doctor *d, const char *name,
			   const struct prb_debugger_kind *kind)
{
	prb_auto_free char *program = prb_debugger_program(kind), *plugin = NULL;
	prb_auto_error struct prb_error *err = prb_debugger_plugin(kind, &plugin);

	if (program && !err) {
		prb_remarks_add(&d->report, name, PRB_VERDICT_OK, "%s; plugin %s", program, plugin);
	} else if (!program) {
		prb_remarks_add(&d->report, name, PRB_VERDICT_LIMITED,
				"not installed: 'probing %s' does not work", name);
		prb_remarks_advise(&d->report, "apt install %s", kind->program);
	} else {
		prb_remarks_add(&d->report, name, PRB_VERDICT_LIMITED, "%s", err->message);
		prb_remarks_advise(&d->report, "make install");
	}
}

static void check_gdb(struct prb_doctor *d, const struct prb_check *check)
{
	check_debugger(d, check->name, &prb_debugger_gdb);
}

static void check_lldb(struct prb_doctor *d, const struct prb_check *check)
{
	check_debugger(d, check->name, &prb_debugger_lldb);
}

static void add_missing(struct prb_doctor *d, const struct prb_check *check, const char *why,
			const char *command, const char *hint)
{
	prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED, "%s: '%s' does not work", why,
			command);
	if (hint)
		prb_remarks_advise(&d->report, "%s", hint);
}

/* Nothing is loaded into the kernel for that: a seccomp filter may kill who tries. */
static void check_ebpf(struct prb_doctor *d, const struct prb_check *check)
{
	enum { PERFMON = 38, BPF = 39 }; /* by linux/capability.h of newer systems */
	prb_auto_error struct prb_error *err = prb_profile_ebpf_check();
	bool allowed = prb_doctor_has(d, CAP_SYS_ADMIN) ||
		       (prb_doctor_has(d, PERFMON) && prb_doctor_has(d, BPF));

	if (!err && allowed) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"'perf --source ebpf' samples without stops");
		return;
	}
	add_missing(d, check, err ? err->message : "it needs root, or CAP_BPF and CAP_PERFMON",
		    "perf --source ebpf", err ? err->hint : NULL);
}

static void check_page(struct prb_doctor *d, const struct prb_check *check)
{
	prb_auto_error struct prb_error *err = prb_mhd_load();

	if (!err && !prb_page_files[0].path) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_LIMITED,
				"built without the page: 'serve' answers programs alone");
		prb_remarks_advise(&d->report, "make web && make");
		return;
	}
	if (!err) {
		prb_remarks_add(&d->report, check->name, PRB_VERDICT_OK,
				"'serve' answers browsers and programs");
		return;
	}
	add_missing(d, check, err->message, "serve", err->hint);
}

static const struct prb_check checks[] = {
	{"cache", check_cache},
	{"agent", check_agent},
	{"gdb", check_gdb},
	{"lldb", check_lldb},
	{"eBPF", check_ebpf},
	{"page", check_page},
	{"namesake", prb_doctor_namesake},
	{},
};

const struct prb_section prb_section_tools = {"Parts of probing", checks};
