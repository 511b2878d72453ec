/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * GPU time of calls in sampled steps: an event of CUDA's driver on the stream where a call begins,
 * another one where it ends. They are read some steps later, when the GPU has passed them: nothing
 * ever waits for the GPU.
 *
 * Where there can be no event, as while a graph is captured, that call has no time. The driver's
 * functions leave no error behind that CUDA would report to the program.
 */
#include <string.h>

#include "agent/inside/libc.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

enum {
	EVENTS = 1 << 15,
	SPANS = 1 << 14,
	LATER = 3,    /* steps after which events are read */
	GIVEN_UP = 8, /* steps after which their events are given up */
	A_STEP = 64,  /* spans read in a step, plus a quarter of the waiting ones */
	SEARCHED = 8, /* free events that are looked at for one of the same context */
	RELAXED = 2,  /* CU_STREAM_CAPTURE_MODE_RELAXED: what we do ends no capture of others */
	NOT_READY = 600,
};

/** Functions of libcuda.so.1. */
static struct {
	int (*get_context)(void **context);
	int (*push_context)(void *context);
	int (*pop_context)(void **context);
	int (*create)(void **event, unsigned flags);
	int (*destroy)(void *event);
	int (*record)(void *event, void *stream);
	int (*elapsed)(float *milliseconds, void *begin, void *end);
	int (*is_capturing)(void *stream, int *status);
	int (*exchange_mode)(int *mode);
} cuda;

static const struct {
	const char *name;
	void *place;
} functions[] = {
	{"cuCtxGetCurrent", &cuda.get_context},
	{"cuCtxPushCurrent_v2", &cuda.push_context},
	{"cuCtxPopCurrent_v2", &cuda.pop_context},
	{"cuEventCreate", &cuda.create},
	{"cuEventDestroy_v2", &cuda.destroy},
	{"cuEventRecord", &cuda.record},
	{"cuEventElapsedTime", &cuda.elapsed},
	{"cuStreamIsCapturing", &cuda.is_capturing},
	{"cuThreadExchangeStreamCaptureMode", &cuda.exchange_mode},
};

struct event {
	void *handle, *context;
	bool held; /* in use by a call that has not ended */
};

/** A call whose events the GPU may not have passed. */
struct span {
	struct prba_torch_span of;
	uint32_t begin, end;
};

static struct {
	bool looked, found;	     /* for the functions */
	bool on;		     /* in this step */
	struct event events[EVENTS]; /* from number 1 on; 0 is none */
	uint32_t count;
	uint32_t free[EVENTS];
	uint32_t free_count;
	struct span spans[SPANS]; /* a ring */
	uint32_t first, span_count;
} gpu;

static bool find_functions(void)
{
	void *library;

	if (gpu.looked)
		return gpu.found;
	/* It is there when CUDA is used, so this is asked once. */
	gpu.looked = true;
	library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return false;
	gpu.found = true;
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(library, functions[i].name);

		memcpy(functions[i].place, &found, sizeof(found));
		gpu.found = gpu.found && found;
	}
	/* The program has it open, too. */
	dlclose(library);
	return gpu.found;
}

void prba_torch_gpu_begin(void)
{
	const struct prba_torch_helpers *h = &prba_torch.helpers;

	/* Of calls that an exception has left. */
	for (uint32_t i = 1; i <= gpu.count; i++) {
		if (!gpu.events[i].held)
			continue;
		gpu.events[i].held = false;
		gpu.free[gpu.free_count++] = i;
	}
	gpu.on = prba_torch.memory && h->device != py->_Py_NoneStruct &&
		 h->stream != py->_Py_NoneStruct && find_functions();
}

/**
 * torch's current stream in the calling thread. False: there is none, or a graph is being captured.
 */
static bool find_stream(void **ret)
{
	object *device = prba_torch_call(prba_torch.helpers.device, NULL, NULL), *stream;
	int status = 0;

	stream = device ? prba_torch_call(prba_torch.helpers.stream, device, NULL) : NULL;
	if (!stream)
		return false;
	*ret = py->PyLong_AsVoidPtr(stream);
	py->Py_DecRef(stream);
	if (py->PyErr_Occurred()) {
		py->PyErr_Clear();
		return false;
	}
	return !cuda.is_capturing(*ret, &status) && !status;
}

/** An event of that context; 0: there is none. */
static uint32_t take_event(void *context)
{
	void *handle;

	for (uint32_t i = 0; i < SEARCHED && i < gpu.free_count; i++) {
		uint32_t *place = &gpu.free[gpu.free_count - 1 - i], event = *place;

		if (gpu.events[event].context != context)
			continue;
		*place = gpu.free[--gpu.free_count];
		return event;
	}
	if (gpu.count + 1 >= EVENTS || cuda.create(&handle, 0))
		return 0;
	gpu.events[++gpu.count] = (struct event){handle, context, false};
	return gpu.count;
}

static void release(uint32_t event)
{
	if (!event)
		return;
	gpu.events[event].held = false;
	gpu.free[gpu.free_count++] = event;
}

uint32_t prba_torch_gpu_mark(void)
{
	void *context = NULL, *stream;
	uint32_t event;

	if (!gpu.on || !find_stream(&stream) || cuda.get_context(&context) || !context)
		return 0;
	event = take_event(context);
	if (event && cuda.record(gpu.events[event].handle, stream)) {
		release(event);
		return 0;
	}
	gpu.events[event].held = event != 0;
	return event;
}

void prba_torch_gpu_end(uint32_t mark, const struct prba_torch_span *of)
{
	uint32_t end = mark ? prba_torch_gpu_mark() : 0;

	if (!end || gpu.span_count == SPANS) {
		release(mark);
		release(end);
		return;
	}
	gpu.events[mark].held = gpu.events[end].held = false;
	gpu.spans[(gpu.first + gpu.span_count++) % SPANS] = (struct span){*of, mark, end};
}

/** False: the GPU has not come so far. */
static bool read_span(const struct span *span)
{
	float milliseconds = -1;
	int code = cuda.elapsed(&milliseconds, gpu.events[span->begin].handle,
				gpu.events[span->end].handle);

	if (code == NOT_READY)
		return false;
	if (!code && milliseconds >= 0)
		prba_torch_rows_gpu(&span->of, (double)milliseconds);
	return true;
}

void prba_torch_gpu_read(int64_t local)
{
	uint32_t most = A_STEP + gpu.span_count / 4;
	int mode = RELAXED;
	void *stream;

	if (!gpu.span_count || gpu.spans[gpu.first].of.local + LATER > local ||
	    !find_stream(&stream) || cuda.exchange_mode(&mode))
		return;
	for (uint32_t i = 0; i < most && gpu.span_count; i++) {
		const struct span *span = &gpu.spans[gpu.first];

		if (span->of.local + LATER > local || !read_span(span))
			break;
		release(span->begin);
		release(span->end);
		gpu.first = (gpu.first + 1) % SPANS;
		gpu.span_count--;
	}
	cuda.exchange_mode(&mode);
}

object *prba_torch_gpu_waits(object *self, object *arguments)
{
	uint32_t last = (gpu.first + gpu.span_count - 1) % SPANS;
	bool waits = gpu.span_count &&
		     prba_torch_rows_local() - gpu.spans[last].of.local < LATER + GIVEN_UP;

	(void)self, (void)arguments;
	return py->PyBool_FromLong(waits);
}

void prba_torch_gpu_stop(void)
{
	int mode = RELAXED;
	void *popped;

	gpu.on = false;
	if (gpu.count && !cuda.exchange_mode(&mode)) {
		for (uint32_t i = 1; i <= gpu.count; i++) {
			if (cuda.push_context(gpu.events[i].context))
				continue;
			cuda.destroy(gpu.events[i].handle);
			cuda.pop_context(&popped);
		}
		cuda.exchange_mode(&mode);
	}
	prba_torch_gpu_forget();
}

void prba_torch_gpu_forget(void)
{
	gpu.on = false;
	gpu.count = gpu.free_count = gpu.span_count = gpu.first = 0;
}
