/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/elf/debugfile.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "dwarf/elf/elf_internal.h"

enum { CHUNK = 256 << 10 };
#define DEBUG_ROOT "/usr/lib/debug"

/** A search under way. */
struct search {
	struct prb_target *target;
	struct prb_elf *elf;   /* whose debug file it is */
	const char *build_id;  /* "" if it has none */
	const uint32_t *crc;   /* that the debug file must have unless a build-id proves it */
	struct prb_elf *found; /* or NULL */
};

/** A sparse file can have any size: what may change it gets so much time of ours for one target. */
static const uint64_t MAX_SUMMED = 2ULL << 30;

/** Sums up the file by reading it, which no cutting off can harm. */
static bool has_crc(struct prb_target *target, const struct prb_elf *elf, uint32_t wanted)
{
	prb_auto_free uint8_t *chunk = malloc(CHUNK);
	uint64_t offset = 0;
	uLong crc = 0;

	if (!prb_elf_is_safe(elf)) {
		if (elf->size > MAX_SUMMED - target->summed) {
			prb_log("elf", 1, "%s is too large for its checksum", prb_elf_name(elf));
			return false;
		}
		target->summed += elf->size;
	}
	while (chunk && offset < elf->size) {
		size_t wish = PRB_MIN(elf->size - offset, (uint64_t)CHUNK);
		ssize_t n = pread(prb_elf_fd(elf), chunk, wish, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		crc = crc32_z(crc, chunk, (size_t)n);
		offset += (uint64_t)n;
	}
	return chunk && crc == wanted;
}

/** Is @p candidate made from the same link as the file we have? */
static bool belongs(const struct search *s, struct prb_elf *candidate)
{
	const char *build_id = prb_elf_build_id(candidate);

	if (*s->build_id && *build_id)
		return !strcmp(s->build_id, build_id);
	return s->crc && has_crc(s->target, candidate, *s->crc);
}

/** Looks at an opened file, which becomes ours. */
static struct prb_error *consider(struct search *s, int fd, const char *path)
{
	struct prb_elf *candidate;
	struct prb_error *err;
	struct stat st, own;

	/* A link that names the file itself is found beside it. */
	if (fstat(fd, &st) || (!fstat(prb_elf_fd(s->elf), &own) && own.st_dev == st.st_dev &&
			       own.st_ino == st.st_ino)) {
		close(fd);
		return NULL;
	}
	err = prb_elf_open(fd, path, &candidate);
	if (err) {
		if (err->code == PRB_ERROR_NOMEM)
			return err;
		prb_log("elf", 1, "debug file %s", err->message);
		prb_error_destroy(err);
		return NULL;
	}
	if (!belongs(s, candidate)) {
		prb_log("elf", 1, "%s does not belong to %s", path, prb_elf_name(s->elf));
		prb_elf_close(candidate);
		return NULL;
	}
	prb_log("elf", 2, "%s has the debug information of %s", path, prb_elf_name(s->elf));
	s->found = candidate;
	return NULL;
}

/** Tries @p path in the target's root, and in ours if it is a place of debug files. */
static struct prb_error *try_path(struct search *s, const char *path)
{
	struct prb_error *err;
	int fd = -1;

	prb_log("elf", 3, "trying %s", path);
	err = prb_target_open_file(s->target, path, &fd);
	if (!err)
		PRB_TRY(consider(s, fd, path));
	else if (err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	/* In our own root with our own rights: nowhere but where debug files are installed. */
	if (s->found || strncmp(path, DEBUG_ROOT "/", strlen(DEBUG_ROOT "/")) != 0)
		return NULL;

	err = prb_file_open(-1, path, &fd);
	if (!err)
		return consider(s, fd, path);
	if (err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	return NULL;
}

static struct prb_error *by_build_id(struct search *s)
{
	prb_auto_free char *path = NULL;

	if (strlen(s->build_id) < 4)
		return NULL;
	path = prb_format(DEBUG_ROOT "/.build-id/%.2s/%s.debug", s->build_id, s->build_id + 2);
	return path ? try_path(s, path) : prb_error_nomem();
}

/** Reads .gnu_debuglink: a file name, padding, a CRC-32. */
static const char *read_link(struct prb_elf *elf, uint32_t *crc)
{
	prb_auto_error struct prb_error *err = NULL;
	const void *data;
	uint64_t size;

	err = prb_elf_section(elf, ".gnu_debuglink", NULL, &size, &data);
	if (err || !data)
		return NULL;
	const char *name = data;
	size_t length = strnlen(name, size);
	uint64_t crc_at = (length + 4) & ~3ULL;

	if (!length || !prb_inside(crc_at, sizeof(*crc), size) || strchr(name, '/') ||
	    !strcmp(name, ".") || !strcmp(name, ".."))
		return NULL;
	memcpy(crc, name + crc_at, sizeof(*crc));
	return name;
}

static struct prb_error *by_link(struct search *s, const char *path)
{
	static const struct {
		const char *root, *folder;
	} places[] = {{"", ""}, {"", "/.debug"}, {DEBUG_ROOT, ""}};
	const char *slash = strrchr(path, '/');
	uint32_t crc;
	const char *name = read_link(s->elf, &crc);

	if (!name || !slash || path[0] != '/')
		return NULL;
	s->crc = &crc;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(places) && !s->found; i++) {
		prb_auto_free char *candidate =
			prb_format("%s%.*s%s/%s", places[i].root, (int)(slash - path), path,
				   places[i].folder, name);

		if (!candidate)
			return prb_error_nomem();
		PRB_TRY(try_path(s, candidate));
	}
	s->crc = NULL;
	return NULL;
}

struct prb_error *prb_debugfile_open(struct prb_target *target, struct prb_elf *elf,
				     const char *path, struct prb_elf **ret)
{
	struct search s = {.target = target, .elf = elf, .build_id = prb_elf_build_id(elf)};

	PRB_TRY(by_build_id(&s));
	if (!s.found)
		PRB_TRY(by_link(&s, path));
	if (!s.found)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND, "%s has no debug information", path),
			"install its debug package");
	*ret = s.found;
	return NULL;
}
