/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What Kineto, torch's own profiler, writes (Chrome's trace events), as operators and kernels
 * that know where they belong.
 *
 * Modules are ranges "module PATH: CLASS (FILE:LINE)", which agent/torch/ops.py makes. Operators of
 * backward belong to the module whose operator has the same sequence number.
 *
 * Threading: one thread at a time. Ownership: texts belong to the trace. The text is as little to
 * be trusted as the process that wrote it: events that make no sense are left out and counted.
 */
#ifndef PRB_PROFILE_KINETO_TRACE_H
#define PRB_PROFILE_KINETO_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/pool.h"
#include "base/vec.h"

enum prb_kineto_kind {
	PRB_KINETO_OP,	   /**< an operator of torch, or a node of autograd */
	PRB_KINETO_MODULE, /**< a call of a module */
	PRB_KINETO_RANGE,  /**< another range that a program names */
	PRB_KINETO_LAUNCH, /**< a call of the GPU's library */
	PRB_KINETO_KERNEL, /**< on the GPU; the next ones, too */
	PRB_KINETO_COLLECTIVE,
	PRB_KINETO_COPY,
	PRB_KINETO_SET, /**< of memory */
	PRB_KINETO_KINDS,
};

enum prb_kineto_part {
	PRB_KINETO_OTHER,
	PRB_KINETO_FORWARD,
	PRB_KINETO_BACKWARD,
	PRB_KINETO_OPTIMIZER,
	PRB_KINETO_DATA,
	PRB_KINETO_PARTS,
};

enum { PRB_KINETO_NONE = UINT32_MAX };

struct prb_kineto_event {
	enum prb_kineto_kind kind;
	enum prb_kineto_part part;
	const char *name;
	const char *shapes;	 /**< JSON of the inputs' shapes, or NULL */
	const char *values;	 /**< JSON of inputs that are no tensors, or NULL */
	int64_t begin, duration; /**< ns; begin since the first event */
	int64_t self;		 /**< of an operator: without those that it called */
	int64_t thread;		 /**< Kineto's number; of the GPU's, the stream */
	int64_t device;		 /**< of the GPU's; -1: none */
	int64_t correlation;	 /**< of a launch and what it launched; -1: none */
	int64_t sequence;	 /**< of autograd; -1: none */
	int64_t flops;		 /**< 0: not known */
	uint32_t parent;	 /**< the operator that called it, or launched it; or NONE */
	uint32_t module;	 /**< in the list, of the innermost one; or NONE */
	unsigned depth;		 /**< operators above it */
	int64_t step;		 /**< number of the training step; -1: of none */
};

/** A module's range, taken apart. */
struct prb_kineto_module {
	const char *path, *class, *file;
	int64_t line;
};

struct prb_kineto {
	PRB_VEC(struct prb_kineto_event) events;   /**< by begin; a caller before what it calls */
	PRB_VEC(struct prb_kineto_module) modules; /**< one for each call */
	struct prb_pool *pool;
	int64_t first_step, last_step; /**< ns, where these begin; the last one is not recorded */
	int64_t thread;		       /**< that trains */
	uint64_t skipped;	       /**< events that make no sense, or are too many */
};

/** Reads @p length bytes. PRB_ERROR_BAD_DATA if it is no such text at all. *ret is to be ended also
 * after an error. */
struct prb_error *prb_kineto_read(const char *text, size_t length,
				  struct prb_kineto *ret) PRB_MUST_CHECK;
void prb_kineto_deinit(struct prb_kineto *trace);

/** Finds parents, modules, parts, steps and own times, of a trace that was just read. */
struct prb_error *prb_kineto_join(struct prb_kineto *trace) PRB_MUST_CHECK;

/** NULL: of no module. */
const struct prb_kineto_module *prb_kineto_module_of(const struct prb_kineto *trace,
						     const struct prb_kineto_event *event);

/** "forward" and so on; NULL for PRB_KINETO_OTHER. */
const char *prb_kineto_part_name(enum prb_kineto_part part);
/** "kernel" and so on, of what runs on a GPU. */
const char *prb_kineto_kind_name(enum prb_kineto_kind kind);
bool prb_kineto_on_gpu(enum prb_kineto_kind kind);

#endif
