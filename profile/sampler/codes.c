/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/codes.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "python/frames/code_identity.h"
#include "python/frames/lines.h"
#include "python/repr/core/repr.h"
#include "python/runtime/entered.h"

enum {
	MOST_KNOWN = 65536, /* a program that makes code all the time */
	NOTHING = UINT32_MAX,
};

struct known {
	uint64_t address;
	struct prb_py_code_identity identity;
	struct prb_py_code code;
	uint8_t *lines;
	enum prb_line_format format;
	uint64_t compared; /* the round in which it was last found to be the same */
	bool has_subject;
	bool enters; /* may be within `with` statements that turn gradients off or on */
	uint32_t function;
};

struct noted {
	uint32_t known; /* index, NOTHING: a code that could not be read */
	int32_t position;
	uint64_t subject; /* 0: none */
	uint64_t frame;	  /* its address */
};

struct prb_codes {
	uint32_t root;
	struct prb_tree *tree;
	PRB_VEC(struct known) list;
	size_t kept;		       /* so many of them */
	struct prb_number_map numbers; /* by address; may be out of date */
	struct prb_number_map frames;  /* by index and position */
	PRB_VEC(struct noted) noted;   /* innermost first */
	size_t others;		       /* so many of them, at the end, are not on the stack */
	PRB_VEC(uint32_t) made;	       /* the tree's frames for them */
	uint64_t round;
	bool watches_modules;
};

struct prb_error *prb_codes_create(struct prb_tree *tree, struct prb_codes **ret)
{
	struct prb_codes *codes = calloc(1, sizeof(*codes));

	if (!codes)
		return prb_error_nomem();
	codes->tree = tree;
	*ret = codes;
	return NULL;
}

void prb_codes_watch_modules(struct prb_codes *codes)
{
	codes->watches_modules = true;
}

static bool runs_module(const struct prb_py_code *code)
{
	return !strcmp(code->name, "forward") || !strcmp(code->name, "_call_impl") ||
	       !strcmp(code->name, "_wrapped_call_impl") ||
	       (!strcmp(code->name, "step") && code->file && strstr(code->file, "/torch/optim/"));
}

static void cut(struct prb_codes *codes, size_t count)
{
	while (codes->list.count > count) {
		struct known *last = &codes->list.items[--codes->list.count];

		prb_py_code_deinit(&last->code);
		free(last->lines);
	}
}

void prb_codes_destroy(struct prb_codes *codes)
{
	if (!codes)
		return;
	cut(codes, 0);
	prb_vec_free(&codes->list);
	prb_vec_free(&codes->noted);
	prb_vec_free(&codes->made);
	prb_number_map_deinit(&codes->numbers);
	prb_number_map_deinit(&codes->frames);
	free(codes);
}

void prb_codes_root(struct prb_codes *codes, uint32_t stack)
{
	codes->root = stack;
}

void prb_codes_begin(struct prb_codes *codes)
{
	codes->round++;
	codes->noted.count = codes->others = 0;
	cut(codes, codes->kept);
	if (codes->kept < MOST_KNOWN)
		return;
	cut(codes, 0);
	codes->kept = 0;
	prb_number_map_deinit(&codes->numbers);
	prb_number_map_deinit(&codes->frames);
}

/* Before 3.11 only a frame gives the qualified name; a missing one is no error. */
static struct prb_error *add_qualname(struct prb_python *py, struct prb_mem *mem,
				      const struct prb_py_frame *frame, struct prb_py_code *code)
{
	struct prb_error *err;

	if (code->qualname)
		return NULL;
	err = prb_python_qualname(py, mem, frame, code, &code->qualname);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *learn(struct prb_codes *codes, struct prb_python *py, struct prb_mem *mem,
			       const struct prb_py_frame *frame,
			       const struct prb_py_code_identity *identity, uint32_t *ret)
{
	struct known *known = prb_vec_push(&codes->list);

	if (!known)
		return prb_error_nomem();
	known->address = frame->code;
	known->identity = *identity;
	known->compared = codes->round;
	known->format = py->layout.behaviour->lines;
	PRB_TRY(prb_python_code(py, mem, frame->code, &known->code));
	PRB_TRY(add_qualname(py, mem, frame, &known->code));
	known->has_subject = codes->watches_modules && runs_module(&known->code);
	known->enters = codes->watches_modules && !known->has_subject;
	PRB_TRY(prb_python_line_table(py, mem, identity, &known->lines));
	*ret = (uint32_t)codes->list.count - 1;
	return prb_number_map_put(&codes->numbers, frame->code, *ret) ? NULL : prb_error_nomem();
}

static struct prb_error *find(struct prb_codes *codes, struct prb_python *py, struct prb_mem *mem,
			      const struct prb_py_frame *frame, uint32_t *ret)
{
	struct prb_py_code_identity identity;
	struct known *known = NULL;
	size_t number = 0;

	if (prb_number_map_get(&codes->numbers, frame->code, &number) &&
	    number < codes->list.count && codes->list.items[number].address == frame->code)
		known = &codes->list.items[number];
	*ret = (uint32_t)number;
	if (known && known->compared == codes->round)
		return NULL;
	PRB_TRY(prb_python_code_identity(py, mem, frame->code, &identity));
	if (!known || !prb_py_code_identity_equal(&identity, &known->identity))
		return learn(codes, py, mem, frame, &identity, ret);
	known->compared = codes->round;
	return NULL;
}

/* What its innermost `with` statement about gradients says. */
static struct prb_error *read_gradients(struct prb_python *py, struct prb_mem *mem,
					const struct prb_py_frame *frame, uint64_t *ret)
{
	struct prb_py_entered entered;

	PRB_TRY(prb_python_entered(py, mem, frame, &entered));
	for (unsigned i = 0; i < entered.count && !*ret; i++) {
		prb_auto_str struct prb_str type = {};
		uint64_t object = entered.list[i].object, mode;
		int64_t on = 0;

		if (!object)
			continue;
		PRB_TRY(prb_object_type_name(py, mem, object, &type));
		if (!strcmp(prb_str_text(&type), "enable_grad"))
			*ret = PRB_SUBJECT_GRADIENT;
		else if (!strcmp(prb_str_text(&type), "no_grad"))
			*ret = PRB_SUBJECT_NO_GRADIENT;
		else if (!strcmp(prb_str_text(&type), "set_grad_enabled") ||
			 !strcmp(prb_str_text(&type), "inference_mode")) {
			bool inference = *prb_str_text(&type) == 'i';

			PRB_TRY(prb_object_attribute(py, mem, object, "mode", &mode));
			PRB_TRY(prb_object_int(py, mem, mode, &on));
			if (!inference || on)
				*ret = inference || !on ? PRB_SUBJECT_NO_GRADIENT
							: PRB_SUBJECT_GRADIENT;
		}
	}
	return NULL;
}

/* A frame of which that cannot be read is one that says nothing. */
static struct prb_error *note_gradients(struct prb_python *py, struct prb_mem *mem,
					const struct prb_py_frame *frame, uint64_t *ret)
{
	struct prb_error *err = read_gradients(py, mem, frame, ret);

	if (!err || err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_NO_PROCESS)
		return err;
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *note_frame(struct prb_codes *codes, struct prb_python *py,
				    struct prb_mem *mem, const struct prb_py_frame *frame)
{
	struct noted *noted = prb_vec_push(&codes->noted);
	size_t count = codes->list.count;
	int64_t position;
	struct prb_error *err;

	if (!noted)
		return prb_error_nomem();
	noted->known = NOTHING;
	noted->frame = frame->address;
	err = find(codes, py, mem, frame, &noted->known);
	if (!err)
		err = prb_python_position(py, mem, frame, &position);
	if (!err && codes->list.items[noted->known].has_subject)
		err = prb_python_first_value(py, mem, frame, &noted->subject);
	else if (!err && codes->list.items[noted->known].enters)
		err = note_gradients(py, mem, frame, &noted->subject);
	if (!err) {
		noted->position = (int32_t)position;
		return NULL;
	}
	if (err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	cut(codes, count);
	noted->known = NOTHING;
	return NULL;
}

struct prb_error *prb_codes_note(struct prb_codes *codes, struct prb_python *py,
				 struct prb_mem *mem, const struct prb_py_frames *frames)
{
	const struct prb_py_frame *frame;

	prb_vec_each (frame, &frames->list)
		if (!frame->hidden)
			PRB_TRY(note_frame(codes, py, mem, frame));
	return NULL;
}

bool prb_codes_has_new(const struct prb_codes *codes)
{
	return codes->list.count > codes->kept;
}

struct prb_error *prb_codes_note_other(struct prb_codes *codes, struct prb_python *py,
				       struct prb_mem *mem, const struct prb_py_frame *frame)
{
	codes->others++;
	return note_frame(codes, py, mem, frame);
}

bool prb_codes_find(const struct prb_codes *codes, uint64_t address, size_t *ret)
{
	for (size_t i = 0; i + codes->others < codes->noted.count; i++) {
		if (codes->noted.items[i].frame != address)
			continue;
		if (ret)
			*ret = i;
		return true;
	}
	return false;
}

static struct prb_error *keep_functions(struct prb_codes *codes)
{
	for (; codes->kept < codes->list.count; codes->kept++) {
		struct known *known = &codes->list.items[codes->kept];
		const struct prb_tree_function function = {
			.kind = PRB_FUNCTION_PYTHON,
			.name = known->code.qualname ? known->code.qualname : known->code.name,
			.file = known->code.file,
			.first_line = known->code.first_line,
		};

		PRB_TRY(prb_tree_function(codes->tree, &function, &known->function));
		prb_py_code_deinit(&known->code);
	}
	return NULL;
}

/* A function counts once for each subject. */
static struct prb_error *function_of(struct prb_codes *codes, const struct noted *noted,
				     uint32_t *ret)
{
	struct prb_tree_function function;

	*ret = codes->list.items[noted->known].function;
	if (!noted->subject)
		return NULL;
	function = codes->tree->functions.items[*ret];
	function.subject = noted->subject;
	return prb_tree_function(codes->tree, &function, ret);
}

static struct prb_error *frame_of(struct prb_codes *codes, const struct noted *noted, uint32_t *ret)
{
	uint64_t key = (uint64_t)noted->known << 32 | (uint32_t)noted->position;
	const struct known *known = &codes->list.items[noted->known];
	struct prb_py_location location;
	uint32_t function;
	size_t number;

	if (!noted->subject && prb_number_map_get(&codes->frames, key, &number)) {
		*ret = (uint32_t)number;
		return NULL;
	}
	prb_lines_decode(known->format, known->lines, known->identity.lines_size,
			 (int32_t)known->identity.first_line, noted->position, &location);
	PRB_TRY(function_of(codes, noted, &function));
	PRB_TRY(prb_tree_frame(codes->tree, function, location.line < 0 ? 0 : location.line, ret));
	if (noted->subject)
		return NULL;
	return prb_number_map_put(&codes->frames, key, *ret) ? NULL : prb_error_nomem();
}

static struct prb_error *unknown_frame(struct prb_codes *codes, uint32_t *ret)
{
	uint32_t stack;

	PRB_TRY(prb_tree_note(codes->tree, "<unknown code>", &stack));
	*ret = codes->tree->stacks.items[stack].frame;
	return NULL;
}

struct prb_error *prb_codes_keep_frames(struct prb_codes *codes, const uint32_t **ret)
{
	const struct noted *noted;

	PRB_TRY(keep_functions(codes));
	codes->made.count = 0;
	prb_vec_each (noted, &codes->noted) {
		uint32_t *frame = prb_vec_push(&codes->made);

		if (!frame)
			return prb_error_nomem();
		PRB_TRY(noted->known == NOTHING ? unknown_frame(codes, frame)
						: frame_of(codes, noted, frame));
	}
	*ret = codes->made.items;
	return NULL;
}

const uint32_t *prb_codes_kept_frames(const struct prb_codes *codes, size_t *ret_others)
{
	*ret_others = codes->made.count - codes->others;
	return codes->made.items;
}

struct prb_error *prb_codes_keep(struct prb_codes *codes, uint32_t *ret_stack)
{
	const uint32_t *frames;
	uint32_t stack = codes->root;

	PRB_TRY(prb_codes_keep_frames(codes, &frames));
	for (size_t i = codes->made.count - codes->others; i-- > 0;)
		PRB_TRY(prb_tree_call(codes->tree, stack, frames[i], &stack));
	*ret_stack = stack;
	return NULL;
}
