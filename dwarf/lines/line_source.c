/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/lines/line_source.h"

#include <string.h>

#include "base/cleanup.h"
#include "base/jail.h"
#include "dwarf/elf/confine.h"
#include "dwarf/lines/line_table.h"
#include "dwarf/lines/record.h"
#include "dwarf/lines/runs.h"

struct prb_line_source {
	struct prb_elf *elf; /* borrowed */
	uint16_t machine;
	bool confined;
	struct prb_line_table *table; /* if confined: in the child only */
	bool released;		      /* in the child: libbfd, which was held for the fork */
	struct prb_jail *jail;
	int *patience; /* borrowed */
};

/** A range of addresses, of which each @p step bytes one is looked up. */
struct request {
	uint64_t start;
	uint32_t size, step;
};

static struct prb_error *record_of(void *context, uint64_t address, struct prb_str *ret)
{
	struct prb_line_source *source = context;
	struct prb_lines lines = {};
	struct prb_error *err = prb_line_table_find(source->table, address, &lines);

	if (!err && !lines.list.count && !prb_vec_push(&lines.list))
		err = prb_error_nomem();
	if (!err)
		prb_line_record_encode(&lines, true, ret);
	prb_lines_deinit(&lines);
	return err;
}

/** In the child, whose memory is a copy of ours at the fork. */
static struct prb_error *work(void *context, const void *data, size_t length, struct prb_str *ret)
{
	struct prb_line_source *source = context;
	struct request request;

	if (length != sizeof(request))
		return prb_error_create(PRB_ERROR_FAILED, "a malformed request");
	memcpy(&request, data, sizeof(request));
	if (!source->released)
		prb_line_tables_release();
	source->released = true;
	if (!source->table)
		PRB_TRY(prb_line_table_open(source->elf, source->machine, &source->table));
	return prb_line_runs_make(request.start, request.size, request.step, record_of, source,
				  ret);
}

static struct prb_error *ask(struct prb_line_source *source, const struct request *request,
			     struct prb_str *ret)
{
	const struct prb_jail_spec spec = {
		.name = prb_elf_name(source->elf),
		.work = work,
		.context = source,
		.file = prb_elf_fd(source->elf),
	};

	if (!source->jail) {
		prb_line_tables_hold();
		struct prb_error *err = prb_jail_start(&spec, &source->jail);
		prb_line_tables_release();
		PRB_TRY(err);
	}
	return prb_jail_ask(source->jail, request, sizeof(*request), source->patience, ret);
}

struct prb_error *prb_line_source_open(struct prb_elf *elf, uint16_t machine, int *patience,
				       struct prb_line_source **ret)
{
	PRB_TRY(prb_line_table_check(elf));

	prb_auto_free struct prb_line_source *source = calloc(1, sizeof(*source));
	if (!source)
		return prb_error_nomem();
	source->elf = elf;
	source->machine = machine;
	source->patience = patience;
	source->confined = prb_elf_must_confine(elf);
	if (!source->confined)
		PRB_TRY(prb_line_table_open(elf, machine, &source->table));
	*ret = prb_steal(&source);
	return NULL;
}

void prb_line_source_close(struct prb_line_source *source)
{
	if (!source)
		return;
	prb_jail_end(source->jail);
	if (source->table)
		prb_line_table_close(source->table);
	free(source);
}

static struct prb_error *no_sense(const struct prb_line_source *source)
{
	return prb_error_create(PRB_ERROR_BAD_DATA, "what the parser of %s says makes no sense",
				prb_elf_name(source->elf));
}

struct prb_error *prb_line_source_find(struct prb_line_source *source, uint64_t address,
				       struct prb_lines *ret)
{
	const struct request request = {.start = address, .size = 1, .step = 1};
	prb_auto_str struct prb_str runs = {};
	const void *record;
	size_t length;

	if (!source->confined)
		return prb_line_table_find(source->table, address, ret);
	PRB_TRY(ask(source, &request, &runs));
	if (!prb_line_runs_find(runs.data, runs.length, 0, &record, &length) ||
	    !prb_line_record_decode_unnamed(record, length, ret))
		return no_sense(source);
	return NULL;
}

struct prb_error *prb_line_source_runs(struct prb_line_source *source, uint64_t start,
				       uint32_t size, uint32_t step, struct prb_str *ret)
{
	const struct request request = {.start = start, .size = size, .step = step};

	if (source->confined)
		return ask(source, &request, ret);
	return prb_line_runs_make(start, size, step, record_of, source, ret);
}
