/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/list/dead.h"

#include <stdio.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/local_time.h"
#include "base/str.h"
#include "base/text.h"
#include "command/output.h"
#include "target/recorded/left.h"

static struct prb_error *show_text(const struct prb_left_list *all)
{
	prb_auto_str struct prb_str text = {};
	const struct prb_left *left;

	if (!all->list.count) {
		fputs("probing: no process that has ended has left rows here\n", stderr);
		return NULL;
	}
	prb_str_puts(&text, "    PID  LAST CHANGE          RINGS     MIB  FOLDER\n");
	prb_vec_each (left, &all->list) {
		prb_str_printf(&text, "%7d  ", (int)left->pid);
		prb_str_printf(&text, "%19s",
			       prb_local_time((time_t)left->time, PRB_LOCAL_DAY).text);
		prb_str_printf(&text, "  %5u  %6.1f  ", left->rings,
			       (double)left->bytes / (1 << 20));
		prb_text_escape(&text, left->path);
		prb_str_putc(&text, '\n');
	}
	return prb_output_lines(&text, false);
}

static struct prb_error *show_json(const struct prb_left_list *all)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	const struct prb_left *left;

	prb_json_open(&json, NULL, '[');
	prb_vec_each (left, &all->list) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "pid", left->pid);
		prb_json_integer(&json, "uid", left->uid);
		prb_json_integer(&json, "last_change", (int64_t)left->time);
		prb_json_integer(&json, "rings", left->rings);
		prb_json_integer(&json, "bytes", (int64_t)left->bytes);
		prb_json_text(&json, "folder", left->path);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_str_putc(&text, '\n');
	return prb_output(&text);
}

struct prb_error *prb_list_dead(bool as_json)
{
	__attribute__((cleanup(prb_left_list_deinit))) struct prb_left_list all = {};

	PRB_TRY(prb_left_find_all(&all));
	return as_json ? show_json(&all) : show_text(&all);
}
