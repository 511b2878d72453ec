/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `probing memory --growth`: two censuses, what grew between them, and what holds it. */
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/memory/report/memory.h"
#include "command/waiting.h"
#include "target/proc/text.h"

enum { CHANGE_WIDTH = 11 };

static void put_right(struct prb_str *s, const struct prb_str *text)
{
	prb_text_right(s, prb_str_text(text), CHANGE_WIDTH);
}

static void put_changes(struct prb_str *s, int64_t objects, int64_t bytes)
{
	prb_auto_str struct prb_str count = {}, size = {};

	if (objects >= 0)
		prb_str_putc(&count, '+');
	prb_memory_put_count(&count, objects);
	prb_memory_put_change(&size, (double)bytes);
	put_right(s, &count);
	put_right(s, &size);
	prb_str_puts(s, "  ");
}

/** Appends the holder of new objects: a path, a variable of a frame, or why there is none. */
static struct prb_error *put_path(struct prb_census *census, const struct prb_growth_holder *h,
				  struct prb_str *s)
{
	if (h->count > 1 && h->pattern)
		prb_str_puts(s, h->pattern);
	else if (h->object != PRB_CENSUS_NONE)
		return prb_census_path(census, h->object, s);
	else if (h->root)
		prb_text_escape(s, h->root);
	else
		prb_str_puts(s, h->garbage ? "only cycles: garbage that was not collected yet"
					   : "C code: no module or frame leads to it");
	return NULL;
}

static struct prb_error *put_holder(struct prb_census *census, const struct prb_growth_holder *h,
				    struct prb_str *s)
{
	struct prb_census_object object;
	struct prb_census_type type;

	put_changes(s, h->objects, h->bytes);
	PRB_TRY(put_path(census, h, s));
	if (prb_census_object(census, h->object, &object) &&
	    prb_census_type(census, object.type, &type)) {
		prb_str_puts(s, ": ");
		prb_text_escape(s, type.name);
	}
	if (h->count > 1) {
		prb_str_puts(s, ", each of ");
		prb_memory_put_count(s, h->count);
	}
	for (unsigned i = 0; i < PRB_GROWTH_TYPES && h->types[i].name; i++) {
		prb_str_puts(s, i ? ", " : "  (");
		prb_memory_put_count(s, (int64_t)h->types[i].objects);
		prb_str_putc(s, ' ');
		prb_text_escape(s, h->types[i].name);
	}
	prb_str_puts(s, h->types[0].name ? ")\n" : "\n");
	if (h->example != PRB_CENSUS_NONE && h->object != PRB_CENSUS_NONE) {
		prb_text_spaces(s, 2 * CHANGE_WIDTH + 4);
		prb_str_puts(s, "for example ");
		PRB_TRY(prb_census_path(census, h->example, s));
		prb_str_putc(s, '\n');
	}
	return NULL;
}

/** "RSS +12.0 MiB". Memory of C code grows where Python's objects do not. */
static void put_process(const struct prb_memory *before, const struct prb_memory *after,
			int64_t objects, struct prb_str *s)
{
	const struct prb_memory_process *one = &before->process, *two = &after->process;
	int64_t anonymous = two->anonymous - one->anonymous;

	if (one->told && two->told) {
		prb_str_puts(s, "RSS ");
		prb_memory_put_change(s, (double)(two->rss - one->rss));
		prb_str_puts(s, ", of it anonymous ");
		prb_memory_put_change(s, (double)anonymous);
		prb_str_puts(s, "; ");
	}
	prb_str_puts(s, "Python objects ");
	prb_memory_put_change(s, (double)objects);
	prb_str_putc(s, '\n');
	if (one->told && two->told && anonymous > 1 << 20 && anonymous / 2 > objects)
		prb_str_puts(s, "  more than half of it is not in Python objects: memory of C "
				"code, or of the allocator\n");
}

/** Holders that are small beside the largest one are noise: only their sum is shown. */
static struct prb_error *put_holders(const struct prb_memory_interpreter *now,
				     const struct prb_growth *g, struct prb_str *s)
{
	int64_t objects = g->other_objects, bytes = g->other_bytes;
	uint64_t others = g->others;
	const struct prb_growth_holder *h;

	prb_vec_each (h, &g->holders) {
		if (h->bytes * 200 >= g->holders.items[0].bytes) {
			PRB_TRY(put_holder(now->census, h, s));
			continue;
		}
		others += h->count;
		objects += h->objects;
		bytes += h->bytes;
	}
	if (others) {
		put_changes(s, objects, bytes);
		prb_memory_put_count(s, (int64_t)others);
		prb_str_puts(s, others == 1 ? " other place\n" : " other places\n");
	}
	return NULL;
}

static struct prb_error *put_interpreter(const struct prb_memory *before,
					 const struct prb_memory *after,
					 const struct prb_memory_interpreter *now,
					 const struct prb_growth *g, int rows, struct prb_str *s)
{
	size_t shown = 0;

	put_process(before, after, g->bytes, s);
	if (prb_census_doubt(now->census))
		prb_str_printf(s, "  %s\n", prb_census_doubt(now->census));
	prb_str_puts(s, "\n    objects      bytes  type\n");
	for (size_t i = 0; i < g->types.count && shown < (size_t)rows; i++) {
		if (g->types.items[i].bytes <= 0)
			break;
		put_changes(s, g->types.items[i].objects, g->types.items[i].bytes);
		prb_text_escape(s, g->types.items[i].name);
		prb_str_putc(s, '\n');
		shown++;
	}
	if (!shown)
		prb_str_puts(s, "no type grew\n");
	if (g->holders.count)
		prb_str_puts(s, "\n    objects      bytes  held by\n");
	return put_holders(now, g, s);
}

static struct prb_error *put_json(const struct prb_memory_interpreter *now,
				  const struct prb_growth *g, struct prb_json *json)
{
	const struct prb_growth_holder *h;
	const struct prb_growth_type *t;

	prb_json_open(json, NULL, '{');
	prb_json_integer(json, "interpreter", now->state.id);
	prb_json_integer(json, "objects", g->objects);
	prb_json_integer(json, "bytes", g->bytes);
	prb_json_text(json, "doubt", prb_census_doubt(now->census));
	prb_json_open(json, "types", '[');
	prb_vec_each (t, &g->types) {
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "type", t->name);
		prb_json_integer(json, "objects", t->objects);
		prb_json_integer(json, "bytes", t->bytes);
		prb_json_integer(json, "now_objects", (int64_t)t->now_objects);
		prb_json_integer(json, "now_bytes", (int64_t)t->now_bytes);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_json_open(json, "holders", '[');
	prb_vec_each (h, &g->holders) {
		prb_auto_str struct prb_str path = {}, example = {};
		struct prb_census_object object;
		struct prb_census_type type;
		bool known = prb_census_object(now->census, h->object, &object) &&
			     prb_census_type(now->census, object.type, &type);

		if (h->object != PRB_CENSUS_NONE || h->root)
			PRB_TRY(put_path(now->census, h, &path));
		if (h->example != PRB_CENSUS_NONE)
			PRB_TRY(prb_census_path(now->census, h->example, &example));
		prb_json_open(json, NULL, '{');
		prb_json_text(json, "holder", path.length ? prb_str_text(&path) : NULL);
		prb_json_text(json, "type", known ? type.name : NULL);
		prb_json_bool(json, "garbage", h->garbage);
		if (known)
			prb_json_integer(json, "address", (int64_t)object.address);
		else
			prb_json_null(json, "address");
		prb_json_integer(json, "count", h->count);
		prb_json_integer(json, "objects", h->objects);
		prb_json_integer(json, "bytes", h->bytes);
		prb_json_text(json, "example", example.length ? prb_str_text(&example) : NULL);
		prb_json_open(json, "types", '[');
		for (unsigned i = 0; i < PRB_GROWTH_TYPES && h->types[i].name; i++) {
			prb_json_open(json, NULL, '{');
			prb_json_text(json, "type", h->types[i].name);
			prb_json_integer(json, "objects", (int64_t)h->types[i].objects);
			prb_json_close(json, '}');
		}
		prb_json_close(json, ']');
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	prb_json_integer(json, "other_holders", (int64_t)g->others);
	prb_json_integer(json, "other_objects", g->other_objects);
	prb_json_integer(json, "other_bytes", g->other_bytes);
	prb_json_close(json, '}');
	return NULL;
}

static const struct prb_memory_interpreter *same_interpreter(
	const struct prb_memory *memory, const struct prb_memory_interpreter *as)
{
	const struct prb_memory_interpreter *i;

	prb_vec_each (i, &memory->interpreters)
		if (i->state.address == as->state.address && i->census)
			return i;
	return NULL;
}

struct prb_error *prb_memory_compare(const struct prb_memory *before,
				     const struct prb_memory *after,
				     const struct prb_memory_settings *s, double seconds,
				     struct prb_str *out)
{
	const struct prb_memory_interpreter *now, *past;
	struct prb_json json = {.out = out};

	if (s->json) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "pid", after->target->pid);
		prb_json_real(&json, "seconds", seconds, 3);
		prb_json_open(&json, "interpreters", '[');
	} else {
		prb_memory_put_head(after, out);
		prb_str_puts(out, "in ");
		prb_text_duration(out, seconds);
		prb_str_puts(out, ": ");
	}
	prb_vec_each (now, &after->interpreters) {
		struct prb_growth growth;
		struct prb_error *err;

		past = same_interpreter(before, now);
		if (!now->census || !past)
			continue;
		PRB_TRY(prb_growth_create(past->census, now->census, (size_t)s->rows, &growth));
		err = s->json ? put_json(now, &growth, &json)
			      : put_interpreter(before, after, now, &growth, s->rows, out);
		prb_growth_deinit(&growth);
		PRB_TRY(err);
	}
	if (!s->json) {
		PRB_TRY(prb_memory_put_malloc_growth(before, after, s->rows, out));
	} else {
		prb_json_close(&json, ']');
		PRB_TRY(prb_memory_put_malloc_growth_json(before, after, s->rows, &json));
		prb_json_close(&json, '}');
		prb_str_putc(out, '\n');
	}
	return out->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_memory_need_census(const struct prb_memory *m)
{
	const struct prb_memory_interpreter *i;

	if (m->no_python)
		return prb_error_copy(m->no_python);
	prb_vec_each (i, &m->interpreters)
		if (i->error)
			return prb_error_copy(i->error);
	return NULL;
}

static struct prb_error *check_runs(struct prb_target *target)
{
	prb_auto_str struct prb_str text = {};
	prb_auto_error struct prb_error *err = prb_target_read_file(target, &text, "stat");
	struct prb_stat stat;

	if (err ? err->code == PRB_ERROR_NO_PROCESS
		: prb_stat_parse(prb_str_text(&text), &stat) &&
			    (stat.state == 'Z' || stat.state == 'X'))
		return prb_error_create(PRB_ERROR_NO_PROCESS,
					"process %d ended before its growth could be read",
					(int)target->pid);
	return prb_target_same_program(target, NULL);
}

/* Ctrl-C ends the wait, and what grew until then is shown. */
static struct prb_error *wait_until(struct prb_target *target, double end)
{
	enum { LOOK_SECONDS = 1 };
	double left;

	while ((left = end - prb_clock_seconds()) > 0) {
		bool more = prb_memory_wait(PRB_MIN(left, (double)LOOK_SECONDS));

		PRB_TRY(check_runs(target));
		if (!more)
			break;
	}
	return NULL;
}

struct prb_error *prb_memory_growth(struct prb_target *target, const struct prb_memory_settings *s,
				    struct prb_str *out)
{
	prb_auto_memory struct prb_memory before = {}, after = {};
	double start = prb_clock_seconds();

	if (!target->live)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_UNSUPPORTED,
					 "growth needs a process that runs; this is a %s",
					 prb_target_kind_name(target->kind)),
			"'probing TARGET memory' shows what there is, and 'memory --diff A B' what "
			"grew from one to the other");

	PRB_WAITING("watching what grows", s->growth);

	PRB_TRY(prb_memory_read(target, s, &before));
	PRB_TRY(prb_memory_need_census(&before));
	PRB_TRY(wait_until(target, start + s->growth));
	PRB_TRY(prb_memory_read(target, s, &after));
	PRB_TRY(prb_memory_need_census(&after));
	return prb_memory_compare(&before, &after, s, prb_clock_seconds() - start, out);
}
