/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/metrics/post.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "command/start.h"
#include "remote/http.h"

enum { BODY_FD = 3, MAX_ANSWER = 64 << 10, TIMEOUT_S = 30 };

/** Precedes the status of the answer; no answer contains it by chance. */
static const char STATUS[] = "\nprobing-status ";

/** A setting in the language of curl's files. */
static void put_setting(struct prb_str *s, const char *name, const char *value, size_t length)
{
	prb_str_printf(s, "%s = \"", name);
	for (size_t i = 0; i < length; i++) {
		if (value[i] == '"' || value[i] == '\\')
			prb_str_putc(s, '\\');
		prb_str_putc(s, value[i]);
	}
	prb_str_puts(s, "\"\n");
}

static struct prb_error *put_headers(struct prb_str *s, const char *headers)
{
	for (const char *at = headers ? headers : ""; *at; at += strspn(at, ", ")) {
		size_t length = strcspn(at, ","), name = strcspn(at, "=");
		prb_auto_str struct prb_str line = {};

		if (name >= length)
			return prb_error_create(PRB_ERROR_USAGE,
						"headers are NAME=VALUE, divided by commas");
		prb_str_append(&line, at, name);
		prb_str_puts(&line, ": ");
		prb_str_append(&line, at + name + 1, length - name - 1);
		put_setting(s, "header", line.data, line.length);
		at += length;
	}
	return NULL;
}

static bool has_controls(const char *text)
{
	for (; text && *text; text++)
		if ((unsigned char)*text < ' ' || *text == 127)
			return true;
	return false;
}

static struct prb_error *make_settings(const char *url, const char *media, const char *headers,
				       struct prb_str *ret)
{
	prb_auto_free char *type = prb_format("Content-Type: %s", media);
	prb_auto_free char *out = prb_format("\\n%s%%{http_code}", STATUS + 1);

	if (!type || !out)
		return prb_error_nomem();
	if (has_controls(url) || has_controls(headers))
		return prb_error_create(PRB_ERROR_USAGE, "addresses and headers have no control "
							 "characters");
	put_setting(ret, "url", url, strlen(url));
	put_setting(ret, "header", type, strlen(type));
	put_setting(ret, "header", "Expect:", strlen("Expect:"));
	PRB_TRY(put_headers(ret, headers));
	prb_str_printf(ret,
		       "data-binary = \"@/proc/self/fd/%d\"\nmax-time = %d\nsilent\nshow-error\n"
		       "proto = \"=http,https\"\nwrite-out = \"%s\"\n",
		       BODY_FD, TIMEOUT_S, out);
	return ret->failed ? prb_error_nomem() : NULL;
}

static struct prb_error *make_file(const struct prb_str *text, int *ret)
{
	prb_auto_close int fd = memfd_create("probing-post", MFD_CLOEXEC);

	if (fd < 0)
		return prb_error_os(errno, "cannot make a file in memory");
	for (size_t at = 0; at < text->length;) {
		ssize_t got = write(fd, text->data + at, text->length - at);

		if (got < 0)
			return prb_error_os(errno, "cannot make a file in memory");
		at += (size_t)got;
	}
	if (lseek(fd, 0, SEEK_SET))
		return prb_error_os(errno, "cannot make a file in memory");
	*ret = prb_steal_fd(&fd);
	return NULL;
}

static struct prb_error *start(int settings, int body, int out, pid_t *ret)
{
	char name[] = "curl", plain[] = "--disable", config[] = "--config", from_stdin[] = "-";
	char *const words[] = {name, plain, config, from_stdin, NULL};
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, settings, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_adddup2(&actions, body, BODY_FD);
	int failed = prb_start_child(words, false, &actions, ret);
	posix_spawn_file_actions_destroy(&actions);
	if (!failed)
		return NULL;
	return prb_error_hint(prb_error_os(failed, "cannot start curl, which sends to the server"),
			      "Debian and Ubuntu: apt-get install curl");
}

static void read_all(int fd, struct prb_str *ret)
{
	char chunk[4096];
	ssize_t got;

	while ((got = read(fd, chunk, sizeof(chunk))) > 0 || (got < 0 && errno == EINTR))
		if (got > 0 && ret->length < MAX_ANSWER)
			prb_str_append(ret, chunk, (size_t)got);
}

/** Takes the status off the end of what curl has printed. */
static int take_status(struct prb_str *answer)
{
	const char *found = NULL;

	for (size_t i = 0; i + strlen(STATUS) < answer->length; i++)
		if (!memcmp(answer->data + i, STATUS, strlen(STATUS)))
			found = answer->data + i;
	if (!found)
		return 0;
	int status = atoi(found + strlen(STATUS));

	prb_str_truncate(answer, (size_t)(found - answer->data));
	return status;
}

static struct prb_error *keep(void *context, const char *data, size_t length)
{
	struct prb_str *answer = context;

	prb_str_append(answer, data, PRB_MIN(length, MAX_ANSWER - answer->length));
	return NULL;
}

/** Sends it without the command. */
static struct prb_error *send_ourselves(const char *url, const char *media,
					const struct prb_str *body, struct prb_str *ret)
{
	struct prb_http_request request = {.body = body->data,
					   .length = body->length,
					   .sink = keep,
					   .context = ret,
					   .timeout_s = TIMEOUT_S,
					   .once = true};
	struct prb_http_outcome outcome = {};
	struct prb_http *http;
	struct prb_error *err;

	PRB_TRY(prb_http_create(url, &http));
	err = prb_http_add_header(http, "Content-Type", media);
	if (!err)
		err = prb_http_add_header(http, "Expect", "");
	if (!err)
		err = prb_http_send(http, &request, &outcome);
	prb_str_deinit(&outcome.error);
	prb_http_destroy(http);
	if (!err && (outcome.status < 200 || outcome.status > 299))
		return prb_error_create(PRB_ERROR_FAILED, "%s answered with status %ld", url,
					outcome.status);
	return err;
}

struct prb_error *prb_post(const char *url, const char *media, const char *headers,
			   const struct prb_str *body, struct prb_str *ret)
{
	prb_auto_close int settings_fd = -1, body_fd = -1, in = -1, out = -1;
	prb_auto_str struct prb_str settings = {};
	int pipes[2], code = 0, status;
	pid_t pid;

	PRB_TRY(make_settings(url, media, headers, &settings));
	PRB_TRY(make_file(&settings, &settings_fd));
	PRB_TRY(make_file(body, &body_fd));
	if (pipe2(pipes, O_CLOEXEC))
		return prb_error_os(errno, "cannot make a pipe");
	in = pipes[0];
	out = pipes[1];
	prb_auto_error struct prb_error *missing = start(settings_fd, body_fd, out, &pid);

	if (missing) {
		prb_auto_error struct prb_error *err =
			headers ? prb_error_create(PRB_ERROR_UNSUPPORTED, "headers need curl")
				: send_ourselves(url, media, body, ret);

		return err && err->code == PRB_ERROR_UNSUPPORTED ? prb_steal(&missing)
								 : prb_steal(&err);
	}
	close(prb_steal_fd(&out));
	read_all(in, ret);
	while (waitpid(pid, &code, 0) < 0 && errno == EINTR)
		;
	status = take_status(ret);
	if (!WIFEXITED(code) || WEXITSTATUS(code))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_FAILED, "nothing was sent to %s", url),
			"curl has said why");
	if (status < 200 || status > 299)
		return prb_error_create(PRB_ERROR_FAILED, "%s answered with status %d", url,
					status);
	return NULL;
}
