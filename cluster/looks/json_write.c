/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/map.h"
#include "base/pool.h"
#include "cluster/looks/call.h"
#include "cluster/looks/flight.h"
#include "cluster/looks/pace_spots.h"
#include "cluster/looks/json_private.h"

/** The different frames of all stacks, each as JSON: ranks of a job have most of them in common. */
struct frames {
	struct prb_pool *pool;	     /* of their texts */
	struct prb_number_map index; /* by the address in the pool */
	struct prb_str list;
	size_t count;
	bool failed; /* out of memory */
};

static void put_frame(struct prb_json *json, const struct prb_dump_frame *frame)
{
	prb_json_open(json, NULL, '{');
	prb_json_integer(json, "kind", frame->kind);
	prb_json_text(json, "func", frame->func);
	prb_json_text(json, "qualname", frame->qualname);
	prb_json_text(json, "module", frame->module);
	prb_json_text(json, "file", frame->file);
	prb_json_integer(json, "line", frame->line);
	prb_json_integer(json, "ip", (int64_t)frame->ip);
	prb_json_close(json, '}');
}

/** The number of the frame, which is added if it is new. */
static size_t number_of(struct frames *frames, const struct prb_dump_frame *frame)
{
	prb_auto_str struct prb_str text = {};
	struct prb_json json = {&text};
	size_t number = frames->count;
	const char *known;

	put_frame(&json, frame);
	prb_auto_error struct prb_error *err =
		text.failed ? prb_error_nomem()
			    : prb_pool_share(frames->pool, prb_str_text(&text), &known);
	frames->failed |= err != NULL;
	if (frames->failed || prb_number_map_get(&frames->index, (uintptr_t)known, &number))
		return number;
	frames->failed |= !prb_number_map_put(&frames->index, (uintptr_t)known, number);
	prb_str_puts(&frames->list, number ? "," : "");
	prb_str_puts(&frames->list, known);
	return frames->count++;
}

static void put_thread(struct prb_json *json, const struct prb_dump_thread *thread,
		       struct frames *frames)
{
	const struct prb_dump_frame *frame;

	prb_json_open(json, NULL, '{');
	prb_json_integer(json, "tid", thread->tid);
	prb_json_text(json, "name", thread->name);
	prb_json_text(json, "os_name", thread->os_name);
	prb_json_text(json, "state", thread->state);
	prb_json_real(json, "idle", thread->idle_seconds, 3);
	prb_json_text(json, "waits_for", thread->waits_for);
	prb_json_text(json, "in_c", thread->in_c);
	prb_json_text(json, "gil", thread->gil);
	prb_json_text(json, "error", thread->error);
	prb_json_open(json, "frames", '[');
	prb_vec_each (frame, &thread->frames)
		prb_json_integer(json, NULL, (int64_t)number_of(frames, frame));
	prb_json_close(json, ']');
	prb_json_close(json, '}');
}

static void put_pace(struct prb_json *json, const struct prb_pace *pace)
{
	const struct prb_spot *spot;

	prb_json_integer(json, "looks", pace->looks);
	prb_json_integer(json, "waiting", pace->waiting);
	prb_json_real(json, "seconds", pace->seconds, 3);
	prb_json_integer(json, "steps", pace->steps);
	prb_json_open(json, "spots", '{');
	prb_vec_each (spot, &pace->spots)
		prb_json_integer(json, spot->name, spot->count);
	prb_json_close(json, '}');
}

static void put_call(struct prb_json *json, const struct prb_call *call)
{
	prb_json_open(json, "call", '{');
	prb_json_integer(json, "peer", call->peer);
	prb_json_integer(json, "tag", call->tag);
	prb_json_text(json, "group", call->group);
	prb_json_text(json, "members", call->members);
	prb_json_bool(json, "known", call->known);
	prb_json_text(json, "data", call->data);
	prb_json_close(json, '}');
}

static void put_seen(struct prb_json *json, const struct prb_seen *seen, bool all, bool redact,
		     struct frames *frames)
{
	const struct prb_dump_thread *thread;
	const char state[2] = {seen->state, '\0'}, before[2] = {seen->state_before, '\0'};

	prb_json_bool(json, "gone", seen->gone);
	prb_json_text(json, "error", seen->error);
	prb_json_text(json, "state", state);
	prb_json_text(json, "state_before", before);
	prb_json_integer(json, "movement", seen->movement);
	prb_json_bool(json, "polls", seen->polls);
	prb_json_bool(json, "entered", seen->entered);
	prb_json_text(json, "worker", seen->worker);
	prb_json_text(json, "cycle", seen->cycle);
	prb_json_text(json, "holder", seen->holder);
	prb_json_text(json, "chain", seen->chain);
	prb_json_integer(json, "keeper", seen->keeper);
	prb_json_bool(json, "holds", seen->holds);
	prb_json_bool(json, "guessed", seen->guessed);
	prb_json_text(json, "end", seen->end);
	prb_json_text(json, "end_log", redact ? NULL : seen->end_log);
	prb_json_bool(json, "end_known", seen->end_known);
	if (seen->pace)
		put_pace(json, seen->pace);
	if (seen->call)
		put_call(json, seen->call);
	if (seen->flight)
		prb_flight_put(json, "flight", seen->flight);
	prb_json_text(json, "no_flight", seen->no_flight);
	prb_json_integer(json, "main", seen->main ? seen->main->tid : 0);
	prb_json_open(json, "threads", '[');
	if (seen->main && !all)
		put_thread(json, seen->main, frames);
	else if (seen->dump)
		prb_vec_each (thread, &seen->dump->threads)
			put_thread(json, thread, frames);
	prb_json_close(json, ']');
}

void prb_looks_write(const struct prb_job *job, const struct prb_round *round, bool all,
		     bool redact, struct prb_str *s)
{
	struct prb_json json = {s};
	struct frames frames = {};
	prb_auto_error struct prb_error *err = prb_pool_create(&frames.pool);

	frames.failed = err != NULL;
	prb_json_open(&json, NULL, '{');
	prb_json_integer(&json, "format", PRB_LOOKS_FORMAT);
	prb_json_text(&json, "job", job->name);
	prb_json_integer(&json, "uid", job->uid);
	prb_json_natural(&json, "world_size", job->world_size);
	prb_json_real(&json, "span", round->span, 6);
	prb_json_open(&json, "ranks", '[');
	for (size_t i = 0; i < job->ranks.count; i++) {
		const struct prb_rank *rank = &job->ranks.items[i];

		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "rank", rank->rank);
		prb_json_integer(&json, "local_rank", rank->local_rank);
		prb_json_integer(&json, "pid", rank->pid);
		prb_json_text(&json, "command", redact ? rank->cut : rank->command);
		prb_json_text(&json, "role", rank->role);
		put_seen(&json, &round->list.items[i], all, redact, &frames);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_str_puts(s, ",\"frames\":[");
	prb_str_puts(s, prb_str_text(&frames.list));
	prb_str_puts(s, "]}\n");
	s->failed |= frames.failed || frames.list.failed;
	prb_str_deinit(&frames.list);
	prb_number_map_deinit(&frames.index);
	prb_pool_destroy(frames.pool);
}

void prb_looks_write_silent(struct prb_str *s, const char *job, uid_t uid, const char *host,
			    const char *why, const long *ranks, size_t count)
{
	struct prb_json json = {s};

	prb_json_open(&json, NULL, '{');
	prb_json_text(&json, "host", host);
	prb_json_integer(&json, "format", PRB_LOOKS_FORMAT);
	prb_json_text(&json, "job", job);
	prb_json_integer(&json, "uid", uid);
	prb_json_text(&json, "error", why);
	prb_json_open(&json, "ranks", '[');
	for (size_t i = 0; i < count; i++) {
		prb_json_open(&json, NULL, '{');
		prb_json_integer(&json, "rank", ranks[i]);
		prb_json_integer(&json, "pid", 0);
		prb_json_text(&json, "error", why);
		prb_json_close(&json, '}');
	}
	prb_json_close(&json, ']');
	prb_json_close(&json, '}');
	prb_str_putc(s, '\n');
}

void prb_looks_name(struct prb_str *s, const char *host, const char *text, size_t length)
{
	const char *brace = memchr(text, '{', length);

	prb_str_puts(s, "{\"host\":");
	prb_json_quote(s, host, strlen(host));
	prb_str_putc(s, ',');
	if (brace)
		prb_str_append(s, brace + 1, length - (size_t)(brace + 1 - text));
}
