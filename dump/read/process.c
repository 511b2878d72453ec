/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/process.h"

#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "dump/read/reader.h"
#include "target/core/core.h"
#include "target/proc/signal_text.h"

/* A snapshot of a core has a note: signal, thread, si_code, sender, address. */
static bool recall_death(struct prb_target *target, struct prb_core_info *ret)
{
	prb_auto_str struct prb_str text = {};
	unsigned long long address;
	int told, fault;

	if (!prb_target_recall(target, "death", &text) ||
	    sscanf(prb_str_text(&text), "%d %d %d %d %d %d %llx", &ret->signal, &ret->signal_tid,
		   &told, &ret->signal_code, &ret->signal_sender, &fault, &address) != 7)
		return false;
	ret->signal_told = told != 0;
	ret->fault_told = fault != 0;
	ret->fault_address = address;
	return ret->signal > 0 && ret->signal_tid >= 0 && ret->signal_sender >= 0;
}

static void remember_death(struct prb_target *target, const struct prb_core_info *info)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%d %d %d %d %d %d %llx", info->signal, info->signal_tid,
		       info->signal_told, info->signal_code, info->signal_sender, info->fault_told,
		       (unsigned long long)info->fault_address);
	prb_target_remember(target, "death", prb_str_text(&text), text.length);
}

/* Copies the last line that is not empty. */
static void copy_exception(const struct prb_core_info *core, struct prb_dump_death *ret)
{
	const char *text = core->exception;
	size_t end = core->exception_length, start;

	while (end && text[end - 1] == '\n')
		end--;
	for (start = end; start && text[start - 1] != '\n'; start--)
		;
	snprintf(ret->exception, sizeof(ret->exception), "%.*s",
		 (int)PRB_MIN(end - start, sizeof(ret->exception) - 1), text + start);
}

struct prb_dump_death prb_dump_death(struct prb_target *target)
{
	const struct prb_core_info *core = prb_core_info(target);
	struct prb_core_info recalled = {};
	struct prb_dump_death ret = {};

	if (core && core->exception)
		copy_exception(core, &ret);
	if (core && core->signal)
		remember_death(target, core);
	else if (recall_death(target, &recalled))
		core = &recalled;
	if (!core || !core->signal)
		return ret;
	ret.signal = core->signal;
	ret.tid = core->signal_tid;
	if (!core->signal_told)
		return ret;
	ret.code = prb_signal_code_name(core->signal, core->signal_code);
	ret.why = prb_signal_code_text(core->signal, core->signal_code);
	ret.has_address = core->fault_told;
	ret.address = core->fault_address;
	ret.sender = core->signal_sender;
	return ret;
}

static struct prb_error *split_argv(const struct prb_str *cmdline, struct prb_dump *dump)
{
	size_t end = prb_text_command_length(cmdline->data, cmdline->length);

	for (size_t at = 0; at < end;) {
		char **slot = prb_vec_push(&dump->argv);

		if (!slot)
			return prb_error_nomem();
		*slot = strdup(cmdline->data + at);
		if (!*slot)
			return prb_error_nomem();
		at += strlen(cmdline->data + at) + 1;
	}
	return NULL;
}

static struct prb_error *read_command(struct prb_reader *r)
{
	prb_auto_str struct prb_str exe = {}, cmdline = {};

	prb_error_destroy(prb_target_read_link(r->target, &exe, "exe"));
	PRB_TRY(prb_str_copy(prb_str_text(&exe), &r->dump->exe));
	prb_error_destroy(prb_target_read_file(r->target, &cmdline, "cmdline"));
	return split_argv(&cmdline, r->dump);
}

static struct prb_error *read_exception(struct prb_reader *r)
{
	const struct prb_core_info *core = prb_core_info(r->target);

	if (!core || !core->exception)
		return NULL;
	r->dump->exception = strndup(core->exception, core->exception_length);
	return r->dump->exception ? NULL : prb_error_nomem();
}

struct prb_error *prb_read_process(struct prb_reader *r)
{
	struct prb_dump *dump = r->dump;
	const struct prb_python *py = r->pythons->list.items[0];

	dump->kind = r->target->kind;
	dump->partial = r->target->partial;
	dump->pid = r->target->pid;
	dump->timestamp = r->target->time;
	dump->death = prb_dump_death(r->target);
	PRB_TRY(read_exception(r));
	if (!r->options->no_command)
		PRB_TRY(read_command(r));
	dump->free_threaded = py->layout.free_threaded;
	dump->debug_build = py->layout.debug_build;
	dump->gil_known = !py->layout.free_threaded &&
			  (py->layout.behaviour->gil != PRB_GIL_STATICS || py->tstate_current);
	dump->layout = py->layout.source;
	PRB_TRY(prb_str_copy(py->version, &dump->python_version));
	return prb_str_copy(prb_module_build_id(py->module), &dump->build_id);
}
