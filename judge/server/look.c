/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two looks at a server, and what the rules ask about them. */
#include <math.h>
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"
#include "judge/facts.h"
#include "judge/server/private.h"

/**
 * Milliseconds between two looks. Where nothing says when tokens were made, a step has more time to
 * end; so many times as long if it may have to wait for a processor.
 */
enum { SHORT_PAUSE = 60, LONG_PAUSE = 700, OVERLOADED = 4 };

void prb_server_looks_deinit(struct prb_server_looks *looks)
{
	prb_server_deinit(&looks->now);
	prb_server_deinit(&looks->before);
	prb_engines_deinit(&looks->engines);
}

struct prb_error *prb_server_looks_read(struct prb_server_looks *looks, pid_t pid,
					enum prb_dump_mode mode)
{
	PRB_TRY(prb_engines_load(getenv("PROBING_ENGINES"), &looks->engines));
	looks->mode = mode;
	PRB_TRY(prb_server_read(&looks->engines, pid, mode, &looks->now));
	looks->time = prb_clock_calendar_seconds();
	return NULL;
}

/** True if a step may be under way. */
static bool any_runs(const struct prb_server *server)
{
	const struct prb_server_process *p = NULL;

	while ((p = prb_server_next(server, PRB_ENGINE_SCHEDULER, p)))
		if (prb_server_queued(p, "running") > 0)
			return true;
	return false;
}

static struct prb_error *look_again(struct prb_server_verdict *v)
{
	struct prb_server_looks *looks = v->looks;
	bool certain = v->finding->confidence == PRB_CONFIDENCE_HIGH || !v->of_scheduler ||
		       prb_server_silent(looks) >= 0 || !any_runs(&looks->now);

	unsigned pause = (certain ? SHORT_PAUSE : LONG_PAUSE) *
			 (prb_machine_is_overloaded() ? OVERLOADED : 1);

	looks->before = looks->now;
	looks->now = (struct prb_server){};
	looks->twice = true;
	nanosleep(&(struct timespec){pause / 1000, pause % 1000 * 1000000L}, NULL);
	PRB_TRY(prb_server_read(&looks->engines, looks->before.processes.items[0]->pid, looks->mode,
				&looks->now));
	looks->time = prb_clock_calendar_seconds();
	return NULL;
}

static struct prb_error *judge_once(struct prb_server_verdict *v)
{
	bool still = !v->looks->twice || !prb_server_moved(v->looks);

	PRB_TRY(prb_server_judge_ended(v));
	if (still && !v->finding)
		PRB_TRY(prb_server_judge_schedulers(v));
	v->of_scheduler = v->finding;
	if (still && !v->finding)
		PRB_TRY(prb_server_judge_replicas(v));
	if (!v->finding)
		PRB_TRY(prb_server_judge_frontends(v));
	return v->finding ? NULL : prb_server_judge_some(v);
}

static struct prb_error *conclude(struct prb_server_verdict *v)
{
	struct prb_finding *f = v->finding;
	size_t count = v->looks->now.processes.count;

	prb_str_printf(&f->rests_on, "the objects and stacks of %zu process%s of the server, at %s",
		       count, count == 1 ? "" : "es",
		       prb_server_moved(v->looks) ? "two looks"
						  : "two looks, between which no request went on");
	if (!f->wrong_if.length)
		prb_str_puts(&f->wrong_if, "the next look finds that requests went on");
	prb_case_put_command(&f->next, v->c, "server");
	return NULL;
}

struct prb_error *prb_server_judge(const struct prb_rule *rule, struct prb_case *c,
				   struct prb_server_looks *looks, struct prb_findings *ret)
{
	__attribute__((cleanup(prb_findings_deinit))) struct prb_findings first = {};
	struct prb_server_verdict v = {rule, c, looks, &first, NULL, false};

	PRB_TRY(judge_once(&v));
	if (!v.finding)
		return NULL;
	PRB_TRY(look_again(&v));
	if (!looks->now.processes.count)
		return NULL;
	v.finding = NULL;
	v.findings = ret;
	PRB_TRY(judge_once(&v));
	return v.finding ? conclude(&v) : NULL;
}

struct prb_error *prb_server_found(struct prb_server_verdict *v, enum prb_confidence confidence,
				   const char *brief)
{
	PRB_TRY(prb_finding_add(v->rule, v->findings, &v->finding));
	v->finding->confidence = confidence;
	prb_str_puts(&v->finding->brief, brief);
	return NULL;
}

const struct prb_dump_thread *prb_server_main(const struct prb_server_process *p)
{
	return p->dump && p->dump->threads.count ? p->dump->threads.items : NULL;
}

void prb_server_put(struct prb_str *s, const struct prb_server_process *p)
{
	prb_text_escape(s, p->name ? p->name : "process");
	prb_str_printf(s, " (%d)", (int)p->pid);
}

void prb_server_put_doing(struct prb_str *s, const struct prb_server_process *p)
{
	const struct prb_case other = {.target = p->target, .dump = p->dump};

	if (prb_server_main(p))
		prb_case_put_doing(s, &other, prb_server_main(p));
}

void prb_server_put_count(struct prb_str *s, size_t count, const char *what)
{
	prb_str_printf(s, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

struct prb_error *prb_server_evidence(struct prb_server_verdict *v,
				      const struct prb_server_process *p)
{
	const char *activity = prb_engine_activity_text(p->activity);
	bool own = p->pid == v->c->pid;
	struct prb_str *line;

	PRB_TRY(prb_finding_line(v->finding, own ? p->pid : 0, &line));
	prb_server_put(line, p);
	if (activity)
		prb_str_printf(line, " %s,", activity);
	prb_str_putc(line, ' ');
	prb_server_put_doing(line, p);
	return own ? NULL : prb_finding_pid(v->finding, p->pid);
}

double prb_server_age(const struct prb_server_looks *looks,
		      const struct prb_server_request *request)
{
	double age = looks->time - request->arrival;

	return isfinite(age) && age >= 0 ? age : -1;
}

bool prb_server_is_in(const struct prb_server_request *request, char *const *states, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if ((request->state && !strcmp(request->state, states[i])) ||
		    (request->queue && !strcmp(request->queue, states[i])))
			return true;
	return false;
}

bool prb_server_is_done(const struct prb_server_request *request,
			const struct prb_engine_part *part)
{
	char *const *state;

	prb_vec_each (state, &part->done_states)
		if (request->state && !strncmp(request->state, *state, strlen(*state)))
			return true;
	return false;
}

/** True if a request of the first look has ended, or has more tokens, at the second. */
static bool went_on(const struct prb_server_process *before, const struct prb_server_process *now)
{
	const struct prb_server_request *request;
	struct prb_number_map map = {};
	bool moved = before->cut || now->cut;

	for (size_t i = 0; i < now->requests.count && !moved; i++)
		moved = !prb_number_map_put(&map, now->requests.items[i].address, i);
	prb_vec_each (request, &before->requests) {
		const struct prb_server_request *later;
		size_t at;

		if (moved)
			break;
		moved = !prb_number_map_get(&map, request->address, &at);
		if (moved)
			break;
		later = &now->requests.items[at];
		/* Fewer: another request has come to lie where one was that ended. */
		moved = later->output_tokens != request->output_tokens ||
			later->computed_tokens != request->computed_tokens;
	}
	prb_number_map_deinit(&map);
	return moved;
}

double prb_server_silent(const struct prb_server_looks *looks)
{
	struct prb_server_process *const *p;
	const struct prb_server_request *request;
	double least = -1;

	prb_vec_each (p, &looks->now.processes)
		prb_vec_each (request, &(*p)->requests) {
			double ago = looks->time - request->last_token;

			if (isfinite(ago) && ago >= 0 && (least < 0 || ago < least))
				least = ago;
		}
	return least;
}

bool prb_server_moved(const struct prb_server_looks *looks)
{
	double silent = prb_server_silent(looks);
	struct prb_server_process *const *p;

	if (silent >= 0 && silent < prb_limit(PRB_LIMIT_TOKEN))
		return true;
	prb_vec_each (p, &looks->before.processes) {
		const struct prb_server_process *now = prb_server_find(&looks->now, (*p)->pid);

		if (now && went_on(*p, now))
			return true;
	}
	return false;
}
