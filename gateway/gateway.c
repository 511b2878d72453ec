/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Creates a gateway, and its loop: one thread that waits for everything. */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/new_file.h"
#include "gateway/connections.h"
#include "gateway/gateway_private.h"
#include "gateway/keys.h"

/** How long at most it waits while something is going on, and else. */
enum { STEP_MS = 100, REST_MS = 1000 };

const char *prb_gateway_url(const struct prb_gateway *g)
{
	return g->url;
}

/** Removes the leftover socket of a killed gateway, and nothing else. */
static struct prb_error *clear_place(const struct sockaddr_un *address)
{
	struct stat st;

	if (lstat(address->sun_path, &st))
		return NULL;
	prb_auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (!S_ISSOCK(st.st_mode) || st.st_uid != geteuid() ||
	    !connect(fd, (const struct sockaddr *)address, sizeof(*address)) ||
	    errno != ECONNREFUSED)
		return prb_error_create(PRB_ERROR_USAGE, "%s exists already", address->sun_path);
	unlink(address->sun_path);
	return NULL;
}

static struct prb_error *listen_unix(struct prb_gateway *g, const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	prb_auto_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mode_t mask;
	int failed;

	if (!*path || strlen(path) >= sizeof(address.sun_path))
		return prb_error_create(PRB_ERROR_USAGE, "'%.100s' is no path of a socket", path);
	if (fd < 0)
		return prb_error_os(errno, "cannot make a socket");
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
	PRB_TRY(prb_new_file_check_way(path));
	PRB_TRY(clear_place(&address));
	mask = umask(0177);
	failed = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (failed || listen(fd, SOMAXCONN))
		return prb_error_os(errno, "cannot listen at %s", path);
	PRB_TRY(prb_str_copy(path, &g->unix_path));
	g->listener = (struct prb_listener){.fd = prb_steal_fd(&fd), .loopback = true};
	snprintf(g->listener.address, sizeof(g->listener.address), "localhost");
	return NULL;
}

/** Names by which a browser on this machine reaches the port too. */
static struct prb_error *add_hosts(struct prb_gateway *g, const char *address)
{
	const char *port = strrchr(address, ':');
	char text[64];

	PRB_TRY(prb_access_add_host(&g->access, address));
	if (!port)
		return NULL;
	if (!strcmp(port, g->options.certificate ? ":443" : ":80")) {
		snprintf(text, sizeof(text), "%.*s", (int)(port - address), address);
		PRB_TRY(prb_access_add_host(&g->access, text));
	}
	if (g->listener.loopback) {
		snprintf(text, sizeof(text), "localhost%s", port);
		PRB_TRY(prb_access_add_host(&g->access, text));
	}
	return NULL;
}

static struct prb_error *listen_at(struct prb_gateway *g)
{
	const struct prb_gateway_options *o = &g->options;
	const char *address = o->address;

	if (!address) {
		snprintf(g->listener.address, sizeof(g->listener.address), "%s", o->adopted_at);
		/* Where it listens is not ours to judge. */
		g->listener.loopback = true;
	} else if (!strncmp(address, "unix:", 5)) {
		PRB_TRY(listen_unix(g, address + 5));
	} else {
		PRB_TRY(prb_listener_open(address, &g->listener));
	}
	if (!g->listener.loopback && !o->certificate && !o->plain)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_USAGE,
					 "%s can be reached by other machines, and what is sent "
					 "would not be encrypted",
					 g->listener.address),
			"give --cert and --key; or listen at 127.0.0.1 and use ssh -L; or, in a "
			"network that you trust, --plain");
	g->access.scheme = o->certificate ? "https" : "http";
	PRB_TRY(add_hosts(g, g->listener.address));
	for (size_t i = 0; o->hosts && i < o->hosts->count; i++)
		PRB_TRY(prb_access_add_host(&g->access, o->hosts->items[i]));
	snprintf(g->url, sizeof(g->url), "%s://%s/", g->access.scheme, g->listener.address);

	const char *port = strrchr(g->listener.address, ':');

	snprintf(g->access.cookie, sizeof(g->access.cookie), "probing_%s",
		 port ? port + 1 : "unix");
	return NULL;
}

static struct prb_error *start_daemon(struct prb_gateway *g)
{
	__attribute__((cleanup(prb_keys_deinit))) struct prb_keys keys = {};
	struct MHD_OptionItem options[16];
	unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
	size_t n = 0;

#define OPTION(...)                            \
	options[n++] = (struct MHD_OptionItem) \
	{                                      \
		__VA_ARGS__                    \
	}
	if (g->options.certificate) {
		PRB_TRY(prb_keys_read(&keys, g->options.certificate, g->options.key));
		flags |= MHD_USE_TLS;
		OPTION(MHD_OPTION_HTTPS_MEM_CERT, 0, keys.certificate.data);
		OPTION(MHD_OPTION_HTTPS_MEM_KEY, 0, keys.key.data);
	}
	if (g->listener.fd >= 0)
		OPTION(MHD_OPTION_LISTEN_SOCKET, g->listener.fd, NULL);
	else
		flags |= MHD_USE_NO_LISTEN_SOCKET;
	OPTION(MHD_OPTION_CONNECTION_LIMIT, PRB_GATEWAY_MAX_CONNECTIONS, NULL);
	OPTION(MHD_OPTION_CONNECTION_TIMEOUT, 20, NULL);
	OPTION(MHD_OPTION_CONNECTION_MEMORY_LIMIT, 32 << 10, NULL);
	OPTION(MHD_OPTION_STRICT_FOR_CLIENT, 1, NULL);
	OPTION(MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)prb_request_address, g);
	OPTION(MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)prb_request_completed, g);
	OPTION(MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)prb_connection_notify, g);
	OPTION(MHD_OPTION_END, 0, NULL);
#undef OPTION
	g->mhd = prb_mhd.start_daemon(flags, 0, NULL, NULL, prb_request_handle, g, MHD_OPTION_ARRAY,
				      options, MHD_OPTION_END);
	if (!g->mhd)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_FAILED, "the HTTP server did not start"), "%s",
			g->options.certificate ? "are --cert and --key PEM files that belong "
						 "together?"
					       : "there may be too many open files");
	/* It has the socket now. */
	g->listener.fd = -1;
	g->epoll = prb_mhd.get_daemon_info(g->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	return NULL;
}

static struct prb_error *set_up(struct prb_gateway *g)
{
	g->access.token = *g->options.token;
	PRB_TRY(prb_mhd_load());
	PRB_TRY(prb_dashboards_open(g->options.dashboards, &g->dashboards));
	PRB_TRY(prb_served_init(&g->served, g->options.targets, g->options.places));
	PRB_TRY(listen_at(g));
	g->now = prb_clock_seconds();
	return start_daemon(g);
}

struct prb_error *prb_gateway_create(const struct prb_gateway_options *options,
				     struct prb_gateway **ret)
{
	struct prb_gateway *g = calloc(1, sizeof(*g));
	struct prb_error *err;

	if (!g)
		return prb_error_nomem();
	g->options = *options;
	g->listener.fd = g->epoll = g->signals = g->dashboards.folder = -1;
	prb_overview_keeper_init(&g->overview);
	prb_scraper_init(&g->scraper);
	err = set_up(g);
	if (err)
		prb_gateway_destroy(g);
	else
		*ret = g;
	return err;
}

/** All at once, so that the end takes no longer than that of the slowest. */
static void end_children(struct prb_gateway *g)
{
	for (size_t i = 0; i < g->waiting.count; i++)
		prb_child_end(&g->waiting.items[i]->child);
	for (size_t i = 0; i < g->dying.count; i++)
		prb_child_end(&g->dying.items[i]);
	for (size_t i = 0; i < g->recordings.list.count; i++)
		prb_child_end(&g->recordings.list.items[i]->child);
	prb_child_end(&g->overview.child);
}

void prb_gateway_destroy(struct prb_gateway *g)
{
	struct prb_child *child;

	if (!g)
		return;
	end_children(g);
	if (g->mhd) {
		prb_connections_end(g);
		prb_mhd.stop_daemon(g->mhd);
	}
	prb_vec_each (child, &g->dying)
		prb_child_deinit(child);
	prb_vec_free(&g->dying);
	prb_recordings_deinit(&g->recordings);
	prb_overview_keeper_deinit(&g->overview);
	prb_scraper_deinit(&g->scraper);
	prb_dashboards_close(&g->dashboards);
	prb_shared_deinit(&g->shared);
	prb_vec_free(&g->waiting);
	prb_connections_free(g);
	prb_listener_close(&g->listener);
	if (g->unix_path)
		unlink(g->unix_path);
	free(g->unix_path);
	if (g->signals >= 0)
		close(g->signals);
	prb_served_deinit(&g->served);
	prb_access_deinit(&g->access);
	free(g);
}

/** The descriptors of a wait. */
struct waits {
	PRB_VEC(struct pollfd) list;
};

static void expect(struct waits *w, int fd, short events)
{
	struct pollfd *place = fd >= 0 ? prb_vec_push(&w->list) : NULL;

	if (place)
		*place = (struct pollfd){.fd = fd, .events = events};
}

static void expect_all(struct prb_gateway *g, struct waits *w)
{
	w->list.count = 0;
	expect(w, g->epoll, POLLIN);
	expect(w, g->signals, POLLIN);
	expect(w, g->options.adopted, POLLIN);
	expect(w, g->overview.child.out, POLLIN);
	expect(w, g->scraper.child.out, POLLIN);
	for (size_t i = 0; i < g->waiting.count; i++) {
		const struct prb_request *r = g->waiting.items[i];

		if (!r->suspended)
			continue;
		/* A client that has closed its end is handled by timeout. */
		expect(w, r->connection->fd, r->left > 0 ? 0 : POLLRDHUP);
		expect(w, r->child.out, POLLIN);
	}
}

static int patience(const struct prb_gateway *g)
{
	bool busy = g->waiting.count || g->dying.count || prb_recordings_run(&g->recordings);
	MHD_UNSIGNED_LONG_LONG ms = busy ? STEP_MS : REST_MS, theirs;

	if (prb_mhd.get_timeout(g->mhd, &theirs) == MHD_YES && theirs < ms)
		ms = theirs;
	return (int)ms;
}

static void take_signals(struct prb_gateway *g)
{
	struct signalfd_siginfo info;

	while (read(g->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			g->ends = true;
}

static void tend_dying(struct prb_gateway *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->dying.count; i++) {
		struct prb_child *child = &g->dying.items[i];

		prb_child_tend(child, g->now);
		if (child->pid)
			g->dying.items[kept++] = *child;
		else
			prb_child_deinit(child);
	}
	g->dying.count = kept;
}

static struct prb_error *run(struct prb_gateway *g)
{
	struct waits waits = {};
	struct prb_error *err = NULL;

	while (!g->ends && !err) {
		expect_all(g, &waits);
		if (poll(waits.list.items, waits.list.count, patience(g)) < 0 && errno != EINTR)
			err = prb_error_os(errno, "cannot wait for requests");
		g->now = prb_clock_seconds();
		take_signals(g);
		prb_connections_tend(g);
		prb_overview_keeper_tend(&g->overview, &g->served, g->now);
		prb_scraper_tend(&g->scraper, g->now);
		prb_requests_tend(g);
		prb_recordings_tend(&g->recordings, g->now);
		tend_dying(g);
		prb_mhd.run(g->mhd);
	}
	prb_vec_free(&waits.list);
	return err;
}

struct prb_error *prb_gateway_run(struct prb_gateway *g)
{
	struct sigaction ignore = {.sa_handler = SIG_IGN}, before;
	sigset_t signals, old;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, &old);
	g->signals = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
	if (g->signals < 0)
		return prb_error_os(errno, "cannot wait for signals");
	sigaction(SIGPIPE, &ignore, &before);

	struct prb_error *err = run(g);

	sigaction(SIGPIPE, &before, NULL);
	sigprocmask(SIG_SETMASK, &old, NULL);
	return err;
}
