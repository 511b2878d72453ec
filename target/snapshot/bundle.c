/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/snapshot/bundle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "target/snapshot/bundle_private.h"
#include "target/snapshot/snapshot.h"
#include "target/snapshot/tar.h"

enum { MAX_NUMBER = 1 << 20 };

/** A bundle while it is read. */
struct reading {
	struct prb_bundle *bundle;
	uint64_t size, at; /**< of the file, and where the next header is */
};

static struct prb_error *refuse(const struct reading *r, const char *what)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_BAD_DATA, "%s: %s, at byte %llu",
					       r->bundle->path, what, (unsigned long long)r->at),
			      "the bundle is damaged, or not of 'probing cluster hang --save'");
}

static struct prb_error *read_block(const struct reading *r, struct tar_header *header)
{
	ssize_t got = pread(r->bundle->fd, header, TAR_BLOCK, (off_t)r->at);

	if (got < 0)
		return prb_error_os(errno, "cannot read %s", r->bundle->path);
	return got == TAR_BLOCK ? NULL : refuse(r, "the file ends early");
}

/** Reads an octal number that fills a field but for its end. */
static bool read_octal(const char *field, size_t length, uint64_t *ret)
{
	size_t digits = 0;

	*ret = 0;
	while (digits < length && field[digits] >= '0' && field[digits] <= '7')
		*ret = *ret * 8 + (uint64_t)(field[digits++] - '0');
	return digits && digits < length && (!field[digits] || field[digits] == ' ');
}

static bool is_empty(const struct tar_header *header)
{
	static const struct tar_header empty;

	return !memcmp(header, &empty, sizeof(empty));
}

/** Reads "PREFIX" + number + "SUFFIX", with no zero in front. */
static bool read_name(const char *name, const char *prefix, const char *suffix, long *ret)
{
	size_t length = strlen(prefix), digits;

	if (strncmp(name, prefix, length) != 0)
		return false;
	name += length;
	digits = strspn(name, "0123456789");
	if (!digits || digits > 7 || (digits > 1 && *name == '0') || strcmp(name + digits, suffix))
		return false;
	*ret = strtol(name, NULL, 10);
	return *ret <= MAX_NUMBER;
}

static bool read_member(const struct tar_header *header, struct prb_bundle_member *ret)
{
	char name[sizeof(header->name) + 1] = "";

	memcpy(name, header->name, sizeof(header->name));
	if (read_name(name, bundle_prefix[PRB_BUNDLE_SNAPSHOT], bundle_suffix[PRB_BUNDLE_SNAPSHOT],
		      &ret->number))
		ret->kind = PRB_BUNDLE_SNAPSHOT;
	else if (read_name(name, bundle_prefix[PRB_BUNDLE_LOOKS], bundle_suffix[PRB_BUNDLE_LOOKS],
			   &ret->number))
		ret->kind = PRB_BUNDLE_LOOKS;
	else
		return false;
	return true;
}

static bool is_header(const struct tar_header *header)
{
	uint64_t checksum;

	return !memcmp(header->magic, "ustar", sizeof(header->magic)) && header->type == '0' &&
	       !*header->prefix &&
	       read_octal(header->checksum, sizeof(header->checksum), &checksum) &&
	       checksum == tar_checksum(header);
}

static bool is_first(const struct tar_header *header)
{
	return is_header(header) && !strncmp(header->name, bundle_first, sizeof(header->name));
}

/** Goes behind the member whose header lies at r->at; *offset is where its content begins. */
static struct prb_error *skip(struct reading *r, const struct tar_header *header, uint64_t *offset,
			      uint64_t *size)
{
	uint64_t whole;

	*offset = r->at + TAR_BLOCK;
	if (!read_octal(header->size, sizeof(header->size), size))
		return refuse(r, "a member without a size");
	whole = (*size + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
	if (*size > r->size || *offset > r->size || whole > r->size - *offset)
		return refuse(r, "a member that is longer than the file");
	r->at = *offset + whole;
	return NULL;
}

static struct prb_error *read_first(struct reading *r)
{
	struct tar_header header;
	uint64_t offset, size;
	char format[2] = "";

	PRB_TRY(read_block(r, &header));
	if (!is_first(&header))
		return refuse(r, "it does not begin as a bundle does");
	PRB_TRY(skip(r, &header, &offset, &size));
	if (size != sizeof(format) ||
	    pread(r->bundle->fd, format, sizeof(format), (off_t)offset) != sizeof(format))
		return refuse(r, "it does not begin as a bundle does");
	if (memcmp(format, bundle_format, sizeof(format)) != 0)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"%s is of another version of probing", r->bundle->path);
	return NULL;
}

static struct prb_error *read_next(struct reading *r, bool *end)
{
	struct prb_bundle_member member = {};
	struct prb_bundle_member *place;
	struct tar_header header;

	PRB_TRY(read_block(r, &header));
	*end = is_empty(&header);
	if (*end)
		return NULL;
	if (!is_header(&header) || !read_member(&header, &member))
		return refuse(r, "a member that no bundle has");
	if (r->bundle->members.count == PRB_BUNDLE_MAX_MEMBERS)
		return refuse(r, "too many members");
	PRB_TRY(skip(r, &header, &member.offset, &member.size));
	place = prb_vec_push(&r->bundle->members);
	if (!place)
		return prb_error_nomem();
	*place = member;
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct prb_bundle_member *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

static struct prb_error *sort(struct reading *r)
{
	struct prb_bundle *b = r->bundle;

	if (b->members.count)
		qsort(b->members.items, b->members.count, sizeof(*b->members.items), compare);
	for (size_t i = 1; i < b->members.count; i++)
		if (!compare(&b->members.items[i - 1], &b->members.items[i]))
			return refuse(r, "a member comes twice");
	return NULL;
}

static struct prb_error *read_all(struct prb_bundle *bundle)
{
	struct reading r = {.bundle = bundle};
	bool end = false;
	struct stat st;

	if (fstat(bundle->fd, &st))
		return prb_error_os(errno, "cannot read %s", bundle->path);
	if (!S_ISREG(st.st_mode))
		return prb_error_create(PRB_ERROR_BAD_DATA, "%s is not a regular file",
					bundle->path);
	r.size = (uint64_t)st.st_size;
	PRB_TRY(read_first(&r));
	while (!end)
		PRB_TRY(read_next(&r, &end));
	return sort(&r);
}

struct prb_error *prb_bundle_read(int fd, const char *name, struct prb_bundle *ret)
{
	struct prb_error *err;

	*ret = (struct prb_bundle){.fd = fd};
	err = prb_str_copy(name, &ret->path);
	if (!err)
		err = read_all(ret);
	if (err)
		prb_bundle_deinit(ret);
	return err;
}

static int open_file(const char *path)
{
	return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

struct prb_error *prb_bundle_open(const char *path, struct prb_bundle *ret)
{
	int fd = open_file(path);

	*ret = PRB_NO_BUNDLE;
	return fd < 0 ? prb_error_os(errno, "cannot open %s", path)
		      : prb_bundle_read(fd, path, ret);
}

void prb_bundle_deinit(struct prb_bundle *bundle)
{
	if (bundle->fd >= 0)
		close(bundle->fd);
	free(bundle->path);
	prb_vec_free(&bundle->members);
	*bundle = PRB_NO_BUNDLE;
}

bool prb_bundle_probe(const char *path)
{
	prb_auto_close int fd = open_file(path);
	struct tar_header header;

	return fd >= 0 && pread(fd, &header, TAR_BLOCK, 0) == TAR_BLOCK && is_first(&header);
}

const struct prb_bundle_member *prb_bundle_find(const struct prb_bundle *bundle,
						enum prb_bundle_kind kind, long number)
{
	const struct prb_bundle_member key = {.kind = kind, .number = number};

	return bundle->members.count ? bsearch(&key, bundle->members.items, bundle->members.count,
					       sizeof(key), compare)
				     : NULL;
}

struct prb_error *prb_bundle_target(const struct prb_bundle *bundle,
				    const struct prb_bundle_member *member, struct prb_target **ret)
{
	prb_auto_free char *name = prb_format("%s/%ld", bundle->path, member->number);

	return name ? prb_target_open_snapshot_within(bundle->fd, name, member->offset,
						      member->size, ret)
		    : prb_error_nomem();
}

struct prb_error *prb_bundle_divide(const char *text, char **path, long *rank)
{
	const char *slash = strrchr(text, '/');
	size_t digits = slash ? strlen(slash + 1) : 0;
	prb_auto_free char *before = NULL;

	*path = NULL;
	if (!slash || slash == text || !digits || digits > 7 ||
	    strspn(slash + 1, "0123456789") != digits)
		return NULL;
	before = strndup(text, (size_t)(slash - text));
	if (!before)
		return prb_error_nomem();
	*rank = strtol(slash + 1, NULL, 10);
	if (prb_bundle_probe(before))
		*path = prb_steal(&before);
	return NULL;
}
