/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The dictionary of OpenTelemetry's profiles: tables of texts, functions, places, stacks and
 * attributes, which samples name by numbers. An entry comes to be when it is first asked for, and
 * equal ones are one. Number 0 of each table means "none".
 *
 * Threading: one thread at a time. Errors: a failed allocation marks `message`, whose content is
 * of no use then.
 */
#ifndef PRB_PROFILE_FORMATS_OTLP_DICTIONARY_H
#define PRB_PROFILE_FORMATS_OTLP_DICTIONARY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/str.h"
#include "profile/recording/tree.h"

enum prb_otlp_table {
	PRB_OTLP_MAPPINGS = 1, /* by their fields in ProfilesDictionary */
	PRB_OTLP_LOCATIONS,
	PRB_OTLP_FUNCTIONS,
	PRB_OTLP_LINKS,
	PRB_OTLP_TEXTS,
	PRB_OTLP_ATTRIBUTES,
	PRB_OTLP_STACKS,
	PRB_OTLP_TABLES,
};

struct prb_otlp_dictionary {
	const struct prb_tree *tree; /**< borrowed */
	bool lines;		     /**< each line of a function by itself */
	struct prb_str message;	     /**< the entries of all tables */
	struct prb_pool *keys;
	struct {
		struct prb_number_map numbers; /**< by the address of a key */
		uint32_t count;
	} tables[PRB_OTLP_TABLES];
	struct prb_number_map places, stacks; /**< numbers by those of the tree */
};

/** @p ret is freed by prb_otlp_dictionary_deinit() also after an error. */
struct prb_error *prb_otlp_dictionary_init(struct prb_otlp_dictionary *ret,
					   const struct prb_tree *tree, bool lines) PRB_MUST_CHECK;
void prb_otlp_dictionary_deinit(struct prb_otlp_dictionary *d);

/** The number of a text, which is escaped; NULL and "" are none. */
uint32_t prb_otlp_text(struct prb_otlp_dictionary *d, const char *text);
/** The number of an attribute; a text that is NULL or "" is none. */
uint32_t prb_otlp_attribute(struct prb_otlp_dictionary *d, const char *key, const char *text);
uint32_t prb_otlp_attribute_integer(struct prb_otlp_dictionary *d, const char *key, int64_t value);
/** The number of one of the tree's stacks. */
uint32_t prb_otlp_stack(struct prb_otlp_dictionary *d, uint32_t stack);

#endif
