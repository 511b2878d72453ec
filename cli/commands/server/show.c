/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "base/text.h"
#include "cli/commands/server/server.h"
#include "judge/limits.h"
#include "judge/text.h"
#include "judge/threads.h"

enum { PID_WIDTH = 8, NAME_WIDTH = 22 };

static const struct prb_dump_thread *main_thread(const struct prb_server_process *p)
{
	return p->dump && p->dump->threads.count ? p->dump->threads.items : NULL;
}

static double oldest(const struct prb_server_looks *looks, const struct prb_server_process *p)
{
	const struct prb_server_request *request;
	double age = -1;

	prb_vec_each (request, &p->requests)
		age = fmax(age, looks->time - request->arrival);
	return age;
}

/** Old requests are no fault by themselves: those before them may be long. */
static void put_nothing(struct prb_str *s, const struct prb_server_looks *looks)
{
	struct prb_server_process *const *p;
	double age = -1;

	prb_vec_each (p, &looks->now.processes)
		age = fmax(age, oldest(looks, *p));
	prb_str_puts(s, "nothing is found that keeps its requests");
	if (age >= prb_limit(PRB_LIMIT_REQUEST)) {
		prb_str_puts(s, ", though the oldest is ");
		prb_text_duration(s, age);
		prb_str_puts(s, " old");
	}
	prb_str_putc(s, '\n');
}

/** "16 of 256 running, 12 waiting": queues that are not empty. */
static void put_queues(struct prb_str *s, const struct prb_server_process *p)
{
	const struct prb_server_queue *queue;
	const char *comma = "";

	prb_vec_each (queue, &p->queues) {
		if (queue->count <= 0)
			continue;
		prb_str_printf(s, "%s%lld", comma, (long long)queue->count);
		if (p->limit >= 0 && !strcmp(queue->name, "running"))
			prb_str_printf(s, " of %lld", (long long)p->limit);
		prb_str_printf(s, " %s", queue->name);
		comma = ", ";
	}
}

static void put_doing(struct prb_str *s, const struct prb_server_process *p)
{
	const struct prb_case c = {.target = p->target, .dump = p->dump};
	const char *activity = prb_engine_activity_text(p->activity);

	if (p->unreadable) {
		prb_text_escape(s, p->unreadable);
		return;
	}
	if (activity)
		prb_str_printf(s, "%s, ", activity);
	if (main_thread(p))
		prb_case_put_doing(s, &c, main_thread(p));
}

/** A line "waits for engine core (4242): work". */
static void put_waits(struct prb_str *s, const struct prb_server_shown *shown, pid_t pid)
{
	const struct prb_server_wait *wait;
	const char *kind = NULL;

	prb_vec_each (wait, &shown->waits->list) {
		const struct prb_server_process *other =
			prb_server_find(&shown->looks->now, wait->other);

		if (wait->pid != pid || !other)
			continue;
		if (!kind)
			prb_text_spaces(s, PID_WIDTH + NAME_WIDTH);
		prb_str_puts(s, kind ? ", " : "waits for ");
		prb_text_escape(s, other->name ? other->name : "process");
		prb_str_printf(s, " (%d)", (int)other->pid);
		kind = wait->kind;
	}
	if (kind)
		prb_str_printf(s, ": %s\n", kind);
}

static void put_more(struct prb_str *s, const struct prb_server_looks *looks,
		     const struct prb_server_process *p)
{
	prb_auto_str struct prb_str line = {};
	double age = oldest(looks, p);

	if (p->paused > 0)
		prb_str_puts(&line, "paused by somebody, ");
	put_queues(&line, p);
	if (!line.length && p->requests.count)
		prb_str_printf(&line, "%zu requests", p->requests.count);
	if (age >= 0) {
		prb_str_puts(&line, ", the oldest is ");
		prb_text_duration(&line, age);
		prb_str_puts(&line, " old");
	}
	if (p->kv[PRB_KV_FREE] >= 0 && p->kv[PRB_KV_TOTAL] >= 0)
		prb_str_printf(&line, "%sKV cache: %lld of %lld %s free", line.length ? "; " : "",
			       (long long)p->kv[PRB_KV_FREE], (long long)p->kv[PRB_KV_TOTAL],
			       p->part && p->part->unit ? p->part->unit : "blocks");
	if (p->missing) {
		prb_str_puts(&line, line.length ? "; not read: " : "not read: ");
		prb_text_escape(&line, p->missing);
	}
	if (!line.length)
		return;
	prb_text_spaces(s, PID_WIDTH + NAME_WIDTH);
	prb_str_puts(s, prb_str_text(&line));
	prb_str_putc(s, '\n');
}

static void put_process(struct prb_str *s, const struct prb_server_shown *shown,
			const struct prb_server_process *p)
{
	prb_auto_str struct prb_str pid = {};

	prb_str_printf(&pid, "%d", (int)p->pid);
	prb_text_column(s, prb_str_text(&pid), PID_WIDTH);
	prb_text_column(s, p->name ? p->name : "-", NAME_WIDTH);
	put_doing(s, p);
	prb_str_putc(s, '\n');
	put_more(s, shown->looks, p);
	put_waits(s, shown, p->pid);
}

/** "vLLM 0.33.0", of the first process that says it. */
static const struct prb_server_process *named(const struct prb_server *server)
{
	struct prb_server_process *const *p;

	prb_vec_each (p, &server->processes)
		if ((*p)->engine)
			return *p;
	return NULL;
}

void prb_server_text(const struct prb_server_shown *shown, struct prb_str *out)
{
	const struct prb_server_looks *looks = shown->looks;
	const struct prb_server_process *name = named(&looks->now);
	struct prb_server_process *const *p;
	struct prb_finding *const *finding;

	if (name) {
		prb_text_escape(out, name->engine->name);
		if (name->version) {
			prb_str_putc(out, ' ');
			prb_text_escape(out, name->version);
		}
		prb_str_printf(out, ", %zu process%s\n", looks->now.processes.count,
			       looks->now.processes.count == 1 ? "" : "es");
	}
	prb_vec_each (finding, &shown->findings->list)
		prb_finding_text(out, *finding);
	if (!shown->findings->list.count)
		put_nothing(out, looks);
	prb_str_putc(out, '\n');
	prb_vec_each (p, &looks->now.processes)
		put_process(out, shown, *p);
}

/** How many requests are younger than each bound; the last has none. Those of unknown age are in no
 * part. */
static void put_ages(struct prb_json *json, const struct prb_server_looks *looks,
		     const struct prb_server_process *p)
{
	static const double BOUNDS[] = {1, 10, 60, 600, 3600};
	enum { PARTS = PRB_ARRAY_SIZE(BOUNDS) + 1 };
	const struct prb_server_request *request;
	int64_t counts[PARTS] = {};

	prb_vec_each (request, &p->requests) {
		double age = looks->time - request->arrival;
		size_t part = 0;

		while (part < PRB_ARRAY_SIZE(BOUNDS) && age >= BOUNDS[part])
			part++;
		if (!isnan(age))
			counts[part]++;
	}
	prb_json_open(json, "ages", '[');
	for (size_t i = 0; i < PARTS; i++) {
		prb_json_open(json, NULL, '{');
		prb_json_natural(json, "below_seconds",
				 i < PRB_ARRAY_SIZE(BOUNDS) ? (int64_t)BOUNDS[i] : -1);
		prb_json_integer(json, "requests", counts[i]);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
}

static void put_process_json(struct prb_json *json, const struct prb_server_shown *shown,
			     const struct prb_server_process *p)
{
	prb_auto_str struct prb_str doing = {};
	const struct prb_server_queue *queue;
	const struct prb_server_wait *wait;
	double age = oldest(shown->looks, p);

	put_doing(&doing, p);
	prb_json_open(json, NULL, '{');
	prb_json_integer(json, "pid", p->pid);
	prb_json_text(json, "part", p->name);
	prb_json_text(json, "role", p->part ? prb_engine_role_name(p->part->role) : NULL);
	prb_json_text(json, "activity", prb_engine_activity_text(p->activity));
	prb_json_text(json, "doing", prb_str_text(&doing));
	prb_json_natural(json, "requests", (int64_t)p->requests.count);
	prb_json_real(json, "oldest_seconds", age, 3);
	put_ages(json, shown->looks, p);
	prb_json_open(json, "queues", '{');
	prb_vec_each (queue, &p->queues)
		prb_json_natural(json, queue->name, queue->count);
	prb_json_close(json, '}');
	prb_json_open(json, "waits_for", '[');
	prb_vec_each (wait, &shown->waits->list) {
		if (wait->pid != p->pid)
			continue;
		prb_json_open(json, NULL, '{');
		prb_json_integer(json, "pid", wait->other);
		prb_json_text(json, "kind", wait->kind);
		prb_json_close(json, '}');
	}
	prb_json_close(json, ']');
	if (p->paused >= 0)
		prb_json_bool(json, "paused", p->paused);
	prb_json_natural(json, "kv_total", p->kv[PRB_KV_TOTAL]);
	prb_json_natural(json, "kv_free", p->kv[PRB_KV_FREE]);
	prb_json_natural(json, "kv_cached", p->kv[PRB_KV_CACHED]);
	prb_json_text(json, "missing", p->missing);
	prb_json_text(json, "unreadable", p->unreadable);
	prb_json_close(json, '}');
}

void prb_server_json(const struct prb_server_shown *shown, pid_t pid, struct prb_str *out)
{
	const struct prb_server_looks *looks = shown->looks;
	const struct prb_server_process *name = named(&looks->now);
	struct prb_server_process *const *p;
	struct prb_finding *const *finding;
	struct prb_json json = {out};
	prb_auto_free char *id = prb_format("%d", (int)pid);

	prb_json_open(&json, NULL, '{');
	prb_json_real(&json, "time", looks->time, 3);
	prb_json_text(&json, "engine", name ? name->engine->name : NULL);
	prb_json_text(&json, "version", name ? name->version : NULL);
	prb_json_open(&json, "findings", '[');
	prb_vec_each (finding, &shown->findings->list) {
		prb_json_open(&json, NULL, '{');
		prb_json_text(&json, "id", id);
		prb_finding_members(&json, *finding, pid);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_open(&json, "processes", '[');
	prb_vec_each (p, &looks->now.processes)
		put_process_json(&json, shown, *p);
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(out, '\n');
}
