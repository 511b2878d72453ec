/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/sampler/live.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profile/store/write/batch.h"

struct prb_live {
	int64_t interval;
	int fd;
	/* The sampler's. */
	int64_t put_at;
	struct prb_batch_mark mark;
	/* Of both, under the lock. */
	pthread_mutex_t lock;
	struct prb_batch batch;
	bool full;
	/* The viewer's. */
	struct prb_recording *recording;
};

struct prb_error *prb_live_create(double seconds, struct prb_live **ret)
{
	struct prb_live *live = calloc(1, sizeof(*live));
	struct prb_error *err;

	if (!live)
		return prb_error_nomem();
	live->interval = (int64_t)(seconds * 1e9);
	pthread_mutex_init(&live->lock, NULL);
	live->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = live->fd < 0 ? prb_error_os(errno, "cannot make an event descriptor") : NULL;
	if (!err)
		err = prb_recording_create(&live->recording);
	if (err) {
		prb_live_destroy(live);
		return err;
	}
	/* All of the tree is handed over, also what every tree begins with. */
	live->recording->tree->functions.count = 0;
	live->recording->tree->frames.count = 0;
	live->recording->tree->stacks.count = 0;
	live->recording->waits.count = 0;
	*ret = live;
	return NULL;
}

void prb_live_destroy(struct prb_live *live)
{
	struct prb_recording *recording;

	if (!live)
		return;
	recording = live->recording;
	if (recording) {
		recording->threads.count = 0; /* their names are the sampler's */
		recording->waits.count = 0;
		recording->command = recording->python = NULL;
	}
	prb_recording_destroy(recording);
	prb_batch_deinit(&live->batch);
	pthread_mutex_destroy(&live->lock);
	prb_close_guard(&live->fd);
	free(live);
}

bool prb_live_is_due(struct prb_live *live, int64_t now)
{
	bool full;

	if (!live->put_at)
		live->put_at = now;
	if (now - live->put_at < live->interval)
		return false;
	pthread_mutex_lock(&live->lock);
	full = live->full;
	pthread_mutex_unlock(&live->lock);
	return !full;
}

struct prb_error *prb_live_put(struct prb_live *live, const struct prb_recording *recording,
			       int64_t now)
{
	struct prb_error *err;

	pthread_mutex_lock(&live->lock);
	err = prb_batch_fill(&live->batch, recording, &live->mark);
	live->full = !err;
	pthread_mutex_unlock(&live->lock);
	live->put_at = now;
	prb_live_wake(live);
	return err;
}

int prb_live_fd(const struct prb_live *live)
{
	return live->fd;
}

void prb_live_wake(const struct prb_live *live)
{
	ssize_t written = write(live->fd, &(uint64_t){1}, sizeof(uint64_t));

	(void)written; /* it fails only where it is readable already */
}

/* Appends the items of one vector to another. */
#define APPEND(to, from)                                                                           \
	append((void **)&(to)->items, &(to)->count, &(to)->capacity, (from)->items, (from)->count, \
	       sizeof(*(from)->items))

static bool append(void **items, size_t *count, size_t *capacity, const void *from, size_t extra,
		   size_t size)
{
	if (!prb_vec_grow(items, capacity, *count, extra, size))
		return false;
	if (extra)
		memcpy((char *)*items + *count * size, from, extra * size);
	*count += extra;
	return true;
}

static struct prb_error *take(struct prb_live *live)
{
	struct prb_recording *to = live->recording;
	const struct prb_batch *from = &live->batch;
	struct prb_recording about = from->about;

	about.tree = to->tree;
	memcpy(&about.threads, &to->threads, sizeof(to->threads));
	memcpy(&about.others, &to->others, sizeof(to->others));
	memcpy(&about.retired, &to->retired, sizeof(to->retired));
	memcpy(&about.waits, &to->waits, sizeof(to->waits));
	memcpy(&about.wait_numbers, &to->wait_numbers, sizeof(to->wait_numbers));
	memcpy(&about.runs, &to->runs, sizeof(to->runs));
	memcpy(&about.lines, &to->lines, sizeof(to->lines));
	*to = about;
	to->threads.count = 0;
	return APPEND(&to->tree->functions, &from->functions) &&
			       APPEND(&to->tree->frames, &from->frames) &&
			       APPEND(&to->tree->stacks, &from->stacks) &&
			       APPEND(&to->waits, &from->waits) &&
			       APPEND(&to->threads, &from->threads) &&
			       APPEND(&to->runs, &from->runs)
		       ? NULL
		       : prb_error_nomem();
}

struct prb_error *prb_live_take(struct prb_live *live, bool *ret_new)
{
	struct prb_error *err = NULL;
	uint64_t count;
	ssize_t got = read(live->fd, &count, sizeof(count));

	(void)got; /* it need not have been readable */
	pthread_mutex_lock(&live->lock);
	*ret_new = live->full;
	if (live->full)
		err = take(live);
	live->full = false;
	pthread_mutex_unlock(&live->lock);
	return err;
}

struct prb_recording *prb_live_recording(struct prb_live *live)
{
	return live->recording;
}
