/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "profile/recording/step_parts.h"

#include <string.h>

#include "base/checked.h"

/** What a frame in these files means. */
struct rule {
	const char *file; /* part of the path */
	const char *name; /* part of the function's name; NULL: any */
	enum prb_step_part part;
};

/* The first one that matches counts. OTHER: the frame says nothing. */
static const struct rule rules[] = {
	/* A weighted mean of the weights; or it is called as a module. */
	{"/torch/optim/swa_utils.py", NULL, PRB_STEP_OTHER},
	/* No part of step(); with large gradients, freeing them takes its time. */
	{"/torch/optim/", "zero_grad", PRB_STEP_OTHER},
	{"/torch/optim/", NULL, PRB_STEP_OPTIMIZER},
	{"/torch/distributed/optim/", NULL, PRB_STEP_OPTIMIZER},
	{"/amp/grad_scaler.py", ".step", PRB_STEP_OPTIMIZER},
	{"/amp/grad_scaler.py", "unscale", PRB_STEP_OPTIMIZER},
	{"/amp/grad_scaler.py", ".update", PRB_STEP_OPTIMIZER},
	{"/torch/autograd/__init__.py", NULL, PRB_STEP_BACKWARD},
	{"/torch/_tensor.py", "backward", PRB_STEP_BACKWARD},
	{"/torch/utils/data/", NULL, PRB_STEP_DATA},
	/* Called only where compiled code is missing; compile_fx.py's run() runs it. */
	{"/torch/_dynamo/convert_frame.py", NULL, PRB_STEP_COMPILING},
	{"/torch/_inductor/compile_fx.py", "run", PRB_STEP_OTHER},
	{"/torch/_inductor/compile_fx.py", NULL, PRB_STEP_COMPILING},
	/* They start the program, or are around all of it. */
	{"/torch/distributed/elastic/", NULL, PRB_STEP_OTHER},
	{"/torch/distributed/launcher/", NULL, PRB_STEP_OTHER},
	{"/torch/distributed/run.py", NULL, PRB_STEP_OTHER},
	{"/torch/distributed/launch.py", NULL, PRB_STEP_OTHER},
	{"/torch/distributed/checkpoint/", NULL, PRB_STEP_OTHER},
	{"/torch/distributed/", NULL, PRB_STEP_COMMUNICATION},
};

const char *prb_step_part_name(enum prb_step_part part)
{
	static const char *const names[PRB_STEP_PARTS] = {
		[PRB_STEP_FORWARD] = "forward",
		[PRB_STEP_BACKWARD] = "backward",
		[PRB_STEP_OPTIMIZER] = "optimizer",
		[PRB_STEP_EVALUATION] = "evaluation (no gradient)",
		[PRB_STEP_DATA] = "data loading",
		[PRB_STEP_COMMUNICATION] = "communication",
		[PRB_STEP_COMPILING] = "compiling",
		[PRB_STEP_OTHER] = "other",
	};

	return names[part];
}

static bool has(const char *text, const char *part)
{
	return text && strstr(text, part);
}

static bool is_of_torch(const struct prb_tree_function *f)
{
	return f->kind == PRB_FUNCTION_PYTHON && has(f->file, "/torch/");
}

static enum prb_step_part part_of(const struct prb_tree_function *f)
{
	/* A file that is being imported does nothing of a step. */
	if (!is_of_torch(f) || !strcmp(f->name, "<module>"))
		return PRB_STEP_OTHER;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(rules); i++)
		if (has(f->file, rules[i].file) && (!rules[i].name || has(f->name, rules[i].name)))
			return rules[i].part;
	return PRB_STEP_OTHER;
}

/* The operations themselves; other files of torch.distributed run modules, too. */
static bool is_collective(const struct prb_tree_function *f)
{
	if (f->kind == PRB_FUNCTION_NATIVE)
		return !strncmp(f->name, "c10d::", strlen("c10d::"));
	return has(f->file, "/torch/distributed/distributed_c10d.py") &&
	       strcmp(f->name, "<module>") != 0;
}

static bool is_step(const char *name)
{
	const char *dot = strrchr(name, '.');

	return !strcmp(dot ? dot + 1 : name, "step");
}

bool prb_step_is_optimizer(const struct prb_tree_function *f)
{
	if (part_of(f) != PRB_STEP_OPTIMIZER || has(f->file, "/torch/optim/lr_scheduler.py"))
		return false;
	/* Each step() is wrapped, also one of the program's own. */
	return is_step(f->name) || has(f->name, "profile_hook_step");
}

bool prb_step_may_be_closure(const struct prb_step_walk *walk, const struct prb_tree_function *f)
{
	return walk->part == PRB_STEP_OPTIMIZER && f->kind == PRB_FUNCTION_PYTHON && f->file &&
	       !is_of_torch(f) && !is_step(f->name);
}

static void note_gradients(struct prb_step_walk *walk, const struct prb_tree_function *f)
{
	/* Checkpointing's first pass is one of training. */
	if (f->subject == PRB_SUBJECT_NO_GRADIENT && !has(f->file, "/torch/utils/checkpoint.py"))
		walk->no_gradient = true;
	else if (f->subject == PRB_SUBJECT_GRADIENT)
		walk->no_gradient = false;
}

static void enter_module(struct prb_step_walk *walk)
{
	/* In backward it runs once more. */
	if (walk->part == PRB_STEP_BACKWARD || walk->part == PRB_STEP_FORWARD ||
	    walk->part == PRB_STEP_EVALUATION)
		return;
	walk->part = walk->no_gradient ? PRB_STEP_EVALUATION : PRB_STEP_FORWARD;
}

void prb_step_walk(struct prb_step_walk *walk, const struct prb_tree_function *f,
		   enum prb_step_frame frame)
{
	enum prb_step_part part;

	if (walk->fixed)
		return;
	/* Torch turns gradients off for a step(), and on for a closure. */
	if (frame == PRB_STEP_FRAME_CLOSURE && walk->part == PRB_STEP_OPTIMIZER) {
		walk->part = PRB_STEP_OTHER;
		walk->no_gradient = false;
	}
	note_gradients(walk, f);
	if (frame == PRB_STEP_FRAME_MODULE) {
		enter_module(walk);
		return;
	}
	part = is_collective(f) ? PRB_STEP_COMMUNICATION : part_of(f);
	if (part == PRB_STEP_OTHER)
		return;
	/* What only hands on calls to modules. */
	if (part == PRB_STEP_COMMUNICATION && !is_collective(f) && walk->part != PRB_STEP_OTHER)
		return;
	walk->part = part;
	walk->stepping |= prb_step_is_optimizer(f);
	walk->fixed = part == PRB_STEP_DATA || part == PRB_STEP_COMPILING || is_collective(f);
}
