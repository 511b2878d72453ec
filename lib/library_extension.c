/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: what the caller's extensions say about targets. */
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "lib/library_private.h"
#include "target/custom.h"

struct prb_library_extension {
	struct prb_custom custom;
	struct probing_extension functions; /* the caller's */
};

static int put(void *to, const char *text, size_t length)
{
	prb_str_append(to, text, length);
	return 0;
}

static bool has_class(void *context, const char *name)
{
	const struct probing_extension *f = &((struct prb_library_extension *)context)->functions;

	return f->has_class && f->object && f->has_class(f->context, name);
}

static bool give_text(void *context, uint64_t address, uint64_t type, struct prb_str *ret)
{
	const struct probing_extension *f = &((struct prb_library_extension *)context)->functions;

	return f->object(f->context, address, type, put, ret);
}

static bool give_wait(void *context, const struct prb_custom_frame *frame, struct prb_str *ret)
{
	const struct probing_extension *f = &((struct prb_library_extension *)context)->functions;

	return f->wait && f->wait(f->context, frame->tid, frame->depth, frame->file, frame->func,
				  frame->qualname, put, ret);
}

static struct prb_error *give_table(void *context, const char *name, struct prb_str *ret)
{
	const struct probing_extension *f = &((struct prb_library_extension *)context)->functions;
	int found = f->table ? f->table(f->context, name, put, ret) : 0;

	if (!found)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "no extension has such a table");
	return found > 0 ? NULL : prb_error_create(PRB_ERROR_FAILED, "%s", prb_str_text(ret));
}

void prb_library_extension_destroy(struct prb_library_extension *extension)
{
	free(extension);
}

void probing_set_extension(struct probing *p, const struct probing_extension *extension)
{
	struct prb_library_extension *made = NULL;

	if (extension)
		made = calloc(1, sizeof(*made));
	if (made) {
		memcpy(&made->functions, extension,
		       PRB_MIN(extension->size, sizeof(made->functions)));
		made->custom =
			(struct prb_custom){made, has_class, give_text, give_wait, give_table};
	}
	prb_session_set_custom(p->session, made ? &made->custom : NULL);
	prb_library_extension_destroy(p->extension);
	p->extension = made;
}
