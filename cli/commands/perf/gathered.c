/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recordings of several machines as one. */
#include "cli/commands/perf/gathered.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"

/* Limit of sums of times, in ns. */
static const int64_t MOST = INT64_C(1) << 61;

/* Indices in `all`, by index in the part. */
struct numbers {
	uint32_t *functions, *frames, *stacks, *roots, *waits;
};

static void numbers_deinit(struct numbers *n)
{
	free(n->functions);
	free(n->frames);
	free(n->stacks);
	free(n->roots);
	free(n->waits);
}

static struct prb_error *numbers_init(struct numbers *n, const struct prb_recording *part)
{
	const struct prb_tree *tree = part->tree;

	n->functions = calloc(tree->functions.count + 1, sizeof(*n->functions));
	n->frames = calloc(tree->frames.count + 1, sizeof(*n->frames));
	n->stacks = calloc(tree->stacks.count + 1, sizeof(*n->stacks));
	n->roots = calloc(part->others.count + 1, sizeof(*n->roots));
	n->waits = calloc(part->waits.count + 1, sizeof(*n->waits));
	return n->functions && n->frames && n->stacks && n->roots && n->waits ? NULL
									      : prb_error_nomem();
}

/* *ret: the index in @p all of the first process of @p part. */
static struct prb_error *add_processes(struct prb_recording *all, const struct prb_recording *part,
				       const char *suffix, struct numbers *n, uint32_t *ret)
{
	*ret = all->pid ? (uint32_t)all->others.count + 1 : 0;
	for (uint32_t i = 0; i <= part->others.count; i++) {
		const char *command = prb_recording_command_line(part, i);
		const char *python = i ? part->others.items[i - 1].python : part->python;
		int64_t cpu = i ? part->others.items[i - 1].cpu : part->process_cpu;
		prb_auto_free char *name = prb_format("%s%s", command ? command : "", suffix);
		struct prb_profile_process *place;
		prb_auto_free char *root =
			name ? prb_format("%d %s", (int)prb_recording_pid(part, i), name) : NULL;

		if (!root)
			return prb_error_nomem();
		PRB_TRY(prb_tree_note(all->tree, root, &n->roots[i]));
		if (!all->pid) {
			all->pid = part->pid;
			all->process_cpu = cpu;
			PRB_TRY(prb_str_copy(name, &all->command));
			PRB_TRY(prb_str_copy(python, &all->python));
			continue;
		}
		place = prb_vec_push(&all->others);
		if (!place)
			return prb_error_nomem();
		*place =
			(struct prb_profile_process){.pid = prb_recording_pid(part, i), .cpu = cpu};
		PRB_TRY(prb_str_copy(name, &place->command));
		PRB_TRY(prb_str_copy(python, &place->python));
	}
	return NULL;
}

/* The root that replaces a stack of one frame: "4242 rank 3" for process 4242. */
static uint32_t root_of(const struct prb_recording *part, uint32_t stack, const struct numbers *n)
{
	long pid = atol(prb_tree_function_of(part->tree, stack)->name);

	for (uint32_t i = 0; i <= part->others.count; i++)
		if (prb_recording_pid(part, i) == pid)
			return n->roots[i];
	return n->roots[0];
}

static struct prb_error *add_tree(struct prb_recording *all, const struct prb_recording *part,
				  struct numbers *n)
{
	const struct prb_tree *from = part->tree;
	bool named = part->others.count > 0;

	for (size_t i = 0; i < from->functions.count; i++)
		PRB_TRY(prb_tree_function(all->tree, &from->functions.items[i], &n->functions[i]));
	for (size_t i = 0; i < from->frames.count; i++)
		PRB_TRY(prb_tree_frame(all->tree, n->functions[from->frames.items[i].function],
				       from->frames.items[i].line, &n->frames[i]));
	n->stacks[0] = n->roots[0];
	for (uint32_t i = 1; i < from->stacks.count; i++) {
		const struct prb_tree_stack *stack = &from->stacks.items[i];

		if (named && !stack->parent &&
		    prb_tree_function_of(from, i)->kind == PRB_FUNCTION_NOTE)
			n->stacks[i] = root_of(part, i, n);
		else
			PRB_TRY(prb_tree_call(all->tree, n->stacks[stack->parent],
					      n->frames[stack->frame], &n->stacks[i]));
	}
	return NULL;
}

static struct prb_error *add_threads(struct prb_recording *all, const struct prb_recording *part,
				     uint32_t first)
{
	const struct prb_profile_thread *thread;

	prb_vec_each (thread, &part->threads)
		PRB_TRY(prb_recording_copy_thread(all, thread, first + thread->process));
	return NULL;
}

static struct prb_error *add_waits(struct prb_recording *all, const struct prb_recording *part,
				   uint32_t first_thread, struct numbers *n)
{
	for (size_t i = 1; i < part->waits.count; i++) {
		struct prb_profile_wait wait = part->waits.items[i];

		if (wait.owner)
			wait.owner += first_thread;
		PRB_TRY(prb_recording_wait(all, &wait, &n->waits[i]));
	}
	return NULL;
}

static struct prb_error *add_runs(struct prb_recording *all, const struct prb_recording *part,
				  uint32_t first_thread, const struct numbers *n, int64_t shift)
{
	const struct prb_run *run;

	prb_vec_each (run, &part->runs) {
		struct prb_run *slot = prb_vec_push(&all->runs);

		if (!slot)
			return prb_error_nomem();
		*slot = *run;
		slot->begin += shift;
		slot->thread += first_thread;
		slot->wait = n->waits[run->wait];
		slot->stack = run->stack ? n->stacks[run->stack]
					 : n->roots[part->threads.items[run->thread].process];
	}
	return NULL;
}

static void add_cost(struct prb_profile_cost *all, const struct prb_profile_cost *part)
{
	all->stops += part->stops;
	all->again += part->again;
	all->times += part->times;
	all->late += part->late;
	all->missed += part->missed;
	all->unreadable += part->unreadable;
	all->own_cpu += part->own_cpu;
	all->duration = PRB_MAX(all->duration, part->duration);
	all->pause_total += part->pause_total;
	/* The percentiles of the worst machine: those of all together are unknown. */
	all->pause_p50 = PRB_MAX(all->pause_p50, part->pause_p50);
	all->pause_p99 = PRB_MAX(all->pause_p99, part->pause_p99);
	all->unstopped += part->unstopped;
	all->ebpf |= part->ebpf;
	all->pause_max = PRB_MAX(all->pause_max, part->pause_max);
}

/* Adds to the sum, unless it would exceed MOST. */
static bool spend(int64_t *weight, int64_t more)
{
	if (more < 0 || more > MOST - *weight)
		return false;
	*weight += more;
	return true;
}

/* Checks that no sum of times overflows once this part is added. */
static struct prb_error *check_times(struct prb_gathered *gathered,
				     const struct prb_recording *part, int64_t shift)
{
	int64_t before = gathered->weight;
	bool fits = part->duration >= 0 && part->duration < MOST && shift < MOST &&
		    spend(&gathered->weight, PRB_MAX(part->process_cpu, 0)) &&
		    spend(&gathered->weight, part->cost.own_cpu) &&
		    spend(&gathered->weight, part->unseen_children);

	for (size_t i = 0; fits && i < part->others.count; i++)
		fits = spend(&gathered->weight, PRB_MAX(part->others.items[i].cpu, 0));
	for (size_t i = 0; fits && i < part->threads.count; i++)
		fits = spend(&gathered->weight, part->threads.items[i].cpu);
	for (size_t i = 0; fits && i < part->runs.count; i++) {
		const struct prb_run *run = &part->runs.items[i];

		fits = run->begin >= 0 && run->begin < MOST &&
		       spend(&gathered->weight, run->wall) && spend(&gathered->weight, run->cpu) &&
		       spend(&gathered->weight, run->queue);
	}
	if (fits)
		return NULL;
	gathered->weight = before;
	return prb_error_create(PRB_ERROR_BAD_DATA, "its recording has impossible times");
}

struct prb_error *prb_gathered_add(struct prb_gathered *gathered, const struct prb_recording *part,
				   const char *suffix, int64_t shift)
{
	__attribute__((cleanup(numbers_deinit))) struct numbers n = {};
	struct prb_recording *all = gathered->all;
	uint32_t first_thread = (uint32_t)all->threads.count, first;

	PRB_TRY(check_times(gathered, part, shift));
	PRB_TRY(numbers_init(&n, part));
	PRB_TRY(add_processes(all, part, suffix, &n, &first));
	PRB_TRY(add_tree(all, part, &n));
	PRB_TRY(add_waits(all, part, first_thread, &n));
	PRB_TRY(add_threads(all, part, first));
	PRB_TRY(add_runs(all, part, first_thread, &n, shift));
	PRB_TRY(prb_recording_copy_lines(all, part));
	all->rate = part->rate;
	all->native |= part->native;
	all->unseen_children += part->unseen_children;
	all->duration = PRB_MAX(all->duration, shift + part->duration);
	if (all->end == PRB_PROFILE_DONE)
		all->end = part->end;
	add_cost(&all->cost, &part->cost);
	return NULL;
}

static int compare_lines(const void *a, const void *b)
{
	const struct prb_profile_line *x = a, *y = b;
	int order = strcmp(x->file, y->file);

	return order ? order : (x->line > y->line) - (x->line < y->line);
}

static int compare_runs(const void *a, const void *b)
{
	const struct prb_run *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

void prb_gathered_settle(struct prb_gathered *gathered)
{
	struct prb_recording *all = gathered->all;
	size_t kept = 0;

	if (all->runs.count)
		qsort(all->runs.items, all->runs.count, sizeof(struct prb_run), compare_runs);
	if (all->lines.count)
		qsort(all->lines.items, all->lines.count, sizeof(struct prb_profile_line),
		      compare_lines);
	for (size_t i = 0; i < all->lines.count; i++) {
		struct prb_profile_line *line = &all->lines.items[i];

		if (kept && !compare_lines(&all->lines.items[kept - 1], line))
			free(line->text);
		else
			all->lines.items[kept++] = *line;
	}
	all->lines.count = kept;
}
