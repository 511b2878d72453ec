/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "values/census/growth.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/map.h"
#include "base/pool.h"
#include "values/census/private.h"

/* Of so many holders the ways to them are looked for; of so many, new objects are counted at once.
 */
enum { NAMED_MAX = 20000, PART_MAX = 64 };

/* The balance of what one object holds. */
struct balance {
	int64_t bytes;
	int64_t objects;
};

/* As above, for a root, which censuses know by its text. */
struct root {
	const struct prb_census_root *root; /* NULL: nothing was found to hold it */
	bool garbage;
	struct balance balance;
};

/* A growing holder: an object, or a root. */
struct found {
	uint32_t object; /* PRB_CENSUS_NONE: the root */
	uint32_t holder; /* where it is in the result; PRB_CENSUS_NONE: nowhere */
	const struct root *root;
	struct balance balance;
};

struct comparison {
	struct prb_census *before, *after;
	struct balance *balances; /* of each object of the later census */
	uint32_t *holders;	  /* of each new object: in the form of a node's parent */
	PRB_VEC(struct root) roots;
	PRB_VEC(struct found) found;
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

/* The object's index in the other census, or PRB_CENSUS_NONE. */
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
 * Attributes objects in only one census to their nearest holder in both. A parent was found before
 * its children, so their holders are known when they are needed.
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

static int compare_found(const void *a, const void *b)
{
	const struct found *one = a, *other = b;
	int order = compare_numbers(one->balance.bytes, other->balance.bytes);

	return order ? order : compare_numbers(one->balance.objects, other->balance.objects);
}

static bool grew(const struct balance *balance)
{
	return balance->bytes > 0 && balance->objects > 0;
}

/* All that grew, the most first. */
static struct prb_error *find_holders(struct comparison *cmp)
{
	const struct root *root;
	struct found *found;

	for (uint32_t i = 0; i < cmp->after->nodes.count; i++) {
		if (!grew(&cmp->balances[i]))
			continue;
		found = prb_vec_push(&cmp->found);
		if (!found)
			return prb_error_nomem();
		*found = (struct found){.object = i, .balance = cmp->balances[i]};
	}
	prb_vec_each (root, &cmp->roots) {
		if (!grew(&root->balance))
			continue;
		found = prb_vec_push(&cmp->found);
		if (!found)
			return prb_error_nomem();
		*found = (struct found){
			.object = PRB_CENSUS_NONE, .root = root, .balance = root->balance};
	}
	if (cmp->found.count)
		qsort(cmp->found.items, cmp->found.count, sizeof(*cmp->found.items), compare_found);
	return NULL;
}

/* Where holders with the same pattern are in the result. */
struct patterns {
	struct prb_pool *texts;
	struct prb_number_map numbers; /* by the address of a text */
};

/* The holder for the pattern of an object: an existing one, or a new one. */
static struct prb_error *use_holder(struct comparison *cmp, struct patterns *patterns,
				    uint32_t object, struct prb_growth_holder **ret)
{
	struct prb_growth *g = cmp->ret;
	prb_auto_str struct prb_str pattern = {};
	const char *text = NULL;
	size_t number;

	if (object != PRB_CENSUS_NONE)
		PRB_TRY(prb_census_pattern(cmp->after, object, &pattern));
	if (pattern.length) {
		PRB_TRY(prb_pool_share(patterns->texts, prb_str_text(&pattern), &text));
		if (prb_number_map_get(&patterns->numbers, (uintptr_t)text, &number)) {
			*ret = &g->holders.items[number];
			return NULL;
		}
		if (!prb_number_map_put(&patterns->numbers, (uintptr_t)text, g->holders.count))
			return prb_error_nomem();
	}
	*ret = prb_vec_push(&g->holders);
	if (!*ret)
		return prb_error_nomem();
	(*ret)->object = object;
	(*ret)->example = PRB_CENSUS_NONE;
	return text ? prb_str_copy(text, &(*ret)->pattern) : NULL;
}

static struct prb_error *add_holder(struct comparison *cmp, struct patterns *patterns,
				    struct found *found)
{
	struct prb_growth_holder *holder;

	PRB_TRY(use_holder(cmp, patterns, found->object, &holder));
	if (found->root) {
		holder->root = found->root->root ? root_text(found->root->root) : NULL;
		holder->root_of = found->root->root;
		holder->garbage = found->root->garbage;
	}
	holder->count++;
	holder->objects += found->balance.objects;
	holder->bytes += found->balance.bytes;
	found->holder = (uint32_t)(holder - cmp->ret->holders.items);
	return NULL;
}

static void drop_holder(struct prb_growth_holder *holder)
{
	free(holder->root);
	free(holder->pattern);
}

static void leave_out(struct prb_growth *g, const struct balance *balance, uint64_t count)
{
	g->others += count;
	g->other_objects += balance->objects;
	g->other_bytes += balance->bytes;
}

/* The first @p most, with the numbers that those that were found have for them. */
static struct prb_error *sort_holders(struct comparison *cmp, size_t most)
{
	struct prb_growth *g = cmp->ret;
	prb_auto_free uint32_t *places = malloc((g->holders.count + 1) * sizeof(*places));
	struct found *found;

	if (!places)
		return prb_error_nomem();
	for (uint32_t i = 0; i < g->holders.count; i++)
		g->holders.items[i].number = i;
	if (g->holders.count)
		qsort(g->holders.items, g->holders.count, sizeof(*g->holders.items),
		      compare_holders);
	for (uint32_t i = 0; i < g->holders.count; i++)
		places[g->holders.items[i].number] = i < most ? i : PRB_CENSUS_NONE;
	prb_vec_each (found, &cmp->found)
		found->holder =
			found->holder == PRB_CENSUS_NONE ? PRB_CENSUS_NONE : places[found->holder];
	for (size_t i = most; i < g->holders.count; i++) {
		struct prb_growth_holder *holder = &g->holders.items[i];

		leave_out(g, &(struct balance){holder->bytes, holder->objects}, holder->count);
		drop_holder(holder);
	}
	g->holders.count = PRB_MIN(g->holders.count, most);
	return NULL;
}

static struct prb_error *list_holders(struct comparison *cmp, size_t most)
{
	struct patterns patterns = {};
	struct prb_error *err;

	PRB_TRY(find_holders(cmp));
	err = prb_pool_create(&patterns.texts);
	for (size_t i = 0; i < cmp->found.count && !err; i++) {
		struct found *found = &cmp->found.items[i];

		found->holder = PRB_CENSUS_NONE;
		if (i < NAMED_MAX)
			err = add_holder(cmp, &patterns, found);
		else
			leave_out(cmp->ret, &found->balance, 1);
	}
	prb_number_map_deinit(&patterns.numbers);
	prb_pool_destroy(patterns.texts);
	return err ? err : sort_holders(cmp, most);
}

/* New objects of a holder, summed up by type. */
struct tally {
	uint64_t objects, bytes;
	uint32_t first; /* an object of it */
};

static void name_types(struct comparison *cmp, struct prb_growth_holder *holder,
		       struct tally *tallies)
{
	struct prb_census *c = cmp->after;

	for (unsigned n = 0; n < PRB_GROWTH_TYPES; n++) {
		size_t best = c->types.count;
		struct prb_census_type type;

		for (size_t i = 0; i < c->types.count; i++)
			if (tallies[i].objects &&
			    (best == c->types.count || tallies[i].bytes > tallies[best].bytes))
				best = i;
		if (!prb_census_type(c, best, &type))
			return;
		holder->types[n].name = type.name;
		holder->types[n].objects = tallies[best].objects;
		if (!n)
			holder->example = tallies[best].first;
		tallies[best].objects = 0;
	}
}

/* Index of the holder a new object is attributed to, or PRB_CENSUS_NONE. */
static uint32_t number_of(const struct comparison *cmp, const uint32_t *numbers, uint32_t object)
{
	const struct prb_growth *g = cmp->ret;
	uint32_t of = cmp->holders[object];

	if (of == object)
		return PRB_CENSUS_NONE;
	if (of < cmp->after->nodes.count)
		return numbers[of];
	for (uint32_t i = 0; i < g->holders.count; i++)
		if (g->holders.items[i].object == PRB_CENSUS_NONE &&
		    g->holders.items[i].garbage == prb_census_is_garbage(cmp->after, object) &&
		    same_root(g->holders.items[i].root_of, root_of(cmp->after, of)))
			return i;
	return PRB_CENSUS_NONE;
}

/* Which types the new objects of PART_MAX holders have, from @p first on. */
static void describe_part(struct comparison *cmp, const uint32_t *numbers, uint32_t first,
			  struct tally *tallies)
{
	struct prb_census *c = cmp->after;
	size_t types = c->types.count,
	       count = PRB_MIN(cmp->ret->holders.count - first, (size_t)PART_MAX);

	memset(tallies, 0, count * types * sizeof(*tallies));
	for (uint32_t i = 0; i < c->nodes.count; i++) {
		uint32_t number = number_of(cmp, numbers, i);
		struct tally *tally;

		if (number < first || number - first >= count)
			continue;
		tally = &tallies[(number - first) * types + c->nodes.items[i].type];
		tally->first = tally->objects++ ? tally->first : i;
		tally->bytes += c->nodes.items[i].bytes;
	}
	for (size_t i = 0; i < count; i++)
		name_types(cmp, &cmp->ret->holders.items[first + i], tallies + i * types);
}

static struct prb_error *describe_holders(struct comparison *cmp)
{
	struct prb_census *c = cmp->after;
	prb_auto_free uint32_t *numbers = malloc((c->nodes.count + 1) * sizeof(*numbers));
	prb_auto_free struct tally *tallies =
		malloc((PART_MAX * c->types.count + 1) * sizeof(*tallies));
	const struct found *found;

	if (!numbers || !tallies)
		return prb_error_nomem();
	memset(numbers, 0xff, c->nodes.count * sizeof(*numbers)); /* PRB_CENSUS_NONE */
	prb_vec_each (found, &cmp->found)
		if (found->object != PRB_CENSUS_NONE)
			numbers[found->object] = found->holder;
	for (uint32_t first = 0; first < cmp->ret->holders.count; first += PART_MAX)
		describe_part(cmp, numbers, first, tallies);
	return NULL;
}

static int compare_types(const void *a, const void *b)
{
	const struct prb_growth_type *one = a, *other = b;
	int order = compare_numbers(one->bytes, other->bytes);

	return order ? order : strcmp(one->name, other->name);
}

/* Where each type of the earlier census is in its list. A program may make classes without end. */
static struct prb_error *number_types(const struct comparison *cmp, struct prb_number_map *ret)
{
	for (size_t i = 0; i < cmp->before->types.count; i++)
		if (!prb_number_map_put(ret, cmp->before->types.items[i].address, i))
			return prb_error_nomem();
	return NULL;
}

static struct prb_error *add_types(struct comparison *cmp, const struct prb_number_map *numbers)
{
	struct prb_growth *g = cmp->ret;
	struct prb_census_type now;

	for (size_t i = 0; prb_census_type(cmp->after, i, &now); i++) {
		struct prb_growth_type *type, change = {.name = now.name,
							.objects = (int64_t)now.count,
							.bytes = (int64_t)now.bytes,
							.now_objects = now.count,
							.now_bytes = now.bytes};
		size_t number;

		if (prb_number_map_get(numbers, now.address, &number)) {
			const struct prb_census_entry *past = &cmp->before->types.items[number];

			change.objects -= (int64_t)past->count;
			change.bytes -= (int64_t)past->bytes;
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

static struct prb_error *list_types(struct comparison *cmp)
{
	struct prb_number_map numbers = {};
	struct prb_error *err = number_types(cmp, &numbers);

	if (!err)
		err = add_types(cmp, &numbers);
	prb_number_map_deinit(&numbers);
	return err;
}

static struct prb_error *compare(struct comparison *cmp, size_t most)
{
	uint32_t *gone;
	struct prb_error *err;

	cmp->balances = calloc(cmp->after->nodes.count + 1, sizeof(*cmp->balances));
	cmp->holders = calloc(cmp->after->nodes.count + 1, sizeof(*cmp->holders));
	if (!cmp->balances || !cmp->holders)
		return prb_error_nomem();
	PRB_TRY(list_types(cmp));
	PRB_TRY(balance_one(cmp, cmp->after, cmp->before, 1, cmp->holders));
	gone = malloc((cmp->before->nodes.count + 1) * sizeof(*gone));
	err = gone ? balance_one(cmp, cmp->before, cmp->after, -1, gone) : prb_error_nomem();
	free(gone);
	PRB_TRY(err);
	PRB_TRY(list_holders(cmp, most));
	return describe_holders(cmp);
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
	prb_vec_free(&cmp.found);
	if (err)
		prb_growth_deinit(ret);
	return err;
}

void prb_growth_deinit(struct prb_growth *growth)
{
	struct prb_growth_holder *holder;

	prb_vec_each (holder, &growth->holders)
		drop_holder(holder);
	prb_vec_free(&growth->holders);
	prb_vec_free(&growth->types);
}
