/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A snapshot file as a target: everything is looked up in the decompressed body, in place. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/mem/local_file.h"
#include "target/snapshot/format.h"
#include "target/snapshot/reader.h"
#include "target/snapshot/snapshot.h"

/* Memory of one view: of a thread, with the shared image below, or the shared image itself. */
struct image {
	struct prb_mem mem;
	const struct snapshot_body *body;
	struct snapshot_pages pages;
	const struct image *below; /* NULL for the shared image */
	pid_t tid;
};

struct snapshot {
	struct prb_target target;
	struct snapshot_body body;
	struct image shared;
	PRB_VEC(struct image *) overlays; /* made when first asked for */
};

static const struct snapshot_page_ref *find_page(const struct image *image, uint64_t address)
{
	const struct snapshot_page_ref *pages = image->body->pages.items;
	size_t end = image->pages.first + image->pages.count;
	size_t low = image->pages.first, high = end;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (pages[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low < end && pages[low].address == address ? &pages[low] : NULL;
}

/* Copies a part of one line of memory, from the first image that has it. */
static bool read_line(const struct image *image, uint64_t address, void *buffer, size_t length)
{
	unsigned line = address % PRB_PAGE_SIZE / SNAPSHOT_LINE;

	for (; image; image = image->below) {
		const struct snapshot_page_ref *page =
			find_page(image, address - address % PRB_PAGE_SIZE);

		if (!page || !(page->lines >> line & 1))
			continue;
		/* Only lines that are held lie in the file, one behind the other. */
		size_t before = (size_t)__builtin_popcountll(page->lines & ((1ULL << line) - 1));
		memcpy(buffer, page->data + before * SNAPSHOT_LINE + address % SNAPSHOT_LINE,
		       length);
		return true;
	}
	return false;
}

static struct prb_error *image_read(struct prb_mem *mem, uint64_t address, void *buffer,
				    size_t length)
{
	struct image *image = (struct image *)mem;

	for (size_t done = 0, part; done < length; done += part) {
		uint64_t at = address + done;
		uint64_t offset = at % PRB_PAGE_SIZE;
		const struct snapshot_page_ref *page = find_page(image, at - offset);

		part = PRB_MIN(length - done, PRB_PAGE_SIZE - offset);
		if (page && page->lines == UINT64_MAX) {
			memcpy((char *)buffer + done, page->data + offset, part);
			continue;
		}
		part = PRB_MIN(part, SNAPSHOT_LINE - at % SNAPSHOT_LINE);
		if (!read_line(image, at, (char *)buffer + done, part))
			return prb_error_hint(
				prb_error_fault(at, length - done),
				"the snapshot does not contain it: take it again, with "
				"what you want to see");
	}
	return NULL;
}

/* Images belong to the snapshot. */
static void image_destroy(struct prb_mem *mem)
{
	(void)mem;
}

static const struct prb_mem_ops image_ops = {
	.read = image_read,
	.destroy = image_destroy,
};

static void image_init(struct image *image, struct snapshot *s, pid_t tid)
{
	image->mem.ops = &image_ops;
	image->body = &s->body;
	image->tid = tid;
	image->below = tid ? &s->shared : NULL;
	image->pages = snapshot_body_pages(&s->body, tid);
}

static struct prb_error *not_held(struct snapshot *s, const char *name)
{
	if (s->body.flags & SNAPSHOT_FLAG_REDACTED && !strcmp(name, "environ"))
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"'%s' was left out of the snapshot on purpose", name);
	return prb_error_create(PRB_ERROR_NOT_FOUND,
				"the snapshot does not contain '%s': it was not read when the "
				"snapshot was made",
				name);
}

/* The failure that was recorded, made again. */
static struct prb_error *recorded_failure(const struct snapshot_answer_ref *answer)
{
	struct snapshot_failure failure;
	const char *text = answer->value + sizeof(failure);
	enum prb_error_code code = PRB_ERROR_FAILED;

	memcpy(&failure, answer->value, sizeof(failure));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(snapshot_codes); i++)
		if (snapshot_codes[i].number == answer->status)
			code = snapshot_codes[i].code;

	struct prb_error *err = prb_error_create(code, "%.*s", (int)failure.message_length, text);
	size_t hint = answer->value_length - sizeof(failure) - failure.message_length;
	if (hint)
		err = prb_error_hint(err, "%.*s", (int)hint, text + failure.message_length);
	if (err->code == code && code != PRB_ERROR_NOMEM) {
		err->os_errno = failure.os_errno;
		err->address = failure.address;
	}
	return err;
}

static struct prb_error *answer(struct prb_target *t, char kind, const char *name,
				struct prb_str *ret)
{
	struct snapshot *s = (struct snapshot *)t;
	struct snapshot_answer_ref found;

	if (!snapshot_body_answer(&s->body, kind, name, &found))
		return not_held(s, name);
	if (found.status)
		return recorded_failure(&found);
	prb_str_append(ret, found.value, found.value_length);
	return ret->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *snapshot_read_file(struct prb_target *t, const char *name,
					    struct prb_str *ret)
{
	return answer(t, 'f', name, ret);
}

static struct prb_error *snapshot_read_link(struct prb_target *t, const char *name,
					    struct prb_str *ret)
{
	return answer(t, 'l', name, ret);
}

static struct prb_error *snapshot_list(struct prb_target *t, const char *name, struct prb_str *ret)
{
	return answer(t, 'd', name, ret);
}

static bool snapshot_recall(struct prb_target *t, const char *key, struct prb_str *ret)
{
	struct snapshot *s = (struct snapshot *)t;
	struct snapshot_answer_ref found;

	if (!snapshot_body_answer(&s->body, 'k', key, &found) || found.status)
		return false;
	prb_str_append(ret, found.value, found.value_length);
	return !ret->failed;
}

static struct prb_error *snapshot_registers_of(struct prb_target *t, pid_t tid,
					       struct prb_regs *ret)
{
	struct snapshot *s = (struct snapshot *)t;

	if (snapshot_body_registers(&s->body, tid, ret))
		return NULL;
	return prb_error_create(PRB_ERROR_NOT_FOUND,
				"the snapshot does not contain the registers of thread %d", tid);
}

/*
 * A file of this machine replaces one of the other only if both have the same build-id, which the
 * snapshot then holds in memory.
 */
static struct prb_error *snapshot_open_map(struct prb_target *t, const struct prb_map *map,
					   int *ret_fd)
{
	struct prb_local_file file = {.path = map->path, .mem = t->mem};

	if (!prb_local_file_base(&t->maps, map, &file.base))
		return prb_error_create(PRB_ERROR_NOT_FOUND,
					"where the file %s begins in memory is not known",
					map->path);
	return prb_local_file_open(&file, ret_fd);
}

static void snapshot_destroy(struct prb_target *t)
{
	struct snapshot *s = (struct snapshot *)t;

	for (size_t i = 0; i < s->overlays.count; i++)
		free(s->overlays.items[i]);
	prb_vec_free(&s->overlays);
	snapshot_body_deinit(&s->body);
	free(s);
}

static const struct prb_target_ops snapshot_ops = {
	.read_file = snapshot_read_file,
	.read_link = snapshot_read_link,
	.list = snapshot_list,
	.open_map = snapshot_open_map,
	.registers = snapshot_registers_of,
	.recall = snapshot_recall,
	.destroy = snapshot_destroy,
};

static struct prb_error *open_place(const struct snapshot_place *place, struct prb_target **ret)
{
	struct snapshot *s = calloc(1, sizeof(*s));

	if (!s)
		return prb_error_nomem();
	struct prb_error *err = snapshot_body_open(place, &s->body);
	if (err) {
		free(s);
		return err;
	}
	image_init(&s->shared, s, 0);
	s->target = (struct prb_target){
		.ops = &snapshot_ops,
		.kind = PRB_TARGET_SNAPSHOT,
		.replayed = true,
		.pid = s->body.pid,
		.machine = s->body.machine,
		.time = (double)s->body.time_ns / 1e9,
		.mem = &s->shared.mem,
	};
	/* Without a map a snapshot is of little use, but its other facts still work. */
	err = prb_target_refresh_maps(&s->target);
	if (err && err->code == PRB_ERROR_BAD_DATA) {
		prb_target_destroy(&s->target);
		return prb_error_prefix(err, "%s", place->path);
	}
	prb_error_destroy(err);
	*ret = &s->target;
	return NULL;
}

struct prb_error *prb_target_open_snapshot(const char *path, struct prb_target **ret)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return prb_error_os(errno, "cannot open %s", path);
	return open_place(&(struct snapshot_place){.path = path, .fd = fd}, ret);
}

struct prb_error *prb_target_open_snapshot_within(int fd, const char *name, uint64_t offset,
						  uint64_t size, struct prb_target **ret)
{
	return open_place(
		&(struct snapshot_place){
			.path = name, .fd = fd, .offset = offset, .part = true, .size = size},
		ret);
}

bool prb_snapshot_redacted(const struct prb_target *t)
{
	return t->kind == PRB_TARGET_SNAPSHOT &&
	       ((const struct snapshot *)t)->body.flags & SNAPSHOT_FLAG_REDACTED;
}

struct prb_mem *prb_snapshot_thread_mem(struct prb_target *t, pid_t tid)
{
	struct snapshot *s = (struct snapshot *)t;

	if (t->kind != PRB_TARGET_SNAPSHOT || !tid)
		return NULL;
	for (size_t i = 0; i < s->overlays.count; i++)
		if (s->overlays.items[i]->tid == tid)
			return &s->overlays.items[i]->mem;
	if (!snapshot_body_pages(&s->body, tid).count)
		return NULL;

	struct image *image = calloc(1, sizeof(*image));
	struct image **slot = image ? prb_vec_push(&s->overlays) : NULL;
	if (!slot) {
		free(image);
		return NULL;
	}
	image_init(image, s, tid);
	*slot = image;
	return &image->mem;
}
