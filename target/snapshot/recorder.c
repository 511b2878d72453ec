/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Collects answers while a target is read: a map from (kind, key) to value, newest wins. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/hash.h"
#include "target/snapshot/format.h"
#include "target/snapshot/recorder.h"
#include "target/snapshot/snapshot.h"

static uint64_t hash_key(char kind, const void *key, size_t length)
{
	uint64_t hash = prb_hash_bytes(PRB_HASH_START ^ (unsigned char)kind, key, length);

	return hash ^ hash >> 32;
}

static bool table_grow(struct prb_recorder *r)
{
	size_t size = r->table_size ? r->table_size * 2 : 512;
	uint32_t *table = calloc(size, sizeof(*table));

	if (!table)
		return false;
	for (size_t i = 0; i < r->entries.count; i++) {
		size_t slot = r->entries.items[i].hash & (size - 1);

		while (table[slot])
			slot = (slot + 1) & (size - 1);
		table[slot] = (uint32_t)i + 1;
	}
	free(r->table);
	r->table = table;
	r->table_size = size;
	return true;
}

static bool same_key(const struct entry *e, char kind, const void *key, size_t length)
{
	return e->kind == kind && e->key_length == length && !memcmp(e->key, key, length);
}

const struct entry *recorder_find(const struct prb_recorder *r, char kind, const void *key,
				  size_t length)
{
	uint64_t hash = hash_key(kind, key, length);

	for (size_t slot = hash; r->table_size; slot++) {
		uint32_t index = r->table[slot & (r->table_size - 1)];

		if (!index)
			break;
		const struct entry *e = &r->entries.items[index - 1];
		if (e->hash == hash && same_key(e, kind, key, length))
			return e;
	}
	return NULL;
}

/* The entry of a key, made if there is none; NULL, and `failure` set, if that cannot be. */
static struct entry *entry_for(struct prb_recorder *r, char kind, const void *key, size_t length)
{
	if (r->failure)
		return NULL;

	const struct entry *known = recorder_find(r, kind, key, length);
	if (known)
		return &r->entries.items[known - r->entries.items];

	if (length > PRB_SNAPSHOT_MAX_NAME || r->entries.count >= PRB_SNAPSHOT_MAX_RECORDS) {
		r->failure = prb_error_create(PRB_ERROR_BAD_DATA,
					      "more was read than fits in a snapshot");
		return NULL;
	}
	struct entry made = {
		.kind = kind,
		.hash = hash_key(kind, key, length),
		.key = malloc(length + 1),
		.key_length = (uint32_t)length,
	};
	struct entry *e = NULL;
	if (made.key && (r->entries.count * 2 < r->table_size || table_grow(r)))
		e = prb_vec_push(&r->entries);
	if (!e) {
		free(made.key);
		r->failure = prb_error_nomem();
		return NULL;
	}
	memcpy(made.key, key, length);
	*e = made;

	size_t slot = made.hash & (r->table_size - 1);
	while (r->table[slot])
		slot = (slot + 1) & (r->table_size - 1);
	r->table[slot] = (uint32_t)r->entries.count;
	return e;
}

/* Gives the entry a value of @p length bytes, to be filled in; NULL if there is no memory. */
static void *set_value(struct prb_recorder *r, struct entry *e, size_t length)
{
	void *value = e->value_length == length && e->value ? e->value : malloc(length + 1);

	if (value != e->value)
		free(e->value);
	e->value = value;
	e->value_length = value ? length : 0;
	if (!value)
		r->failure = prb_error_nomem();
	return value;
}

struct prb_error *prb_recorder_create(struct prb_recorder **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? NULL : prb_error_nomem();
}

void prb_recorder_destroy(struct prb_recorder *r)
{
	struct entry *e;

	if (!r)
		return;
	prb_recorder_detach(r);
	prb_vec_each (e, &r->entries) {
		free(e->key);
		free(e->value);
	}
	prb_vec_free(&r->entries);
	free(r->table);
	prb_error_destroy(r->failure);
	free(r);
}

void prb_recorder_set_redact(struct prb_recorder *r, bool redact)
{
	r->redact = redact;
}

static uint32_t code_number(enum prb_error_code code)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(snapshot_codes); i++)
		if (snapshot_codes[i].code == code)
			return snapshot_codes[i].number;
	return 1;
}

/* The value of a failed answer: snapshot_failure, message, hint. */
static void note_failure(struct prb_recorder *r, struct entry *e, const struct prb_error *err)
{
	struct snapshot_failure failure = {
		.os_errno = err->os_errno,
		.message_length = (uint32_t)strlen(err->message),
		.address = err->address,
	};
	size_t hint = err->hint ? strlen(err->hint) : 0;
	char *value = set_value(r, e, sizeof(failure) + failure.message_length + hint);

	if (!value)
		return;
	memcpy(value, &failure, sizeof(failure));
	memcpy(value + sizeof(failure), err->message, failure.message_length);
	if (hint)
		memcpy(value + sizeof(failure) + failure.message_length, err->hint, hint);
	e->status = code_number(err->code);
}

void prb_recorder_note(struct prb_recorder *r, char kind, const char *name, const void *data,
		       size_t length, const struct prb_error *err)
{
	struct entry *e = entry_for(r, kind, name, strlen(name));

	if (!e)
		return;
	if (err) {
		note_failure(r, e, err);
		return;
	}
	void *value = set_value(r, e, length);
	if (value && length)
		memcpy(value, data, length);
	e->status = 0;
}

void prb_recorder_registers(struct prb_recorder *r, pid_t tid, const struct prb_regs *regs)
{
	struct entry *e = entry_for(r, 'r', &tid, sizeof(tid));
	struct snapshot_registers head = {
		.tid = tid,
		.machine = regs->machine,
		.count = PRB_REG_COUNT,
		.pc = regs->pc,
		.known = regs->known,
	};

	if (!e)
		return;
	char *value = set_value(r, e, sizeof(head) + sizeof(regs->value));
	if (!value)
		return;
	memcpy(value, &head, sizeof(head));
	memcpy(value + sizeof(head), regs->value, sizeof(regs->value));
}

void prb_recorder_page(struct prb_recorder *r, pid_t view, uint64_t address, const void *data,
		       const struct prb_page_marks *read)
{
	struct page_key key = {.tid = view, .address = address};
	struct entry *e = entry_for(r, 'p', &key, sizeof(key));

	if (!e)
		return;
	void *value = set_value(r, e, PRB_PAGE_SIZE);
	if (!value)
		return;
	memcpy(value, data, PRB_PAGE_SIZE);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(read->bits); i++)
		e->read.bits[i] |= read->bits[i];
}

struct visit {
	struct prb_recorder *recorder;
	pid_t view;
};

static void visit_page(void *context, uint64_t address, const void *data,
		       const struct prb_page_marks *read)
{
	struct visit *visit = context;

	prb_recorder_page(visit->recorder, visit->view, address, data, read);
}

void prb_recorder_pages(struct prb_recorder *r, pid_t view, const struct prb_view *pages)
{
	struct visit visit = {r, view};

	prb_view_each_page(pages, visit_page, &visit);
}
