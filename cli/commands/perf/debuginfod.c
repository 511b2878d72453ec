/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands/perf/debuginfod.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "base/text.h"
#include "command/exit.h"
#include "remote/http.h"

enum { MOST_SERVERS = 8, MOST_BYTES = 512 << 20, MOST_FAILURES = 3 };
static const double file_s = 600, all_s = 1800;

struct servers {
	size_t count;
	char *addresses[MOST_SERVERS]; /* each ends in a slash */
};

/* Files that are asked for. */
struct search {
	struct prb_recording *recording;
	struct prb_symbols_wanted_list *wanted; /* those that no server had yet */
	struct prb_symbolized *result;
	double end; /* of the monotonic clock */
};

struct body {
	int fd;
	size_t length;
};

static void servers_guard(struct servers *servers)
{
	for (size_t i = 0; i < servers->count; i++)
		free(servers->addresses[i]);
}

static void list_guard(struct prb_symbols_wanted_list *wanted)
{
	prb_vec_free(&wanted->list);
}

/* The variable also has words that are no addresses, such as "ima:enforcing". */
static struct prb_error *find_servers(const char *urls, struct servers *ret)
{
	static const char spaces[] = " \t\n";

	for (const char *at = urls + strspn(urls, spaces); *at; at += strspn(at, spaces)) {
		size_t length = strcspn(at, spaces);
		bool is_url = !strncmp(at, "http://", 7) || !strncmp(at, "https://", 8);

		if (is_url && ret->count == MOST_SERVERS)
			return prb_error_create(PRB_ERROR_USAGE,
						"DEBUGINFOD_URLS has over %d addresses",
						MOST_SERVERS);
		if (is_url) {
			char *address = prb_format("%.*s%s", (int)length, at,
						   at[length - 1] == '/' ? "" : "/");

			if (!address)
				return prb_error_nomem();
			ret->addresses[ret->count++] = address;
		}
		at += length;
	}
	if (ret->count)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "DEBUGINFOD_URLS has no address"),
			      "for example https://debuginfod.debian.net");
}

static struct prb_error *keep(void *context, const char *data, size_t length)
{
	struct body *body = context;

	if (length > MOST_BYTES - body->length)
		return prb_error_create(PRB_ERROR_BAD_DATA, "the file has more than %d MiB",
					MOST_BYTES >> 20);
	body->length += length;
	while (length) {
		ssize_t done = write(body->fd, data, length);

		if (done < 0 && errno != EINTR)
			return prb_error_os(errno, "cannot keep the file");
		data += done > 0 ? done : 0;
		length -= done > 0 ? (size_t)done : 0;
	}
	return NULL;
}

static double now_s(void)
{
	return (double)prb_clock_read_ns(CLOCK_MONOTONIC) / 1e9;
}

static struct prb_error *download(struct prb_http *http, const char *build_id, double most_s,
				  struct body *body)
{
	prb_auto_free char *path = prb_format("buildid/%s/debuginfo", build_id);
	const struct prb_http_request request = {
		.path = path, .sink = keep, .context = body, .timeout_s = most_s};
	struct prb_http_outcome outcome = {};
	struct prb_error *err;

	if (!path)
		return prb_error_nomem();
	err = prb_http_send(http, &request, &outcome);
	prb_str_deinit(&outcome.error);
	if (err || outcome.end == PRB_HTTP_DONE)
		return err;
	return prb_error_create(outcome.status == 404 ? PRB_ERROR_NOT_FOUND : PRB_ERROR_FAILED,
				"the server answered with status %ld", outcome.status);
}

static struct prb_error *try_file(struct search *s, struct prb_http *http,
				  const struct prb_symbols_wanted *wanted)
{
	prb_auto_close int fd = memfd_create("probing-debug", MFD_CLOEXEC);
	struct body body = {.fd = fd};

	if (fd < 0)
		return prb_error_os(errno, "cannot make a file in memory");
	PRB_TRY(download(http, wanted->build_id, PRB_MIN(file_s, PRB_MAX(s->end - now_s(), 0.001)),
			 &body));
	return prb_symbolize_by(s->recording, wanted->build_id, prb_steal_fd(&fd),
				"the server's file", s->result);
}

static void warn(const struct prb_symbols_wanted *wanted, const struct prb_error *err)
{
	prb_auto_free char *text =
		prb_format("no debug file of %s: %s%s%s", prb_tree_short_path(wanted->path),
			   err->message, err->hint ? "; " : "", err->hint ? err->hint : "");

	if (text)
		prb_warn(text);
}

/* Ends @err, unless it is our own. */
static struct prb_error *count_failure(const struct prb_symbols_wanted *wanted,
				       struct prb_error *err, unsigned *failures)
{
	if (err->code == PRB_ERROR_NOMEM || err->code == PRB_ERROR_UNSUPPORTED ||
	    err->code == PRB_ERROR_OS)
		return err;
	if (err->code != PRB_ERROR_NOT_FOUND)
		warn(wanted, err);
	*failures += err->code != PRB_ERROR_NOT_FOUND && err->code != PRB_ERROR_BAD_DATA;
	prb_error_destroy(err);
	return NULL;
}

/* Keeps of the wanted those that it does not have. */
static struct prb_error *ask_for_each(struct search *s, struct prb_http *http, const char *shown)
{
	struct prb_symbols_wanted *all = s->wanted->list.items;
	size_t left = 0, count = s->wanted->list.count;
	unsigned failures = 0;

	for (size_t i = 0; i < count; i++) {
		struct prb_error *err;

		if (failures == MOST_FAILURES || now_s() >= s->end) {
			all[left++] = all[i];
			continue;
		}
		err = try_file(s, http, &all[i]);
		if (!err)
			continue;
		PRB_TRY(count_failure(&all[i], err, &failures));
		all[left++] = all[i];
	}
	s->wanted->list.count = left;
	if (failures == MOST_FAILURES) {
		prb_auto_free char *text = prb_format("%s failed %d times, and is not asked again",
						      shown, MOST_FAILURES);

		if (text)
			prb_warn(text);
	}
	return NULL;
}

static struct prb_error *ask(struct search *s, const char *address)
{
	prb_auto_free char *shown = prb_http_shown(address);
	prb_auto_str struct prb_str plain = {};
	struct prb_error *err;
	struct prb_http *http;

	if (!shown)
		return prb_error_nomem();
	PRB_TRY(prb_http_create(address, &http));
	prb_text_escape(&plain, shown);
	fprintf(stderr, "asking %s for %zu debug file%s\n", prb_str_text(&plain),
		s->wanted->list.count, s->wanted->list.count == 1 ? "" : "s");
	err = ask_for_each(s, http, shown);
	prb_http_destroy(http);
	return err;
}

static void say_left_out(const struct search *s, size_t asked)
{
	prb_auto_free char *few = prb_format("only the %zu files with the most unnamed functions "
					     "were asked for, of %zu",
					     asked, asked + s->wanted->left_out);

	if (s->wanted->left_out && few)
		prb_warn(few);
	if (s->wanted->list.count && now_s() >= s->end)
		prb_warn("the servers took half an hour, and were asked for no more");
}

struct prb_error *prb_debuginfod_symbolize(struct prb_recording *recording, const char *urls,
					   struct prb_symbolized *ret)
{
	__attribute__((cleanup(servers_guard))) struct servers servers = {};
	__attribute__((cleanup(list_guard))) struct prb_symbols_wanted_list wanted = {};
	struct search search = {recording, &wanted, ret, now_s() + all_s};
	size_t count;

	PRB_TRY(find_servers(urls, &servers));
	PRB_TRY(prb_symbols_wanted(recording, ret, &wanted));
	count = wanted.list.count;
	/* Each server is asked for what those before it did not have. */
	for (size_t i = 0; i < servers.count && wanted.list.count && now_s() < search.end; i++)
		PRB_TRY(ask(&search, servers.addresses[i]));
	say_left_out(&search, count);
	return NULL;
}
