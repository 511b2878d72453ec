/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/cleanup.h"
#include "base/jail.h"
#include "dwarf/elf/confine.h"
#include "dwarf/types/parse.h"

/** The work of the child, whose memory is a copy of ours. */
struct job {
	struct prb_elf *elf;
	const char *unit;
	struct prb_type_query *queries;
	size_t count;
};

/** The answer to one query, as it is sent. */
struct reply {
	int64_t value;
	uint32_t size;
	uint8_t bit, bits, found, padding;
};

static struct prb_error *work(void *context, const void *request, size_t length,
			      struct prb_str *ret)
{
	const struct job *job = context;

	(void)request;
	(void)length;
	PRB_TRY(prb_types_parse(job->elf, job->unit, job->queries, job->count));
	for (size_t i = 0; i < job->count; i++) {
		const struct prb_type_query *q = &job->queries[i];
		struct reply reply = {};

		if (q->found)
			reply = (struct reply){q->value, q->size, q->bit, q->bits, true, 0};
		prb_str_append(ret, &reply, sizeof(reply));
	}
	return NULL;
}

/** Takes what may be true; the values themselves are as good as the file is. */
static struct prb_error *take(const struct job *job, const struct prb_str *answer)
{
	bool ok = answer->length == job->count * sizeof(struct reply);

	for (size_t i = 0; ok && i < job->count; i++) {
		struct prb_type_query *q = &job->queries[i];
		struct reply reply;

		memcpy(&reply, answer->data + i * sizeof(reply), sizeof(reply));
		ok = reply.bit + reply.bits <= 64 && reply.found <= 1;
		q->value = reply.value;
		q->size = reply.size;
		q->bit = reply.bit;
		q->bits = reply.bits;
		q->found = reply.found;
	}
	return ok ? NULL
		  : prb_error_create(PRB_ERROR_BAD_DATA,
				     "what the parser of %s says makes no sense",
				     prb_elf_name(job->elf));
}

static struct prb_error *query_confined(struct job *job)
{
	prb_auto_jail struct prb_jail *jail = NULL;
	const struct prb_jail_spec spec = {
		.name = prb_elf_name(job->elf),
		.work = work,
		.context = job,
		.file = prb_elf_fd(job->elf),
	};
	prb_auto_str struct prb_str answer = {};
	int patience = PRB_JAIL_PATIENCE;

	PRB_TRY(prb_jail_start(&spec, &jail));
	PRB_TRY(prb_jail_ask(jail, NULL, 0, &patience, &answer));
	return take(job, &answer);
}

struct prb_error *prb_types_query(struct prb_elf *elf, const char *unit,
				  struct prb_type_query *queries, size_t count)
{
	struct job job = {.elf = elf, .unit = unit, .queries = queries, .count = count};

	if (!prb_elf_has_section(elf, ".debug_info") || !prb_elf_must_confine(elf))
		return prb_types_parse(elf, unit, queries, count);
	return query_confined(&job);
}
