/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/debuggers/start_debugger.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command/output.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/package_place.h"
#include "target/target.h"
#include "target/spec/target_spec.h"
#include "command/start.h"
#include "command/words.h"

char *prb_debugger_program(const struct prb_debugger_kind *kind)
{
	prb_auto_free char *path = prb_start_find(kind->program);

	for (int version = kind->newest; !path && version > 0 && version >= kind->oldest;
	     version--) {
		prb_auto_free char *name = prb_format("%s-%d", kind->program, version);

		path = name ? prb_start_find(name) : NULL;
	}
	return path ? realpath(path, NULL) : NULL;
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

static struct prb_error *add_process(struct prb_words *words, pid_t pid)
{
	PRB_TRY(prb_words_add(words, "-p"));
	return prb_words_add(words, "%d", (int)pid);
}

/** The path comes from the core, so it is untrusted: it may be no file, or an option. */
static struct prb_error *add_exe(struct prb_words *words, const char *path)
{
	struct stat st;

	if (*path != '/' || stat(path, &st) || !S_ISREG(st.st_mode))
		return NULL;
	return prb_words_add(words, "%s", path);
}

static struct prb_error *add_core(struct prb_words *words, struct prb_target *target,
				  const char *path)
{
	prb_auto_str struct prb_str link = {};
	prb_auto_free char *core = realpath(path, NULL);
	struct prb_error *err = prb_target_read_link(target, &link, "exe");

	if (!core)
		return prb_error_os(errno, "cannot open %s", path);
	if (!prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		PRB_TRY(err);
	PRB_TRY(prb_words_add(words, "-c"));
	PRB_TRY(prb_words_add(words, "%s", core));
	return add_exe(words, prb_str_text(&link));
}

/** Opens the target to find out what it is: if we may not, we say better why than a debugger. */
static struct prb_error *add_target(struct prb_words *words, const struct prb_debugger_kind *kind,
				    const char *text, const struct prb_core_places *places)
{
	prb_auto_target struct prb_target *target = NULL;

	PRB_TRY(prb_spec_open_in(text, places, &target));
	if (target->local)
		return add_process(words, target->pid);
	if (target->partial)
		return add_core(words, target, text);
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "%s cannot open a %s: '%.200s'",
					       kind->program, prb_target_kind_name(target->kind),
					       text),
			      "it takes a process or a core file; 'probing FILE query' "
			      "reads snapshots");
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

static struct prb_error *start(const char *load, const struct prb_debugger_kind *kind,
			       const struct prb_cli *cli)
{
	const char *target = cli->argument_count ? cli->arguments[0] : cli->target;
	prb_auto_free char *found = prb_start_find(kind->program);
	prb_auto_free char *other = found ? NULL : prb_debugger_program(kind);
	const char *const first[] = {other ? other : kind->program, kind->early, load, kind->quiet,
				     NULL};
	prb_auto_words struct prb_words words = {};
	char **list;

	PRB_TRY(prb_words_add_ours(&words, first));
	if (target)
		PRB_TRY(add_target(&words, kind, target, &cli->places));
	PRB_TRY(prb_words_end(&words, &list));
	set_environment(kind);
	return prb_error_hint(
		prb_error_os(prb_start_become(list), "cannot start %s", kind->program),
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
	prb_auto_free char *plugin = NULL;
	prb_auto_str struct prb_str load = {};

	PRB_TRY(prb_debugger_plugin(kind, &plugin));
	put_load(&load, kind, plugin);
	if (load.failed)
		return prb_error_nomem();
	if (!settings->print)
		return start(prb_str_text(&load), kind, cli);
	prb_str_puts(&load, "\n");
	return prb_output(&load);
}
