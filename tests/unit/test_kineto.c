/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What Kineto writes, with a GPU: where operators and kernels belong, and what a GPU waits for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "profile/kineto/gpu.h"
#include "profile/kineto/trace.h"

/* Microseconds since the epoch, as Kineto has them. */
#define BASE 1732912345000000

static void put(struct prb_str *s, const char *category, const char *name, double at, double took,
		const char *thread, const char *arguments)
{
	prb_str_printf(
		s,
		"%s{\"ph\": \"X\", \"cat\": \"%s\", \"name\": \"%s\", \"pid\": 7, \"tid\": %s, "
		"\"ts\": %.3f, \"dur\": %.3f, \"args\": {%s}}",
		s->length && s->data[s->length - 1] == '}' ? "," : "", category, name, thread,
		BASE + at, took, arguments);
}

static void put_processor(struct prb_str *s)
{
	put(s, "user_annotation", "probing step 5", 0, 0, "7", "");
	put(s, "user_annotation", "module net.a: Linear (/t.py:12)", 10, 90, "7", "");
	put(s, "cpu_op", "aten::linear", 20, 60, "7", "\"Sequence number\": 3, \"External id\": 1");
	put(s, "cpu_op", "aten::addmm", 30, 40, "7",
	    "\"Input Dims\": [[8], [4, 16], [16, 8]], \"Sequence number\": 3");
	put(s, "cuda_runtime", "cudaLaunchKernel", 40, 10, "7", "\"correlation\": 100");
	put(s, "cpu_op", "autograd::engine::evaluate_function: AddmmBackward0", 200, 100, "8",
	    "\"Sequence number\": 3, \"Fwd thread id\": 1");
	put(s, "cpu_op", "aten::mm", 220, 30, "8", "\"Input Dims\": [[8, 4], [4, 16]]");
	put(s, "cuda_runtime", "cudaLaunchKernel", 230, 10, "8", "\"correlation\": 101");
	put(s, "user_annotation", "Optimizer.step#AdamW.step", 320, 100, "7", "");
	put(s, "cpu_op", "aten::_foreach_add_", 330, 80, "7", "");
	put(s, "cuda_driver", "cuLaunchKernelEx", 335, 5, "7", "\"correlation\": 102");
	put(s, "cuda_runtime", "cudaMemcpyAsync", 420, 5, "7", "\"correlation\": 103");
	put(s, "user_annotation", "probing step 6", 1000, 0, "7", "");
	put(s, "cpu_op", "aten::after", 1010, 5, "7", "");
}

static void put_gpu(struct prb_str *s)
{
	/* Idle until 60: the host is late until 40, and then 20 for another stream. */
	put(s, "kernel", "gemm", 60, 100, "7",
	    "\"device\": 0, \"stream\": 7, \"correlation\": 100");
	put(s, "kernel", "gemm", 240, 60, "7",
	    "\"device\": 0, \"stream\": 7, \"correlation\": 101");
	/* Half of it is behind the gemm above. */
	put(s, "kernel", "ncclDevKernel_AllReduce", 270, 60, "20",
	    "\"device\": 0, \"stream\": 20, \"correlation\": 102");
	put(s, "gpu_memcpy", "Memcpy HtoD", 430, 70, "7",
	    "\"device\": 0, \"stream\": 7, \"correlation\": 103");
	put(s, "ac2g", "ac2g", 60, 0, "7", "");
}

static void read_trace(struct prb_kineto *ret)
{
	struct prb_str s = {};

	prb_str_puts(&s, "{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}], "
			 "\"traceEvents\": [");
	put_processor(&s);
	put_gpu(&s);
	prb_str_puts(&s, ", {\"ph\": \"M\", \"name\": \"process_name\", \"ts\": 1.0}");
	prb_str_puts(&s, ", {\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"evil\", \"ts\": 1, "
			 "\"dur\": -5}], \"traceName\": \"x\"}");
	assert_null(prb_kineto_read(prb_str_text(&s), s.length, ret));
	assert_null(prb_kineto_join(ret));
	prb_str_deinit(&s);
}

static const struct prb_kineto_event *find(const struct prb_kineto *trace, const char *name,
					   unsigned which)
{
	const struct prb_kineto_event *e;

	prb_vec_each (e, &trace->events)
		if (!strcmp(e->name, name) && !which--)
			return e;
	fail_msg("no event %s", name);
	return NULL;
}

static const char *parent_of(const struct prb_kineto *trace, const struct prb_kineto_event *e)
{
	return e->parent == PRB_KINETO_NONE ? "" : trace->events.items[e->parent].name;
}

static void test_places(void **state)
{
	struct prb_kineto trace;
	const struct prb_kineto_event *e;
	const struct prb_kineto_module *m;

	(void)state;
	read_trace(&trace);
	assert_int_equal(trace.skipped, 1);
	e = find(&trace, "aten::addmm", 0);
	m = prb_kineto_module_of(&trace, e);
	assert_non_null(m);
	assert_string_equal(m->path, "net.a");
	assert_string_equal(m->class, "Linear");
	assert_string_equal(m->file, "/t.py");
	assert_int_equal(m->line, 12);
	assert_int_equal(e->part, PRB_KINETO_FORWARD);
	assert_int_equal(e->flops, 2 * 4 * 16 * 8);
	assert_int_equal(e->duration, 40000);
	assert_int_equal(e->depth, 1);
	assert_int_equal(e->step, 5);
	assert_string_equal(parent_of(&trace, e), "aten::linear");
	assert_int_equal(find(&trace, "aten::linear", 0)->self, 20000);
	/* Backward in another thread: by the number of the operator that it is of. */
	e = find(&trace, "aten::mm", 0);
	assert_int_equal(e->part, PRB_KINETO_BACKWARD);
	m = prb_kineto_module_of(&trace, e);
	assert_non_null(m);
	assert_string_equal(m->path, "net.a");
	e = find(&trace, "aten::_foreach_add_", 0);
	assert_int_equal(e->part, PRB_KINETO_OPTIMIZER);
	assert_null(prb_kineto_module_of(&trace, e));
	assert_int_equal(find(&trace, "aten::after", 0)->step, -1);
	prb_kineto_deinit(&trace);
}

static void test_kernels(void **state)
{
	struct prb_kineto trace;
	const struct prb_kineto_event *e;

	(void)state;
	read_trace(&trace);
	e = find(&trace, "gemm", 0);
	assert_int_equal(e->kind, PRB_KINETO_KERNEL);
	assert_string_equal(parent_of(&trace, e), "aten::addmm");
	assert_string_equal(prb_kineto_module_of(&trace, e)->path, "net.a");
	assert_int_equal(e->part, PRB_KINETO_FORWARD);
	assert_int_equal(e->thread, 7);
	assert_int_equal(e->step, 5);
	e = find(&trace, "gemm", 1);
	assert_int_equal(e->part, PRB_KINETO_BACKWARD);
	assert_string_equal(parent_of(&trace, e), "aten::mm");
	e = find(&trace, "ncclDevKernel_AllReduce", 0);
	assert_int_equal(e->kind, PRB_KINETO_COLLECTIVE);
	assert_int_equal(e->thread, 20);
	assert_int_equal(find(&trace, "Memcpy HtoD", 0)->kind, PRB_KINETO_COPY);
	prb_kineto_deinit(&trace);
}

static void test_idle(void **state)
{
	struct prb_kineto trace;
	struct prb_kineto_gpus gpus;
	const struct prb_kineto_gpu *gpu;
	struct prb_str text = {};

	(void)state;
	read_trace(&trace);
	assert_null(prb_kineto_gpus(&trace, &gpus));
	assert_int_equal(gpus.list.count, 1);
	gpu = gpus.list.items;
	assert_int_equal(gpu->total, 1000000);
	assert_int_equal(gpu->computes, 160000);
	assert_int_equal(gpu->collectives, 60000);
	assert_int_equal(gpu->overlap, 30000);
	assert_int_equal(gpu->for_collective, 30000);
	assert_int_equal(gpu->for_copy, 70000);
	/* 40 before the first launch, 70 to the second, 90 to the copy, and the end. */
	assert_int_equal(gpu->for_host, 40000 + 70000 + 90000 + 500000);
	assert_int_equal(gpu->for_other, 20000 + 10000 + 10000);
	prb_kineto_gpu_verdict(gpu, &text);
	assert_true(!strncmp(prb_str_text(&text),
			     "GPU 0 is idle 84 % of a step: Python launches too slowly\n"
			     "  evidence: for 70 % of the time nothing ran",
			     90));
	prb_str_deinit(&text);
	prb_kineto_gpus_deinit(&gpus);
	prb_kineto_deinit(&trace);
}

static void test_verdicts(void **state)
{
	static const struct {
		struct prb_kineto_gpu gpu;
		const char *words; /* NULL: nothing is said */
	} cases[] = {
		{{.total = 100, .computes = 90, .for_host = 10}, NULL},
		{{.total = 0}, NULL},
		{{.total = 100, .computes = 50, .for_copy = 40, .for_host = 10},
		 "copies of memory"},
		{{.total = 100, .computes = 50, .for_collective = 40, .for_host = 10},
		 "other ranks"},
		{{.total = 100, .computes = 50, .for_other = 40, .for_host = 10}, "another stream"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct prb_str text = {};

		prb_kineto_gpu_verdict(&cases[i].gpu, &text);
		if (cases[i].words)
			assert_non_null(strstr(prb_str_text(&text), cases[i].words));
		else
			assert_int_equal(text.length, 0);
		prb_str_deinit(&text);
	}
}

static void test_no_trace(void **state)
{
	static const char *const texts[] = {"", "[]", "{}", "{\"traceEvents\": 5}",
					    "{\"traceEvents\": [{\"ph\": \"X\""};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
		struct prb_kineto trace;
		struct prb_error *err = prb_kineto_read(texts[i], strlen(texts[i]), &trace);

		assert_non_null(err);
		assert_int_equal(err->code, PRB_ERROR_BAD_DATA);
		prb_error_destroy(err);
		prb_kineto_deinit(&trace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_places),	 cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_idle),	 cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_no_trace),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
