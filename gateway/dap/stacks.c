/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Threads, stacks and source, as they are read from outside. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/dump.h"
#include "dump/read/source_text.h"
#include "dump/text/paths.h"
#include "gateway/dap/private.h"

enum { MAX_FRAMES = 10000, MAX_SOURCES = 10000 };

struct prb_error *prb_dap_look(struct prb_dap *d)
{
	const struct prb_dump_options options = {};

	return d->dump ? NULL : prb_dump_create(d->target, &options, &d->dump);
}

void prb_dap_forget(struct prb_dap *d)
{
	struct prb_dap_frame *frame;
	struct prb_dap_scope *scope;

	prb_dump_destroy(d->dump);
	d->dump = NULL;
	free(d->exception);
	d->exception = NULL;
	prb_vec_each (frame, &d->frames)
		free(frame->module);
	prb_vec_each (scope, &d->scopes)
		free(scope->expression);
	d->frames_before += (int)d->frames.count;
	prb_vec_free(&d->frames);
	prb_vec_free(&d->scopes);
	prb_dap_forget_objects(d);
}

struct prb_error *prb_dap_depth(struct prb_dap *d, size_t *ret)
{
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;

	*ret = 0;
	PRB_TRY(prb_dap_look(d));
	prb_vec_each (thread, &d->dump->threads)
		if (thread->tid == d->step_tid)
			prb_vec_each (frame, &thread->frames)
				*ret += frame->kind == PRB_FRAME_PYTHON;
	return NULL;
}

/** A thread that a client wants to see: not one of the agent's. */
static bool is_shown(const struct prb_dump_thread *thread)
{
	static const char ours[] = "probing-";

	return thread->tid && (thread->frames.count ||
			       (thread->ident && (!thread->os_name ||
						  strncmp(thread->os_name, ours, strlen(ours)))));
}

struct prb_error *prb_dap_threads(struct prb_dap *d, const struct prb_dap_request *r)
{
	json_t *list = json_array();
	const struct prb_dump_thread *thread;
	prb_auto_dump struct prb_dump *running = NULL;
	const struct prb_dump *dump;

	if (d->state == PRB_DAP_STOPPED) {
		PRB_TRY(prb_dap_look(d));
		dump = d->dump;
	} else {
		const struct prb_dump_options options = {.max_frames = 1, .no_waits = true};

		PRB_TRY(prb_dump_create(d->target, &options, &running));
		dump = running;
	}
	prb_vec_each (thread, &dump->threads)
		if (is_shown(thread))
			json_array_append_new(
				list, json_pack("{s:i, s:o}", "id", (int)thread->tid, "name",
						prb_dap_string(thread->name	 ? thread->name
							       : thread->os_name ? thread->os_name
										 : "?")));
	return prb_dap_answer(d, r, json_pack("{s:o}", "threads", list));
}

/** The number of a path that the client cannot open itself; 0: it can, or nobody can. */
static int refer_to(struct prb_dap *d, const char *path)
{
	char **each;
	int number = 0;

	/* Python's own frozen modules are in no file, and in no cell of a notebook. */
	if (*path == '/' ? !access(path, R_OK) : !strncmp(path, "<frozen ", 8))
		return 0;
	prb_vec_each (each, &d->sources) {
		number++;
		if (!strcmp(*each, path))
			return number;
	}
	if (d->sources.count >= MAX_SOURCES)
		return 0;

	prb_auto_str struct prb_str text = {};
	prb_error_destroy(prb_source_read(d->target, path, &text));
	each = text.length ? prb_vec_push(&d->sources) : NULL;
	if (!each)
		return 0;
	*each = strdup(path);
	return *each ? (int)d->sources.count : 0;
}

static json_t *source_of(struct prb_dap *d, const char *path)
{
	json_t *source = json_pack("{s:o}", "name", prb_dap_string(prb_path_last(path)));
	prb_auto_free char *theirs = prb_dap_path_of_client(d, path);
	/* A file that is mapped is the client's, which may be on another machine. */
	int reference = theirs && strcmp(theirs, path) != 0 ? 0 : refer_to(d, path);

	if (theirs && *path == '/')
		json_object_set_new(source, "path", prb_dap_string(theirs));
	if (reference)
		json_object_set_new(source, "sourceReference", json_integer(reference));
	return source;
}

/** The frame's id, the same at each request of this stop; 0: out of memory. @p hint: the one that
 * is likely. */
static int refer_to_frame(struct prb_dap *d, pid_t tid, unsigned depth,
			  const struct prb_dump_frame *frame, int hint)
{
	struct prb_dap_frame *each;
	int id = d->frames_before;

	hint = PRB_MAX(hint, id + 1);
	if (hint - id <= (int)d->frames.count) {
		each = &d->frames.items[hint - id - 1];
		if (each->tid == tid && each->depth == depth)
			return hint;
	}
	prb_vec_each (each, &d->frames) {
		id++;
		if (each->tid == tid && each->depth == depth)
			return id;
	}
	each = prb_vec_push(&d->frames);
	if (!each)
		return 0;
	*each = (struct prb_dap_frame){
		.tid = tid, .depth = depth, .module = frame->module ? strdup(frame->module) : NULL};
	return d->frames_before + (int)d->frames.count;
}

static json_t *put_frame(struct prb_dap *d, int id, unsigned depth,
			 const struct prb_dump_frame *frame)
{
	const char *name = frame->qualname ? frame->qualname : frame->func;
	json_t *put;
	bool whole;

	if (!id)
		return NULL;
	/* All of the line is to run where a process has stopped. */
	whole = !depth && d->drive;
	put = json_pack("{s:i, s:o, s:i, s:i}", "id", id, "name", prb_dap_string(name ? name : "?"),
			"line", frame->line > 0 ? frame->line : 0, "column",
			whole		  ? 1
			: frame->col >= 0 ? frame->col + 1
					  : 0);
	if (put && !whole && frame->end_line > 0 && frame->end_col >= 0) {
		json_object_set_new(put, "endLine", json_integer(frame->end_line));
		json_object_set_new(put, "endColumn", json_integer(frame->end_col + 1));
	}
	if (put && frame->file)
		json_object_set_new(put, "source", source_of(d, frame->file));
	return put;
}

struct prb_error *prb_dap_stack(struct prb_dap *d, const struct prb_dap_request *r)
{
	pid_t tid = (pid_t)prb_dap_number(r, "threadId");
	json_int_t first = prb_dap_number(r, "startFrame"), most = prb_dap_number(r, "levels");
	const struct prb_dump_thread *thread;
	const struct prb_dump_frame *frame;
	json_t *list = json_array();
	unsigned depth = 0;
	int id = 0;

	PRB_TRY(prb_dap_look(d));
	most = most > 0 && most < MAX_FRAMES ? most : MAX_FRAMES;
	prb_vec_each (thread, &d->dump->threads) {
		if (thread->tid != tid)
			continue;
		prb_vec_each (frame, &thread->frames) {
			if (frame->kind != PRB_FRAME_PYTHON)
				continue;
			if (depth >= first && depth - first < most) {
				id = refer_to_frame(d, tid, depth, frame, id + 1);
				json_array_append_new(list, put_frame(d, id, depth, frame));
			}
			depth++;
		}
	}
	return prb_dap_answer(
		d, r, json_pack("{s:o, s:i}", "stackFrames", list, "totalFrames", (int)depth));
}

struct prb_error *prb_dap_frame_index(struct prb_dap *d, const struct prb_dap_request *r, int *ret)
{
	json_int_t index = prb_dap_number(r, "frameId") - d->frames_before - 1;

	*ret = -1;
	if (!json_object_get(r->arguments, "frameId"))
		return NULL;
	if (index < 0 || index >= (json_int_t)d->frames.count)
		return prb_error_create(PRB_ERROR_USAGE, "there is no such frame at this stop");
	*ret = (int)index;
	return NULL;
}

struct prb_error *prb_dap_scopes(struct prb_dap *d, const struct prb_dap_request *r)
{
	static const struct {
		const char *name;
		enum prb_dap_kind kind;
	} all[] = {{"Locals", PRB_DAP_LOCALS}, {"Globals", PRB_DAP_GLOBALS}};
	json_t *list;
	int frame;

	PRB_TRY(prb_dap_frame_index(d, r, &frame));
	if (frame < 0)
		return prb_error_create(PRB_ERROR_USAGE, "there is no frameId");
	list = json_array();
	for (size_t i = 0; i < PRB_ARRAY_SIZE(all); i++) {
		struct prb_dap_scope *scope = prb_vec_push(&d->scopes);

		if (!scope)
			return prb_error_nomem();
		*scope = (struct prb_dap_scope){.kind = all[i].kind, .frame = (size_t)frame};
		json_array_append_new(list, json_pack("{s:s, s:i, s:b}", "name", all[i].name,
						      "variablesReference", (int)d->scopes.count,
						      "expensive", all[i].kind == PRB_DAP_GLOBALS));
	}
	return prb_dap_answer(d, r, json_pack("{s:o}", "scopes", list));
}

struct prb_error *prb_dap_exception(struct prb_dap *d, const struct prb_dap_request *r)
{
	prb_auto_free char *name = NULL;
	const char *text;

	if (!d->exception || (pid_t)prb_dap_number(r, "threadId") != d->exception_tid)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "no exception has stopped it");
	name = strndup(d->exception, strcspn(d->exception, ":"));
	if (!name)
		return prb_error_nomem();
	text = d->exception + strlen(name);
	text += strncmp(text, ": ", 2) ? 0 : 2; /* the message may begin with a colon, too */
	return prb_dap_answer(d, r,
			      json_pack("{s:o, s:o, s:s, s:{s:o, s:o}}", "exceptionId",
					prb_dap_string(name), "description", prb_dap_string(text),
					"breakMode", d->break_mode, "details", "typeName",
					prb_dap_string(name), "message", prb_dap_string(text)));
}

static struct prb_error *answer_source(struct prb_dap *d, const struct prb_dap_request *r,
				       const struct prb_str *text)
{
	return prb_dap_answer(d, r,
			      json_pack("{s:o, s:s}", "content",
					prb_dap_bytes(prb_str_text(text), text->length), "mimeType",
					"text/x-python"));
}

struct prb_error *prb_dap_source(struct prb_dap *d, const struct prb_dap_request *r)
{
	json_int_t number = prb_dap_number(r, "sourceReference");
	const char *given =
		json_string_value(json_object_get(json_object_get(r->arguments, "source"), "path"));
	prb_auto_free char *path = given ? prb_dap_path_here(d, given) : NULL;
	prb_auto_str struct prb_str text = {};

	/* A client that shows what is on the machine of the process has no other way to it. */
	if (!number && path && *path == '/' && d->target) {
		PRB_TRY(prb_source_read(d->target, path, &text));
		if (!text.length)
			return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no such source");
		return answer_source(d, r, &text);
	}
	if (number < 1 || number > (json_int_t)d->sources.count)
		return prb_error_create(PRB_ERROR_USAGE, "there is no such source");
	PRB_TRY(prb_source_read(d->target, d->sources.items[number - 1], &text));
	return answer_source(d, r, &text);
}
