/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What the files of rows of training share. Internal to agent/torch/. */
#ifndef PRB_AGENT_TORCH_PRIVATE_H
#define PRB_AGENT_TORCH_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/torch/torch.h"

enum {
	PRBA_TORCH_MODULES = 65536, /**< different names; later ones have none */
	PRBA_TORCH_CALLS = 131072,  /**< of a step; later ones have no name and no backward */
};

/** Functions of agent/torch/torch.py, references. NULL: recording is off. */
struct prba_torch_helpers {
	/**
	 * Install and remove the hooks of a sampled step. begin() gives None if there are none,
	 * else True, or a function that returns the GPU's memory use.
	 */
	object *begin, *end;
	object *name;		  /**< name(module, root): its number, given by torch_module() */
	object *inputs, *outputs; /**< watch the gradients of tensors, for a call's number */
	object *at_end;		  /**< calls us at the end of this backward pass */
	object *watch;		  /**< writes the rows of watched expressions, for a step */
	object *step_of;	  /**< steps that an optimizer has made; -1: unknown */
	object *device, *stream;  /**< torch's number of the GPU, and its stream there; or None */
	object *gradients;	  /**< gradients(): whether they are recorded */
	object *known;		  /**< the dictionary of numbers by the addresses of modules */
	object *outermost;	  /**< outermost(module): time its calls in every later step */
	object *log;		  /**< log(None): writes a row of training_logs */
	object *check;		  /**< check(module, inputs, output): for NaN and infinity */
};

/** What every step is made of, beside optimizers. */
enum prba_torch_part {
	PRBA_TORCH_LOADING,	  /**< in data loaders */
	PRBA_TORCH_CALLING,	  /**< in outermost modules */
	PRBA_TORCH_EVALUATING,	  /**< the same while gradients are not recorded */
	PRBA_TORCH_PASSING,	  /**< in torch.autograd.backward() */
	PRBA_TORCH_COMMUNICATING, /**< in operations of torch.distributed, and waits for them */
	PRBA_TORCH_SAVING,	  /**< in torch.save() and its like */
	PRBA_TORCH_PARTS,
};

/** The step that is running. */
struct prba_torch_step {
	int64_t began;	    /**< ns, CLOCK_MONOTONIC; 0: it is not known */
	int64_t number;	    /**< that it will have */
	int64_t data;	    /**< ns until its first call of a module, without ours; < 0: none yet */
	int64_t loading;    /**< ns in data loaders, without ours; < 0: none ran */
	int64_t forward;    /**< ns in outermost calls */
	int64_t evaluation; /**< ns in outermost calls while gradients are not recorded */
	int64_t backward;   /**< ns in backward passes, from the first gradient that arrives */
	int64_t optimizer;  /**< ns in optimizers, without closures */
	int64_t closures;   /**< ns in closures that optimizers called, so far */
	int64_t own;	    /**< ns in functions of ours */
	int64_t parts[PRBA_TORCH_PARTS];    /**< ns, each without the parts within it */
	int64_t waits_in[PRBA_TORCH_PARTS]; /**< ns of communication that interrupted that part */
	int64_t waits_in_optimizer;
	uint32_t mark;	     /**< of the GPU when it began: prba_torch_gpu_mark() */
	uint32_t micro;	     /**< calls of the outermost module in training */
	uint32_t calls;	     /**< of modules */
	uint32_t generation; /**< differs in each sampled step; never 0 */
	bool sampled, discovers;
	bool rooted; /**< calls of outermost modules are timed */
	bool loads;  /**< a data loader was used */
	bool blind;  /**< an optimizer called a closure of which nothing was seen */
};

struct prba_torch {
	bool on;
	int life; /**< of the interpreter that the helpers are of */
	struct prba_torch_helpers helpers;
	object *memory; /**< returns (allocated, highest, cached) of the GPU; NULL without one */
	struct prba_torch_step step;
	int64_t world; /**< -1: unknown */
	bool rooted;   /**< outermost modules are known, and their calls are timed */
};
extern struct prba_torch prba_torch;

/** True if it records in this interpreter. */
bool prba_torch_is_on(void);

/** The time; what has passed since @p entered is ours, see prba_torch_step.own. */
int64_t prba_torch_now(void);
void prba_torch_leave(int64_t entered);

/** Calls a helper with up to two arguments, which are taken over. A new reference or NULL; no
 * exception is left. */
object *prba_torch_call(object *function, object *first, object *second);
/** Borrowed; NULL without an exception. */
object *prba_torch_argument(object *arguments, intptr_t index);
/** -1 if it is no number; no exception is left. */
int64_t prba_torch_integer(object *value);
/** A new reference. */
object *prba_torch_none(void);

/* calls.c */

/** A sampled step begins: calls of an earlier one are forgotten. */
void prba_torch_calls_begin(void);
/** An optimizer's step() begins, or has ended: what of it is its closure's is counted. */
void prba_torch_closure_begin(int64_t at);
void prba_torch_closure_end(void);
/** What only a closure does begins within step(), or the outermost of it has ended. */
void prba_torch_closure_enter(int64_t at);
void prba_torch_closure_left(int64_t at);
/** Its backward pass has ended: the optimizer goes on. */
void prba_torch_closure_leave(int64_t at);
/** Whether an optimizer's step() runs, and no closure of it. */
bool prba_torch_in_optimizer(void);
/** Handle what the methods of these names get, in a sampled step. */
object *prba_torch_loading_sampled(object *arguments);
object *prba_torch_pass_sampled(object *arguments);
/** For the table of methods. */
object *prba_torch_pre(object *self, object *arguments);
object *prba_torch_post(object *self, object *arguments);
object *prba_torch_grad_begin(object *self, object *arguments);
object *prba_torch_grad_end(object *self, object *arguments);
object *prba_torch_pass_end(object *self, object *arguments);

/* parts.c */

/** A step begins, in the thread whose parts are counted. */
void prba_torch_parts_begin(int64_t at);
/** Recording begins: no part runs. */
void prba_torch_parts_forget(void);
/** For the table of methods. */
object *prba_torch_loading(object *self, object *arguments);
object *prba_torch_pass(object *self, object *arguments);
object *prba_torch_root(object *self, object *arguments);
object *prba_torch_communicating(object *self, object *arguments);
object *prba_torch_saving(object *self, object *arguments);
object *prba_torch_rooted(object *self, object *arguments);

/* logs.c */

/** Call at the end of a step: writes the program's own values for it to training_logs. */
void prba_torch_log(int64_t at, int64_t step);
/** For the table of methods. */
object *prba_torch_log_row(object *self, object *arguments);

/* variables.c */

/** Writes what probing.watch names, at the end of that step. */
void prba_torch_watch(int64_t step);
/** For the table of methods. */
object *prba_torch_watched(object *self, object *arguments);
object *prba_torch_variable(object *self, object *arguments);

/* comm.c */

/** For the table of methods. */
object *prba_torch_comm(object *self, object *arguments);

/* ops.c */

/** For the table of methods. */
object *prba_torch_op_rows(object *self, object *arguments);
object *prba_torch_hush(object *self, object *arguments);

/* rows.c */

enum prba_torch_stage {
	PRBA_TORCH_FORWARD,
	PRBA_TORCH_RECOMPUTE, /**< forward again, while gradients are computed */
	PRBA_TORCH_BACKWARD,
	PRBA_TORCH_OPTIMIZER,
	PRBA_TORCH_DATA,
	PRBA_TORCH_EVALUATION, /**< forward while gradients are not recorded */
	PRBA_TORCH_STEP,       /**< all of it; of the GPU's times only */
	PRBA_TORCH_STAGES,
};

struct prba_torch_row {
	enum prba_torch_stage stage;
	uint32_t module; /**< its number; 0: the text `name` instead */
	const char *name;
	int64_t seq, parent; /**< numbers of calls in the step; parent < 0: none */
	uint32_t depth, micro;
	int64_t began, duration; /**< ns */
	int64_t own;	/**< ns of the step that were ours before it began: see time_offset */
	bool memory;	/**< with columns of memory */
	int64_t before; /**< what prba_torch_memory() was when it began; < 0: unknown */
};

/** The stage that a time of the GPU belongs to. */
struct prba_torch_span {
	enum prba_torch_stage stage;
	uint32_t module;       /**< its number; 0: of no module */
	int64_t seq;	       /**< of the call in the step */
	int64_t number, local; /* of the step, as in prba_torch_step, and counted by us */
};

/** Opens the rings. 0 or a negative errno value. */
int prba_torch_rows_open(void);
void prba_torch_rows_put(const struct prba_torch_row *row);
/** The row of the step that has ended at @p now. */
void prba_torch_rows_step(int64_t now);
/** A time of the GPU; milliseconds. */
void prba_torch_rows_gpu(const struct prba_torch_span *span, double milliseconds);
/** The number of the step that is running, counted since recording began. */
int64_t prba_torch_rows_local(void);
/** Bytes that torch has allocated on the GPU, or resident ones of the process; -1: unknown. */
int64_t prba_torch_memory(void);
/** torch_module(path, class), bytes: its number; 0: there are too many. */
object *prba_torch_module(object *self, object *arguments);

/* gpu.c */

/** A sampled step begins. */
void prba_torch_gpu_begin(void);
/** A mark in the GPU's queue after all work submitted so far; 0: there is none. */
uint32_t prba_torch_gpu_mark(void);
/** All work since @p mark was submitted to the GPU; releases the mark. */
void prba_torch_gpu_end(uint32_t mark, const struct prba_torch_span *of);
/** Writes the rows of steps that ended some steps ago; @p local: the number of the present one. */
void prba_torch_gpu_read(int64_t local);
/** Releases all events to the driver, or, in a child after fork(), just forgets them. */
void prba_torch_gpu_stop(void);
void prba_torch_gpu_forget(void);
/** For the table of methods: torch_gpu_waits(), whether times of the last steps will be read. */
object *prba_torch_gpu_waits(object *self, object *arguments);

#endif
