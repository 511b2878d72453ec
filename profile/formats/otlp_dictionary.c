/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/formats/otlp_dictionary.h"

#include <inttypes.h>

#include "base/cleanup.h"
#include "base/otlp.h"
#include "base/protobuf.h"
#include "base/text.h"
#include "profile/recording/fold.h"

/* Fields of the messages, by their names in profiles.proto. */
enum {
	MAPPING_MEMORY_START = 1,
	MAPPING_MEMORY_LIMIT = 2,
	MAPPING_FILE_OFFSET = 3,
	MAPPING_FILENAME = 4,
	MAPPING_ATTRIBUTES = 5,
	LOCATION_MAPPING = 1,
	LOCATION_ADDRESS = 2,
	LOCATION_LINES = 3,
	LOCATION_ATTRIBUTES = 4,
	LINE_FUNCTION = 1,
	LINE_LINE = 2,
	FUNCTION_NAME = 1,
	FUNCTION_SYSTEM_NAME = 2,
	FUNCTION_FILENAME = 3,
	FUNCTION_START_LINE = 4,
	STACK_LOCATIONS = 1,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
};

struct prb_error *prb_otlp_dictionary_init(struct prb_otlp_dictionary *ret,
					   const struct prb_tree *tree, bool lines)
{
	*ret = (struct prb_otlp_dictionary){.tree = tree, .lines = lines};
	/* The first of each table is the default. */
	for (unsigned i = PRB_OTLP_MAPPINGS; i < PRB_OTLP_TABLES; i++) {
		prb_proto_bytes(&ret->message, i, "", 0);
		ret->tables[i].count = 1;
	}
	return prb_pool_create(&ret->keys);
}

void prb_otlp_dictionary_deinit(struct prb_otlp_dictionary *d)
{
	prb_str_deinit(&d->message);
	prb_pool_destroy(d->keys);
	for (unsigned i = 0; i < PRB_OTLP_TABLES; i++)
		prb_number_map_deinit(&d->tables[i].numbers);
	prb_number_map_deinit(&d->places);
	prb_number_map_deinit(&d->stacks);
}

/** Appends an entry, which it frees, and returns its number. */
static uint32_t append(struct prb_otlp_dictionary *d, enum prb_otlp_table table,
		       struct prb_str *entry)
{
	prb_proto_message(&d->message, table, entry);
	return d->tables[table].count++;
}

/** As above, unless the table has one with this key. Both texts are freed. */
static uint32_t find(struct prb_otlp_dictionary *d, enum prb_otlp_table table, struct prb_str *key,
		     struct prb_str *entry)
{
	struct prb_number_map *numbers = &d->tables[table].numbers;
	const char *known = NULL;
	size_t ret = 0;

	prb_error_destroy(prb_pool_share(d->keys, prb_str_text(key), &known));
	d->message.failed |= key->failed || !known;
	prb_str_deinit(key);
	if (known && prb_number_map_get(numbers, (uintptr_t)known, &ret)) {
		prb_str_deinit(entry);
		return (uint32_t)ret;
	}
	ret = append(d, table, entry);
	d->message.failed |= !prb_number_map_put(numbers, (uintptr_t)known, ret);
	return (uint32_t)ret;
}

uint32_t prb_otlp_text(struct prb_otlp_dictionary *d, const char *text)
{
	struct prb_str key = {}, plain = {};

	if (!text || !*text)
		return 0;
	prb_text_escape(&key, text);
	prb_str_puts(&plain, prb_str_text(&key));
	return find(d, PRB_OTLP_TEXTS, &key, &plain);
}

/** @p value becomes a part of the key; the AnyValue @p any is freed. */
static uint32_t attribute(struct prb_otlp_dictionary *d, const char *name, const char *value,
			  struct prb_str *any)
{
	struct prb_str key = {}, entry = {};

	prb_proto_number(&entry, ATTRIBUTE_KEY, prb_otlp_text(d, name));
	prb_proto_message(&entry, ATTRIBUTE_VALUE, any);
	prb_str_printf(&key, "%s=%s", name, value);
	return find(d, PRB_OTLP_ATTRIBUTES, &key, &entry);
}

uint32_t prb_otlp_attribute(struct prb_otlp_dictionary *d, const char *key, const char *text)
{
	prb_auto_str struct prb_str plain = {};
	struct prb_str any = {};

	if (!text || !*text)
		return 0;
	prb_text_escape(&plain, text);
	prb_proto_text(&any, PRB_OTLP_ANY_STRING, prb_str_text(&plain));
	any.failed |= plain.failed;
	return attribute(d, key, prb_str_text(&plain), &any);
}

uint32_t prb_otlp_attribute_integer(struct prb_otlp_dictionary *d, const char *key, int64_t value)
{
	struct prb_str any = {};
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	prb_otlp_put_any_integer(&any, value);
	return attribute(d, key, text, &any);
}

/** A packed field of one number, or nothing. */
static void put_reference(struct prb_str *s, unsigned field, uint32_t number)
{
	struct prb_str packed = {};

	if (!number)
		return;
	prb_proto_varint(&packed, number);
	prb_proto_message(s, field, &packed);
}

static uint32_t function_number(struct prb_otlp_dictionary *d, const struct prb_tree_function *f)
{
	const uint32_t name = prb_otlp_text(d, f->name);
	const uint32_t file = prb_otlp_text(d, prb_function_file(f));
	const int32_t line = f->first_line > 0 ? f->first_line : 0;
	struct prb_str key = {}, entry = {};

	prb_proto_number(&entry, FUNCTION_NAME, name);
	prb_proto_number(&entry, FUNCTION_SYSTEM_NAME, name);
	prb_proto_number(&entry, FUNCTION_FILENAME, file);
	prb_proto_number(&entry, FUNCTION_START_LINE, (uint64_t)line);
	prb_str_printf(&key, "%u %u %d", name, file, line);
	return find(d, PRB_OTLP_FUNCTIONS, &key, &entry);
}

static uint32_t mapping(struct prb_otlp_dictionary *d, const struct prb_tree_image *image)
{
	const uint64_t start = prb_image_base(image) + image->address;
	struct prb_str key = {}, entry = {};

	prb_proto_number(&entry, MAPPING_MEMORY_START, start);
	prb_proto_number(&entry, MAPPING_MEMORY_LIMIT, start + image->size);
	prb_proto_number(&entry, MAPPING_FILE_OFFSET, image->offset);
	prb_proto_number(&entry, MAPPING_FILENAME, prb_otlp_text(d, image->path));
	put_reference(&entry, MAPPING_ATTRIBUTES,
		      prb_otlp_attribute(d, "process.executable.build_id.gnu", image->build_id));
	/* Each image has a range of its own. */
	prb_str_printf(&key, "%u", image->number);
	return find(d, PRB_OTLP_MAPPINGS, &key, &entry);
}

/** The names of profile.frame.type. */
static const char *frame_type(const struct prb_tree_function *f)
{
	switch (f->kind) {
	case PRB_FUNCTION_PYTHON:
		return "cpython";
	case PRB_FUNCTION_NATIVE:
		return "native";
	default:
		return NULL;
	}
}

static uint32_t location(struct prb_otlp_dictionary *d, struct prb_place place)
{
	const uint64_t address = prb_function_address(place.function);
	const uint32_t image = address ? mapping(d, place.function->image) : 0;
	const uint32_t function = function_number(d, place.function);
	const uint32_t type =
		prb_otlp_attribute(d, "profile.frame.type", frame_type(place.function));
	const int32_t number = place.line > 0 ? place.line : 0;
	struct prb_str key = {}, entry = {}, line = {};

	prb_proto_number(&line, LINE_FUNCTION, function);
	prb_proto_number(&line, LINE_LINE, (uint64_t)number);
	prb_proto_number(&entry, LOCATION_MAPPING, image);
	prb_proto_number(&entry, LOCATION_ADDRESS, address);
	prb_proto_message(&entry, LOCATION_LINES, &line);
	put_reference(&entry, LOCATION_ATTRIBUTES, type);
	prb_str_printf(&key, "%u %" PRIx64 " %u %u %d", image, address, function, type, number);
	return find(d, PRB_OTLP_LOCATIONS, &key, &entry);
}

static uint32_t location_of(struct prb_otlp_dictionary *d, uint32_t stack)
{
	const uint32_t place = prb_place_of(d->tree, d->lines, stack);
	size_t ret;

	if (prb_number_map_get(&d->places, place, &ret))
		return (uint32_t)ret;
	ret = location(d, prb_place_get(d->tree, d->lines, place));
	d->message.failed |= !prb_number_map_put(&d->places, place, ret);
	return (uint32_t)ret;
}

uint32_t prb_otlp_stack(struct prb_otlp_dictionary *d, uint32_t stack)
{
	struct prb_str entry = {}, packed = {};
	size_t ret;

	if (!stack)
		return 0;
	if (prb_number_map_get(&d->stacks, stack, &ret))
		return (uint32_t)ret;
	for (uint32_t at = stack; at; at = d->tree->stacks.items[at].parent)
		prb_proto_varint(&packed, location_of(d, at));
	prb_proto_message(&entry, STACK_LOCATIONS, &packed);
	ret = append(d, PRB_OTLP_STACKS, &entry);
	d->message.failed |= !prb_number_map_put(&d->stacks, stack, ret);
	return (uint32_t)ret;
}
