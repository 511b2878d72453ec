/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The inside of a recorder, shared by the part that collects and the part that writes.
 *
 * Threading: one thread at a time. Keys and values are owned by the recorder.
 */
#ifndef PRB_TARGET_SNAPSHOT_RECORDER_H
#define PRB_TARGET_SNAPSHOT_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/vec.h"
#include "target/mem/view.h"
#include "target/target.h"

struct entry {
	char kind; /**< as in snapshot_record */
	uint32_t key_length;
	uint32_t status; /**< answers: 0, or the number of the error */
	uint64_t hash;
	struct prb_page_marks read; /**< pages: what was read itself */
	void *key;   /**< answers: the name; registers: pid_t; pages: struct page_key */
	void *value; /**< as in the file, behind the record's own structure */
	size_t value_length;
};

struct page_key {
	int32_t tid;
	uint32_t zero; /**< keys are compared as bytes */
	uint64_t address;
};

struct prb_recorder {
	struct prb_target_ops ops;	     /**< the target's while it is recorded */
	const struct prb_target_ops *source; /**< its own, which they hand on to */
	struct prb_target *target;	     /**< borrowed; NULL while none is recorded */
	bool source_kept;		     /**< its mem's `kept` before */
	PRB_VEC(struct entry) entries;
	uint32_t *table; /**< index + 1 into entries, 0 empty; open addressing */
	size_t table_size;
	bool redact;
	struct prb_error *failure; /**< the first one; returned when writing */
};

/** The entry of a key, or NULL; valid until the next one is noted. */
const struct entry *recorder_find(const struct prb_recorder *r, char kind, const void *key,
				  size_t length);

#endif
