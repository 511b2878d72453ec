/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How an object is reached, as an expression. */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"
#include "python/repr/core/attributes.h"
#include "values/census/private.h"
#include "values/census/torch_modules.h"

enum { STEPS_MAX = 200, STEPS_SHOWN = 12, KEY_MAX = 40 };

/* How one object is looked for in another. */
struct search {
	struct prb_census *c;
	uint64_t child;
	struct prb_census_place place;
	bool found;
	char name[KEY_MAX * 4];
};

static bool visit_attribute(void *context, const struct prb_attribute *attribute)
{
	struct search *s = context;

	if (attribute->object != s->child)
		return true;
	s->found = true;
	snprintf(s->name, sizeof(s->name), "%s", attribute->name);
	return false;
}

static struct prb_error *put_key(struct search *s, struct prb_str *ret)
{
	const struct prb_repr_options options = {
		.max_text = KEY_MAX, .max_total = KEY_MAX * 2, .max_items = 3, .max_depth = 2};
	struct prb_str key = {};
	const char *name = s->c->names ? prb_torch_name(s->c->names, s->place.key) : NULL;

	if (name) {
		prb_str_printf(ret, s->place.is_key ? ".<key %s>" : "[%s]", name);
		return NULL;
	}

	struct prb_error *err = prb_object_repr(s->c->py, s->c->mem, s->place.key, &options, &key);

	if (!err) {
		prb_str_puts(ret, s->place.is_key ? ".<key " : "[");
		prb_text_escape(ret, prb_str_text(&key));
		prb_str_puts(ret, s->place.is_key ? ">" : "]");
	}
	prb_str_deinit(&key);
	return err;
}

/* An item of a container. A set's have no index. */
static bool put_item(struct search *s, uint64_t parent, enum prb_census_kind kind,
		     struct prb_str *ret)
{
	if (!prb_census_find_place(s->c, parent, s->child, &s->place))
		return false;
	if (s->place.key)
		return prb_census_try(s->c, put_key(s, ret));
	if (kind == PRB_CENSUS_SET)
		prb_str_puts(ret, "{…}");
	else
		prb_str_printf(ret, "[%llu]", (unsigned long long)s->place.index);
	return true;
}

static bool put_attribute(struct search *s, uint64_t parent, bool *namespace, struct prb_str *ret)
{
	s->found = false;
	if (!prb_census_try(s->c, prb_object_attributes(s->c->py, s->c->mem, parent,
							PRB_ATTRIBUTE_DICT | PRB_ATTRIBUTE_SLOT |
								PRB_ATTRIBUTE_SECRETS,
							visit_attribute, s, NULL)) ||
	    !s->found || !*s->name)
		return false;
	/* Its items are attributes of the object. */
	*namespace = !strcmp(s->name, "__dict__");
	if (*namespace)
		return true;
	prb_str_putc(ret, '.');
	prb_text_escape(ret, s->name);
	return true;
}

static const struct prb_census_entry *entry_of(const struct prb_census *c, uint32_t node)
{
	return &c->types.items[c->nodes.items[node].type];
}

static const char *name_of(struct prb_census *c, uint32_t node)
{
	struct prb_census_type type;

	return prb_census_type(c, c->nodes.items[node].type, &type) ? type.name : "?";
}

static bool is_container(enum prb_census_kind kind)
{
	return kind == PRB_CENSUS_DICT || kind == PRB_CENSUS_LIST || kind == PRB_CENSUS_TUPLE ||
	       kind == PRB_CENSUS_SET || kind == PRB_CENSUS_DEQUE;
}

/* A key that is a str, as an attribute of what has the dict. */
static bool put_as_attribute(struct search *s, uint64_t dict, struct prb_str *ret)
{
	struct prb_str name = {};
	bool done;

	if (!prb_census_find_place(s->c, dict, s->child, &s->place) || !s->place.key)
		return false;
	done = prb_census_try(s->c,
			      prb_object_str(s->c->py, s->c->mem, s->place.key, KEY_MAX, &name));
	if (done) {
		prb_str_putc(ret, '.');
		prb_text_escape(ret, prb_str_text(&name));
	}
	prb_str_deinit(&name);
	return done;
}

/* Variables of a generator or a closure, as the words that people know. */
static const char *other_way(const char *parent)
{
	if (!strcmp(parent, "cell"))
		return ".cell_contents";
	if (!strcmp(parent, "generator") || !strcmp(parent, "coroutine") ||
	    !strcmp(parent, "async_generator"))
		return ".<local>";
	return NULL;
}

/*
 * The step from @p parent to @p child; *namespace: the parent is the dict of an object's names.
 * @p any: whichever item of a container it is.
 */
static void put_step(struct prb_census *c, uint32_t parent, uint32_t child, bool any,
		     bool *namespace, struct prb_str *ret)
{
	enum prb_census_kind kind = entry_of(c, parent)->kind;
	uint64_t address = c->nodes.items[parent].address;
	struct search s = {.c = c, .child = c->nodes.items[child].address};

	if (*namespace) {
		*namespace = false;
		if (put_as_attribute(&s, address, ret))
			return;
	}
	if (is_container(kind) && any) {
		prb_str_puts(ret, "[…]");
		return;
	}
	if (is_container(kind) && put_item(&s, address, kind, ret))
		return;
	if (put_attribute(&s, address, namespace, ret))
		return;
	/* The dict of an object is no attribute of it. */
	if (!is_container(kind) && entry_of(c, child)->kind == PRB_CENSUS_DICT) {
		*namespace = true;
		return;
	}
	if (other_way(name_of(c, parent)))
		prb_str_puts(ret, other_way(name_of(c, parent)));
	else
		prb_str_printf(ret, ".<%s>", name_of(c, child));
}

static void put_root(struct prb_census *c, uint32_t parent, struct prb_str *ret, bool *modules)
{
	uint32_t root = PRB_CENSUS_NONE - 1 - parent;

	*modules = false;
	if (parent == PRB_CENSUS_NONE || root >= c->roots.count) {
		prb_str_puts(ret, "?");
		return;
	}
	*modules = c->roots.items[root].modules;
	if (c->roots.items[root].name)
		prb_text_escape(ret, c->roots.items[root].name);
}

/* The function whose variable it is. */
static void put_place(const struct prb_census *c, uint32_t parent, struct prb_str *ret)
{
	uint32_t root = PRB_CENSUS_NONE - 1 - parent;

	if (parent == PRB_CENSUS_NONE || root >= c->roots.count || !c->roots.items[root].place)
		return;
	prb_str_puts(ret, " in ");
	prb_text_escape(ret, c->roots.items[root].place);
	prb_str_puts(ret, "()");
}

static struct prb_error *put_path(struct prb_census *c, uint32_t index, bool any,
				  struct prb_str *ret)
{
	uint32_t steps[STEPS_MAX], count = 0, at = index;
	bool modules, namespace = false;

	if (index >= c->nodes.count)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "there is no such object");
	for (; at < c->nodes.count && count < STEPS_MAX; at = c->nodes.items[at].parent)
		steps[count++] = at;
	put_root(c, at < c->nodes.count ? PRB_CENSUS_NONE : at, ret, &modules);
	if (modules && count >= 2) {
		/* sys.modules['app'] is "app". */
		struct search s = {.c = c, .child = c->nodes.items[steps[count - 2]].address};
		size_t start = ret->length;

		if (put_as_attribute(&s, c->nodes.items[steps[count - 1]].address, ret))
			prb_str_remove(ret, start, 1);
		else
			prb_str_puts(ret, "sys.modules[…]");
		count--;
	} else if (modules) {
		prb_str_puts(ret, "sys.modules");
	} else if (at == PRB_CENSUS_NONE) {
		prb_str_printf(ret, " %s", name_of(c, steps[count - 1]));
	}
	for (uint32_t i = count; i-- > 1;) {
		if (count > STEPS_SHOWN + 2 && i == count - STEPS_SHOWN / 2) {
			prb_str_puts(ret, "…");
			i = STEPS_SHOWN / 2;
			namespace = false;
		}
		put_step(c, steps[i], steps[i - 1], any, &namespace, ret);
	}
	if (namespace)
		prb_str_puts(ret, ".__dict__");
	put_place(c, at, ret);
	return c->fatal ? prb_steal(&c->fatal) : ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_census_path(struct prb_census *c, uint32_t index, struct prb_str *ret)
{
	return put_path(c, index, false, ret);
}

struct prb_error *prb_census_pattern(struct prb_census *c, uint32_t index, struct prb_str *ret)
{
	return put_path(c, index, true, ret);
}
