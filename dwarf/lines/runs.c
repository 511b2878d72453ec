/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/runs.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum { MAX_RUNS = 1 << 20 /* bytes; the cache takes no more in one record */ };

struct head {
	uint32_t bytes, length;
};

static void put(struct prb_str *s, uint64_t bytes, const struct prb_str *record)
{
	struct head head = {(uint32_t)bytes, (uint32_t)record->length};

	if (!bytes)
		return;
	prb_str_append(s, &head, sizeof(head));
	prb_str_append(s, record->data, record->length);
}

/* Gives up what becomes too long to be kept. */
static bool is_too_long(struct prb_str *s)
{
	if (s->length <= MAX_RUNS)
		return false;
	prb_str_truncate(s, 0);
	return true;
}

static bool same(const struct prb_str *a, const struct prb_str *b)
{
	return a->length == b->length && (!a->length || !memcmp(a->data, b->data, a->length));
}

struct prb_error *prb_line_runs_make(uint64_t start, uint64_t size, unsigned step,
				     prb_line_record_of *record_of, void *context,
				     struct prb_str *ret)
{
	prb_auto_str struct prb_str run = {};
	uint64_t run_start = 0;

	for (uint64_t at = 0; at < size; at += step) {
		prb_auto_str struct prb_str record = {};

		PRB_TRY(record_of(context, start + at, &record));
		if (at && same(&run, &record))
			continue;
		put(ret, at - run_start, &run);
		if (is_too_long(ret))
			return NULL;
		run_start = at;
		prb_str_deinit(&run);
		run = record;
		record = (struct prb_str){};
	}
	put(ret, size - run_start, &run);
	is_too_long(ret);
	return ret->failed || run.failed ? prb_error_nomem() : NULL;
}

static struct prb_error *no_sense(void)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "the lines of a function make no sense");
}

struct prb_error *prb_line_runs_change(const void *runs, size_t length, uint64_t size,
				       prb_line_record_change *change, void *context,
				       struct prb_str *ret)
{
	const char *data = runs;
	struct head head;

	for (size_t at = 0; at < length; at += head.length) {
		prb_auto_str struct prb_str record = {};

		if (!prb_inside(at, sizeof(head), length))
			return no_sense();
		memcpy(&head, data + at, sizeof(head));
		at += sizeof(head);
		if (!prb_inside(at, head.length, length) || !head.bytes || head.bytes > size)
			return no_sense();
		PRB_TRY(change(context, data + at, head.length, &record));
		if (record.failed)
			return prb_error_nomem();
		put(ret, head.bytes, &record);
		size -= head.bytes;
		if (is_too_long(ret))
			return NULL;
	}
	if (size)
		return no_sense();
	return ret->failed ? prb_error_nomem() : NULL;
}

bool prb_line_runs_find(const void *runs, size_t length, uint64_t offset, const void **record,
			size_t *record_length)
{
	const char *data = runs;
	struct head head;

	for (size_t at = 0; prb_inside(at, sizeof(head), length);) {
		memcpy(&head, data + at, sizeof(head));
		at += sizeof(head);
		if (!prb_inside(at, head.length, length))
			return false;
		if (offset < head.bytes) {
			*record = data + at;
			*record_length = head.length;
			return true;
		}
		offset -= head.bytes;
		at += head.length;
	}
	return false;
}
