/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Stands for CUDA's driver (libcuda.so.1): one context, and a stream that never has passed an event
 * when it is asked for it first: only then it goes on, to what was recorded last. It counts what a
 * real one would not forgive.
 */
#include <stdlib.h>
#include <time.h>

enum { OK = 0, INVALID_VALUE = 1, INVALID_CONTEXT = 201, NOT_READY = 600 };

struct event {
	long number; /* of all records so far; 0: it was never recorded */
	struct timespec time;
};

long created, destroyed, recorded, faults;
int capturing, fails; /* set by tests */
static int mode;
static long passed; /* the record that the stream has come to */
static int context;
static __thread int pushed;

int cuCtxGetCurrent(void **ret)
{
	*ret = &context;
	return OK;
}

int cuCtxPushCurrent_v2(void *which)
{
	if (which != &context)
		faults++;
	pushed++;
	return which == &context ? OK : INVALID_CONTEXT;
}

int cuCtxPopCurrent_v2(void **ret)
{
	*ret = &context;
	faults += pushed-- <= 0;
	return OK;
}

int cuEventCreate(void **ret, unsigned flags)
{
	if (flags || fails)
		return INVALID_VALUE;
	created++;
	*ret = calloc(1, sizeof(struct event));
	return OK;
}

int cuEventDestroy_v2(void *event)
{
	faults += pushed <= 0;
	destroyed++;
	free(event);
	return OK;
}

int cuEventRecord(void *event, void *stream)
{
	struct event *of = event;

	/* It would be part of the graph. */
	faults += capturing || stream != (void *)0x5000;
	if (fails)
		return INVALID_VALUE;
	of->number = ++recorded;
	clock_gettime(CLOCK_MONOTONIC, &of->time);
	return OK;
}

int cuEventElapsedTime(float *milliseconds, void *begin, void *end)
{
	const struct event *from = begin, *to = end;

	/* It ends captures of other threads, unless the mode is the relaxed one. */
	faults += mode != 2 || !from->number || !to->number;
	if (to->number > passed) {
		passed = recorded;
		return NOT_READY;
	}
	*milliseconds = (float)((double)(to->time.tv_sec - from->time.tv_sec) * 1e3 +
				(double)(to->time.tv_nsec - from->time.tv_nsec) / 1e6);
	return OK;
}

int cuStreamIsCapturing(void *stream, int *status)
{
	faults += stream != (void *)0x5000;
	*status = capturing;
	return OK;
}

int cuThreadExchangeStreamCaptureMode(int *exchanged)
{
	int before = mode;

	mode = *exchanged;
	*exchanged = before;
	return OK;
}

int cuStreamSynchronize(void *stream)
{
	(void)stream;
	faults++;
	return OK;
}
