/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of python.torch_calls and python.torch_step_timing. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/inside/config.h"
#include "agent/rings/write.h"
#include "agent/torch/private.h"

static const struct prba_python_table *const py = &prba_python;

enum call_column {
	STEP,
	LOCAL_STEP,
	MICRO_STEP,
	SEQ,
	PARENT,
	DEPTH,
	MODULE,
	CLASS,
	STAGE,
	DURATION,
	TIME_OFFSET,
	ALLOCATED,
	MAX_ALLOCATED,
	CACHED,
	ALLOCATED_DELTA,
	WORLD_SIZE,
	CALL_COLUMNS,
};
static const char call_columns[] =
	"step integer, local_step integer, micro_step integer, seq integer, parent integer, "
	"depth integer, module text, class text, stage text, duration real [ms], "
	"time_offset real [ms], allocated integer [bytes], max_allocated integer [bytes], "
	"cached integer [bytes], allocated_delta integer [bytes], world_size integer";

enum gpu_column {
	G_STEP,
	G_LOCAL,
	G_SEQ,
	G_MODULE,
	G_STAGE,
	G_DURATION,
	GPU_COLUMNS,
};
static const char gpu_columns[] = "step integer, local_step integer, seq integer, module text, "
				  "stage text, duration real [ms]";

enum step_column {
	T_STEP,
	T_LOCAL,
	T_KIND,
	T_MICRO,
	T_CALLS,
	T_DURATION,
	T_DATA,
	T_FORWARD,
	T_EVALUATION,
	T_BACKWARD,
	T_OPTIMIZER,
	T_COMMUNICATION,
	T_CHECKPOINT,
	T_OWN,
	T_ALLOCATED,
	T_WORLD,
	STEP_COLUMNS,
};
static const char step_columns[] =
	"step integer, local_step integer, kind text, micro_steps integer, calls integer, "
	"duration real [ms], data real [ms], forward real [ms], evaluation real [ms], "
	"backward real [ms], optimizer real [ms], communication real [ms], "
	"checkpoint real [ms], own real [us], allocated integer [bytes], "
	"world_size integer";

static const char *const stages[PRBA_TORCH_STAGES] = {
	[PRBA_TORCH_FORWARD] = "forward",   [PRBA_TORCH_RECOMPUTE] = "recompute",
	[PRBA_TORCH_BACKWARD] = "backward", [PRBA_TORCH_OPTIMIZER] = "optimizer",
	[PRBA_TORCH_DATA] = "data",	    [PRBA_TORCH_EVALUATION] = "evaluation",
	[PRBA_TORCH_STEP] = "step",
};

/** A text that many rows have: interned, if the ring has room. */
struct text {
	char *text;
	uint32_t length;
	int64_t place; /* <= 0: it is not interned */
};

static struct {
	intptr_t calls, steps, gpu;
	int64_t local; /* steps that have ended */
	struct text stages[PRBA_TORCH_STAGES];
	struct text paths[PRBA_TORCH_MODULES], classes[PRBA_TORCH_MODULES];
	uint32_t modules; /* the highest number that was given */
} rows;

static struct probing_cell integer(int64_t value)
{
	return (struct probing_cell){PROBING_INTEGER, 0, {.integer = value}};
}

static struct probing_cell integer_or_null(int64_t value)
{
	return value < 0 ? (struct probing_cell){} : integer(value);
}

static struct probing_cell milliseconds(int64_t ns)
{
	return (struct probing_cell){PROBING_REAL, 0, {.real = (double)ns / 1e6}};
}

static struct probing_cell milliseconds_or_null(int64_t ns)
{
	return ns < 0 ? (struct probing_cell){} : milliseconds(ns);
}

static struct probing_cell text(const struct text *t)
{
	if (t->place > 0)
		return (struct probing_cell){PROBING_INTERNED, 0, {.integer = t->place}};
	if (!t->text)
		return (struct probing_cell){};
	return (struct probing_cell){PROBING_TEXT, t->length, {.text = t->text}};
}

static struct probing_cell plain_text(const char *t)
{
	return t ? (struct probing_cell){PROBING_TEXT, (uint32_t)strlen(t), {.text = t}}
		 : (struct probing_cell){};
}

static void keep(struct text *t, const char *data, size_t length)
{
	t->text = malloc(length + 1);
	if (!t->text)
		return;
	memcpy(t->text, data, length);
	t->text[length] = 0;
	t->length = (uint32_t)length;
	t->place = probing_ring_intern(rows.calls, data, length);
}

/** A step of a large model has tens of thousands of rows. Where there is little room, a quarter. */
static intptr_t create_large(const char *name, const char *columns, uint64_t bytes)
{
	bool roomy = (double)bytes * 4 <= prba_config_number(PRB_CONFIG_MAX_MEMORY);
	intptr_t ring = roomy ? probing_ring_create(name, columns, bytes) : -EDQUOT;

	return ring == -EDQUOT || ring == -ENOSPC ? probing_ring_create(name, columns, bytes / 4)
						  : ring;
}

int prba_torch_rows_open(void)
{
	if (rows.calls > 0)
		return 0;

	intptr_t calls = create_large("python.torch_calls", call_columns, 32 << 20);
	intptr_t steps =
		calls < 0 ? calls
			  : probing_ring_create("python.torch_step_timing", step_columns, 2 << 20);

	if (steps < 0)
		return (int)steps;
	rows.calls = calls;
	rows.steps = steps;
	for (unsigned i = 0; i < PRBA_TORCH_STAGES; i++)
		keep(&rows.stages[i], stages[i], strlen(stages[i]));
	return 0;
}

object *prba_torch_module(object *self, object *arguments)
{
	object *path = py->PyTuple_GetItem(arguments, 0),
	       *class = py->PyTuple_GetItem(arguments, 1);
	intptr_t path_length, class_length;
	char *path_text, *class_text;

	(void)self;
	if (!path || !class || py->PyBytes_AsStringAndSize(path, &path_text, &path_length) ||
	    py->PyBytes_AsStringAndSize(class, &class_text, &class_length))
		return NULL;
	/* Number 0 is no module. */
	if (rows.modules + 1 >= PRBA_TORCH_MODULES)
		return py->PyLong_FromVoidPtr(NULL);
	rows.modules++;
	keep(&rows.paths[rows.modules], path_text, (size_t)path_length);
	keep(&rows.classes[rows.modules], class_text, (size_t)class_length);
	return py->PyLong_FromVoidPtr((void *)(uintptr_t)rows.modules);
}

/** Resident bytes of the process; -1: unknown. */
static int64_t resident(void)
{
	char buffer[128];
	int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, buffer, sizeof(buffer) - 1);
	char *at;

	if (fd >= 0)
		close(fd);
	if (length <= 0)
		return -1;
	buffer[length] = 0;
	strtoull(buffer, &at, 10);
	return (int64_t)strtoull(at, NULL, 10) * sysconf(_SC_PAGESIZE);
}

struct memory {
	int64_t allocated, highest, cached; /* -1: unknown */
};

/** Of the GPU if it is used, else of the process. */
static struct memory tell_memory(void)
{
	object *told = prba_torch.memory ? prba_torch_call(prba_torch.memory, NULL, NULL) : NULL;
	struct memory memory = {-1, -1, -1};

	if (!told) {
		memory.allocated = resident();
		return memory;
	}
	memory.allocated = prba_torch_integer(prba_torch_argument(told, 0));
	memory.highest = prba_torch_integer(prba_torch_argument(told, 1));
	memory.cached = prba_torch_integer(prba_torch_argument(told, 2));
	py->Py_DecRef(told);
	return memory;
}

int64_t prba_torch_memory(void)
{
	return tell_memory().allocated;
}

static void put_memory(const struct prba_torch_row *row, struct probing_cell *cells)
{
	const struct memory memory = tell_memory();

	cells[ALLOCATED] = integer_or_null(memory.allocated);
	cells[MAX_ALLOCATED] = integer_or_null(memory.highest);
	cells[CACHED] = integer_or_null(memory.cached);
	if (row->before >= 0 && memory.allocated >= 0)
		cells[ALLOCATED_DELTA] = integer(memory.allocated - row->before);
}

void prba_torch_rows_put(const struct prba_torch_row *row)
{
	const struct prba_torch_step *step = &prba_torch.step;
	struct probing_cell cells[CALL_COLUMNS] = {
		[STEP] = integer(step->number),
		[LOCAL_STEP] = integer(rows.local + 1),
		[MICRO_STEP] = integer(row->micro),
		[SEQ] = integer(row->seq),
		[PARENT] = integer_or_null(row->parent),
		[DEPTH] = integer(row->depth),
		[MODULE] = row->module ? text(&rows.paths[row->module]) : plain_text(row->name),
		[CLASS] = row->module ? text(&rows.classes[row->module]) : (struct probing_cell){},
		[STAGE] = text(&rows.stages[row->stage]),
		[DURATION] = milliseconds(row->duration),
		[TIME_OFFSET] = milliseconds(row->began - step->began - row->own),
		[WORLD_SIZE] = integer_or_null(prba_torch.world),
	};
	int error = errno;

	if (row->memory)
		put_memory(row, cells);
	probing_ring_append(rows.calls, 0, cells);
	errno = error;
}

int64_t prba_torch_rows_local(void)
{
	return rows.local + 1;
}

static struct probing_cell shared_text(const struct text *t)
{
	int64_t place = t->text ? probing_ring_intern(rows.gpu, t->text, t->length) : 0;

	if (place > 0)
		return (struct probing_cell){PROBING_INTERNED, 0, {.integer = place}};
	return plain_text(t->text);
}

void prba_torch_rows_gpu(const struct prba_torch_span *span, double milliseconds_of_gpu)
{
	int error = errno;

	if (rows.gpu <= 0)
		rows.gpu = create_large("python.torch_gpu", gpu_columns, 16 << 20);

	struct probing_cell cells[GPU_COLUMNS] = {
		[G_STEP] = integer(span->number),
		[G_LOCAL] = integer(span->local),
		[G_SEQ] = integer(span->seq),
		[G_MODULE] = span->module ? shared_text(&rows.paths[span->module])
					  : (struct probing_cell){},
		[G_STAGE] = shared_text(&rows.stages[span->stage]),
		[G_DURATION] = {PROBING_REAL, 0, {.real = milliseconds_of_gpu}},
	};

	if (rows.gpu > 0)
		probing_ring_append(rows.gpu, 0, cells);
	errno = error;
}

/** A part as a sampled step's hooks have it, without the communication in it. */
static struct probing_cell without_waits(int64_t duration, enum prba_torch_part part)
{
	int64_t waits = prba_torch.step.waits_in[part];

	return milliseconds(duration > waits ? duration - waits : 0);
}

/** Fills the cells of the parts of a step. */
static void put_parts(struct probing_cell *cells)
{
	const struct prba_torch_step *step = &prba_torch.step;
	const int64_t *parts = step->parts;

	if (step->sampled) {
		cells[T_EVALUATION] = without_waits(step->evaluation, PRBA_TORCH_EVALUATING);
		cells[T_FORWARD] = without_waits(step->forward, PRBA_TORCH_CALLING);
		/* After the last gradient, DDP waits for the other ranks: that is of backward(),
		 * too. */
		cells[T_BACKWARD] = without_waits(step->backward, PRBA_TORCH_PASSING);
		if (cells[T_BACKWARD].real * 1e6 < (double)parts[PRBA_TORCH_PASSING])
			cells[T_BACKWARD] = milliseconds(parts[PRBA_TORCH_PASSING]);
	} else if (step->rooted) {
		cells[T_EVALUATION] = milliseconds(parts[PRBA_TORCH_EVALUATING]);
		cells[T_FORWARD] = milliseconds(parts[PRBA_TORCH_CALLING]);
		cells[T_BACKWARD] = milliseconds(parts[PRBA_TORCH_PASSING]);
	}
	if (step->loads)
		cells[T_DATA] = milliseconds(parts[PRBA_TORCH_LOADING]);
	else if (step->sampled || step->rooted)
		cells[T_DATA] =
			milliseconds_or_null(step->loading < 0 ? step->data : step->loading);
	cells[T_COMMUNICATION] = milliseconds(parts[PRBA_TORCH_COMMUNICATING]);
	cells[T_CHECKPOINT] = milliseconds(parts[PRBA_TORCH_SAVING]);
}

void prba_torch_rows_step(int64_t now)
{
	const struct prba_torch_step *step = &prba_torch.step;
	struct probing_cell cells[STEP_COLUMNS] = {
		[T_STEP] = integer(step->number),
		[T_KIND] = plain_text(!step->sampled	? "unsampled"
				      : step->discovers ? "discovery"
							: "sampled"),
		[T_DURATION] = milliseconds(now - step->began),
		[T_OPTIMIZER] = milliseconds_or_null(step->blind ? -1 : step->optimizer),
		[T_OWN] = {PROBING_REAL, 0, {.real = (double)step->own / 1e3}},
		[T_WORLD] = integer_or_null(prba_torch.world),
	};
	int error = errno;

	cells[T_LOCAL] = integer(++rows.local);
	put_parts(cells);
	if (step->sampled) {
		cells[T_MICRO] = integer(step->micro);
		cells[T_CALLS] = integer(step->calls);
		cells[T_ALLOCATED] = integer_or_null(prba_torch_memory());
	}
	probing_ring_append(rows.steps, 0, cells);
	errno = error;
}
