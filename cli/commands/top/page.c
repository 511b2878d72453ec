/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The page: what the process does as a whole, then a table. */
#include "cli/commands/top/top.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"

static double percent(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : 0;
}

/* Of a process that is gone there is none. */
static void put_memory(struct prb_str *s, pid_t pid)
{
	char path[64];
	unsigned long pages;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return;
	if (fscanf(file, "%*u %lu", &pages) == 1)
		prb_str_printf(s, " · %.0f MB",
			       (double)pages * (double)sysconf(_SC_PAGESIZE) / 1e6);
	fclose(file);
}

static void put_process(const struct prb_top *top, size_t first, struct prb_str *s)
{
	const struct prb_recording *r = prb_live_recording(top->live);
	const struct prb_top_part *last = &top->parts.items[prb_top_end(top) - 1];
	const struct prb_top_part *from = &top->parts.items[first];
	int64_t used = last->process_cpu - (first ? from[-1].process_cpu : 0);
	const struct prb_profile_thread *thread;
	size_t alive = 0;

	prb_str_printf(s, "%d  ", (int)r->pid);
	prb_text_escape(s, r->command ? r->command : "");
	prb_str_puts(s, "\nPython ");
	prb_text_escape(s, r->python ? r->python : "?");
	/* CPU time before a reset is unknown. */
	if (r->process_cpu >= 0 && (first || !from->begin))
		prb_str_printf(s, " · CPU %.0f %%",
			       percent((double)used, (double)(last->end - from->begin)));
	put_memory(s, r->pid);
	prb_vec_each (thread, &r->threads)
		alive += !thread->ended;
	prb_str_printf(s, " · %zu thread%s", alive, alive == 1 ? "" : "s");
}

/* "waits for a processor", of one thread; "wait for a processor", of several. */
static const char *doing(unsigned state, size_t count)
{
	return state == PRB_RUN_QUEUED && count > 1 ? "wait for a processor"
						    : prb_run_state_name((enum prb_run_state)state);
}

/* By what each did at the end of the last part. */
static void put_states(const struct prb_top *top, struct prb_str *s)
{
	struct prb_recording r = prb_top_slice(top, prb_top_end(top) - 1, prb_top_end(top));
	size_t counts[PRB_RUN_STATES] = {};
	const char *mark = ": ";
	prb_auto_free unsigned char *state = calloc(r.threads.count + 1, 1);
	const struct prb_run *run;

	if (!state)
		return;
	prb_vec_each (run, &r.runs)
		state[run->thread] = (unsigned char)(run->state + 1);
	for (size_t i = 0; i < r.threads.count; i++)
		if (state[i] && !r.threads.items[i].ended)
			counts[state[i] - 1]++;
	for (unsigned i = 0; i < PRB_RUN_STATES; i++) {
		if (!counts[i])
			continue;
		prb_str_printf(s, "%s%zu %s", mark, counts[i], doing(i, counts[i]));
		mark = ", ";
	}
}

/* Appends the GIL holder at the last sample of the last part. */
static void put_gil(const struct prb_top *top, struct prb_str *s)
{
	struct prb_recording r = prb_top_slice(top, prb_top_end(top) - 1, prb_top_end(top));
	const struct prb_run *run, *last = NULL;
	size_t waiting = 0;
	prb_auto_free bool *waits = calloc(r.threads.count + 1, sizeof(*waits));

	if (!waits)
		return;
	prb_vec_each (run, &r.runs) {
		if (run->gil && (!last || run->begin + run->wall >= last->begin + last->wall))
			last = run;
		waits[run->thread] = run->wait_kind == PRB_WAIT_GIL;
	}
	for (size_t i = 0; i < r.threads.count; i++)
		waiting += waits[i] && !r.threads.items[i].ended;
	if (last)
		prb_str_printf(s, " · GIL held by %d", (int)r.threads.items[last->thread].tid);
	if (waiting)
		prb_str_printf(s, ", %zu wait%s for it", waiting, waiting == 1 ? "s" : "");
}

static void put_cost(const struct prb_top *top, size_t first, struct prb_str *s)
{
	const struct prb_top_part *last = &top->parts.items[prb_top_end(top) - 1];
	const struct prb_top_part *from = &top->parts.items[first];
	struct prb_profile_cost before = {}, now = last->cost;
	double seconds = (double)(last->end - from->begin) / 1e9;
	bool whole = !first && from->begin; /* what came before a reset is known from here on */

	if (first)
		before = from[-1].cost;
	else if (whole) {
		before = from->cost;
		seconds = (double)(last->end - from->end) / 1e9;
	}
	if (seconds <= 0)
		return;
	prb_str_printf(s, " · cost: %.0f stops/s of %.0f µs, own CPU %.1f %%, %llu missed",
		       (double)(now.stops - before.stops) / seconds, now.pause_p50,
		       percent((double)(now.own_cpu - before.own_cpu) / 1e9, seconds),
		       (unsigned long long)(now.missed - before.missed));
}

/* Of what the page shows: a recorder in the background, or a debugger, has the threads meanwhile.
 */
static void put_traced(const struct prb_top *top, size_t first, struct prb_str *s)
{
	const struct prb_profile_choice choice = {.weight = top->weight};
	struct prb_recording r = prb_top_slice(top, first, prb_top_end(top));
	double traced = prb_report_traced(&r, &choice);

	if (traced >= 1)
		prb_str_printf(s, " · another tracer took %.0f %% of the samples", traced);
}

static void put_choice(const struct prb_top *top, size_t first, struct prb_str *s)
{
	const struct prb_top_part *last = &top->parts.items[prb_top_end(top) - 1];

	prb_str_puts(s, "\nlast ");
	prb_text_duration(s, (double)(last->end - top->parts.items[first].begin) / 1e9);
	prb_str_printf(s, " · %s", prb_weight_words[top->weight].mode);
	if (*top->native)
		prb_str_puts(s, " · C too");
	if (top->tid)
		prb_str_printf(s, " · thread %d", (int)top->tid);
	if (top->filter) {
		prb_str_puts(s, " · /");
		prb_text_escape(s, top->filter);
		prb_str_putc(s, '/');
	}
	if (top->held)
		prb_str_puts(s, " · PAUSED");
	put_cost(top, first, s);
	put_traced(top, first, s);
	prb_str_putc(s, '\n');
}

static const char help[] =
	"f, c, t     functions, call tree, threads; Tab goes from one to the next\n"
	"Up, Down    select a row; PgUp, PgDn, Home, End and the mouse too\n"
	"Enter       in the table of threads: functions of that thread alone\n"
	"v           in the table of threads: stack of that thread with variables and source\n"
	"a           all threads again\n"
	"s           sort by self, total or name\n"
	"m           what is weighed: cpu, wall, runqueue, gil or blocked time\n"
	"l           each line of a function by itself\n"
	"n           C and C++ frames too, or not; forgets what was seen\n"
	"w           the last interval, 10 s, 1 m, or all since the reset\n"
	"/           show what matches a regular expression; an empty one shows all\n"
	"Space       pause the display; samples are taken meanwhile\n"
	"r           reset: forget what was seen\n"
	"S           save what was seen since the reset as .profile\n"
	"q, Ctrl-C   quit\n";

struct prb_error *prb_top_page(const struct prb_top *top, size_t most_rows,
			       struct prb_top_page *ret)
{
	struct prb_str *s = &ret->text;

	ret->head = 4;
	if (!prb_top_end(top)) {
		prb_str_puts(s, "\n\nwaiting for samples\n\n");
		return NULL;
	}
	size_t first = prb_top_first_part(top);

	put_process(top, first, s);
	put_states(top, s);
	put_gil(top, s);
	put_choice(top, first, s);
	switch (top->view) {
	case PRB_TOP_FUNCTIONS:
		PRB_TRY(prb_top_put_functions(top, most_rows, s));
		break;
	case PRB_TOP_TREE:
		PRB_TRY(prb_top_put_tree(top, most_rows, s));
		break;
	case PRB_TOP_THREADS:
		PRB_TRY(prb_top_put_threads(top, most_rows, s));
		break;
	case PRB_TOP_STACK:
		prb_top_put_stack(top, s);
		break;
	case PRB_TOP_HELP:
		prb_str_printf(s, "keys (any key goes back)\n%s", help);
		break;
	}
	return s->failed ? prb_error_nomem() : NULL;
}
