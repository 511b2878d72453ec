/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "python/repr/library/protobuf_tables.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

enum {
	MAP_WORDS = 6,
	SLOT_WORDS = 3,
	SLOTS_MAX = 1 << 20,
	SLOTS_AT_ONCE = 256,
	ENUM_WORDS = 24,
	VALUE_WORDS = 6,
	VALUES_MAX = 1024,
	LOWEST = 0x10000, /* no object lies below */
};

bool prb_upb_name(struct prb_repr *r, uint64_t address, char ret[PRB_UPB_NAME])
{
	prb_auto_error struct prb_error *err = NULL;

	if (address < LOWEST)
		return false;
	err = prb_repr_cstr(r, address, ret, PRB_UPB_NAME);
	if (err || !*ret)
		return false;
	for (const char *c = ret; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		      (*c >= '0' && *c <= '9') || *c == '_' || *c == '.'))
			return false;
	return true;
}

static bool in_use(const struct prb_upb_map *map, const uint64_t slot[SLOT_WORDS])
{
	return slot[map->chained ? 2 : map->value_first];
}

/** How many slots are in use, if their last word tells so, and if their key does. */
static struct prb_error *count(struct prb_upb_map *map, uint64_t *ret)
{
	uint64_t slots[SLOTS_AT_ONCE][SLOT_WORDS];

	*ret = 0;
	for (uint64_t done = 0; done < map->size;) {
		uint64_t some = PRB_MIN(map->size - done, (uint64_t)SLOTS_AT_ONCE);

		PRB_TRY(prb_repr_walk(map->r, some));
		PRB_TRY(prb_repr_words(map->r, map->entries + done * sizeof(*slots),
				       some * SLOT_WORDS, *slots));
		for (uint64_t i = 0; i < some; i++)
			*ret += in_use(map, slots[i]);
		done += some;
	}
	return NULL;
}

/**
 * Until 6.30: sizes of key and value, count, mask, log2 of the size, slots of key, value, next.
 * From then on: sizes, slots, count and mask; slots of value, key, next, and keys that are numbers
 * lie in them. Until 6.33 there is an array too, of which only the number 0 makes use. From 7.34 on
 * the last slot of a chain has 1 as its next one.
 */
struct prb_error *prb_upb_map_open(struct prb_repr *r, uint64_t address, struct prb_upb_map *ret)
{
	uint64_t words[MAP_WORDS], mask, used;
	const uint8_t *bytes = (const uint8_t *)words;

	*ret = (struct prb_upb_map){.r = r};
	PRB_TRY(prb_repr_words(r, address, MAP_WORDS, words));
	ret->value_first = words[1] >= LOWEST || !words[1];
	ret->count = ret->value_first ? (uint32_t)words[2] : words[1];
	ret->entries = words[ret->value_first ? 1 : 4];
	mask = ret->value_first ? words[2] >> 32 : (uint32_t)words[2];
	ret->size = mask + 1;
	ret->texts = !ret->value_first || bytes[3];
	if (mask & ret->size || ret->size > SLOTS_MAX || ret->count > ret->size || !ret->count ||
	    ret->entries < LOWEST)
		return prb_repr_bad(address, "not a map with entries");
	ret->chained = ret->value_first;
	PRB_TRY(count(ret, &used));
	if (used != ret->count && ret->chained) {
		ret->chained = false;
		PRB_TRY(count(ret, &used));
		if (!ret->texts && words[5] >> 32 == 1) {
			ret->zero = words[3];
			ret->count++;
			used++;
		}
	}
	return used == ret->count ? NULL : prb_repr_bad(address, "a map of another layout");
}

struct prb_error *prb_upb_map_next(struct prb_upb_map *map, struct prb_upb_entry *ret)
{
	uint64_t slot[SLOT_WORDS];

	*ret = (struct prb_upb_entry){};
	if (map->zero) {
		/* The array of values begins with that of the number; the number is a word of 0. */
		*ret = (struct prb_upb_entry){.value = map->zero};
		map->zero = 0;
		return NULL;
	}
	for (; map->at < map->size; map->at++) {
		uint64_t address = map->entries + map->at * sizeof(slot);

		PRB_TRY(prb_repr_walk(map->r, 1));
		PRB_TRY(prb_repr_words(map->r, address, SLOT_WORDS, slot));
		if (!in_use(map, slot))
			continue;
		ret->key = address + (map->value_first ? sizeof(*slot) : 0);
		ret->value = address + (map->value_first ? 0 : sizeof(*slot));
		if (map->texts) {
			PRB_TRY(prb_mem_read_u32(map->r->mem, slot[map->value_first],
						 &ret->length));
			ret->key = slot[map->value_first] + sizeof(ret->length);
		}
		map->at++;
		return NULL;
	}
	return NULL;
}

/** Up to where names of one scope are alike. */
static size_t scope_of(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot ? (size_t)(dot - name) : 0;
}

/** Words from one value of the enum to the next, 0: these are no values of it. @p at: the first of
 * them leads back to the enum, and the next one to the name. */
static unsigned stride_of(const uint64_t words[2 * VALUE_WORDS], uint64_t definition, unsigned *at)
{
	for (*at = 1; *at <= 2; ++*at)
		for (unsigned stride = *at + 3; words[*at] == definition && stride <= VALUE_WORDS;
		     stride++)
			if (words[stride + *at] == definition)
				return stride;
	/* One value alone: the number follows its name, as in all versions. */
	for (*at = 1; *at <= 2; ++*at)
		if (words[*at] == definition)
			return *at + 3;
	return 0;
}

/** The name in the scope of the enum, of the value with that number. */
static bool find_value(struct prb_repr *r, uint64_t values, uint64_t definition, int32_t number,
		       char ret[PRB_UPB_NAME])
{
	uint64_t words[2 * VALUE_WORDS];
	unsigned at, stride;
	prb_auto_error struct prb_error *err = prb_repr_words(r, values, 2 * VALUE_WORDS, words);

	stride = err ? 0 : stride_of(words, definition, &at);
	for (unsigned i = 0; stride && !err && i < VALUES_MAX; i++) {
		err = prb_repr_walk(r, 1);
		if (!err)
			err = prb_repr_words(r, values + (uint64_t)i * stride * 8, stride, words);
		if (err || words[at] != definition)
			return false;
		if ((int32_t)words[stride - 1] == number)
			return prb_upb_name(r, words[at + 1], ret);
	}
	return false;
}

void prb_upb_enum_name(struct prb_repr *r, uint64_t definition, int32_t number,
		       char ret[PRB_UPB_NAME])
{
	uint64_t words[ENUM_WORDS];
	char full[PRB_UPB_NAME] = "";
	bool named = false;
	prb_auto_error struct prb_error *err =
		definition < LOWEST || definition % 8
			? prb_repr_bad(definition, "no enum")
			: prb_repr_words(r, definition, ENUM_WORDS, words);

	*ret = '\0';
	for (unsigned i = 2; !err && i < ENUM_WORDS; i++) {
		size_t scope = scope_of(full);

		if (!named) {
			named = prb_upb_name(r, words[i], full);
			continue;
		}
		if (words[i] < LOWEST || words[i] % 8 ||
		    !find_value(r, words[i], definition, number, ret))
			continue;
		/* A value's name stands beside that of its enum. */
		if (scope_of(ret) == scope && !strncmp(ret, full, scope))
			memmove(ret, ret + scope + (scope != 0),
				strlen(ret + scope + (scope != 0)) + 1);
		else
			*ret = '\0';
		return;
	}
	*ret = '\0';
}
