/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/store/write/batch.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Items from @first on, of one vector to another. */
#define COPY_FROM(to, from, first)                                                               \
	copy((void **)&(to)->items, &(to)->count, &(to)->capacity, (from)->items, (from)->count, \
	     (first), sizeof(*(from)->items))

static bool copy(void **items, size_t *count, size_t *capacity, const void *from, size_t from_count,
		 size_t first, size_t size)
{
	size_t extra = from_count - first;

	*count = 0;
	if (!prb_vec_grow(items, capacity, 0, extra, size))
		return false;
	if (extra)
		memcpy(*items, (const char *)from + first * size, extra * size);
	*count = extra;
	return true;
}

struct prb_error *prb_batch_fill(struct prb_batch *batch, const struct prb_recording *recording,
				 struct prb_batch_mark *mark)
{
	const struct prb_tree *tree = recording->tree;

	batch->first = *mark;
	if (!COPY_FROM(&batch->images, &tree->images, mark->images) ||
	    !COPY_FROM(&batch->functions, &tree->functions, mark->functions) ||
	    !COPY_FROM(&batch->frames, &tree->frames, mark->frames) ||
	    !COPY_FROM(&batch->stacks, &tree->stacks, mark->stacks) ||
	    !COPY_FROM(&batch->waits, &recording->waits, mark->waits) ||
	    !COPY_FROM(&batch->others, &recording->others, 0) ||
	    !COPY_FROM(&batch->threads, &recording->threads, 0) ||
	    !COPY_FROM(&batch->runs, &recording->runs, 0))
		return prb_error_nomem();
	batch->all_stacks = tree->stacks.count;
	batch->all_waits = recording->waits.count;
	batch->about = *recording;
	batch->about.tree = NULL;
	memset(&batch->about.threads, 0, sizeof(batch->about.threads));
	memset(&batch->about.others, 0, sizeof(batch->about.others));
	memset(&batch->about.retired, 0, sizeof(batch->about.retired));
	memset(&batch->about.waits, 0, sizeof(batch->about.waits));
	memset(&batch->about.wait_numbers, 0, sizeof(batch->about.wait_numbers));
	memset(&batch->about.windows, 0, sizeof(batch->about.windows));
	memset(&batch->about.runs, 0, sizeof(batch->about.runs));
	*mark = (struct prb_batch_mark){tree->images.count, tree->functions.count,
					tree->frames.count, tree->stacks.count,
					recording->waits.count};
	return NULL;
}

void prb_batch_deinit(struct prb_batch *batch)
{
	prb_vec_free(&batch->images);
	prb_vec_free(&batch->functions);
	prb_vec_free(&batch->frames);
	prb_vec_free(&batch->stacks);
	prb_vec_free(&batch->threads);
	prb_vec_free(&batch->waits);
	prb_vec_free(&batch->others);
	prb_vec_free(&batch->runs);
	free(batch->renamed);
}
