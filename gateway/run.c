/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests that a command answers: started, watched, and streamed. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/checked.h"
#include "gateway/gateway_private.h"

/** A command whose answer comes slowly is waited for so long before its beginning is sent. */
static const double HEAD_SECONDS = 1;
/** A client that has closed its end may only have nothing more to say: it gets so long. */
static const double LEFT_SECONDS = 2;
static const double LIMIT_SECONDS = 30;

bool prb_request_suspend(struct prb_request *r)
{
	if (r->gateway->ends)
		return false;
	prb_mhd.suspend_connection(r->mhd);
	r->suspended = true;
	return true;
}

void prb_request_resume(struct prb_request *r)
{
	if (r->suspended)
		prb_mhd.resume_connection(r->mhd);
	r->suspended = false;
}

/** The answer, or its beginning, can be sent. */
static void set_ready(struct prb_request *r)
{
	r->state = PRB_REQUEST_ANSWERED;
	if (r->route->writes)
		r->gateway->changed = r->gateway->now;
	if (!r->status)
		r->status = 200;
	prb_request_resume(r);
}

static void fail(struct prb_request *r, struct prb_error *err)
{
	prb_child_kill(&r->child, r->gateway->now);
	if (r->every > 0 && r->status == 200)
		prb_event_make(r, err);
	else
		prb_reply_error(r, err);
	r->over = true;
	set_ready(r);
}

/** The number of running commands of lasting requests, or of all others. */
static size_t running(const struct prb_gateway *g, bool lasting)
{
	size_t count = lasting ? 0 : g->dying.count;

	for (size_t i = 0; i < g->waiting.count; i++)
		count += g->waiting.items[i]->child.pid && g->waiting.items[i]->lasts == lasting;
	return count;
}

/** Another request of its kind is being answered: it waits. */
static bool waits_its_turn(const struct prb_request *r)
{
	const struct prb_gateway *g = r->gateway;

	if ((r->route->shared > 0 && prb_shared_is_made(r)) || prb_event_is_made(r))
		return true;
	for (size_t i = 0; r->alone && i < g->waiting.count; i++)
		if (g->waiting.items[i]->alone && g->waiting.items[i]->child.pid)
			return true;
	return false;
}

static void begin(struct prb_request *r)
{
	struct prb_error *err = r->terminal ? prb_terminal_begin(r)
					    : prb_child_start(&r->child, &r->words,
							      r->has_input ? &r->input : NULL, -1);

	if (err) {
		fail(r, err);
		return;
	}
	r->state = PRB_REQUEST_RUNS;
	r->since = r->gateway->now;
	r->child.until = r->gateway->now + r->limit;
}

/** Adds the request to the waiting ones. */
static bool wait_for_answer(struct prb_request *r)
{
	struct prb_request **place;

	if (!prb_request_suspend(r)) {
		prb_reply_error(r, prb_error_create(PRB_ERROR_CANCELLED, "the gateway ends"));
		return false;
	}
	place = prb_vec_push(&r->gateway->waiting);
	if (!place) {
		prb_request_resume(r);
		prb_reply_error(r, prb_error_nomem());
		return false;
	}
	*place = r;
	if (r->limit <= 0)
		r->limit = LIMIT_SECONDS;
	r->since = r->gateway->now;
	r->state = PRB_REQUEST_QUEUED;
	return true;
}

void prb_request_start(struct prb_request *r)
{
	if (r->lasts && running(r->gateway, true) >= PRB_GATEWAY_MAX_LASTING) {
		prb_reply_error(r, prb_error_create(PRB_ERROR_CANCELLED,
						    "%d requests that last are answered already",
						    PRB_GATEWAY_MAX_LASTING));
		return;
	}
	if (r->route->shared > 0 && prb_shared_take(r, r->gateway->now - r->route->shared))
		return;
	if (!wait_for_answer(r))
		return;
	if (r->lasts ||
	    (running(r->gateway, false) < PRB_GATEWAY_MAX_CHILDREN && !waits_its_turn(r)))
		begin(r);
}

/** Reads what the command has printed; false: there is too much of it. */
static bool fill(struct prb_request *r)
{
	bool whole = r->finish || r->every > 0;
	size_t most = whole ? PRB_GATEWAY_MAX_ANSWER : PRB_GATEWAY_HEAD;

	prb_child_receive(&r->child, most, &r->reply);
	return !r->reply.failed && (!whole || r->reply.length < most);
}

/** The error of a command; if its process has ended meanwhile, that is the reason. */
static struct prb_error *judge(struct prb_request *r)
{
	struct prb_error *err = prb_child_judge(&r->child);
	pid_t pid = err && *r->id ? prb_served_pid(&r->gateway->served, r->id) : 0;

	r->refused = err;
	if (!pid || err->code == PRB_ERROR_TIMEOUT || !kill(pid, 0) || errno != ESRCH)
		return err;
	prb_error_destroy(err);
	return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has ended", (int)pid);
}

static void finish(struct prb_request *r)
{
	struct prb_error *err = judge(r);

	if (err && r->tells_failure && r->reply.length) {
		prb_error_destroy(err);
		err = NULL;
	}
	if (!err && r->finish)
		err = r->finish(r);
	if (!err && r->every > 0)
		prb_event_make(r, NULL);
	if (!err)
		prb_shared_put(r);
	if (err) {
		fail(r, err);
		return;
	}
	set_ready(r);
	for (struct prb_request *other; r->every > 0 && (other = prb_event_give(r));)
		set_ready(other);
}

/** Nothing was answered yet. */
static void watch(struct prb_request *r, double now)
{
	if (!fill(r)) {
		fail(r, prb_error_create(PRB_ERROR_FAILED, "the answer has over %d MiB",
					 PRB_GATEWAY_MAX_ANSWER >> 20));
		return;
	}
	if (r->terminal)
		/* Its client wants to know the name, whatever is shown when. */
		set_ready(r);
	else if (r->child.out < 0 && r->child.ended)
		finish(r);
	else if (!r->finish && !(r->every > 0) && r->reply.length &&
		 (r->lasts || r->reply.length >= PRB_GATEWAY_HEAD || now > r->since + HEAD_SECONDS))
		set_ready(r);
}

static bool can_be_read(int fd)
{
	struct pollfd one = {.fd = fd, .events = POLLIN};

	return fd >= 0 && poll(&one, 1, 0) > 0;
}

/** True if the client is gone. */
static bool is_left(struct prb_request *r, double now)
{
	struct pollfd one = {.fd = r->connection->fd, .events = POLLRDHUP};

	if (poll(&one, 1, 0) <= 0)
		return false;
	if (!(r->left > 0))
		r->left = now;
	return one.revents & (POLLHUP | POLLERR) || now > r->left + LEFT_SECONDS;
}

/** Takes the overview if there is one; true: it was answered. */
static bool take_overview(struct prb_request *r, struct prb_error **err)
{
	const struct prb_str *look;

	*err = prb_overview_keeper_ask(&r->gateway->overview, &r->gateway->served,
				       prb_param_flag(r, "early"), r->gateway->now, &look);
	if (*err || !look)
		return false;
	prb_str_append(&r->reply, look->data, look->length);
	return true;
}

/** Takes the metrics if they were read for this request, or for another one a moment ago. */
static bool take_scrape(struct prb_request *r, struct prb_error **err)
{
	double asked = r->state == PRB_REQUEST_QUEUED ? r->since : r->gateway->now;
	const struct prb_str *text;

	*err = prb_scraper_ask(&r->gateway->scraper, &r->gateway->served, asked - r->route->shared,
			       r->gateway->now, &text);
	if (*err || !text)
		return false;
	prb_str_append(&r->reply, text->data, text->length);
	return true;
}

static struct prb_error *answer_by(struct prb_request *r,
				   bool (*take)(struct prb_request *r, struct prb_error **err))
{
	struct prb_error *err;

	if (!take(r, &err) && !err) {
		r->take = take;
		wait_for_answer(r);
	}
	return err;
}

struct prb_error *prb_answer_overview(struct prb_request *r)
{
	return answer_by(r, take_overview);
}

struct prb_error *prb_answer_scrape(struct prb_request *r)
{
	return answer_by(r, take_scrape);
}

static void tend_taking(struct prb_request *r)
{
	struct prb_error *err = NULL;

	if (r->state != PRB_REQUEST_QUEUED)
		return;
	if (r->take(r, &err))
		set_ready(r);
	else if (!err && r->gateway->now > r->since + r->limit)
		err = prb_error_hint(
			prb_error_create(PRB_ERROR_TIMEOUT, "reading all takes too long"),
			"ask again when the machine is less busy");
	if (err)
		fail(r, err);
}

static void tend(struct prb_request *r, bool may_begin)
{
	double now = r->gateway->now;

	prb_child_tend(&r->child, now);
	if (!r->suspended)
		return;
	if (is_left(r, now)) {
		fail(r, prb_error_create(PRB_ERROR_CANCELLED, "the client has left"));
		return;
	}
	if (r->take) {
		tend_taking(r);
		return;
	}
	if (r->state == PRB_REQUEST_RESTS && prb_event_is_due(r)) {
		prb_child_deinit(&r->child);
		r->child = (struct prb_child){.out = -1, .err = -1};
		r->since = now;
		r->state = PRB_REQUEST_QUEUED;
	}
	if (r->state == PRB_REQUEST_QUEUED && r->route->shared > 0 &&
	    prb_shared_take(r, r->since)) {
		set_ready(r);
		return;
	}
	if (r->state == PRB_REQUEST_QUEUED && may_begin && !waits_its_turn(r))
		begin(r);
	else if (r->state == PRB_REQUEST_QUEUED && now > r->since + r->limit)
		fail(r, prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
							"too many requests are being answered"),
				       "ask again later"));
	if (r->state == PRB_REQUEST_RUNS)
		watch(r, now);
	else if (r->state == PRB_REQUEST_ANSWERED && r->suspended && !(r->every > 0) &&
		 (can_be_read(r->child.out) || (r->child.out < 0 && r->child.ended)))
		prb_request_resume(r);
}

void prb_requests_tend(struct prb_gateway *g)
{
	size_t busy = running(g, false);

	for (size_t i = 0; i < g->waiting.count; i++) {
		struct prb_request *r = g->waiting.items[i];
		bool was = r->child.pid != 0;

		tend(r, busy < PRB_GATEWAY_MAX_CHILDREN);
		prb_terminal_tend(r);
		busy += !was && r->child.pid && !r->lasts;
	}
}

ssize_t prb_request_read(void *context, uint64_t at, char *buffer, size_t max)
{
	struct prb_request *r = context;
	ssize_t got;

	if (at < r->reply.length) {
		size_t part = PRB_MIN(r->reply.length - (size_t)at, max);

		memcpy(buffer, r->reply.data + at, part);
		return (ssize_t)part;
	}
	got = r->child.out >= 0 ? read(r->child.out, buffer, max) : 0;
	if (got > 0)
		return got;
	/* A terminal ends with an error. */
	if (r->child.out >= 0 && (!got || (errno != EAGAIN && errno != EINTR))) {
		close(r->child.out);
		r->child.out = -1;
	}
	if (r->child.out < 0)
		prb_child_tend(&r->child, r->gateway->now);
	if (r->child.out >= 0 || r->child.pid)
		return prb_request_suspend(r) ? 0 : MHD_CONTENT_READER_END_WITH_ERROR;
	if (r->gateway->ends)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	struct prb_error *err = prb_child_judge(&r->child);

	/* A client must not take a part for the whole: the answer has no end then. */
	prb_error_destroy(err);
	return err && !r->terminal ? MHD_CONTENT_READER_END_WITH_ERROR
				   : MHD_CONTENT_READER_END_OF_STREAM;
}

void prb_requests_end(struct prb_gateway *g)
{
	g->ends = true;
	for (size_t i = 0; i < g->waiting.count; i++) {
		prb_child_deinit(&g->waiting.items[i]->child);
		prb_request_resume(g->waiting.items[i]);
	}
}

static void take_out(struct prb_gateway *g, const struct prb_request *r)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->waiting.count; i++)
		if (g->waiting.items[i] != r)
			g->waiting.items[kept++] = g->waiting.items[i];
	g->waiting.count = kept;
}

/** Lets a command without a client end by itself, to be reaped then. */
static void let_die(struct prb_request *r)
{
	struct prb_child *place = r->child.pid ? prb_vec_push(&r->gateway->dying) : NULL;

	if (!place) {
		prb_child_deinit(&r->child);
		return;
	}
	if (r->child.out >= 0)
		close(r->child.out);
	r->child.out = -1;
	prb_child_kill(&r->child, r->gateway->now);
	*place = r->child;
}

void prb_request_forget(struct prb_request *r)
{
	take_out(r->gateway, r);
	let_die(r);
	for (size_t i = 0; i < PRB_ROUTE_MAX_PARAMS; i++)
		free(r->values[i]);
	prb_words_deinit(&r->words);
	prb_str_deinit(&r->input);
	prb_str_deinit(&r->typed);
	prb_str_deinit(&r->body);
	prb_str_deinit(&r->reply);
	free(r->file);
	free(r->method);
	free(r->path);
	free(r);
}
