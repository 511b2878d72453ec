/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/tasks/cpu_clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cleanup.h"

enum {
	STACK_BYTES = 256 * 1024,
	PATIENCE_MS = 200,
	RETRY_MS = 2,
};

struct group {
	pthread_mutex_t mutex;
	pthread_cond_t ended;
	size_t running;
};

struct reader {
	struct group *group;
	struct prb_cpu_clock *clock;
	pthread_t thread;
	bool started;
	_Atomic pid_t tid; /* 0: unknown yet */
	_Atomic bool done;
};

bool prb_cpu_clock_parse(const char *sched, double *ret)
{
	const char *line = strstr(sched, "se.exec_start");
	const char *value = line ? strchr(line, ':') : NULL;
	char *end;

	if (!value)
		return false;
	*ret = strtod(value + 1, &end);
	return end != value + 1 && *ret > 0;
}

/* A thread that was just scheduled: its `exec_start` is the present time. */
static void read_here(struct prb_cpu_clock *clock)
{
	prb_auto_close int fd = open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC);
	char text[4096];
	ssize_t n = fd < 0 ? -1 : pread(fd, text, sizeof(text) - 1, 0);
	double now;

	text[n > 0 ? n : 0] = '\0';
	if (!prb_cpu_clock_parse(text, &now) || sched_getcpu() != clock->cpu)
		return;
	clock->now = now;
	clock->lost = prb_clock_seconds() * 1e3 - now;
}

static void *run_reader(void *context)
{
	struct reader *reader = context;
	struct group *group = reader->group;
	cpu_set_t only;

	atomic_store(&reader->tid, (pid_t)syscall(SYS_gettid));
	CPU_ZERO(&only);
	CPU_SET(reader->clock->cpu, &only);
	if (!sched_setaffinity(0, sizeof(only), &only))
		read_here(reader->clock);
	atomic_store(&reader->done, true);
	pthread_mutex_lock(&group->mutex);
	group->running--;
	pthread_cond_signal(&group->ended);
	pthread_mutex_unlock(&group->mutex);
	return NULL;
}

static bool start(struct reader *reader, const pthread_attr_t *attributes)
{
	struct group *group = reader->group;

	pthread_mutex_lock(&group->mutex);
	group->running++;
	pthread_mutex_unlock(&group->mutex);
	reader->started = !pthread_create(&reader->thread, attributes, run_reader, reader);
	if (!reader->started) {
		pthread_mutex_lock(&group->mutex);
		group->running--;
		pthread_mutex_unlock(&group->mutex);
	}
	return reader->started;
}

/* Starts the readers with signals blocked: signals are for the host program's threads. */
static void start_all(struct reader *readers, size_t count, const cpu_set_t *allowed)
{
	pthread_attr_t attributes;
	sigset_t all, before;

	if (pthread_attr_init(&attributes))
		return;
	pthread_attr_setstacksize(&attributes, STACK_BYTES);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &before);
	for (size_t i = 0; i < count; i++) {
		int cpu = readers[i].clock->cpu;

		if (cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, allowed) &&
		    !start(&readers[i], &attributes))
			break;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

static struct timespec after_ms(long ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_nsec += ms * 1000000;
	at.tv_sec += at.tv_nsec / 1000000000;
	at.tv_nsec %= 1000000000;
	return at;
}

/* False if a reader is still running after @p ms. */
static bool wait_ended(struct group *group, long ms)
{
	struct timespec until = after_ms(ms);
	int rc = 0;

	pthread_mutex_lock(&group->mutex);
	while (group->running && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&group->ended, &group->mutex, &until);

	bool ended = !group->running;
	pthread_mutex_unlock(&group->mutex);
	return ended;
}

/*
 * A realtime thread that never sleeps may occupy a CPU: readers that wait for that CPU get their
 * old affinity back. This is repeated, since a reader may be about to pin itself.
 */
static void wait_all(struct group *group, struct reader *readers, size_t count,
		     const cpu_set_t *allowed)
{
	for (long ms = PATIENCE_MS; !wait_ended(group, ms); ms = RETRY_MS)
		for (size_t i = 0; i < count; i++) {
			pid_t tid = atomic_load(&readers[i].tid);

			if (readers[i].started && tid && !atomic_load(&readers[i].done)) {
				readers[i].clock->late = true;
				sched_setaffinity(tid, sizeof(*allowed), allowed);
			}
		}
	for (size_t i = 0; i < count; i++)
		if (readers[i].started)
			pthread_join(readers[i].thread, NULL);
}

static bool init_group(struct group *group)
{
	pthread_condattr_t attributes;

	*group = (struct group){.mutex = PTHREAD_MUTEX_INITIALIZER};
	if (pthread_condattr_init(&attributes))
		return false;
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);

	int rc = pthread_cond_init(&group->ended, &attributes);
	pthread_condattr_destroy(&attributes);
	return !rc;
}

void prb_cpu_clocks_read(struct prb_cpu_clock *clocks, size_t count)
{
	prb_auto_free struct reader *readers = calloc(count + 1, sizeof(*readers));
	struct group group;
	cpu_set_t allowed;

	for (size_t i = 0; i < count; i++)
		clocks[i] = (struct prb_cpu_clock){.cpu = clocks[i].cpu};
	if (!readers || sched_getaffinity(0, sizeof(allowed), &allowed) || !init_group(&group))
		return;
	for (size_t i = 0; i < count; i++)
		readers[i] = (struct reader){.group = &group, .clock = &clocks[i]};
	start_all(readers, count, &allowed);
	wait_all(&group, readers, count, &allowed);
	pthread_cond_destroy(&group.ended);
	pthread_mutex_destroy(&group.mutex);
}
