/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/debugger.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "command/output.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/package_place.h"
#include "target/target.h"
#include "target/spec/target_spec.h"

/* What the debugger is started with. */
struct launch {
	const char *words[16];
	size_t count;
	const char *load;
	char *pid, *exe;
};

static void launch_deinit(struct launch *l)
{
	free(l->pid);
	free(l->exe);
}

static void add(struct launch *l, const char *word)
{
	if (word && l->count < PRB_ARRAY_SIZE(l->words) - 1)
		l->words[l->count++] = word;
}

char *prb_debugger_program(const struct prb_debugger_kind *kind)
{
	const char *path_variable = getenv("PATH");
	prb_auto_free char *folders = strdup(path_variable ? path_variable : "");
	char *rest = folders;

	for (const char *folder; rest && (folder = strsep(&rest, ":"));) {
		prb_auto_free char *path = prb_format("%s/%s", folder, kind->program);

		if (path && !access(path, X_OK))
			return realpath(path, NULL);
	}
	return NULL;
}

struct prb_error *prb_debugger_plugin(const struct prb_debugger_kind *kind, char **ret)
{
	static const char *const places[] = {"/../share/probing/gdbplugin", "/../gdbplugin"};
	char folder[4096];

	prb_program_folder(folder, sizeof(folder));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(places); i++) {
		prb_auto_free char *path = prb_format("%s%s/%s", folder, places[i], kind->plugin);

		if (!path)
			return prb_error_nomem();
		*ret = realpath(path, NULL);
		if (*ret)
			return NULL;
	}
	prb_auto_free char *name = prb_format("gdbplugin/%s", kind->plugin);

	*ret = name ? prb_package_file(folder, name) : NULL;
	if (*ret)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_NOT_FOUND,
					       "the plugin %s is not installed beside probing",
					       kind->plugin),
			      "'make install' puts it there");
}

static struct prb_error *add_process(struct launch *l, pid_t pid)
{
	l->pid = prb_format("%d", (int)pid);
	if (!l->pid)
		return prb_error_nomem();
	add(l, "-p");
	add(l, l->pid);
	return NULL;
}

static struct prb_error *add_core(struct launch *l, struct prb_target *target, const char *path)
{
	prb_auto_str struct prb_str link = {};
	struct prb_error *err = prb_target_read_link(target, &link, "exe");

	if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		PRB_TRY(err);
	if (link.length && !(l->exe = prb_str_take(&link)))
		return prb_error_nomem();
	add(l, "-c");
	add(l, path);
	add(l, l->exe);
	return NULL;
}

/** Opens the target to find out what it is: if we may not, we say better why than a debugger. */
static struct prb_error *add_target(struct launch *l, const struct prb_debugger_kind *kind,
				    const char *text, const struct prb_core_places *places)
{
	struct prb_target *target;
	struct prb_error *err;

	PRB_TRY(prb_spec_open_in(text, places, &target));
	if (target->local)
		err = add_process(l, target->pid);
	else if (target->partial)
		err = add_core(l, target, text);
	else
		err = prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE, "%s cannot open a %s: '%.200s'",
					 kind->program, prb_target_kind_name(target->kind), text),
			"it takes a process or a core file; 'probing FILE query' "
			"reads snapshots");
	prb_target_destroy(target);
	return err;
}

/** The library of this very build, and where LLDB's own module is. */
static void set_environment(const struct prb_debugger_kind *kind)
{
	prb_auto_str struct prb_str python = {};
	const char *before = getenv("PYTHONPATH");
	char folder[4096];

	prb_program_folder(folder, sizeof(folder));
	prb_auto_free char *library = prb_format("%s/libprobing.so", folder);
	if (library && !access(library, R_OK))
		setenv("PROBING_LIBRARY", library, 0);
	if (kind->python_path)
		kind->python_path(&python);
	if (python.length && before && *before)
		prb_str_printf(&python, ":%s", before);
	if (python.length && !python.failed)
		setenv("PYTHONPATH", prb_str_text(&python), 1);
}

static struct prb_error *start(struct launch *l, const struct prb_debugger_kind *kind,
			       const struct prb_cli *cli)
{
	const char *target = cli->argument_count ? cli->arguments[0] : cli->target;

	add(l, kind->program);
	add(l, kind->quiet);
	add(l, kind->early);
	add(l, l->load);
	if (target)
		PRB_TRY(add_target(l, kind, target, &cli->places));
	set_environment(kind);
	execvp(kind->program, (char **)l->words);
	return prb_error_hint(prb_error_os(errno, "cannot start %s", kind->program),
			      "is it installed? On Debian: apt install %s", kind->program);
}

/** The debugger's command that loads the plugin; @p ret is the caller's to end. */
static void put_load(struct prb_str *ret, const struct prb_debugger_kind *kind, const char *plugin)
{
	prb_str_printf(ret, "%s ", kind->load);
	for (const char *at = plugin; *at; at++) {
		if (kind->words && strchr(" \"'`\\", *at))
			prb_str_puts(ret, "\\");
		prb_str_append(ret, at, 1);
	}
}

struct prb_error *prb_debugger_run(const struct prb_debugger_kind *kind, const struct prb_cli *cli,
				   const struct prb_debugger_settings *settings)
{
	__attribute__((cleanup(launch_deinit))) struct launch l = {};
	prb_auto_free char *plugin = NULL;
	prb_auto_str struct prb_str load = {};

	PRB_TRY(prb_debugger_plugin(kind, &plugin));
	put_load(&load, kind, plugin);
	if (load.failed)
		return prb_error_nomem();
	l.load = prb_str_text(&load);
	if (!settings->print)
		return start(&l, kind, cli);
	prb_str_puts(&load, "\n");
	return prb_output(&load);
}
