/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Classes of the standard library that are written in Python. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

struct prb_error *prb_repr_handle_user_data(struct prb_repr *r, uint64_t object,
					    struct prb_type *type __attribute__((unused)))
{
	uint64_t data;

	PRB_TRY(prb_repr_attribute(r, object, "data", &data));
	return prb_repr_object(r, data);
}

struct prb_error *prb_repr_handle_chain_map(struct prb_repr *r, uint64_t object,
					    struct prb_type *type)
{
	uint64_t maps, count, address;
	struct prb_type *list;

	PRB_TRY(prb_repr_attribute(r, object, "maps", &maps));
	PRB_TRY(prb_repr_type_of(r, maps, &list));
	if (!prb_type_is(list, "list"))
		return prb_repr_handle_default(r, object, type);
	PRB_TRY(prb_repr_size(r, maps, &count));
	PRB_TRY(prb_repr_word(r, maps + (uint64_t)r->layout->list_items, &address));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_repr_array(r, address, count));
	prb_str_putc(r->out, ')');
	prb_repr_leave(r);
	return NULL;
}

struct prb_error *prb_repr_handle_fraction(struct prb_repr *r, uint64_t object,
					   struct prb_type *type)
{
	uint64_t numerator, denominator;

	PRB_TRY(prb_repr_attribute(r, object, "_numerator", &numerator));
	PRB_TRY(prb_repr_attribute(r, object, "_denominator", &denominator));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	PRB_TRY(prb_repr_object(r, numerator));
	prb_str_puts(r->out, ", ");
	PRB_TRY(prb_repr_object(r, denominator));
	prb_str_putc(r->out, ')');
	return NULL;
}

struct prb_error *prb_repr_handle_uuid(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	unsigned __int128 value;
	uint64_t number;

	PRB_TRY(prb_repr_attribute(r, object, "int", &number));
	PRB_TRY(prb_repr_uint128(r, number, &value));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_printf(r->out,
		       "('%08" PRIx32 "-%04" PRIx32 "-%04" PRIx32 "-%04" PRIx32 "-%012" PRIx64 "')",
		       (uint32_t)(value >> 96), (uint32_t)(value >> 80) & 0xffff,
		       (uint32_t)(value >> 64) & 0xffff, (uint32_t)(value >> 48) & 0xffff,
		       (uint64_t)value & 0xffffffffffff);
	return NULL;
}

/* An entry of a Counter. */
struct count {
	uint64_t key, value;
	double number;
	size_t place; /* in the order of insertion */
};

struct counter {
	struct prb_repr *r;
	PRB_VEC(struct count) counts;
	struct prb_error *err;
};

static void counter_guard(struct counter *counter)
{
	prb_vec_free(&counter->counts);
}

static struct prb_error *read_number(struct prb_repr *r, uint64_t object, double *ret)
{
	int64_t value;

	if (prb_repr_is(r, object, "float"))
		return prb_mem_read(r->mem, object + (uint64_t)r->layout->object_size, ret,
				    sizeof(*ret));
	PRB_TRY(prb_repr_int(r, object, &value));
	*ret = (double)value;
	return NULL;
}

static bool collect_count(void *context, uint64_t key, uint64_t value)
{
	enum { COUNTS_MAX = 1 << 20 }; /* that we sort */
	struct counter *counter = context;

	if (counter->counts.count >= COUNTS_MAX) {
		counter->err = prb_repr_bad(key, "more counts than we sort");
		return false;
	}

	struct count *count = prb_vec_push(&counter->counts);

	if (!count) {
		counter->err = prb_error_nomem();
		return false;
	}
	*count = (struct count){.key = key, .value = value, .place = counter->counts.count};
	counter->err = read_number(counter->r, value, &count->number);
	return !counter->err;
}

static int more_first(const void *a, const void *b)
{
	const struct count *left = a, *right = b;

	if (left->number != right->number)
		return left->number < right->number ? 1 : -1;
	return (left->place > right->place) - (left->place < right->place);
}

/* Most common first, as long as the counts are numbers that we can compare. */
struct prb_error *prb_repr_handle_counter(struct prb_repr *r, uint64_t object,
					  struct prb_type *type)
{
	__attribute__((cleanup(counter_guard))) struct counter counter = {.r = r};
	struct prb_items items = {.r = r};

	PRB_TRY(prb_repr_dict_each(r, object, collect_count, &counter));
	if (prb_error_catch(&counter.err, PRB_ERROR_BAD_DATA))
		return prb_repr_handle_default(r, object, type);
	PRB_TRY(counter.err);
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_putc(r->out, '(');
	items.total = counter.counts.count;
	if (items.total) {
		qsort(counter.counts.items, counter.counts.count, sizeof(*counter.counts.items),
		      more_first);
		prb_str_putc(r->out, '{');
	}
	while (prb_items_next(&items)) {
		const struct count *count = &counter.counts.items[items.done - 1];

		PRB_TRY(prb_repr_object(r, count->key));
		prb_str_puts(r->out, ": ");
		PRB_TRY(prb_repr_object(r, count->value));
	}
	prb_str_puts(r->out, items.total ? "})" : ")");
	prb_repr_leave(r);
	return NULL;
}

/* 3.4: a circle of links, of which the root has no key. */
struct prb_error *prb_repr_handle_old_ordered_dict(struct prb_repr *r, uint64_t object,
						   struct prb_type *type)
{
	struct prb_items items = {.r = r};
	uint64_t link, key, value;

	PRB_TRY(prb_repr_dict_size(r, object, &items.total));
	PRB_TRY(prb_repr_attribute(r, object, "_OrderedDict__hardroot", &link));
	if (!prb_repr_enter(r, object, "..."))
		return NULL;
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_puts(r->out, items.total ? "([" : "(");
	while (prb_items_next(&items)) {
		PRB_TRY(prb_repr_attribute(r, link, "next", &link));
		PRB_TRY(prb_repr_attribute(r, link, "key", &key));
		PRB_TRY(prb_repr_value_of(r, object, key, &value));
		prb_str_putc(r->out, '(');
		PRB_TRY(prb_repr_object(r, key));
		prb_str_puts(r->out, ", ");
		PRB_TRY(prb_repr_object(r, value));
		prb_str_putc(r->out, ')');
	}
	prb_str_puts(r->out, items.total ? "])" : ")");
	prb_repr_leave(r);
	return NULL;
}
