/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What products of matrices and convolutions compute, from the shapes of their inputs. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json_read.h"
#include "profile/kineto/private.h"

enum { INPUTS = 9, DIMENSIONS = 8 };

/** Lists of numbers: the shapes of inputs, or inputs that are such lists. */
struct lists {
	int64_t items[INPUTS][DIMENSIONS];
	size_t counts[INPUTS];
};

/** Reads a list of numbers, and says how many there are; 0: it is none. */
static size_t read_list(struct prb_json_reader *r, int64_t *ret)
{
	size_t count = 0;

	if (!prb_json_enter(r, '['))
		return 0;
	while (prb_json_item(r)) {
		int64_t value;

		if (!prb_json_read_scaled(r, 1, &value) || value < 0)
			value = 0;
		if (count < DIMENSIONS)
			ret[count++] = value;
	}
	return count;
}

static void read_shapes(const char *text, struct lists *ret)
{
	struct prb_json_reader r = {text, text + strlen(text)};
	size_t i = 0;

	if (!prb_json_enter(&r, '['))
		return;
	while (prb_json_item(&r)) {
		int64_t list[DIMENSIONS] = {};
		size_t count = read_list(&r, list);

		if (i >= INPUTS)
			continue;
		memcpy(ret->items[i], list, sizeof(list));
		ret->counts[i++] = count;
	}
}

/** Inputs that are no tensors are strings: "[1, 1]". */
static void read_values(const char *text, struct lists *ret)
{
	struct prb_json_reader r = {text, text + strlen(text)};
	struct prb_str word = {};
	size_t i = 0;

	if (!prb_json_enter(&r, '['))
		return;
	while (prb_json_item(&r)) {
		if (!prb_json_read_text(&r, &word) || i >= INPUTS) {
			i++;
			continue;
		}
		struct prb_json_reader inner = {prb_str_text(&word),
						prb_str_text(&word) + word.length};

		ret->counts[i] = read_list(&inner, ret->items[i]);
		i++;
	}
	prb_str_deinit(&word);
}

static int64_t product(const int64_t *factors, size_t count)
{
	int64_t result = 1;

	for (size_t i = 0; i < count; i++)
		if (__builtin_mul_overflow(result, factors[i], &result))
			return 0;
	return result;
}

/** Of the inputs @p first and the one after it, matrices with @p batch dimensions before. */
static int64_t of_matrices(const struct lists *shapes, size_t first, size_t batch)
{
	const int64_t *one = shapes->items[first], *other = shapes->items[first + 1];

	if (shapes->counts[first] != batch + 2 || shapes->counts[first + 1] != batch + 2)
		return 0;
	return product((const int64_t[]){2, batch ? one[0] : 1, one[batch], one[batch + 1],
					 other[batch + 1]},
		       5);
}

/** aten::convolution(input, weight, bias, stride, padding, dilation, transposed, …). */
static int64_t of_convolution(const struct prb_kineto_event *e, const struct lists *shapes)
{
	enum { STRIDE = 3, PADDING, DILATION };
	struct lists values = {};
	size_t dimensions = shapes->counts[0];
	int64_t result;

	if (!e->values || strstr(e->values, "True") || dimensions < 3 ||
	    shapes->counts[1] != dimensions)
		return 0;
	read_values(e->values, &values);
	/* The weight has the channels of the input by groups already. */
	result = product(
		(const int64_t[]){2, shapes->items[0][0], product(shapes->items[1], dimensions)},
		3);
	for (size_t i = 2; i < dimensions; i++) {
		int64_t stride = values.items[STRIDE][i - 2],
			padding = values.items[PADDING][i - 2],
			dilation = values.items[DILATION][i - 2], places;

		if (values.counts[STRIDE] != dimensions - 2 ||
		    values.counts[PADDING] != dimensions - 2 ||
		    values.counts[DILATION] != dimensions - 2 || stride < 1 ||
		    padding > INT32_MAX || dilation > INT32_MAX ||
		    shapes->items[0][i] > INT32_MAX || shapes->items[1][i] > INT32_MAX)
			return 0;
		places = (shapes->items[0][i] + 2 * padding - dilation * (shapes->items[1][i] - 1) -
			  1) / stride +
			 1;
		result = product((const int64_t[]){result, PRB_MAX(places, 0)}, 2);
	}
	return result;
}

int64_t prb_kineto_flops(const struct prb_kineto_event *e)
{
	struct lists shapes = {};

	if (!e->shapes || strncmp(e->name, "aten::", 6) != 0)
		return 0;
	if (!strcmp(e->name, "aten::mm") || !strcmp(e->name, "aten::addmm") ||
	    !strcmp(e->name, "aten::bmm") || !strcmp(e->name, "aten::baddbmm") ||
	    !strcmp(e->name, "aten::convolution"))
		read_shapes(e->shapes, &shapes);
	else
		return 0;
	if (!strcmp(e->name, "aten::convolution"))
		return of_convolution(e, &shapes);
	return of_matrices(&shapes, e->name[6] == 'a' || !strcmp(e->name, "aten::baddbmm"),
			   strstr(e->name, "bmm") ? 1 : 0);
}
