/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/native/names.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/siphash.h"
#include "dwarf/lines/lines.h"
#include "dwarf/lines/short_name.h"

static const uint64_t most_address = 1ull << 60;

/* The frames that stand for one place, outermost first. */
struct named {
	uint32_t first, count;
};

struct naming {
	struct prb_recording *recording;
	const struct prb_native_place *places;
	size_t count;
	prb_natives_give_up *give_up; /* or NULL */
	void *context;
	uint32_t *place_of;    /* by frame: number of its place, plus one; 0: it is none */
	struct prb_tree *tree; /* the new one */
	struct named *named;   /* by place */
	PRB_VEC(uint32_t) frames;
	const struct prb_native_images *images; /* whose resolver it is */
	struct prb_resolver *resolver;
};

void prb_native_place_text(const struct prb_native_images *images, uint64_t code,
			   struct prb_str *ret)
{
	const struct prb_module *module = prb_modules_find(images->modules, code);

	if (!module || !*module->path) {
		prb_str_printf(ret, "0x%" PRIx64, code);
		return;
	}
	prb_str_printf(ret, "%s+0x%" PRIx64, prb_tree_short_path(module->path),
		       code - module->bias);
}

/* The mapping of code at @code, as it was then; NULL if it is of no file. */
static const struct prb_map *mapping_of(const struct prb_native_images *images, uint64_t code)
{
	size_t low = 0, high = images->code.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (images->code.items[middle].end <= code)
			low = middle + 1;
		else
			high = middle;
	}
	return low < images->code.count && images->code.items[low].start <= code
		       ? &images->code.items[low]
		       : NULL;
}

void prb_native_origin(const struct prb_native_place *place, struct prb_tree_image *image,
		       struct prb_tree_function *ret)
{
	struct prb_module *module = prb_modules_find(place->images->modules, place->code);
	const struct prb_map *map = mapping_of(place->images, place->code);

	/* What a file says of its own addresses can be anything. */
	if (!module || !map || place->code - module->bias > most_address ||
	    map->start - module->bias > most_address || map->offset > most_address)
		return;
	*image = (struct prb_tree_image){
		.path = module->path,
		.build_id = prb_module_build_id(module),
		.address = map->start - module->bias,
		.size = map->end - map->start,
		.offset = map->offset,
	};
	ret->image = image;
	ret->address = place->code - module->bias;
}

struct prb_error *prb_native_unnamed(const struct prb_native_place *place, struct prb_str *ret)
{
	const struct prb_module *module = prb_modules_find(place->images->modules, place->code);
	uint64_t start;

	PRB_TRY(prb_unwinder_function(place->images->unwinder, place->code, &start));
	if (start)
		prb_str_printf(ret, "fun_%" PRIx64, start - module->bias);
	else if (module)
		prb_str_puts(ret, "<code without a name>");
	else if (place->region)
		prb_str_printf(ret, "jit_region_%" PRIu32, place->region);
	else
		prb_str_puts(ret, "<code outside of any mapping>");
	return NULL;
}

void prb_native_made_name(const struct prb_native_images *images, uint64_t code,
			  struct prb_tree_function *function)
{
	for (size_t i = 0; !function->name && i < PRB_ARRAY_SIZE(images->made); i++) {
		function->name = prb_perf_map_find(images->made[i], code);
		function->module = function->name ? images->made[i]->path : NULL;
	}
}

/* As above, of the function's start where that is known. */
static struct prb_error *find_origin(const struct prb_native_place *place,
				     struct prb_tree_image *image, struct prb_tree_function *ret)
{
	uint64_t code = place->code, start;

	prb_native_origin(place, image, ret);
	PRB_TRY(prb_unwinder_function(place->images->unwinder, code, &start));
	if (ret->image && start && code - start <= ret->address)
		ret->address -= code - start;
	return NULL;
}

static struct prb_error *add_frame(struct naming *n, const struct prb_native_place *place,
				   const struct prb_line *line)
{
	const struct prb_module *module = prb_modules_find(place->images->modules, place->code);
	prb_auto_str struct prb_str address = {};
	prb_auto_free char *brief = NULL;
	struct prb_tree_image image;
	struct prb_tree_function function = {
		.kind = PRB_FUNCTION_NATIVE,
		.name = line->func,
		.file = line->file,
		.module = module ? module->path : NULL,
	};
	uint32_t *slot = prb_vec_push(&n->frames);
	uint32_t number;

	if (!slot)
		return prb_error_nomem();
	if (line->func)
		PRB_TRY(prb_short_name(line->func, &brief));
	if (brief)
		function.name = brief;
	if (!function.name && !module)
		prb_native_made_name(place->images, place->code, &function);
	if (!function.name) {
		PRB_TRY(prb_native_unnamed(place, &address));
		function.name = prb_str_text(&address);
	}
	if (!line->inlined)
		PRB_TRY(find_origin(place, &image, &function));
	PRB_TRY(prb_tree_function(n->tree, &function, &number));
	return prb_tree_frame(n->tree, number, (int32_t)line->line, slot);
}

/* Names are an addition: what cannot be found out is missing. */
static struct prb_error *resolve(struct naming *n, const struct prb_native_place *place,
				 struct prb_lines *ret)
{
	struct prb_error *err = NULL;

	*ret = (struct prb_lines){};
	if (n->images != place->images) {
		if (n->resolver)
			prb_resolver_destroy(prb_steal(&n->resolver));
		n->images = place->images;
		PRB_TRY(prb_resolver_create(place->images->modules, &n->resolver));
	}
	err = prb_resolve(n->resolver, place->code, true, ret);
	if (!err || err->code == PRB_ERROR_NOMEM)
		return err;
	prb_log("profile", 1, "%s", err->message);
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *add_lines(struct naming *n, const struct prb_native_place *place,
				   const struct prb_lines *lines)
{
	struct prb_line unknown = {};

	if (!lines->list.count)
		return add_frame(n, place, &unknown);
	for (size_t i = lines->list.count; i-- > 0;)
		PRB_TRY(add_frame(n, place, &lines->list.items[i]));
	return NULL;
}

static bool is_same_file(struct prb_module *a, struct prb_module *b)
{
	return a && !strcmp(prb_module_build_id(a), prb_module_build_id(b)) &&
	       !strcmp(a->path, b->path);
}

/* Moves it to the images of the first place in the same file, unless it is that. */
static struct prb_error *unify(struct prb_native_places *all, struct prb_native_place *place)
{
	static const uint64_t key[2] = {};
	struct prb_module *module = prb_modules_find(place->images->modules, place->code), *other;
	const char *build = module ? prb_module_build_id(module) : "";
	uint64_t hash = prb_siphash(1, 3, key, build, strlen(build));
	const struct prb_native_place *first;
	size_t number;

	if (!*build)
		return NULL;
	if (!prb_number_map_get(&all->builds, hash, &number))
		return prb_number_map_put(&all->builds, hash, all->list.count) ? NULL
									       : prb_error_nomem();
	first = &all->list.items[number];
	other = prb_modules_find(first->images->modules, first->code);
	if (!is_same_file(other, module))
		return NULL;
	place->images = first->images;
	place->code += other->bias - module->bias;
	return NULL;
}

struct prb_error *prb_native_places_add(struct prb_native_places *places,
					const struct prb_native_place *place, bool *ret_own)
{
	struct prb_native_place unified = *place, *slot;

	PRB_TRY(unify(places, &unified));
	slot = prb_vec_push(&places->list);
	if (!slot)
		return prb_error_nomem();
	*slot = unified;
	*ret_own = unified.images == place->images;
	return NULL;
}

void prb_native_places_deinit(struct prb_native_places *places)
{
	prb_vec_free(&places->list);
	prb_number_map_deinit(&places->builds);
}

static int compare_places(const void *a, const void *b, void *context)
{
	const struct naming *n = context;
	const struct prb_native_place *x = &n->places[*(const uint32_t *)a];
	const struct prb_native_place *y = &n->places[*(const uint32_t *)b];

	if (x->images != y->images)
		return x->images->number < y->images->number ? -1 : 1;
	return (x->code > y->code) - (x->code < y->code);
}

static struct prb_error *name_place(struct naming *n, uint32_t number)
{
	const struct prb_native_place *place = &n->places[number];
	struct named *named = &n->named[number];
	struct prb_lines lines;
	struct prb_error *err;

	named->first = (uint32_t)n->frames.count;
	if (n->give_up && n->give_up(n->context)) {
		n->recording->unnamed++;
		lines = (struct prb_lines){};
	} else {
		PRB_TRY(resolve(n, place, &lines));
	}
	err = add_lines(n, place, &lines);
	prb_lines_deinit(&lines);
	named->count = (uint32_t)n->frames.count - named->first;
	return err;
}

/* File by file, so that each is opened once; equal places are adjacent. */
static struct prb_error *name_places(struct naming *n)
{
	prb_auto_free uint32_t *order = calloc(n->count + 1, sizeof(*order));

	if (!order)
		return prb_error_nomem();
	for (uint32_t i = 0; i < n->count; i++)
		order[i] = i;
	qsort_r(order, n->count, sizeof(*order), compare_places, n);
	for (size_t i = 0; i < n->count; i++) {
		if (i && !compare_places(&order[i - 1], &order[i], n))
			n->named[order[i]] = n->named[order[i - 1]];
		else
			PRB_TRY(name_place(n, order[i]));
	}
	return NULL;
}

/* The same frame in the new tree. */
static struct prb_error *copy_frame(struct naming *n, const struct prb_tree_frame *frame,
				    uint32_t stack, uint32_t *ret)
{
	const struct prb_tree *old = n->recording->tree;
	uint32_t function, number;

	PRB_TRY(prb_tree_function(n->tree, &old->functions.items[frame->function], &function));
	PRB_TRY(prb_tree_frame(n->tree, function, frame->line, &number));
	return prb_tree_call(n->tree, stack, number, ret);
}

static struct prb_error *rename_stack(struct naming *n, uint32_t stack, uint32_t parent,
				      uint32_t *ret)
{
	const struct prb_tree *old = n->recording->tree;
	uint32_t frame = old->stacks.items[stack].frame, place = n->place_of[frame];
	const struct named *named;

	*ret = parent;
	if (!place)
		return copy_frame(n, &old->frames.items[frame], parent, ret);
	named = &n->named[place - 1];
	for (uint32_t i = 0; i < named->count; i++)
		PRB_TRY(prb_tree_call(n->tree, *ret, n->frames.items[named->first + i], ret));
	return NULL;
}

static struct prb_error *name_all(struct naming *n, uint32_t **ret_renamed)
{
	struct prb_recording *recording = n->recording;
	size_t count = recording->tree->stacks.count;
	prb_auto_free uint32_t *renamed = calloc(count, sizeof(*renamed));
	struct prb_run *run;

	if (!renamed)
		return prb_error_nomem();
	/* A caller's number is lower than those of its calls. */
	for (uint32_t i = 1; i < count; i++)
		PRB_TRY(rename_stack(n, i, renamed[recording->tree->stacks.items[i].parent],
				     &renamed[i]));
	prb_vec_each (run, &recording->runs)
		run->stack = renamed[run->stack];
	prb_tree_destroy(recording->tree);
	recording->tree = prb_steal(&n->tree);
	*ret_renamed = prb_steal(&renamed);
	return NULL;
}

struct prb_error *prb_natives_name(struct prb_recording *recording,
				   const struct prb_native_places *places,
				   prb_natives_give_up *give_up, void *context,
				   uint32_t **ret_renamed)
{
	struct naming n = {.recording = recording,
			   .places = places->list.items,
			   .count = places->list.count,
			   .give_up = give_up,
			   .context = context};
	struct prb_error *err;

	n.named = calloc(n.count + 1, sizeof(*n.named));
	n.place_of = calloc(recording->tree->frames.count + 1, sizeof(*n.place_of));
	err = n.named && n.place_of ? prb_tree_create(&n.tree) : prb_error_nomem();
	for (size_t i = 0; !err && i < n.count; i++)
		n.place_of[n.places[i].frame] = (uint32_t)i + 1;
	if (!err)
		err = name_places(&n);
	if (!err)
		err = name_all(&n, ret_renamed);
	if (n.resolver)
		prb_resolver_destroy(n.resolver);
	prb_tree_destroy(n.tree);
	prb_vec_free(&n.frames);
	free(n.named);
	free(n.place_of);
	return err;
}
