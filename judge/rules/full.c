/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file is open for writing on a file system without room. Programs take that as they like. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "dump/waits/descriptors.h"
#include "judge/facts.h"
#include "judge/limits.h"
#include "judge/threads.h"

enum { MOST_FILES = 1024, MOST_LINES = 8 };

static uint64_t room_of(struct prb_case *c, const struct prb_descriptor *d)
{
	return prb_case_status(c, "Uid") == 0 ? d->room_of_root : d->room;
}

static struct prb_error *tell(const struct prb_rule *rule, struct prb_case *c,
			      const struct prb_descriptor *d, struct prb_findings *ret,
			      struct prb_finding **f)
{
	struct prb_str *line;

	if (!*f) {
		PRB_TRY(prb_finding_add(rule, ret, f));
		(*f)->confidence = PRB_CONFIDENCE_MEDIUM;
		prb_str_puts(&(*f)->brief, "a file system is full");
		prb_str_puts(&(*f)->sentence, "the file system of ");
		prb_text_escape(&(*f)->sentence, prb_str_text(&d->path));
		prb_str_printf(&(*f)->sentence, ", which is open for writing, is full: %llu kB of ",
			       (unsigned long long)room_of(c, d) >> 10);
		prb_text_bytes(&(*f)->sentence, (double)d->capacity);
		prb_str_puts(&(*f)->sentence, " are free");
		prb_str_puts(&(*f)->rests_on, "the open files, and the kernel's count of free "
					      "blocks");
		prb_str_puts(&(*f)->wrong_if, "the program does not write to it any more");
		if (c->pid)
			prb_str_printf(&(*f)->next, "df /proc/%d/fd/%d", (int)c->pid, d->fd);
	}
	if ((*f)->evidence.count >= MOST_LINES)
		return NULL;
	PRB_TRY(prb_finding_line(*f, 0, &line));
	prb_str_printf(line, "file %d ", d->fd);
	prb_text_escape(line, prb_str_text(&d->path));
	if (d->deleted)
		prb_str_puts(line, ", which was removed");
	prb_str_printf(line, ", at byte %llu", (unsigned long long)d->position);
	return NULL;
}

static bool is_full(struct prb_case *c, const struct prb_descriptor *d)
{
	/* A small one is not full from its beginning. */
	double little = PRB_MIN(prb_limit(PRB_LIMIT_ROOM) * 1024, (double)d->capacity / 16);

	return d->room_known && d->capacity && (double)room_of(c, d) < little;
}

static struct prb_error *look_at(const struct prb_rule *rule, struct prb_case *c,
				 struct prb_descriptors *descriptors, struct prb_findings *ret)
{
	prb_auto_str struct prb_str names = {};
	struct prb_finding *f = NULL;
	char *end;

	PRB_TRY(prb_error_tolerate(prb_target_list(c->target, &names, "fd"), NULL));
	end = (char *)prb_str_text(&names);
	for (unsigned n = 0; n < MOST_FILES; n++) {
		const char *at = end;
		int fd = (int)strtol(at, &end, 10);
		struct prb_descriptor d;
		struct prb_error *err;

		if (end == at)
			return NULL;
		err = prb_descriptor_read(descriptors, fd, PRB_DESCRIPTOR_ROOM, &d);
		if (err) {
			PRB_TRY(prb_error_tolerate(err, NULL));
			continue;
		}
		if (is_full(c, &d))
			err = tell(rule, c, &d, ret, &f);
		prb_descriptor_deinit(&d);
		PRB_TRY(err);
	}
	return NULL;
}

static struct prb_error *find(const struct prb_rule *rule, struct prb_case *c,
			      struct prb_findings *ret)
{
	struct prb_descriptors *descriptors;
	struct prb_error *err;

	if (!prb_case_is_here(c))
		return NULL;
	PRB_TRY(prb_descriptors_create(c->target, &descriptors));
	err = look_at(rule, c, descriptors, ret);
	prb_descriptors_destroy(descriptors);
	return err;
}

const struct prb_rule prb_rule_full = {
	.rank = 85,
	.name = "full",
	.kind = PRB_FINDING_ROOM,
	.needs = PRB_RULE_PROC,
	.proves = "a file is open for writing on a file system without room",
	.find = find,
};
