/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "clickhouse/ship.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/own_file.h"
#include "base/clock.h"
#include "clickhouse/ship_private.h"
#include "command/exit.h"

enum { FOLDER_MODE = 0700 };

/* Seconds. */
static const double QUICK = 0.05, FIRST_RETRY = 1, MOST_RETRY = 30, SAVE_EVERY = 5,
		    PRUNE_EVERY = 60, PRUNE_AWAY = 5, LAST_INSERT = 5;

static bool is_told(struct prb_ship *ship)
{
	struct signalfd_siginfo info;

	while (read(ship->signals, &info, sizeof(info)) == sizeof(info)) {
		if (!ship->stopping)
			ship->stop_since = prb_clock_seconds();
		ship->stopping = true;
	}
	return ship->stopping;
}

/** A full disk is said once a minute; rows are sent as ever. */
static struct prb_error *bear_disk(struct prb_ship *ship, struct prb_error *err)
{
	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	if (err && !ship->disk_failed)
		prb_warn(err->message);
	ship->disk_failed |= err != NULL;
	prb_error_destroy(err);
	return NULL;
}

/** Chunks that a ring would drop while the server is away or slow. */
static struct prb_error *store_all(struct prb_ship *ship)
{
	for (size_t i = 0; i < ship->sources.count; i++)
		PRB_TRY(bear_disk(ship, prb_ship_store(ship, ship->sources.items[i])));
	return NULL;
}

/** While a request runs: rings fill meanwhile, and it may end by itself for some seconds. */
static bool must_stop(void *context)
{
	struct prb_ship *ship = context;

	prb_error_destroy(store_all(ship));
	return is_told(ship) && prb_clock_seconds() - ship->stop_since > LAST_INSERT;
}

static struct prb_error *catch_signals(struct prb_ship *ship, sigset_t *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, before);
	ship->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	return ship->signals < 0 ? prb_error_os(errno, "cannot wait for signals") : NULL;
}

static struct prb_error *open_waiting(struct prb_ship *ship)
{
	prb_auto_free char *name = prb_format("%s.waiting", strrchr(ship->state.path, '/') + 1);

	if (!name)
		return prb_error_nomem();
	ship->waiting = prb_own_folder_in(ship->state.folder_fd, name, FOLDER_MODE);
	return ship->waiting < 0
		       ? prb_error_os(errno, "cannot open %s/%s", ship->state.folder, name)
		       : NULL;
}

/** Each ring that is followed is an open file. */
static void raise_limit(struct prb_ship *ship)
{
	struct rlimit limit = {.rlim_cur = 1024};

	ship->most_sources = PRB_SHIP_SOURCES;
	ship->crowded_by = (uid_t)-1;
	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	getrlimit(RLIMIT_NOFILE, &limit);
	ship->most_sources =
		(size_t)PRB_MIN((rlim_t)PRB_SHIP_SOURCES, limit.rlim_cur - limit.rlim_cur / 4);
}

static struct prb_error *start(struct prb_ship *ship, sigset_t *before)
{
	const char *host = ship->options->host;

	if (host)
		snprintf(ship->host, sizeof(ship->host), "%s", host);
	else if (gethostname(ship->host, sizeof(ship->host) - 1))
		return prb_error_os(errno, "cannot read the name of this machine");
	raise_limit(ship);
	PRB_TRY(prb_clickhouse_open(ship->options->to, ship->options->password_file,
				    &ship->server));
	PRB_TRY(prb_ship_state_open(ship->options->state, &ship->server.url, &ship->state));
	PRB_TRY(open_waiting(ship));
	PRB_TRY(catch_signals(ship, before));
	ship->server.stop = must_stop;
	ship->server.stop_context = ship;
	return NULL;
}

static void end(struct prb_ship *ship)
{
	struct prb_ship_process *process;
	struct prb_ship_table *table;

	prb_ship_end_metrics(ship);
	for (size_t i = 0; i < ship->sources.count; i++) {
		const struct prb_ship_source *source = ship->sources.items[i];

		if (source->placed && source->next >= source->head)
			prb_ship_remove_metrics(ship, source);
		prb_ship_source_destroy(ship->sources.items[i]);
	}
	prb_vec_each (process, &ship->processes)
		prb_ship_process_deinit(process);
	prb_vec_each (table, &ship->tables)
		prb_table_deinit(&table->there);
	prb_vec_free(&ship->sources);
	prb_vec_free(&ship->processes);
	prb_pids_deinit(&ship->pids);
	prb_vec_free(&ship->tables);
	prb_str_deinit(&ship->batch);
	prb_close_guard(&ship->waiting);
	prb_close_guard(&ship->signals);
	prb_ship_state_deinit(&ship->state);
	prb_clickhouse_close(&ship->server);
}

/** A refused ring stays in the list while its file exists, so that its warning is given once. */
static bool is_gone(const struct prb_ship_source *source)
{
	struct stat st;

	return source->fd >= 0 && !fstat(source->fd, &st) && !st.st_nlink;
}

/** Forgets rings that have ended, of which everything has arrived. */
static void drop_ended(struct prb_ship *ship)
{
	for (size_t i = 0; i < ship->sources.count; i++) {
		struct prb_ship_source *source = ship->sources.items[i];
		bool over;

		prb_ship_look(source);
		over = source->placed && source->next >= source->head;

		ship->sums.lost += source->lost;
		ship->sums.unfinished += source->unfinished;
		source->lost = source->unfinished = 0;
		if (!source->ended || (source->refused ? !is_gone(source) : !over))
			continue;
		prb_ship_remove_metrics(ship, source);
		prb_ship_source_destroy(source);
		ship->sources.items[i--] = ship->sources.items[--ship->sources.count];
	}
}

/** True if a ring fills so fast that it would be full before the usual wait is over. */
static bool is_busy(const struct prb_ship *ship)
{
	for (size_t i = 0; i < ship->sources.count; i++) {
		const struct prb_ship_source *source = ship->sources.items[i];
		const uint64_t slots = (uint64_t)source->header.chunks
				       << source->header.chunk_shift;

		if (!source->ended && source->placed && source->head - source->next > slots / 8)
			return true;
	}
	return false;
}

/** All that there is was sent; with --once, all that there was. */
static bool is_done(const struct prb_ship *ship)
{
	const bool read = ship->options->metrics <= 0 || ship->metrics.readings;
	bool done = ship->settled && ship->fenced && (read || !ship->options->once) &&
		    !ship->metrics.child;

	for (size_t i = 0; i < ship->sources.count; i++) {
		const struct prb_ship_source *source = ship->sources.items[i];

		/* A recorder writes the end of a recording after the process has ended. */
		done &= source->refused ||
			(source->placed &&
			 source->next >= (ship->options->once ? source->goal : source->head) &&
			 (ship->options->once || source->ended ||
			  source->kind != PRB_SHIP_RECORDING));
	}
	return done;
}

/** Named processes have all ended, and what they wrote was sent. */
static bool is_over(const struct prb_ship *ship)
{
	return ship->options->targets && ship->options->targets->count && !ship->processes.count &&
	       is_done(ship);
}

/** Until something happens, or @p seconds have passed. */
static struct prb_error *rest(struct prb_ship *ship, double seconds)
{
	PRB_VEC(struct pollfd) polled = {};
	struct pollfd *p =
		prb_vec_reserve(&polled, ship->processes.count + 2) ? prb_vec_push(&polled) : NULL;
	struct prb_ship_process *process;

	if (!p)
		return prb_error_nomem();
	*p = (struct pollfd){.fd = ship->signals, .events = POLLIN};
	prb_vec_each (process, &ship->processes) {
		p = prb_vec_push(&polled);
		*p = (struct pollfd){.fd = process->pidfd, .events = POLLIN};
	}
	p = prb_vec_push(&polled); /* there is room */
	if (p)
		*p = (struct pollfd){.fd = ship->metrics.from_child, .events = POLLIN};
	poll(polled.items, polled.count, (int)(seconds * 1000) + 1);
	for (size_t i = 0; i < ship->processes.count; i++)
		ship->processes.items[i].ended |= (polled.items[i + 1].revents & POLLIN) != 0;
	prb_vec_free(&polled);
	is_told(ship);
	return NULL;
}

/** A password may be changed while a daemon runs: its file is read again. */
static struct prb_error *bear_refusal(struct prb_ship *ship)
{
	struct prb_error *err = prb_clickhouse_log_in(&ship->server, ship->options->password_file);

	if (err && err->code == PRB_ERROR_NOMEM)
		return err;
	prb_error_destroy(err); /* it is being written: later */
	return NULL;
}

/** Reports an unreachable server once. */
static struct prb_error *bear(struct prb_ship *ship, struct prb_error *err, double *retry)
{
	const bool refused = err->code == PRB_ERROR_PERMISSION;
	prb_auto_str struct prb_str text = {};

	if (ship->options->once || err->code == PRB_ERROR_NOMEM ||
	    err->code == PRB_ERROR_UNSUPPORTED || err->code == PRB_ERROR_USAGE ||
	    (refused && !ship->options->patient && !ship->server.major) ||
	    err->code == PRB_ERROR_OS)
		return err;
	if (!*retry && !ship->stopping) {
		prb_str_printf(&text, "%s; rows wait%s%s", err->message, err->hint ? "\n" : "",
			       err->hint ? err->hint : "");
		prb_warn(prb_str_text(&text));
	}
	*retry = *retry ? PRB_MIN(2 * *retry, MOST_RETRY) : FIRST_RETRY;
	prb_error_destroy(err);
	return refused ? bear_refusal(ship) : NULL;
}

struct timing {
	double retry; /* how long to wait for the server; 0: it answers */
	double next_send, next_save, next_prune;
};

static struct prb_error *send_in_time(struct prb_ship *ship, struct timing *t, bool *more)
{
	const double now = prb_clock_seconds();
	struct prb_error *err;

	*more = false;
	if (now < t->next_send)
		return NULL;
	err = prb_ship_send(ship, more);
	t->next_send = prb_clock_seconds() + (*more ? 0 : prb_ship_every(ship));
	if (err) {
		*more = false;
		PRB_TRY(bear(ship, err, &t->retry));
		t->next_send = prb_clock_seconds() + t->retry;
		/* Waiting rows pile up from now on. */
		t->next_prune = PRB_MIN(t->next_prune, now + PRUNE_AWAY);
	} else if (t->retry) {
		fprintf(stderr, "probing: the server answers again\n");
		t->retry = 0;
		ship->bound_told = false;
	}
	return NULL;
}

/** A daemon that runs for good says it when it happens, not at its end only. */
static void tell_lost(struct prb_ship *ship)
{
	prb_auto_str struct prb_str text = {};

	if (ship->sums.lost == ship->lost_told)
		return;
	prb_str_printf(&text, "%" PRIu64 " slots of rings were dropped before they could be sent",
		       ship->sums.lost - ship->lost_told);
	prb_warn(prb_str_text(&text));
	ship->lost_told = ship->sums.lost;
}

static struct prb_error *keep_house(struct prb_ship *ship, struct timing *t)
{
	const double now = prb_clock_seconds();

	PRB_TRY(store_all(ship));
	drop_ended(ship);
	if (now >= t->next_save) {
		/* Without it, positions are asked of the server. */
		PRB_TRY(bear_disk(ship, prb_ship_state_save(&ship->state)));
		tell_lost(ship);
		t->next_save = now + SAVE_EVERY;
	}
	if (now >= t->next_prune) {
		ship->disk_failed = false;
		PRB_TRY(prb_ship_prune(ship));
		t->next_prune = now + (t->retry > 0 ? PRUNE_AWAY : PRUNE_EVERY);
	}
	return NULL;
}

static struct prb_error *run(struct prb_ship *ship)
{
	struct timing t = {};

	while (!ship->stopping) {
		bool more;

		PRB_TRY(prb_ship_find(ship));
		if (!ship->settled) {
			PRB_TRY(prb_ship_adopt_metrics(ship));
			PRB_TRY(prb_ship_adopt(ship));
		}
		ship->settled = true;
		PRB_TRY(prb_ship_read_metrics(ship));
		PRB_TRY(send_in_time(ship, &t, &more));
		PRB_TRY(keep_house(ship, &t));
		if ((ship->options->once && is_done(ship)) || is_over(ship))
			break;
		if (more && is_told(ship))
			break;
		if (!more && is_busy(ship) && !t.retry)
			t.next_send = PRB_MIN(t.next_send, prb_clock_seconds() + QUICK);
		if (!more)
			PRB_TRY(rest(ship,
				     is_busy(ship) ? QUICK : PRB_MIN(prb_ship_every(ship), 1)));
	}
	return NULL;
}

/** At the end. */
static struct prb_error *save(struct prb_ship *ship)
{
	struct prb_ship_state *state = &ship->state;

	if (!state->path)
		return NULL;
	/* No insert is on its way: the next daemon need not wait for the session's end. */
	if (ship->fenced && *state->session) {
		memset(state->session, 0, sizeof(state->session));
		PRB_TRY(prb_ship_state_note_session(state));
	}
	/* A disk that is full has room again once the rows that have arrived are removed. */
	prb_error_destroy(prb_ship_prune(ship));
	return prb_ship_state_save(state);
}

struct prb_error *prb_ship_run(const struct prb_ship_options *options, struct prb_ship_sums *ret)
{
	struct prb_ship ship = {.options = options,
				.state = {.folder_fd = -1, .lock = -1},
				.waiting = -1,
				.metrics = {.from_child = -1, .ring = {.fd = -1}},
				.signals = -1};
	struct prb_error *err, *saving;
	sigset_t before;

	sigprocmask(SIG_SETMASK, NULL, &before);
	err = start(&ship, &before);
	if (!err)
		err = run(&ship);
	drop_ended(&ship);
	saving = save(&ship);
	if (err)
		prb_error_destroy(saving);
	else
		err = saving;
	*ret = ship.sums;
	end(&ship);
	sigprocmask(SIG_SETMASK, &before, NULL);
	return err;
}
