/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/wall_parts.h"

#include <stdlib.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "profile/recording/wait_sums.h"

static struct prb_wall_part part_of(const struct prb_recording *r, const struct prb_run *run,
				    bool lines)
{
	const struct prb_tree *tree = r->tree;
	const struct prb_tree_frame *frame =
		&tree->frames.items[tree->stacks.items[run->stack].frame];
	bool runs = run->state == PRB_RUN_ON_CPU || run->state == PRB_RUN_QUEUED;

	return (struct prb_wall_part){
		.function = frame->function,
		.line = lines ? frame->line : 0,
		.state = run->state,
		.wait = runs ? 0 : run->wait,
		.wall = run->wall,
	};
}

static bool is_same(const struct prb_wall_part *a, const struct prb_wall_part *b)
{
	return a->function == b->function && a->line == b->line && a->state == b->state &&
	       a->wait == b->wait;
}

static struct prb_error *add(struct prb_wall_parts *parts, struct prb_number_map *numbers,
			     const struct prb_wall_part *part)
{
	uint64_t key =
		((uint64_t)part->function << 32 | (uint32_t)part->line) * 0x9e3779b97f4a7c15u;
	size_t number = parts->list.count;
	struct prb_wall_part *slot;

	key ^= (uint64_t)part->wait << 3 | part->state;
	for (; prb_number_map_get(numbers, key, &number); key++)
		if (is_same(&parts->list.items[number], part)) {
			parts->list.items[number].wall += part->wall;
			return NULL;
		}
	number = parts->list.count;
	slot = prb_vec_push(&parts->list);
	if (!slot || !prb_number_map_put(numbers, key, number))
		return prb_error_nomem();
	*slot = *part;
	return NULL;
}

static int compare_rows(const struct prb_wall_part *x, const struct prb_wall_part *y)
{
	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	return (x->line > y->line) - (x->line < y->line);
}

static int compare(const void *a, const void *b)
{
	const struct prb_wall_part *x = a, *y = b;
	int rows = compare_rows(x, y);

	if (rows || x->wall == y->wall)
		return rows ? rows : (x->wait > y->wait) - (x->wait < y->wait);
	return x->wall < y->wall ? 1 : -1;
}

struct prb_error *prb_wall_parts_make(const struct prb_recording *r,
				      const struct prb_profile_choice *choice,
				      struct prb_wall_parts *ret)
{
	struct prb_number_map numbers = {};
	struct prb_error *err = NULL;
	const struct prb_run *run;

	*ret = (struct prb_wall_parts){};
	prb_vec_each (run, &r->runs) {
		struct prb_wall_part part = part_of(r, run, choice->lines);

		if (!err && run->wall > 0 && (!choice->threads || choice->threads[run->thread]))
			err = add(ret, &numbers, &part);
	}
	prb_number_map_deinit(&numbers);
	if (err)
		prb_wall_parts_deinit(ret);
	else if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), compare);
	return err;
}

void prb_wall_parts_deinit(struct prb_wall_parts *parts)
{
	prb_vec_free(&parts->list);
}

const struct prb_wall_part *prb_wall_parts_of(const struct prb_wall_parts *parts,
					      const struct prb_report_row *row, size_t *ret_count)
{
	const struct prb_wall_part wanted = {.function = row->function, .line = row->line};
	size_t low = 0, high = parts->list.count, count = 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare_rows(&parts->list.items[middle], &wanted) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	while (low + count < parts->list.count &&
	       !compare_rows(&parts->list.items[low + count], &wanted))
		count++;
	*ret_count = count;
	return count ? &parts->list.items[low] : NULL;
}

void prb_wall_part_text(const struct prb_recording *r, const struct prb_wall_part *part,
			struct prb_str *s)
{
	if (r->waits.items[part->wait].kind == PRB_WAIT_NONE)
		prb_str_puts(s, prb_run_state_name(part->state));
	else
		prb_wait_text(r, part->wait, s);
}
