/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How large a long recording becomes, without waiting for it: long_recording SHORT.profile HOURS
 * OUT.profile writes the samples of a short recording again and again, as the recorder does and as
 * if so many hours passed. Prints the hours, the bytes of the file and the peak of our memory in
 * KiB whenever the hours have doubled.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "profile/store/load/load.h"
#include "profile/store/write/store.h"

static const int64_t minute = 60 * 1000000000ll, hour = 60 * 60 * 1000000000ll;

struct replay {
	struct prb_recording *recording;
	PRB_VEC(struct prb_run) runs; /* of the short one */
	struct prb_store *store;
	const char *out;
	size_t next; /* of runs */
	int64_t length;
	int64_t begin; /* of this repetition */
};

static void check(struct prb_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "long_recording: %s\n", err->message);
	exit(1);
}

static void begin(struct replay *r, const char *path)
{
	check(prb_profile_load(path, true, &r->recording));
	memcpy(&r->runs, &r->recording->runs, sizeof(r->runs));
	memset(&r->recording->runs, 0, sizeof(r->recording->runs));
	for (size_t i = 0; i < r->recording->threads.count; i++)
		r->recording->threads.items[i].cpu = 0;
	r->recording->begun = 0;
	r->length = r->recording->duration;
}

/* The runs that begin before @until. */
static void add_runs(struct replay *r, int64_t until)
{
	for (;;) {
		struct prb_run *run = &r->runs.items[r->next], *slot;

		if (r->begin + run->begin >= until)
			return;
		slot = prb_vec_push(&r->recording->runs);
		if (!slot)
			check(prb_error_nomem());
		*slot = *run;
		slot->begin += r->begin;
		r->recording->threads.items[run->thread].cpu += run->cpu;
		if (++r->next == r->runs.count) {
			r->next = 0;
			r->begin += r->length;
		}
	}
}

/* The chunk of a minute; the thread that writes has to keep up. */
static void write_minute(struct replay *r, int64_t now)
{
	bool cut = false;

	r->recording->duration = now;

	while (!cut) {
		check(prb_store_put(r->store, r->recording, now, &cut));
		if (!cut)
			nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
	}
	r->recording->runs.count = 0;
}

static void report(const struct replay *r, int64_t now)
{
	struct rusage usage;
	struct stat st;

	if (stat(r->out, &st) || getrusage(RUSAGE_SELF, &usage))
		exit(1);
	printf("%lld %lld %ld\n", (long long)(now / hour), (long long)st.st_size, usage.ru_maxrss);
}

int main(int argc, char **argv)
{
	struct replay r = {.out = argc > 3 ? argv[3] : NULL};
	int64_t hours, doubled = 1;

	if (!r.out)
		return 2;
	begin(&r, argv[1]);
	hours = strtol(argv[2], NULL, 10);
	check(prb_store_create(r.out, &r.store));
	check(prb_store_begin(r.store, r.recording));
	for (int64_t now = minute; now <= hours * hour; now += minute) {
		add_runs(&r, now);
		write_minute(&r, now);
		if (now != doubled * hour)
			continue;
		report(&r, now);
		doubled *= 2;
	}
	check(prb_store_finish(r.store, r.recording));
	prb_store_destroy(r.store);
	report(&r, hours * hour);
	return 0;
}
