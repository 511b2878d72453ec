/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/library_view.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"

/* Behind "/lib/python3.12/", or NULL: code that comes with Python. */
static const char *in_standard_library(const char *file)
{
	static const char start[] = "/lib/python";
	const char *at = strstr(file, start);

	if (!strncmp(file, "<frozen ", strlen("<frozen ")))
		return file;
	if (!at)
		return NULL;
	at += strlen(start);
	while (isdigit((unsigned char)*at) || *at == '.' || *at == 't')
		at++;
	return *at == '/' ? at + 1 : NULL;
}

/* Behind ".../site-packages/", or NULL. */
static const char *in_packages(const char *file)
{
	static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
	const char *at = NULL;

	for (size_t i = 0; !at && i < PRB_ARRAY_SIZE(folders); i++) {
		at = strstr(file, folders[i]);
		at = at ? at + strlen(folders[i]) : NULL;
	}
	return at;
}

static void put_python(const char *file, struct prb_str *ret)
{
	const char *at = file ? in_packages(file) : NULL;
	size_t length = at ? strcspn(at, "/") : 0;

	if (at && length > 3 && !at[length] && !strncmp(at + length - 3, ".py", 3))
		length -= 3;
	if (at)
		prb_str_append(ret, at, length);
	else
		prb_str_puts(ret, file && in_standard_library(file) ? "standard library"
								    : "the program");
	prb_str_puts(ret, " (Python)");
}

static struct prb_error *library_of(struct prb_tree *tree, const struct prb_tree_function *f,
				    uint32_t *ret)
{
	struct prb_tree_function library = {.kind = f->kind, .name = f->name};
	prb_auto_str struct prb_str name = {};
	uint32_t number;

	if (f->kind == PRB_FUNCTION_PYTHON)
		put_python(f->file, &name);
	else if (f->kind == PRB_FUNCTION_NATIVE)
		prb_str_puts(&name,
			     f->module ? prb_tree_short_path(f->module) : "code made at run time");
	if (name.failed)
		return prb_error_nomem();
	if (name.length)
		library.name = prb_str_text(&name);
	PRB_TRY(prb_tree_function(tree, &library, &number));
	return prb_tree_frame(tree, number, 0, ret);
}

struct view {
	struct prb_tree *tree;
	uint32_t *frames;  /* of the new tree, by the old one's functions */
	uint32_t *renamed; /* stacks */
};

static struct prb_error *rename_all(const struct prb_tree *old, struct view *v)
{
	for (size_t i = 0; i < old->functions.count; i++)
		PRB_TRY(library_of(v->tree, &old->functions.items[i], &v->frames[i]));
	/* A caller's number is lower than those of its calls. */
	for (size_t i = 1; i < old->stacks.count; i++) {
		const struct prb_tree_stack *stack = &old->stacks.items[i];
		uint32_t frame = v->frames[old->frames.items[stack->frame].function];
		uint32_t under = v->renamed[stack->parent];

		if (under && v->tree->stacks.items[under].frame == frame)
			v->renamed[i] = under;
		else
			PRB_TRY(prb_tree_call(v->tree, under, frame, &v->renamed[i]));
	}
	return NULL;
}

struct prb_error *prb_library_view(struct prb_recording *recording)
{
	const struct prb_tree *old = recording->tree;
	prb_auto_free uint32_t *frames = calloc(old->functions.count + 1, sizeof(*frames));
	prb_auto_free uint32_t *renamed = calloc(old->stacks.count + 1, sizeof(*renamed));
	struct view v = {.frames = frames, .renamed = renamed};
	struct prb_error *err;
	struct prb_run *run;

	if (!frames || !renamed)
		return prb_error_nomem();
	PRB_TRY(prb_tree_create(&v.tree));
	err = rename_all(old, &v);
	if (err) {
		prb_tree_destroy(v.tree);
		return err;
	}
	/* Lines of source belong to no library as a whole. */
	prb_recording_drop_lines(recording);
	prb_vec_each (run, &recording->runs)
		run->stack = renamed[run->stack];
	prb_tree_destroy(recording->tree);
	recording->tree = v.tree;
	return NULL;
}
