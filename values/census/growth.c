/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/census/growth.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "values/census/census_private.h"

/* The balance of what one object holds. */
struct balance {
	int64_t bytes;
	int64_t objects;
};

/* The same of a root, which censuses know by its text. */
struct root {
	const struct prb_census_root *root; /* NULL: nothing was found to hold it */
	bool garbage;
	struct balance balance;
};

struct comparison {
	struct prb_census *before, *after;
	struct balance *balances; /* of each object of the later census */
	uint32_t *holders;	  /* of each new object: as parents are told in nodes */
	PRB_VEC(struct root) roots;
	struct prb_growth *ret;
};

/* NULL for what nothing was found to hold. */
static const struct prb_census_root *root_of(const struct prb_census *c, uint32_t parent)
{
	uint32_t root = PRB_CENSUS_NONE - 1 - parent;

	return parent == PRB_CENSUS_NONE || root >= c->roots.count ? NULL : &c->roots.items[root];
}

static bool same_text(const char *one, const char *other)
{
	return one == other || (one && other && !strcmp(one, other));
}

static bool same_root(const struct prb_census_root *one, const struct prb_census_root *other)
{
	if (!one || !other)
		return one == other;
	return one->modules == other->modules && same_text(one->name, other->name) &&
	       same_text(one->place, other->place);
}

static char *root_text(const struct prb_census_root *root)
{
	return root->modules ? strdup("sys.modules")
			     : prb_format("%s in %s()", root->name, root->place);
}

static struct root *find_root(struct comparison *cmp, const struct prb_census_root *as,
			      bool garbage)
{
	struct root *root;

	prb_vec_each (root, &cmp->roots)
		if (root->garbage == garbage && same_root(root->root, as))
			return root;
	root = prb_vec_push(&cmp->roots);
	if (root)
		*root = (struct root){.root = as, .garbage = garbage};
	return root;
}

/* The same object in the other census, or PRB_CENSUS_NONE. */
static uint32_t counterpart(const struct prb_census *c, uint32_t index,
			    const struct prb_census *other)
{
	const struct prb_census_node *node = &c->nodes.items[index];
	uint32_t found = prb_census_find(other, node->address);

	if (found == PRB_CENSUS_NONE ||
	    other->types.items[other->nodes.items[found].type].address !=
		    c->types.items[node->type].address)
		return PRB_CENSUS_NONE;
	return found;
}

static bool add_balance(struct comparison *cmp, struct prb_census *c, uint32_t holder, int sign,
			uint64_t bytes, uint32_t example)
{
	struct balance *balance;
	struct root *root;

	if (holder < c->nodes.count) {
		uint32_t index = c == cmp->after ? holder : counterpart(c, holder, cmp->after);

		balance = &cmp->balances[index];
	} else {
		root = find_root(cmp, root_of(c, holder), prb_census_is_garbage(c, example));
		if (!root)
			return false;
		balance = &root->balance;
	}
	balance->objects += sign;
	balance->bytes += sign * (int64_t)bytes;
	return true;
}

/*
 * What one census has and the other has not goes to its nearest holder that both have. A parent was
 * found before its children, so their holders are known when they are needed.
 */
static struct prb_error *balance_one(struct comparison *cmp, struct prb_census *c,
				     const struct prb_census *other, int sign, uint32_t *holders)
{
	for (uint32_t i = 0; i < c->nodes.count; i++) {
		const struct prb_census_node *node = &c->nodes.items[i];
		uint32_t same = counterpart(c, i, other);

		holders[i] = i;
		if (same != PRB_CENSUS_NONE) {
			if (sign > 0)
				cmp->balances[i].bytes += (int64_t)node->bytes -
							  (int64_t)other->nodes.items[same].bytes;
			continue;
		}
		holders[i] = node->parent < c->nodes.count ? holders[node->parent] : node->parent;
		if (!add_balance(cmp, c, holders[i], sign, node->bytes, i))
			return prb_error_nomem();
	}
	return NULL;
}

static int compare_numbers(int64_t one, int64_t other)
{
	return one > other ? -1 : one < other;
}

static int compare_holders(const void *a, const void *b)
{
	const struct prb_growth_holder *one = a, *other = b;
	int order = compare_numbers(one->bytes, other->bytes);

	return order ? order : compare_numbers(one->objects, other->objects);
}

static bool grew(const struct balance *balance)
{
	return balance->bytes > 0 && balance->objects > 0;
}

static struct prb_error *list_holders(struct comparison *cmp, size_t most)
{
	struct prb_growth *g = cmp->ret;
	const struct root *root;

	for (uint32_t i = 0; i < cmp->after->nodes.count; i++) {
		struct prb_growth_holder *holder;

		if (!grew(&cmp->balances[i]))
			continue;
		holder = prb_vec_push(&g->holders);
		if (!holder)
			return prb_error_nomem();
		*holder = (struct prb_growth_holder){.object = i,
						     .example = PRB_CENSUS_NONE,
						     .objects = cmp->balances[i].objects,
						     .bytes = cmp->balances[i].bytes};
	}
	prb_vec_each (root, &cmp->roots) {
		struct prb_growth_holder *holder =
			grew(&root->balance) ? prb_vec_push(&g->holders) : NULL;

		if (!holder)
			continue;
		*holder = (struct prb_growth_holder){.object = PRB_CENSUS_NONE,
						     .root = root->root ? root_text(root->root)
									: NULL,
						     .root_of = root->root,
						     .garbage = root->garbage,
						     .example = PRB_CENSUS_NONE,
						     .objects = root->balance.objects,
						     .bytes = root->balance.bytes};
	}
	if (g->holders.count)
		qsort(g->holders.items, g->holders.count, sizeof(*g->holders.items),
		      compare_holders);
	for (size_t i = most; i < g->holders.count; i++)
		free(g->holders.items[i].root);
	g->holders.count = PRB_MIN(g->holders.count, most);
	return NULL;
}

/* What new objects one holder has, summed up by type. */
struct tally {
	uint64_t *objects, *bytes; /* of each type */
	uint32_t *first;	   /* an object of it */
};

static bool holds(const struct comparison *cmp, const struct prb_growth_holder *holder,
		  uint32_t object)
{
	uint32_t of = cmp->holders[object];

	if (of == object)
		return false;
	if (of < cmp->after->nodes.count)
		return of == holder->object;
	return holder->object == PRB_CENSUS_NONE &&
	       holder->garbage == prb_census_is_garbage(cmp->after, object) &&
	       same_root(holder->root_of, root_of(cmp->after, of));
}

static void name_types(struct comparison *cmp, struct prb_growth_holder *holder,
		       const struct tally *tally)
{
	struct prb_census *c = cmp->after;

	for (unsigned n = 0; n < PRB_GROWTH_TYPES; n++) {
		size_t best = c->types.count;
		struct prb_census_type type;

		for (size_t i = 0; i < c->types.count; i++)
			if (tally->objects[i] &&
			    (best == c->types.count || tally->bytes[i] > tally->bytes[best]))
				best = i;
		if (!prb_census_type(c, best, &type))
			return;
		holder->types[n].name = type.name;
		holder->types[n].objects = tally->objects[best];
		if (!n)
			holder->example = tally->first[best];
		tally->objects[best] = 0;
	}
}

static struct prb_error *describe_holder(struct comparison *cmp, struct prb_growth_holder *holder)
{
	struct prb_census *c = cmp->after;
	prb_auto_free uint64_t *objects = calloc(c->types.count + 1, sizeof(*objects));
	prb_auto_free uint64_t *bytes = calloc(c->types.count + 1, sizeof(*bytes));

	prb_auto_free uint32_t *first = calloc(c->types.count + 1, sizeof(*first));

	if (!objects || !bytes || !first)
		return prb_error_nomem();
	for (uint32_t i = 0; i < c->nodes.count; i++) {
		if (!holds(cmp, holder, i))
			continue;
		if (!objects[c->nodes.items[i].type]++)
			first[c->nodes.items[i].type] = i;
		bytes[c->nodes.items[i].type] += c->nodes.items[i].bytes;
	}
	name_types(cmp, holder, &(struct tally){objects, bytes, first});
	return NULL;
}

static int compare_types(const void *a, const void *b)
{
	const struct prb_growth_type *one = a, *other = b;
	int order = compare_numbers(one->bytes, other->bytes);

	return order ? order : strcmp(one->name, other->name);
}

static struct prb_error *list_types(struct comparison *cmp)
{
	struct prb_growth *g = cmp->ret;
	struct prb_census_type now;

	for (size_t i = 0; prb_census_type(cmp->after, i, &now); i++) {
		const struct prb_census_entry *past;
		struct prb_growth_type *type, change = {.name = now.name,
							.objects = (int64_t)now.count,
							.bytes = (int64_t)now.bytes,
							.now_objects = now.count,
							.now_bytes = now.bytes};

		prb_vec_each (past, &cmp->before->types)
			if (past->address == now.address) {
				change.objects -= (int64_t)past->count;
				change.bytes -= (int64_t)past->bytes;
				break;
			}
		g->objects += change.objects;
		g->bytes += change.bytes;
		if (!change.objects && !change.bytes)
			continue;
		type = prb_vec_push(&g->types);
		if (!type)
			return prb_error_nomem();
		*type = change;
	}
	if (g->types.count)
		qsort(g->types.items, g->types.count, sizeof(*g->types.items), compare_types);
	return NULL;
}

static struct prb_error *compare(struct comparison *cmp, size_t most)
{
	prb_auto_free uint32_t *gone = NULL;
	struct prb_growth_holder *holder;

	cmp->balances = calloc(cmp->after->nodes.count + 1, sizeof(*cmp->balances));
	cmp->holders = calloc(cmp->after->nodes.count + 1, sizeof(*cmp->holders));
	gone = malloc((cmp->before->nodes.count + 1) * sizeof(*gone));
	if (!cmp->balances || !cmp->holders || !gone)
		return prb_error_nomem();
	PRB_TRY(list_types(cmp));
	PRB_TRY(balance_one(cmp, cmp->after, cmp->before, 1, cmp->holders));
	PRB_TRY(balance_one(cmp, cmp->before, cmp->after, -1, gone));
	PRB_TRY(list_holders(cmp, most));
	prb_vec_each (holder, &cmp->ret->holders)
		PRB_TRY(describe_holder(cmp, holder));
	return NULL;
}

struct prb_error *prb_growth_create(struct prb_census *before, struct prb_census *after,
				    size_t most, struct prb_growth *ret)
{
	struct comparison cmp = {.before = before, .after = after, .ret = ret};
	struct prb_error *err;

	*ret = (struct prb_growth){};
	err = compare(&cmp, most);
	free(cmp.balances);
	free(cmp.holders);
	prb_vec_free(&cmp.roots);
	if (err)
		prb_growth_deinit(ret);
	return err;
}

void prb_growth_deinit(struct prb_growth *growth)
{
	struct prb_growth_holder *holder;

	prb_vec_each (holder, &growth->holders)
		free(holder->root);
	prb_vec_free(&growth->holders);
	prb_vec_free(&growth->types);
}
