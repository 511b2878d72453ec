/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tree of calls of modules, summed up over the steps that were sampled, as text and JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/map.h"
#include "base/text.h"
#include "perf/exact.h"

enum { NONE = PRB_EXACT_NONE, SHARE_WIDTH = 8, TIME_WIDTH = 10, CALLS_WIDTH = 7 };
/** A process may write what it likes to its rings. */
enum { DEEPEST = 200, MOST_NODES = 20000 };

struct maker {
	const struct prb_torch_rings *rings;
	struct prb_exact *exact;
	/** Of the rows of a step: index of its call by its seq. */
	struct prb_number_map forward;
	struct prb_number_map nodes;   /* by index of the row: the node */
	struct prb_number_map sampled; /* local numbers of the steps */
};

/** The child of @p parent (NONE: an outermost node) that is that module; made if need be. */
static struct prb_error *child_of(struct prb_exact *e, uint32_t parent,
				  const struct prb_torch_call_row *row, uint32_t *ret)
{
	uint32_t *first = parent == NONE ? &e->first : &e->nodes.items[parent].first;
	struct prb_exact_node *node;
	uint32_t last = parent == NONE ? e->last : e->nodes.items[parent].last;

	for (uint32_t i = *first; i != NONE; i = e->nodes.items[i].next) {
		/* Names are shared, so equal ones have the same address. */
		if (e->nodes.items[i].path == row->module &&
		    e->nodes.items[i].class == row->class) {
			*ret = i;
			return NULL;
		}
	}
	*ret = NONE;
	if (e->nodes.count >= MOST_NODES)
		return NULL;
	node = prb_vec_push(&e->nodes);
	if (!node)
		return prb_error_nomem();
	*ret = (uint32_t)e->nodes.count - 1;
	*node = (struct prb_exact_node){
		.parent = parent,
		.first = NONE,
		.last = NONE,
		.next = NONE,
		.path = row->module,
		.class = row->class,
		.depth = parent == NONE ? 0 : e->nodes.items[parent].depth + 1,
	};
	first = parent == NONE ? &e->first : &e->nodes.items[parent].first;
	if (last == NONE)
		*first = *ret;
	else
		e->nodes.items[last].next = *ret;
	*(parent == NONE ? &e->last : &e->nodes.items[parent].last) = *ret;
	return NULL;
}

/** Rows come in the order of their numbers, so the node of a parent, whose number is lower, is
 * known. NONE: there are too many nodes. */
static struct prb_error *node_of(struct maker *m, size_t index, uint32_t *ret)
{
	const struct prb_torch_call_row *row = &m->rings->calls.items[index];
	size_t above, node;
	uint32_t parent = NONE;

	if (row->parent >= 0 && prb_number_map_get(&m->forward, (uint64_t)row->parent, &above) &&
	    prb_number_map_get(&m->nodes, above, &node) &&
	    m->exact->nodes.items[node].depth < DEEPEST)
		parent = (uint32_t)node;
	PRB_TRY(child_of(m->exact, parent, row, ret));
	if (*ret == NONE)
		return NULL;
	return prb_number_map_put(&m->nodes, index, *ret) ? NULL : prb_error_nomem();
}

static bool is_module(const struct prb_torch_call_row *row)
{
	return row->class && row->stage <= PRB_TORCH_CALL_BACKWARD;
}

static void count(struct prb_exact *e, uint32_t index, const struct prb_torch_call_row *row)
{
	struct prb_exact_node *node = &e->nodes.items[index];
	struct prb_exact_node *above = node->parent == NONE ? NULL : &e->nodes.items[node->parent];

	if (row->stage == PRB_TORCH_CALL_BACKWARD) {
		node->backward += row->duration;
		node->self_backward += row->duration;
		if (above)
			above->self_backward -= row->duration;
		return;
	}
	node->calls++;
	*(row->stage == PRB_TORCH_CALL_FORWARD ? &node->forward : &node->recompute) +=
		row->duration;
	node->self_forward += row->duration;
	if (above)
		above->self_forward -= row->duration;
}

/** Calls are in the order of their ends; nodes are wanted in the order of their beginnings. */
struct place {
	int64_t seq;
	size_t index;
};

static int compare(const void *a, const void *b)
{
	const struct place *one = a, *other = b;

	if (one->seq != other->seq)
		return one->seq < other->seq ? -1 : 1;
	return one->index < other->index ? -1 : one->index > other->index;
}

/** The rows from @p begin to @p end are of one step. */
static struct prb_error *add_step(struct maker *m, size_t begin, size_t end)
{
	prb_auto_free struct place *places = calloc(end - begin + 1, sizeof(*places));
	size_t count_of = 0;

	if (!places)
		return prb_error_nomem();
	prb_number_map_deinit(&m->forward);
	m->forward = (struct prb_number_map){};
	for (size_t i = begin; i < end; i++) {
		const struct prb_torch_call_row *row = &m->rings->calls.items[i];

		if (!is_module(row))
			continue;
		places[count_of++] = (struct place){row->seq, i};
		if (row->stage != PRB_TORCH_CALL_BACKWARD &&
		    !prb_number_map_put(&m->forward, (uint64_t)row->seq, i))
			return prb_error_nomem();
	}
	qsort(places, count_of, sizeof(*places), compare);
	for (size_t i = 0; i < count_of; i++) {
		const struct prb_torch_call_row *row = &m->rings->calls.items[places[i].index];
		uint32_t node;

		PRB_TRY(node_of(m, places[i].index, &node));
		if (node != NONE)
			count(m->exact, node, row);
	}
	return NULL;
}

static struct prb_error *add_calls(struct maker *m)
{
	size_t begin = 0, index;

	for (size_t i = 0; i <= m->rings->calls.count; i++) {
		const struct prb_torch_call_row *first = &m->rings->calls.items[begin];

		if (i < m->rings->calls.count && m->rings->calls.items[i].local == first->local)
			continue;
		if (i > begin && prb_number_map_get(&m->sampled, (uint64_t)first->local, &index))
			PRB_TRY(add_step(m, begin, i));
		begin = i;
	}
	return NULL;
}

static int compare_numbers(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return one < other ? -1 : one > other;
}

/** The value that the share @p at of the values is below; NaN of none. */
static double quantile(double *values, size_t count_of, double at)
{
	if (!count_of)
		return NAN;
	qsort(values, count_of, sizeof(*values), compare_numbers);
	return values[PRB_MIN(count_of - 1, (size_t)(at * (double)count_of))];
}

static struct prb_error *add_medians(const struct prb_torch_rings *rings, struct prb_exact *e)
{
	size_t most = rings->steps.count, sampled = 0, others = 0;
	prb_auto_free double *values = calloc(4 * most + 4, sizeof(*values));
	double *one = values, *other = values + most, *all = other + most, *own = all + most;
	const struct prb_torch_step_row *step;
	size_t any = 0;

	if (!values)
		return prb_error_nomem();
	prb_vec_each (step, &rings->steps) {
		if (step->kind == 's') {
			own[sampled] = isfinite(step->own) ? step->own / 1e3 : 0;
			one[sampled++] = step->duration;
		} else if (step->kind == 'u') {
			other[others++] = step->duration;
		}
		all[any++] = step->duration;
	}
	e->others = others;
	e->sampled = quantile(one, sampled, 0.5);
	e->own = quantile(own, sampled, 0.5);
	e->unsampled = quantile(other, others, 0.5);
	e->p50 = quantile(all, any, 0.5);
	e->p99 = quantile(all, any, 0.99);
	return NULL;
}

static struct prb_error *add_steps(struct maker *m)
{
	struct prb_exact *e = m->exact;
	const struct prb_torch_step_row *step;

	prb_vec_each (step, &m->rings->steps) {
		if (step->kind != 's')
			continue;
		if (!prb_number_map_put(&m->sampled, (uint64_t)step->local, 1))
			return prb_error_nomem();
		e->steps++;
		e->micro += step->micro > 0 ? (uint64_t)step->micro : 0;
		/* What hooks took is in no part of the step. */
		e->duration +=
			fmax(step->duration - (isfinite(step->own) ? step->own / 1e3 : 0), 0);
		e->data += isfinite(step->data) ? step->data : 0;
		e->forward += isfinite(step->forward) ? step->forward : 0;
		e->backward += isfinite(step->backward) ? step->backward : 0;
		e->optimizer += isfinite(step->optimizer) ? step->optimizer : 0;
	}
	if (!e->steps)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "no training step ended meanwhile");
	return add_medians(m->rings, e);
}

struct prb_error *prb_exact_make(const struct prb_torch_rings *rings, struct prb_exact *ret)
{
	struct maker m = {.rings = rings, .exact = ret};
	struct prb_error *err;

	*ret = (struct prb_exact){.first = NONE, .last = NONE};
	err = add_steps(&m);
	if (!err)
		err = add_calls(&m);
	prb_number_map_deinit(&m.forward);
	prb_number_map_deinit(&m.nodes);
	prb_number_map_deinit(&m.sampled);
	if (err)
		prb_exact_deinit(ret);
	return err;
}

void prb_exact_deinit(struct prb_exact *exact)
{
	prb_vec_free(&exact->nodes);
}

static void put_right(struct prb_str *s, const char *text, size_t width)
{
	size_t has = prb_text_width(text);

	prb_text_spaces(s, width > has ? width - has : 0);
	prb_str_puts(s, text);
}

/** Of one step. */
static void put_time(struct prb_str *s, const struct prb_exact *e, double milliseconds)
{
	prb_auto_str struct prb_str text = {};

	if (milliseconds > 0)
		prb_text_duration(&text, milliseconds / 1e3 / (double)e->steps);
	put_right(s, prb_str_text(&text), TIME_WIDTH);
}

static void put_share(struct prb_str *s, const struct prb_exact *e, double milliseconds)
{
	prb_auto_str struct prb_str text = {};

	prb_str_printf(&text, "%.1f %%", e->duration > 0 ? 100 * milliseconds / e->duration : 0);
	put_right(s, prb_str_text(&text), SHARE_WIDTH);
}

static double total_of(const struct prb_exact_node *node)
{
	return node->forward + node->backward + node->recompute;
}

/** The path of a module below that of the one above it. */
static const char *short_path(const struct prb_exact *e, const struct prb_exact_node *node)
{
	const char *above = node->parent == NONE ? NULL : e->nodes.items[node->parent].path;
	size_t length = above ? strlen(above) : 0;

	return above && !strncmp(node->path, above, length) && node->path[length] == '.'
		       ? node->path + length + 1
		       : node->path;
}

static void put_node(struct prb_str *s, const struct prb_exact *e,
		     const struct prb_exact_node *node)
{
	prb_auto_str struct prb_str calls = {};

	put_share(s, e, total_of(node));
	put_time(s, e, total_of(node));
	put_time(s, e, node->forward + node->recompute);
	put_time(s, e, node->backward);
	put_time(s, e, node->self_forward + node->self_backward);
	prb_str_printf(&calls, "%.3g", (double)node->calls / (double)e->steps);
	put_right(s, prb_str_text(&calls), CALLS_WIDTH);
	prb_text_spaces(s, 2 + 2 * (size_t)node->depth);
	prb_text_escape(s, short_path(e, node));
	prb_str_puts(s, ": ");
	prb_text_escape(s, node->class);
	prb_str_putc(s, '\n');
}

static void put_nodes(struct prb_str *s, const struct prb_exact *e, uint32_t first)
{
	/* DEEPEST bounds this. */
	for (uint32_t i = first; i != NONE; i = e->nodes.items[i].next) {
		put_node(s, e, &e->nodes.items[i]);
		put_nodes(s, e, e->nodes.items[i].first);
	}
}

static void put_part(struct prb_str *s, const struct prb_exact *e, const char *name,
		     double milliseconds)
{
	if (milliseconds <= 0)
		return;
	put_share(s, e, milliseconds);
	put_time(s, e, milliseconds);
	prb_text_spaces(s, 3 * TIME_WIDTH + CALLS_WIDTH + 2);
	prb_str_printf(s, "%s\n", name);
}

static double modules_of(const struct prb_exact *e)
{
	double sum = 0;

	for (uint32_t i = e->first; i != NONE; i = e->nodes.items[i].next)
		sum += total_of(&e->nodes.items[i]);
	return sum;
}

static double rest_of(const struct prb_exact *e)
{
	return e->duration - modules_of(e) - e->optimizer - e->data;
}

static void put_head(struct prb_str *s, const struct prb_exact *e,
		     const struct prb_exact_about *about)
{
	prb_str_printf(s, "%d  ", about->pid);
	prb_text_escape(s, about->command ? about->command : "");
	prb_str_puts(s, "\nPython ");
	prb_text_escape(s, about->python ? about->python : "?");
	prb_str_printf(s, " · %llu steps timed, %llu between them · median ",
		       (unsigned long long)e->steps, (unsigned long long)e->others);
	prb_text_duration(s, e->p50 / 1e3);
	prb_str_puts(s, ", 99 % within ");
	prb_text_duration(s, e->p99 / 1e3);
	if (e->micro > e->steps)
		prb_str_printf(s, " · %.3g passes a step", (double)e->micro / (double)e->steps);
	prb_str_puts(s, "\n\n");
}

static void put_cost(struct prb_str *s, const struct prb_exact *e)
{
	prb_str_puts(s, "cost: a timed step took ");
	prb_text_duration(s, e->sampled / 1e3);
	if (isfinite(e->unsampled)) {
		prb_str_puts(s, ", one between them ");
		prb_text_duration(s, e->unsampled / 1e3);
	}
	prb_str_puts(s, " (medians); functions of the agent took ");
	prb_text_duration(s, e->own / 1e3);
	prb_str_puts(s, " of it, which is not in the times above\n");
}

struct prb_error *prb_exact_text(const struct prb_exact *e, const struct prb_exact_about *about,
				 struct prb_str *s)
{
	put_head(s, e, about);
	prb_str_puts(s, "   share  per step   forward  backward      self  calls  module\n");
	put_nodes(s, e, e->first);
	put_part(s, e, "optimizer", e->optimizer);
	put_part(s, e, "before the first module: data", e->data);
	put_part(s, e, "other", rest_of(e));
	put_cost(s, e);
	return s->failed ? prb_error_nomem() : NULL;
}

static void put_nodes_json(struct prb_json *json, const struct prb_exact *e)
{
	const struct prb_exact_node *node;

	prb_json_open(json, "nodes", '[');
	prb_vec_each (node, &e->nodes) {
		prb_json_open(json, NULL, '{');
		prb_json_natural(json, "parent", node->parent == NONE ? -1 : (int64_t)node->parent);
		prb_json_text(json, "path", node->path);
		prb_json_text(json, "class", node->class);
		prb_json_integer(json, "calls", (int64_t)node->calls);
		prb_json_real(json, "forward_ms", node->forward, 6);
		prb_json_real(json, "recompute_ms", node->recompute, 6);
		prb_json_real(json, "backward_ms", node->backward, 6);
		prb_json_signed(json, "self_forward_ms", node->self_forward, 6);
		prb_json_signed(json, "self_backward_ms", node->self_backward, 6);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

struct prb_error *prb_exact_json(const struct prb_exact *e, const struct prb_exact_about *about,
				 struct prb_str *s)
{
	struct prb_json json = {.out = s};

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", about->pid);
	prb_json_text(&json, "command", about->command);
	prb_json_text(&json, "python", about->python);
	prb_json_integer(&json, "steps", (int64_t)e->steps);
	prb_json_integer(&json, "steps_between", (int64_t)e->others);
	prb_json_integer(&json, "passes", (int64_t)e->micro);
	prb_json_real(&json, "duration_ms", e->duration, 6);
	prb_json_real(&json, "data_ms", e->data, 6);
	prb_json_real(&json, "forward_ms", e->forward, 6);
	prb_json_real(&json, "backward_ms", e->backward, 6);
	prb_json_real(&json, "optimizer_ms", e->optimizer, 6);
	prb_json_signed(&json, "other_ms", rest_of(e), 6);
	prb_json_real(&json, "median_ms", e->p50, 6);
	prb_json_real(&json, "p99_ms", e->p99, 6);
	prb_json_real(&json, "timed_median_ms", e->sampled, 6);
	prb_json_real(&json, "between_median_ms", e->unsampled, 6);
	prb_json_real(&json, "agent_median_ms", e->own, 6);
	put_nodes_json(&json, e);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
	return s->failed ? prb_error_nomem() : NULL;
}
