/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "rings/history.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <strings.h>

#include "base/checked.h"
#include "base/cleanup.h"

int prb_history_level(const struct prb_ring_header *header, const char *schema, const char *name)
{
	char own[2 * PRB_RING_NAME];
	unsigned rows = 1;

	if (strcasecmp(header->schema, schema) != 0)
		return -1;
	if (!strcasecmp(header->name, name))
		return 0;
	for (int level = 1; level < PRB_HISTORY_LEVELS; level++) {
		rows *= 10;
		snprintf(own, sizeof(own), "%.64s_per_%u", name, rows);
		if (!strcasecmp(header->name, own))
			return level;
	}
	return -1;
}

/** Opens a file without taking it; *ret stays NULL if it is no ring of that level. */
static struct prb_error *open_level(const struct prb_ring_file *file, const char *schema,
				    const char *name, int level, struct prb_ring **ret)
{
	prb_auto_ring struct prb_ring *ring = NULL;
	int fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	struct prb_error *err;

	*ret = NULL;
	if (fd < 0)
		return NULL;
	err = prb_ring_open(fd, file->path, &ring);
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err);
	if (err || prb_history_level(&ring->header, schema, name) != level)
		return NULL;
	ring->wanted = 0;
	*ret = prb_steal(&ring);
	return NULL;
}

/** The time of the first row of a level from @p from on; INT64_MAX: there is none. */
static struct prb_error *first_time(const struct prb_ring_files *files, const char *schema,
				    const char *name, int level, int64_t from, int64_t *ret)
{
	const struct prb_ring_range range = {from, INT64_MAX};
	const struct prb_ring_file *file;

	*ret = INT64_MAX;
	prb_vec_each (file, &files->list) {
		prb_auto_ring struct prb_ring *ring = NULL;
		struct prb_ring_item row;
		bool more = true;

		PRB_TRY(open_level(file, schema, name, level, &ring));
		for (bool found = false; ring && !found && more;) {
			PRB_TRY(prb_ring_next_chunk(ring, &range, &more));
			while (more && !found && prb_ring_next_row(ring, &row))
				if (row.time >= from) {
					*ret = PRB_MIN(*ret, row.time);
					found = true;
				}
		}
	}
	return NULL;
}

struct prb_error *prb_history_find(const struct prb_ring_files *files, const char *schema,
				   const char *name, struct prb_history *ret)
{
	int64_t finer, first, border;

	for (int level = 0; level < PRB_HISTORY_LEVELS; level++)
		ret->levels[level] = (struct prb_ring_range){INT64_MAX, INT64_MIN};
	ret->levels[0] = (struct prb_ring_range)PRB_RING_ALWAYS;
	PRB_TRY(first_time(files, schema, name, 0, INT64_MIN, &finer));
	for (int level = 1, below = 0; level < PRB_HISTORY_LEVELS; level++) {
		PRB_TRY(first_time(files, schema, name, level, INT64_MIN, &first));
		if (first >= finer)
			continue;
		/* Its row that ends at or after the first of the finer level has part of it. */
		PRB_TRY(first_time(files, schema, name, level, finer, &border));
		if (border == INT64_MAX)
			border = finer - 1;
		ret->levels[level] = (struct prb_ring_range){INT64_MIN, border};
		ret->levels[below].from = border + 1;
		below = level;
		finer = first;
	}
	return NULL;
}
