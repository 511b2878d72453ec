/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which part of a training step a stack is in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/recording/by_module.h"

enum { MODEL = 4096, ADAM = 8192 };

struct frame {
	const char *name, *file; /* file NULL: a native frame */
	uint64_t subject;
};

#define LIB "/usr/lib/python3/dist-packages/torch/"

static const struct frame run = {"main", "/src/train.py", 0};
static const struct frame without = {"validate", "/src/train.py", PRB_SUBJECT_NO_GRADIENT};
static const struct frame with = {"teach", "/src/train.py", PRB_SUBJECT_GRADIENT};
static const struct frame model = {"Model.forward", "/src/model.py", MODEL};
static const struct frame hook = {"Optimizer.profile_hook_step.<locals>.wrapper",
				  LIB "optim/optimizer.py", 0};
static const struct frame adam = {"Adam.step", LIB "optim/adam.py", ADAM};
static const struct frame zero = {"Optimizer.zero_grad", LIB "optim/optimizer.py", 0};
static const struct frame own = {"Lion.step", "/src/lion.py", 0};
static const struct frame helper = {"update", "/src/lion.py", 0};
static const struct frame closure = {"closure", "/src/train.py", 0};
static const struct frame loss = {"loss_of", "/src/train.py", 0};
static const struct frame backward = {"backward", LIB "autograd/__init__.py", 0};
static const struct frame loader = {"_BaseDataLoaderIter.__next__", LIB "utils/data/dataloader.py",
				    0};
static const struct frame reduce = {"all_reduce", LIB "distributed/distributed_c10d.py", 0};
static const struct frame waits = {"c10d::Reducer::finalize_backward()", NULL, 0};
static const struct frame fsdp = {"_pre_forward", LIB "distributed/fsdp/_runtime_utils.py", 0};
static const struct frame elastic = {
	"record.<locals>.wrapper", LIB "distributed/elastic/multiprocessing/errors/__init__.py", 0};
static const struct frame imports = {"<module>", LIB "distributed/__init__.py", 0};
static const struct frame ckpt = {"CheckpointFunction.forward", LIB "utils/checkpoint.py",
				  PRB_SUBJECT_NO_GRADIENT};
static const struct frame compiles = {"_compile", LIB "_dynamo/convert_frame.py", 0};
static const struct frame mean = {"AveragedModel.update_parameters", LIB "optim/swa_utils.py", 0};
static const struct frame scaler = {"GradScaler.step", LIB "amp/grad_scaler.py", 0};
static const struct frame scales = {"GradScaler.scale", LIB "amp/grad_scaler.py", 0};

#define MOST 8

static const struct {
	const struct frame *stack[MOST]; /* outermost first */
	enum prb_step_part part;
} cases[] = {
	{{&run}, PRB_STEP_OTHER},
	{{&run, &model}, PRB_STEP_FORWARD},
	{{&run, &backward}, PRB_STEP_BACKWARD},
	{{&run, &hook, &adam}, PRB_STEP_OPTIMIZER},
	/* A closure is what runs in it, and otherwise none of the optimizer's. */
	{{&run, &hook, &adam, &closure, &model}, PRB_STEP_FORWARD},
	{{&run, &hook, &adam, &closure, &backward}, PRB_STEP_BACKWARD},
	{{&run, &hook, &adam, &closure, &loss}, PRB_STEP_OTHER},
	{{&run, &hook, &adam, &closure, &zero}, PRB_STEP_OTHER},
	{{&run, &zero}, PRB_STEP_OTHER},
	{{&run, &hook, &adam, &closure, &loader}, PRB_STEP_DATA},
	{{&run, &hook, &own, &helper}, PRB_STEP_OPTIMIZER},
	/* An optimizer that backward calls. */
	{{&run, &backward, &hook, &adam}, PRB_STEP_OPTIMIZER},
	/* Forward again. */
	{{&run, &backward, &model}, PRB_STEP_BACKWARD},
	{{&run, &model, &ckpt, &model}, PRB_STEP_FORWARD},
	{{&run, &ckpt, &model}, PRB_STEP_FORWARD},
	{{&without, &model}, PRB_STEP_EVALUATION},
	{{&without, &with, &model}, PRB_STEP_FORWARD},
	{{&without, &hook, &adam, &closure, &model}, PRB_STEP_FORWARD},
	{{&without, &loader}, PRB_STEP_DATA},
	/* A data set's transforms are modules, too. */
	{{&run, &loader, &model}, PRB_STEP_DATA},
	{{&run, &reduce}, PRB_STEP_COMMUNICATION},
	{{&run, &backward, &waits}, PRB_STEP_COMMUNICATION},
	{{&run, &model, &reduce}, PRB_STEP_COMMUNICATION},
	{{&run, &model, &fsdp}, PRB_STEP_FORWARD},
	{{&run, &fsdp, &model}, PRB_STEP_FORWARD},
	/* What starts a rank is around all of it. */
	{{&elastic, &run}, PRB_STEP_OTHER},
	{{&elastic, &run, &model}, PRB_STEP_FORWARD},
	{{&run, &imports}, PRB_STEP_OTHER},
	{{&run, &model, &compiles}, PRB_STEP_COMPILING},
	{{&run, &compiles, &model}, PRB_STEP_COMPILING},
	{{&run, &mean}, PRB_STEP_OTHER},
	{{&run, &scaler}, PRB_STEP_OPTIMIZER},
	{{&run, &scales}, PRB_STEP_OTHER},
};

static uint32_t add_stack(struct prb_recording *r, const struct frame *const *frames)
{
	uint32_t stack = 0;

	for (size_t i = 0; i < MOST && frames[i]; i++) {
		const struct prb_tree_function f = {.kind = frames[i]->file ? PRB_FUNCTION_PYTHON
									    : PRB_FUNCTION_NATIVE,
						    .name = frames[i]->name,
						    .file = frames[i]->file,
						    .subject = frames[i]->subject};
		uint32_t function, frame;

		assert_null(prb_tree_function(r->tree, &f, &function));
		assert_null(prb_tree_frame(r->tree, function, 1, &frame));
		assert_null(prb_tree_call(r->tree, stack, frame, &stack));
	}
	return stack;
}

static void add_run(struct prb_recording *r, const struct frame *const *frames)
{
	struct prb_run *added = prb_vec_push(&r->runs);

	assert_non_null(added);
	*added = (struct prb_run){.stack = add_stack(r, frames),
				  .samples = 1,
				  .reads = 1,
				  .begin = (int64_t)r->runs.count,
				  .wall = 1};
}

static struct prb_recording *a_recording(void)
{
	struct prb_recording *r;
	struct prb_profile_thread *thread;

	assert_null(prb_recording_create(&r));
	thread = prb_vec_push(&r->threads);
	assert_non_null(thread);
	thread->tid = r->pid = 7;
	return r;
}

static const struct prb_module_name names[] = {{MODEL, "model", "Model"}};

static void make(const struct prb_recording *r, bool calls, struct prb_by_module *ret)
{
	assert_null(
		prb_by_module(r, names, 1, &(struct prb_by_module_options){.calls = calls}, ret));
}

static void test_parts(void **state)
{
	const size_t count = sizeof(cases) / sizeof(*cases);
	struct prb_recording *r = a_recording();
	struct prb_by_module by;

	(void)state;
	for (size_t i = 0; i < count; i++)
		add_run(r, cases[i].stack);
	make(r, false, &by);
	assert_int_equal(by.recording->runs.count, count);
	for (size_t i = 0; i < count; i++) {
		const struct prb_tree *tree = by.recording->tree;
		uint32_t stack = by.recording->runs.items[i].stack;

		while (tree->stacks.items[stack].parent)
			stack = tree->stacks.items[stack].parent;
		if (strcmp(prb_tree_function_of(tree, stack)->name,
			   prb_step_part_name(cases[i].part)) != 0)
			fail_msg("case %zu is %s, not %s", i,
				 prb_tree_function_of(tree, stack)->name,
				 prb_step_part_name(cases[i].part));
	}
	prb_recording_destroy(by.recording);
	prb_recording_destroy(r);
}

/* With a closure, one step is left and entered again; of two optimizers, the steps are not added.
 */
static void test_steps(void **state)
{
	static const struct frame sgd = {"SGD.step", LIB "optim/sgd.py", 12288};
	static const struct frame *const stacks[][MOST] = {
		{&run, &model},	      {&run, &hook, &adam}, {&run, &hook, &adam, &closure, &model},
		{&run, &hook, &adam}, {&run, &hook, &sgd},  {&run, &model},
		{&run, &hook, &sgd},  {&run, &hook, &adam}, {&run, &loader},
	};
	struct prb_recording *r = a_recording();
	struct prb_by_module by;

	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++)
		add_run(r, stacks[i]);
	make(r, false, &by);
	assert_int_equal(by.steps, 2);
	prb_recording_destroy(by.recording);
	prb_recording_destroy(r);
}

/* Of functions that run no module, the same function is one, whatever its subject was. */
static void test_calls(void **state)
{
	static const struct frame plain = {"validate", "/src/train.py", 0};
	static const struct frame *const stacks[][MOST] = {
		{&without, &loader}, {&plain, &loader}, {&run, &model}};
	struct prb_recording *r = a_recording();
	struct prb_by_module by;

	(void)state;
	for (size_t i = 0; i < sizeof(stacks) / sizeof(*stacks); i++)
		add_run(r, stacks[i]);
	make(r, true, &by);
	assert_int_equal(by.recording->runs.items[0].stack, by.recording->runs.items[1].stack);
	prb_recording_destroy(by.recording);
	prb_recording_destroy(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parts),
		cmocka_unit_test(test_steps),
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
