/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What tasks and greenlets wait for: the stack of their thread ends in the event loop. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/dump.h"
#include "dump/model/program_frame.h"
#include "cli/commands/run/report.h"
#include "judge/suspended.h"

enum { MOST_PLACES = 6 };

/* Tasks that wait in the same line for the same thing. */
struct place {
	struct prb_str text;
	size_t tasks;
};

struct places {
	PRB_VEC(struct place) list;
};

static void places_deinit(struct places *places)
{
	struct place *place;

	prb_vec_each (place, &places->list)
		prb_str_deinit(&place->text);
	prb_vec_free(&places->list);
}

/* What they wait for may end with its address, by which no two are the same. */
static void put_wait(struct prb_str *s, const char *words)
{
	const char *address = strstr(words, " at 0x");

	if (!address)
		address = strstr(words, " of 0x");
	prb_str_puts(s, " waits for ");
	prb_text_escape_bytes(s, words, address ? (size_t)(address - words) : strlen(words));
}

/* The innermost frame of the program: libraries have their own functions around an await. */
static const struct prb_dump_frame *frame_of(const struct prb_dump_task *task)
{
	const size_t end = prb_dump_own_frames(task);

	for (size_t i = 0; i < end; i++)
		if (!prb_dump_is_library(&task->frames.items[i]))
			return &task->frames.items[i];
	return end ? task->frames.items : NULL;
}

/* "task        fetch client.py:31 waits for Event.wait" */
static void put_task(struct prb_str *s, const struct prb_dump_task *task)
{
	const struct prb_dump_frame *frame = frame_of(task);
	const char *slash = frame && frame->file ? strrchr(frame->file, '/') : NULL;

	prb_text_column(s, task->kind, 12);
	if (!frame)
		prb_text_escape(s, task->name ? task->name : "?");
	else if (frame->qualname || frame->func)
		prb_text_escape(s, frame->qualname ? frame->qualname : frame->func);
	if (frame && frame->file) {
		prb_str_putc(s, ' ');
		prb_text_escape(s, slash ? slash + 1 : frame->file);
		prb_str_printf(s, ":%d", (int)frame->line);
	}
	if (task->waits_for)
		put_wait(s, task->waits_for);
}

static struct prb_error *note(struct places *places, const struct prb_dump_task *task)
{
	prb_auto_str struct prb_str text = {};
	struct place *place;

	put_task(&text, task);
	prb_vec_each (place, &places->list)
		if (!strcmp(prb_str_text(&place->text), prb_str_text(&text))) {
			place->tasks++;
			return NULL;
		}
	place = prb_vec_push(&places->list);
	if (!place)
		return prb_error_nomem();
	*place = (struct place){.text = text, .tasks = 1};
	text = (struct prb_str){};
	return NULL;
}

static int by_tasks(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return x->tasks < y->tasks ? -1 : x->tasks > y->tasks;
}

/* Where few wait is what others wait for. */
static void put_places(struct prb_str *s, struct places *places)
{
	const size_t count = places->list.count;

	if (count)
		qsort(places->list.items, count, sizeof(*places->list.items), by_tasks);
	for (size_t i = 0; i < PRB_MIN(count, (size_t)MOST_PLACES); i++) {
		const struct place *place = &places->list.items[i];

		prb_str_printf(s, "  %s", prb_str_text(&place->text));
		if (place->tasks > 1)
			prb_str_printf(s, "   (%zu of them)", place->tasks);
		prb_str_putc(s, '\n');
	}
	if (count > MOST_PLACES)
		prb_str_printf(s, "  tasks       at %zu more places\n", count - MOST_PLACES);
}

struct prb_error *prb_report_tasks(const struct prb_why_one *one, struct prb_str *ret)
{
	__attribute__((cleanup(places_deinit))) struct places places = {};
	prb_auto_target struct prb_target *target = NULL;
	prb_auto_dump struct prb_dump *dump = NULL;
	const struct prb_dump_task *task;
	struct prb_error *err;

	if (!one->dump)
		return NULL;
	err = prb_target_open_process(one->process.pid, &target);
	if (!err)
		err = prb_case_read_tasks(&(const struct prb_case){.target = target}, &dump);
	if (err || !dump)
		return prb_error_tolerate(err, NULL);
	prb_vec_each (task, &dump->tasks)
		if (!task->current)
			PRB_TRY(note(&places, task));
	put_places(ret, &places);
	return NULL;
}
