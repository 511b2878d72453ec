/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/census/torch_modules.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/text.h"
#include "python/repr/arrays/tensor.h"
#include "values/census/private.h"

enum {
	DEPTH_MAX = 200,
	MODULES_MAX = 1 << 18, /* and tensors: a path may have 2,000 bytes */
	NAME_MAX_LENGTH = 200,
	PATH_MAX_LENGTH = 2000,
	VISITS_MAX = 1 << 24, /* entries of all dicts together */
};

/* Whether a class is derived from the one of that name. */
static bool is_derived(struct prb_census *c, uint64_t class, const char *name)
{
	prb_auto_repr struct prb_repr r;
	struct prb_type *type, *base;
	uint64_t mro[PRB_MRO_MAX];
	size_t count;

	prb_repr_init(&r, c->py, c->mem, NULL, NULL);
	if (!prb_census_try(c, prb_repr_type(&r, class, &type)) ||
	    !prb_census_try(c, prb_repr_mro(&r, type, mro, &count)))
		return false;
	for (size_t i = 0; i < count; i++) {
		prb_auto_str struct prb_str text = {};

		r.out = &text;
		if (prb_census_try(c, prb_repr_type(&r, mro[i], &base)) &&
		    prb_census_try(c, prb_repr_put_module(&r, base)) &&
		    prb_census_try(c, prb_repr_put_qualname(&r, base)) &&
		    !strcmp(prb_str_text(&text), name))
			return true;
	}
	return false;
}

struct prb_error *prb_torch_objects(struct prb_census *c, const char *base,
				    struct prb_torch_objects *ret)
{
	prb_auto_free bool *derived = calloc(c->types.count + 1, sizeof(*derived));
	bool any = false;

	*ret = (struct prb_torch_objects){};
	if (!derived)
		return prb_error_nomem();
	for (size_t i = 0; i < c->types.count; i++) {
		derived[i] = c->types.items[i].kind == PRB_CENSUS_WORDS &&
			     is_derived(c, c->types.items[i].address, base);
		any |= derived[i];
	}
	for (uint32_t i = 0; any && i < c->nodes.count; i++) {
		uint32_t *added;

		if (!derived[c->nodes.items[i].type])
			continue;
		added = prb_vec_push(&ret->list);
		if (!added) {
			prb_vec_free(&ret->list);
			return prb_error_nomem();
		}
		*added = i;
	}
	return c->fatal ? prb_steal(&c->fatal) : NULL;
}

struct walk {
	struct prb_census *c;
	struct prb_torch_modules *ret;
	PRB_VEC(uint64_t) children; /* of any module, sorted */
	uint32_t parent;	    /* whose dict is being visited */
	bool buffers;
	uint32_t visits;
	uint32_t next;		     /* whose children are to be added */
	struct prb_number_map known; /* addresses of the modules of the list */
	struct prb_error *err;
};

/* Reports that a limit leaves modules out. */
static bool is_full(const struct walk *w, size_t count)
{
	if (count < MODULES_MAX)
		return false;
	prb_census_set_doubt(w->c, "there are over 262,144 modules of torch, or parameters of "
				   "them: the others are left out");
	return true;
}

static bool visit_one(struct walk *w)
{
	if (w->visits++ < VISITS_MAX)
		return true;
	prb_census_set_doubt(w->c, "the modules of torch have over 16 million entries: others are "
				   "left out");
	return false;
}

static int compare(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;

	return one < other ? -1 : one > other;
}

/* Calls @p visit for the entries of a dict that an attribute of the module is. */
static void each_entry(struct walk *w, uint64_t module, const char *attribute,
		       prb_dict_visit *visit)
{
	struct prb_census *c = w->c;
	uint64_t dict;

	if (prb_census_try(c, prb_object_attribute(c->py, c->mem, module, attribute, &dict)))
		prb_census_try(c, prb_object_dict_each(c->py, c->mem, dict, visit, w));
}

static bool note_child(void *context, uint64_t key __attribute__((unused)), uint64_t value)
{
	struct walk *w = context;
	uint64_t *child = prb_vec_push(&w->children);

	if (!child) {
		w->err = prb_error_nomem();
		return false;
	}
	*child = value;
	return visit_one(w);
}

static char *join(struct walk *w, uint32_t parent, uint64_t key)
{
	prb_auto_str struct prb_str name = {}, path = {};

	if (!prb_census_try(w->c, prb_object_str(w->c->py, w->c->mem, key, NAME_MAX_LENGTH, &name)))
		prb_str_puts(&name, "?");
	prb_str_printf(&path, "%s.", w->ret->list.items[parent].path);
	if (path.length < PATH_MAX_LENGTH)
		prb_text_escape(&path, prb_str_text(&name));
	return prb_str_take(&path);
}

static bool note_tensor(void *context, uint64_t key, uint64_t value)
{
	struct walk *w = context;
	struct prb_torch_module *module = &w->ret->list.items[w->parent];
	struct prb_torch_tensor *added;
	struct prb_tensor tensor;

	if (!visit_one(w) || is_full(w, w->ret->tensors.count))
		return false;
	/* None means a missing parameter. */
	if (!prb_census_try(w->c, prb_tensor_read(w->c->py, w->c->mem, value, &tensor)))
		return !w->c->fatal;
	added = prb_vec_push(&w->ret->tensors);
	if (added)
		*added = (struct prb_torch_tensor){.address = value,
						   .path = join(w, w->parent, key),
						   .module = w->parent,
						   .buffer = w->buffers};
	if (!added || !added->path) {
		w->err = prb_error_nomem();
		return false;
	}
	if (w->buffers)
		return true;
	module->parameters += tensor.elements;
	module->bytes += tensor.bytes;
	if (!module->dtype) {
		module->dtype = tensor.dtype;
		module->device = tensor.device;
		module->device_index = tensor.device_index;
	}
	return true;
}

static bool count_hook(void *context, uint64_t key __attribute__((unused)),
		       uint64_t value __attribute__((unused)))
{
	struct walk *w = context;

	w->ret->list.items[w->parent].hooks++;
	return visit_one(w);
}

static const char *class_of(struct prb_census *c, uint64_t object)
{
	uint32_t index = prb_census_find(c, object);
	struct prb_census_type type;

	return index != PRB_CENSUS_NONE && prb_census_type(c, c->nodes.items[index].type, &type)
		       ? type.name
		       : NULL;
}

static bool is_known(const struct walk *w, uint64_t address)
{
	size_t number;

	return prb_number_map_get(&w->known, address, &number);
}

/* Takes @p path, also if it fails. */
static bool add_module(struct walk *w, uint64_t address, char *path, const char *place,
		       uint32_t parent)
{
	struct prb_torch_module *module = path ? prb_vec_push(&w->ret->list) : NULL;
	char *place_copy = strdup(place);

	if (!module || !place_copy || !prb_number_map_put(&w->known, address, 1)) {
		free(path);
		free(place_copy);
		w->ret->list.count -= module != NULL;
		w->err = prb_error_nomem();
		return false;
	}
	*module = (struct prb_torch_module){
		.address = address,
		.path = path,
		.place = place_copy,
		.class = class_of(w->c, address),
		.parent = parent,
		.depth = parent == PRB_CENSUS_NONE ? 0 : w->ret->list.items[parent].depth + 1,
		.training = -1,
		.device_index = -1,
	};
	return true;
}

static void describe(struct walk *w, uint32_t index)
{
	static const char *const hooks[] = {"_forward_hooks", "_forward_pre_hooks",
					    "_backward_hooks", "_backward_pre_hooks"};
	struct prb_census *c = w->c;
	uint64_t address = w->ret->list.items[index].address, training;
	int64_t value;

	w->parent = index;
	w->buffers = false;
	each_entry(w, address, "_parameters", note_tensor);
	w->buffers = true;
	each_entry(w, address, "_buffers", note_tensor);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(hooks); i++)
		each_entry(w, address, hooks[i], count_hook);
	if (prb_census_try(c,
			   prb_object_attribute(c->py, c->mem, address, "training", &training)) &&
	    prb_census_try(c, prb_object_int(c->py, c->mem, training, &value)))
		w->ret->list.items[index].training = value != 0;
}

static bool add_child(void *context, uint64_t key, uint64_t value)
{
	struct walk *w = context;

	if (!visit_one(w) || is_full(w, w->ret->list.count))
		return false;
	if (w->ret->list.items[w->parent].depth >= DEPTH_MAX || is_known(w, value) ||
	    !class_of(w->c, value) || !strcmp(class_of(w->c, value), "NoneType"))
		return true;
	return add_module(w, value, join(w, w->parent, key), w->ret->list.items[w->parent].place,
			  w->parent);
}

static void add_children(struct walk *w, uint32_t index)
{
	describe(w, index);
	w->parent = index;
	each_entry(w, w->ret->list.items[index].address, "_modules", add_child);
}

/*
 * "model.layers in train()" as the path and the place. A global of the script has the name that it
 * has in the script.
 */
static struct prb_error *add_root(struct walk *w, uint32_t object)
{
	static const char script[] = "__main__.";
	prb_auto_str struct prb_str path = {};
	char *place, *text;

	PRB_TRY(prb_census_path(w->c, object, &path));
	text = prb_str_take(&path);
	if (text && !strncmp(text, script, strlen(script)))
		memmove(text, text + strlen(script), strlen(text + strlen(script)) + 1);
	place = text ? strstr(text, " in ") : NULL;
	if (place) {
		char *copy = strdup(place);

		*place = '\0';
		add_module(w, w->c->nodes.items[object].address, text, copy ? copy : "",
			   PRB_CENSUS_NONE);
		free(copy);
	} else {
		add_module(w, w->c->nodes.items[object].address, text, "", PRB_CENSUS_NONE);
	}
	return prb_steal(&w->err);
}

static bool is_child(const struct walk *w, uint64_t address)
{
	return w->children.count && bsearch(&address, w->children.items, w->children.count,
					    sizeof(*w->children.items), compare);
}

/* The modules that are in no other one, or, of what only cycles lead to, any; and what is in them.
 */
static struct prb_error *add_trees(struct walk *w, const struct prb_torch_objects *objects,
				   bool cycles)
{
	const uint32_t *object;

	prb_vec_each (object, &objects->list) {
		uint64_t address = w->c->nodes.items[*object].address;

		if (is_known(w, address) || (!cycles && is_child(w, address)) ||
		    is_full(w, w->ret->list.count))
			continue;
		PRB_TRY(add_root(w, *object));
		for (; cycles && w->next < w->ret->list.count && !w->err; w->next++)
			add_children(w, w->next);
	}
	for (; w->next < w->ret->list.count && !w->err; w->next++)
		add_children(w, w->next);
	return w->err ? prb_steal(&w->err) : NULL;
}

static void sum_up(struct prb_torch_modules *modules)
{
	for (size_t i = modules->list.count; i-- > 0;) {
		struct prb_torch_module *module = &modules->list.items[i];

		module->all_parameters += module->parameters;
		module->all_bytes += module->bytes;
		if (module->parent == PRB_CENSUS_NONE)
			continue;
		modules->list.items[module->parent].all_parameters += module->all_parameters;
		modules->list.items[module->parent].all_bytes += module->all_bytes;
	}
}

/* The trees, breadth first; of a module in several places the first counts. */
static struct prb_error *walk(struct walk *w, const struct prb_torch_objects *objects)
{
	const uint32_t *object;

	prb_vec_each (object, &objects->list)
		each_entry(w, w->c->nodes.items[*object].address, "_modules", note_child);
	if (w->err)
		return prb_steal(&w->err);
	if (w->children.count)
		qsort(w->children.items, w->children.count, sizeof(*w->children.items), compare);
	PRB_TRY(add_trees(w, objects, false));
	PRB_TRY(add_trees(w, objects, true));
	sum_up(w->ret);
	if (w->ret->tensors.count)
		qsort(w->ret->tensors.items, w->ret->tensors.count, sizeof(*w->ret->tensors.items),
		      compare);
	return w->c->fatal ? prb_steal(&w->c->fatal) : NULL;
}

/* Each module's place if it is followed by what is below it, which the list has later. */
static struct prb_error *number(struct prb_torch_modules *modules)
{
	size_t count = modules->list.count;
	prb_auto_free uint32_t *sizes = calloc(count + 1, sizeof(*sizes));
	uint32_t next = 0;

	if (!sizes)
		return prb_error_nomem();
	for (size_t i = count; i-- > 0;) {
		sizes[i]++;
		if (modules->list.items[i].parent != PRB_CENSUS_NONE)
			sizes[modules->list.items[i].parent] += sizes[i];
	}
	/* From here on a module's size is how far its next child is from the beginning. */
	for (size_t i = 0; i < count; i++) {
		struct prb_torch_module *module = &modules->list.items[i];
		uint32_t *at = module->parent == PRB_CENSUS_NONE ? &next : &sizes[module->parent];
		uint32_t size = sizes[i];

		module->order = *at;
		*at += size;
		sizes[i] = module->order + 1;
	}
	return NULL;
}

struct prb_error *prb_torch_modules_read(struct prb_census *c, struct prb_torch_modules *ret)
{
	struct walk w = {.c = c, .ret = ret};
	struct prb_torch_objects objects;
	struct prb_error *err;

	*ret = (struct prb_torch_modules){};
	PRB_TRY(prb_torch_objects(c, "torch.nn.modules.module.Module", &objects));
	err = walk(&w, &objects);
	if (!err)
		err = number(ret);
	prb_vec_free(&objects.list);
	prb_vec_free(&w.children);
	prb_number_map_deinit(&w.known);
	if (err)
		prb_torch_modules_deinit(ret);
	return err;
}

void prb_torch_modules_deinit(struct prb_torch_modules *modules)
{
	struct prb_torch_module *module;
	struct prb_torch_tensor *tensor;

	prb_vec_each (module, &modules->list) {
		free(module->path);
		free(module->place);
	}
	prb_vec_each (tensor, &modules->tensors)
		free(tensor->path);
	prb_vec_free(&modules->list);
	prb_vec_free(&modules->tensors);
}

const struct prb_torch_tensor *prb_torch_tensor_find(const struct prb_torch_modules *modules,
						     uint64_t address)
{
	return modules->tensors.count
		       ? bsearch(&address, modules->tensors.items, modules->tensors.count,
				 sizeof(*modules->tensors.items), compare)
		       : NULL;
}

const char *prb_torch_name(const struct prb_torch_modules *modules, uint64_t address)
{
	const struct prb_torch_tensor *tensor = prb_torch_tensor_find(modules, address);
	const struct prb_torch_module *module;

	if (tensor)
		return tensor->path;
	prb_vec_each (module, &modules->list)
		if (module->address == address)
			return module->path;
	return NULL;
}

struct prb_error *prb_torch_path(struct prb_census *c, const struct prb_torch_modules *modules,
				 uint32_t object, struct prb_str *ret)
{
	const struct prb_torch_tensor *tensor =
		object < c->nodes.count
			? prb_torch_tensor_find(modules, c->nodes.items[object].address)
			: NULL;

	if (!tensor) {
		struct prb_error *err;

		c->names = modules;
		err = prb_census_path(c, object, ret);
		c->names = NULL;
		return err;
	}
	prb_str_puts(ret, tensor->path);
	prb_str_puts(ret, modules->list.items[tensor->module].place);
	return ret->failed ? prb_error_nomem() : NULL;
}
