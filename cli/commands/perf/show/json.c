/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/show/performance.h"

#include "base/cleanup.h"
#include "base/json.h"
#include "profile/recording/wall_parts.h"

void prb_performance_json_function(struct prb_json *json, const struct prb_tree_function *f,
				   bool lines, int32_t line)
{
	prb_json_text(json, "func", f->name);
	prb_json_text(json, "kind", prb_function_kind_name(f->kind));
	prb_json_text(json, "file", f->file);
	prb_json_text(json, "module", f->module);
	if (lines)
		prb_json_natural(json, "line", line > 0 ? line : -1);
	else
		prb_json_natural(json, "first_line", f->file ? f->first_line : -1);
}

static void put_parts(struct prb_json *json, const struct prb_recording *r,
		      const struct prb_report_row *row, const struct prb_wall_parts *parts)
{
	size_t count;
	const struct prb_wall_part *list = prb_wall_parts_of(parts, row, &count);

	prb_json_open(json, "parts", '[');
	for (size_t i = 0; i < count; i++) {
		const struct prb_profile_wait *wait = &r->waits.items[list[i].wait];

		prb_json_open(json, NULL, '{');
		prb_json_text(json, "state", prb_run_state_name(list[i].state));
		prb_performance_json_wait(json, r, wait);
		prb_json_integer(json, "wall_ns", list[i].wall);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static void put_functions(struct prb_json *json, const struct prb_recording *r,
			  const struct prb_report *report, bool lines,
			  const struct prb_wall_parts *parts)
{
	const struct prb_report_row *row;

	prb_json_open(json, "functions", '[');
	prb_vec_each (row, &report->rows) {
		const struct prb_tree_function *f = &r->tree->functions.items[row->function];
		struct prb_share self = prb_report_share(report, row->self);

		prb_json_open(json, NULL, '{');
		prb_performance_json_function(json, f, lines, row->line);
		prb_json_integer(json, "self_ns", row->self);
		prb_json_integer(json, "total_ns", row->total);
		prb_json_integer(json, "samples", (int64_t)row->samples);
		prb_json_real(json, "share", self.share, 6);
		prb_json_real(json, "share_low", self.low, 6);
		prb_json_real(json, "share_high", self.high, 6);
		if (parts)
			put_parts(json, r, row, parts);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static struct prb_error *put_all_functions(struct prb_json *json, const struct prb_recording *r,
					   const struct prb_profile_choice *choice,
					   const struct prb_report *report)
{
	struct prb_wall_parts parts;

	if (choice->weight != PRB_WEIGHT_WALL) {
		put_functions(json, r, report, choice->lines, NULL);
		return NULL;
	}
	PRB_TRY(prb_wall_parts_make(r, choice, &parts));
	put_functions(json, r, report, choice->lines, &parts);
	prb_wall_parts_deinit(&parts);
	return NULL;
}

static void put_process(struct prb_json *json, pid_t pid, const char *command, const char *python,
			int64_t cpu)
{
	prb_json_open(json, NULL, '{');
	prb_json_integer(json, "pid", pid);
	prb_json_text(json, "command", command);
	prb_json_text(json, "python", python);
	prb_json_natural(json, "cpu_ns", cpu);
	prb_json_close(json, '}');
}

static void put_processes(struct prb_json *json, const struct prb_recording *r)
{
	const struct prb_profile_process *other;

	prb_json_open(json, "processes", '[');
	put_process(json, r->pid, r->command, r->python, r->process_cpu);
	prb_vec_each (other, &r->others)
		put_process(json, other->pid, other->command, other->python, other->cpu);
	prb_json_close(json, ']');
}

static void put_threads(struct prb_json *json, const struct prb_recording *r)
{
	const struct prb_profile_thread *thread;

	prb_json_open(json, "threads", '[');
	prb_vec_each (thread, &r->threads) {
		prb_json_open(json, NULL, '{');
		prb_json_integer(json, "pid", prb_recording_pid(r, thread->process));
		prb_json_integer(json, "tid", thread->tid);
		prb_json_text(json, "name", thread->name);
		prb_json_text(json, "os_name", thread->os_name);
		prb_json_integer(json, "cpu_ns", thread->cpu);
		prb_json_bool(json, "ended", thread->ended);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static void put_states(struct prb_json *json, const struct prb_report *report)
{
	prb_json_open(json, "states", '{');
	for (unsigned i = 0; i < PRB_RUN_STATES; i++)
		prb_json_integer(json, prb_run_state_name((enum prb_run_state)i),
				 report->states[i]);
	prb_json_close(json, '}');
}

static void put_cost(struct prb_json *json, const struct prb_profile_cost *c)
{
	prb_json_open(json, "cost", '{');
	prb_json_integer(json, "duration_ns", c->duration);
	prb_json_text(json, "source", c->ebpf ? "ebpf" : "stops");
	prb_json_integer(json, "unstopped", (int64_t)c->unstopped);
	prb_json_integer(json, "stops", (int64_t)c->stops);
	prb_json_real(json, "pause_p50_us", c->pause_p50, 1);
	prb_json_real(json, "pause_p99_us", c->pause_p99, 1);
	prb_json_real(json, "pause_max_us", c->pause_max, 1);
	prb_json_real(json, "pause_total_us", c->pause_total, 1);
	prb_json_integer(json, "own_cpu_ns", c->own_cpu);
	prb_json_integer(json, "times", (int64_t)c->times);
	prb_json_integer(json, "late", (int64_t)c->late);
	prb_json_integer(json, "missed", (int64_t)c->missed);
	prb_json_integer(json, "unreadable", (int64_t)c->unreadable);
	prb_json_integer(json, "again", (int64_t)c->again);
	prb_json_close(json, '}');
}

void prb_performance_json_windows(struct prb_json *json, const struct prb_recording *recording)
{
	const struct prb_profile_window *window;

	prb_json_text(json, "when", recording->condition);
	if (!recording->condition) {
		prb_json_null(json, "windows");
		return;
	}
	prb_json_open(json, "windows", '[');
	prb_vec_each (window, &recording->windows) {
		prb_json_open(json, NULL, '{');
		prb_json_integer(json, "begin_ns", window->begin);
		prb_json_integer(json, "end_ns", window->end);
		prb_json_real(json, "timestamp", recording->started + (double)window->begin / 1e9,
			      3);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

struct prb_error *prb_performance_json(const struct prb_recording *recording,
				       const struct prb_profile_choice *choice,
				       const struct prb_report *report, struct prb_str *s)
{
	struct prb_json json = {s};
	struct prb_error *err;

	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "pid", recording->pid);
	prb_json_text(&json, "command", recording->command);
	prb_json_text(&json, "python", recording->python);
	prb_json_bool(&json, "native", recording->native);
	prb_json_real(&json, "timestamp", recording->started, 6);
	prb_json_integer(&json, "duration_ns", recording->duration);
	prb_json_real(&json, "rate", recording->rate, 3);
	prb_json_text(&json, "ended", prb_profile_end_text(recording->end));
	prb_json_text(&json, "mode", prb_weight_words[choice->weight].mode);
	prb_json_integer(&json, "weight_ns", report->weight);
	prb_json_integer(&json, "samples", (int64_t)report->taken);
	prb_json_real(&json, "independent_samples", report->samples, 1);
	prb_json_natural(&json, "process_cpu_ns", recording->process_cpu);
	prb_json_integer(&json, "unseen_children_ns", recording->unseen_children);
	prb_performance_json_windows(&json, recording);
	put_states(&json, report);
	PRB_TRY(put_all_functions(&json, recording, choice, report));
	put_processes(&json, recording);
	put_threads(&json, recording);
	err = prb_performance_waits_json(recording, choice, &json);
	if (!err)
		err = prb_performance_ranks_json(recording, &json);
	put_cost(&json, &recording->cost);
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
	return !err && s->failed ? prb_error_nomem() : err;
}
