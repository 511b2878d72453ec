/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/extensions.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "target/custom.h"

struct text {
	uint64_t type;
	char *text; /* NULL: no text */
};

/* Cache of objects that extensions were asked about, since frames share objects. */
struct asked {
	const struct prb_custom *custom;
	PRB_VEC(struct text) texts;
	struct prb_number_map numbers; /* of `list`, by address */
};

static bool find_text(void *context, uint64_t object, uint64_t type, struct prb_str *ret)
{
	struct asked *asked = context;
	prb_auto_str struct prb_str text = {};
	struct text *known;
	size_t number;
	bool found;

	if (prb_number_map_get(&asked->numbers, object, &number) &&
	    asked->texts.items[number].type == type) {
		known = &asked->texts.items[number];
		if (known->text)
			prb_str_puts(ret, known->text);
		return known->text;
	}
	found = asked->custom->object(asked->custom->context, object, type, &text);
	if (found)
		prb_str_append(ret, text.data, text.length);
	known = prb_vec_push(&asked->texts);
	if (!known)
		return found;
	*known = (struct text){type, found ? prb_str_take(&text) : NULL};
	if (!prb_number_map_put(&asked->numbers, object, asked->texts.count - 1))
		ret->failed = true;
	return found;
}

static void asked_deinit(struct asked *asked)
{
	struct text *known;

	prb_vec_each (known, &asked->texts)
		free(known->text);
	prb_vec_free(&asked->texts);
	prb_number_map_deinit(&asked->numbers);
}

static struct prb_error *put_value(const struct prb_custom *custom, struct prb_dump_local *local)
{
	prb_auto_str struct prb_str text = {};

	if (!local->value)
		return NULL;
	prb_str_puts(&text, local->value);
	PRB_TRY(prb_custom_expand(custom, &text));
	if (text.length == strlen(local->value) && !strcmp(text.data, local->value))
		return NULL;
	free(local->value);
	local->value = prb_str_take(&text);
	return local->value ? NULL : prb_error_nomem();
}

static struct prb_error *put_words(const struct prb_custom *custom, struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;
	prb_auto_str struct prb_str words = {};
	struct prb_custom_frame place = {.tid = thread->tid};
	bool found = false;

	prb_vec_each (frame, &thread->frames) {
		if (frame->kind != PRB_FRAME_PYTHON)
			continue;
		place.file = frame->file;
		place.func = frame->func;
		place.qualname = frame->qualname;
		found = custom->wait(custom->context, &place, &words);
		if (found)
			break;
		place.depth++;
	}
	if (!found)
		return NULL;
	free(thread->waits_for);
	thread->waits_for = prb_str_take(&words);
	return thread->waits_for ? NULL : prb_error_nomem();
}

static struct prb_error *put_values(const struct prb_custom *custom, struct prb_dump_thread *thread)
{
	struct prb_dump_local *local;
	struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		prb_vec_each (local, &frame->locals)
			PRB_TRY(put_value(custom, local));
	return NULL;
}

struct prb_error *prb_dump_customise(struct prb_target *target,
				     const struct prb_dump_options *options, struct prb_dump *dump)
{
	const struct prb_custom *custom = target->custom;
	__attribute__((cleanup(asked_deinit))) struct asked asked = {.custom = custom};
	const struct prb_custom remembering = {.context = &asked, .object = find_text};
	struct prb_dump_thread *thread;

	prb_vec_each (thread, &dump->threads) {
		if (options->locals)
			PRB_TRY(put_values(&remembering, thread));
		if (!options->no_waits && thread->tid)
			PRB_TRY(put_words(custom, thread));
	}
	return NULL;
}
