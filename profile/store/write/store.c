/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Handing batches over to the thread that writes them. */
#include "profile/store/write/store.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "profile/store/write/condition.h"
#include "profile/store/write/database.h"

static const int64_t second = 1000000000;
static const int64_t usual_chunk_ns = 60 * 1000000000ll;

enum {
	FULL_RUNS = 16384,    /* a chunk with so many is complete */
	MOST_RUNS = 1000000,  /* that wait for the disk */
	RETRY_NS = 100000000, /* between two attempts while another program has the database */
	LAST_ATTEMPTS = 50,   /* once the recording is over */
};

struct prb_store {
	struct prb_store_file file;
	pthread_t thread;
	bool started;
	/* The recorder's. */
	struct prb_batch_mark mark;
	int64_t put_at;	     /* when something was handed over last */
	int64_t chunk_ns;    /* how long one is, at most */
	int64_t chunk;	     /* number of the chunk that grows */
	int64_t chunk_until; /* when it is complete, at the latest */
	/* Of both, under the lock. */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct prb_batch batch;
	bool full;   /* there is a batch to be written */
	bool hurry;  /* the recorder waits for it */
	bool over;   /* no other will come */
	bool failed; /* the thread has ended, with this error until the caller takes it */
	struct prb_error *error;
};

struct prb_error *prb_store_create(const char *path, struct prb_store **ret)
{
	struct prb_store *store = calloc(1, sizeof(*store));
	struct prb_error *err;

	if (!store)
		return prb_error_nomem();
	store->chunk_ns = usual_chunk_ns;
	pthread_mutex_init(&store->lock, NULL);
	pthread_cond_init(&store->changed, NULL);
	err = prb_store_file_create(&store->file, path);
	if (err)
		prb_store_destroy(store);
	else
		*ret = store;
	return err;
}

struct prb_error *prb_store_keep_when(struct prb_store *store, const char *condition, double around,
				      prb_store_steps_fn *steps)
{
	const int64_t part = (int64_t)(around * 1e9 / 4);

	store->chunk_ns = PRB_MIN(PRB_MAX(part, second), usual_chunk_ns);
	return prb_store_when_create(condition, around, steps, &store->file.when);
}

static bool in_hurry(struct prb_store *store)
{
	pthread_mutex_lock(&store->lock);
	bool hurry = store->hurry;
	pthread_mutex_unlock(&store->lock);
	return hurry;
}

/* While another program reads the database, the batch waits; at the end within a limit. */
static struct prb_error *write_batch(struct prb_store *store)
{
	const struct timespec pause = {.tv_nsec = RETRY_NS};
	int attempts = 0;

	if (store->file.when)
		PRB_TRY(prb_store_when_ask(store->file.when, &store->batch));
	for (;;) {
		struct prb_error *err = prb_store_file_write(&store->file, &store->batch);

		attempts += in_hurry(store);
		if (!err || err->code != PRB_ERROR_TIMEOUT)
			return err;
		prb_error_destroy(err);
		if (attempts >= LAST_ATTEMPTS)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_TIMEOUT,
						 "cannot write %s: another program holds it",
						 store->file.file.path),
				"end its transaction, and record again");
		nanosleep(&pause, NULL);
	}
}

static void *run(void *context)
{
	struct prb_store *store = context;

	pthread_mutex_lock(&store->lock);
	while (!store->failed && (store->full || !store->over)) {
		if (!store->full) {
			pthread_cond_wait(&store->changed, &store->lock);
			continue;
		}
		pthread_mutex_unlock(&store->lock);
		struct prb_error *err = write_batch(store);
		if (!err && store->batch.last)
			err = prb_store_file_finish(&store->file);
		pthread_mutex_lock(&store->lock);
		store->error = err;
		store->failed = err;
		store->full = false;
		pthread_cond_broadcast(&store->changed);
	}
	pthread_mutex_unlock(&store->lock);
	return NULL;
}

/* Signals are for the thread that records. */
static struct prb_error *start_thread(struct prb_store *store)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	store->started = !pthread_create(&store->thread, NULL, run, store);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return store->started ? NULL
			      : prb_error_create(PRB_ERROR_FAILED, "cannot start a thread that "
								   "writes the recording");
}

/* Fills the batch, which the thread does not use now. */
static struct prb_error *hand_over(struct prb_store *store, const struct prb_recording *recording,
				   bool cut, bool last)
{
	struct prb_error *err = prb_batch_fill(&store->batch, recording, &store->mark);

	if (err)
		return err;
	store->batch.chunk = store->chunk;
	store->batch.cut = cut;
	store->batch.last = last;
	store->full = true;
	store->over |= last;
	pthread_cond_broadcast(&store->changed);
	return NULL;
}

static int64_t chunk_after(const struct prb_store *store, const struct prb_recording *recording,
			   int64_t now)
{
	int64_t passed = now - recording->begun;

	return now + store->chunk_ns - passed % store->chunk_ns;
}

struct prb_error *prb_store_begin(struct prb_store *store, const struct prb_recording *recording)
{
	PRB_TRY(prb_store_file_begin(&store->file));
	PRB_TRY(start_thread(store));
	store->put_at = recording->begun;
	store->chunk_until = chunk_after(store, recording, recording->begun);
	pthread_mutex_lock(&store->lock);
	struct prb_error *err = hand_over(store, recording, false, false);
	pthread_mutex_unlock(&store->lock);
	return err;
}

static struct prb_error *put(struct prb_store *store, const struct prb_recording *recording,
			     int64_t now, bool *ret_cut)
{
	bool cut = recording->runs.count &&
		   (now >= store->chunk_until || recording->runs.count >= FULL_RUNS);

	PRB_TRY(hand_over(store, recording, cut, false));
	store->put_at = now;
	if (!cut)
		return NULL;
	store->chunk++;
	store->chunk_until = chunk_after(store, recording, now);
	*ret_cut = true;
	return NULL;
}

bool prb_store_is_there(struct prb_store *store)
{
	if (!store || !store->started)
		return false;
	pthread_mutex_lock(&store->lock);
	bool there = !store->full && !store->failed;
	pthread_mutex_unlock(&store->lock);
	return there;
}

bool prb_store_is_due(const struct prb_store *store, const struct prb_recording *recording,
		      int64_t now)
{
	return now - store->put_at >= second || recording->runs.count >= FULL_RUNS;
}

struct prb_error *prb_store_put(struct prb_store *store, const struct prb_recording *recording,
				int64_t now, bool *ret_cut)
{
	struct prb_error *err = NULL;

	*ret_cut = false;
	/* The writer holds the lock for an instant only. */
	pthread_mutex_lock(&store->lock);
	err = prb_steal(&store->error);
	if (!err && !store->full)
		err = put(store, recording, now, ret_cut);
	else if (!err && recording->runs.count > MOST_RUNS)
		err = prb_error_create(PRB_ERROR_FAILED,
				       "%s cannot be written as fast as samples come",
				       store->file.file.path);
	pthread_mutex_unlock(&store->lock);
	return err;
}

/* With the lock held. */
static struct prb_error *wait_written(struct prb_store *store)
{
	while (store->full)
		pthread_cond_wait(&store->changed, &store->lock);
	return prb_steal(&store->error);
}

static struct prb_error *put_and_wait(struct prb_store *store,
				      const struct prb_recording *recording, bool last)
{
	struct prb_error *err;

	pthread_mutex_lock(&store->lock);
	store->hurry = true;
	err = wait_written(store);
	if (!err)
		err = hand_over(store, recording, true, last);
	if (!err)
		err = wait_written(store);
	pthread_mutex_unlock(&store->lock);
	return err;
}

struct prb_error *prb_store_put_rest(struct prb_store *store, const struct prb_recording *recording)
{
	PRB_TRY(put_and_wait(store, recording, false));
	store->chunk++;
	return NULL;
}

void prb_store_rename(struct prb_store *store, uint32_t *renamed, size_t count)
{
	store->batch.renamed = renamed;
	store->batch.renamed_count = count;
	store->mark = (struct prb_batch_mark){};
}

struct prb_error *prb_store_finish(struct prb_store *store, const struct prb_recording *recording)
{
	return put_and_wait(store, recording, true);
}

void prb_store_stop(struct prb_store *store)
{
	if (!store || !store->started)
		return;
	pthread_mutex_lock(&store->lock);
	store->hurry = store->over = true;
	pthread_cond_broadcast(&store->changed);
	pthread_mutex_unlock(&store->lock);
	pthread_join(store->thread, NULL);
	store->started = false;
}

void prb_store_destroy(struct prb_store *store)
{
	if (!store)
		return;
	prb_store_stop(store);
	prb_store_when_destroy(store->file.when);
	prb_store_file_deinit(&store->file);
	prb_batch_deinit(&store->batch);
	prb_error_destroy(store->error);
	pthread_cond_destroy(&store->changed);
	pthread_mutex_destroy(&store->lock);
	free(store);
}
