/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "clickhouse/url.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"

static const char PLAIN[] = "clickhouse://", TLS[] = "clickhouses://";

enum { PORT = 8123, TLS_PORT = 8443, MAX_PASSWORD = 1024 };

static const char *skip_scheme(const char *text, bool *tls)
{
	*tls = !strncmp(text, TLS, strlen(TLS));
	if (*tls)
		return text + strlen(TLS);
	return !strncmp(text, PLAIN, strlen(PLAIN)) ? text + strlen(PLAIN) : NULL;
}

bool prb_clickhouse_is_url(const char *text)
{
	bool tls;

	return text && skip_scheme(text, &tls);
}

static struct prb_error *wrong(const char *why)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE, "%s", why),
			      "for example clickhouse://probing@db.example:8123/training");
}

/** Decodes %XX; NULL if it is wrong, or has a NUL. */
static char *decode(const char *text)
{
	prb_auto_str struct prb_str out = {};

	for (; *text; text++) {
		char digits[3] = {text[0], text[0] == '%' ? text[1] : 0, 0};
		unsigned byte = (unsigned char)*text;

		if (*text == '%') {
			if (!isxdigit((unsigned char)text[1]) || !isxdigit((unsigned char)text[2]))
				return NULL;
			digits[0] = text[1];
			digits[1] = text[2];
			byte = (unsigned)strtoul(digits, NULL, 16);
			text += 2;
		}
		if (!byte)
			return NULL;
		prb_str_putc(&out, (char)byte);
	}
	return prb_str_take(&out);
}

static bool is_name(const char *text, size_t length, const char *more)
{
	for (size_t i = 0; i < length; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr(more, text[i]))
			return false;
	return length && length < PRB_CLICKHOUSE_NAME;
}

static struct prb_error *parse_user(const char *text, size_t length, struct prb_clickhouse_url *ret)
{
	if (memchr(text, ':', length))
		return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
						       "a password does not belong into an "
						       "address: other users see it"),
				      "set PROBING_CLICKHOUSE_PASSWORD, or use --password-file");
	if (!is_name(text, length, "_-.@"))
		return wrong("the user in the address of the ClickHouse server is no name");
	snprintf(ret->user, sizeof(ret->user), "%.*s", (int)length, text);
	return NULL;
}

static struct prb_error *parse_host(const char *text, size_t length, struct prb_clickhouse_url *ret)
{
	prb_auto_free char *host = strndup(text, length), *both = NULL;
	const char *colon = host ? strrchr(host, ':') : NULL;

	if (!host)
		return prb_error_nomem();
	if (!length)
		return wrong("the address of the ClickHouse server has no host");
	/* The colons of "[::1]" divide no port. */
	both = colon && !strchr(colon, ']') ? strdup(host)
					    : prb_format("%s:%d", host, ret->tls ? TLS_PORT : PORT);
	if (!both)
		return prb_error_nomem();
	PRB_TRY(prb_address_parse(both, &ret->address));
	for (const char *at = ret->address.host; *at; at++)
		if (!isalnum((unsigned char)*at) && !strchr(".-_:%", *at))
			return wrong("the host in the address of the ClickHouse server is no name");
	return NULL;
}

struct prb_error *prb_clickhouse_url_parse(const char *text, struct prb_clickhouse_url *ret)
{
	struct prb_clickhouse_url url = {.user = "default"};
	const char *at = skip_scheme(text, &url.tls), *slash, *user, *end;

	if (!at)
		return wrong("the address of a ClickHouse server begins with clickhouse://");
	slash = strchrnul(at, '/');
	user = memrchr(at, '@', (size_t)(slash - at));
	if (user)
		PRB_TRY(parse_user(at, (size_t)(user - at), &url));
	at = user ? user + 1 : at;
	PRB_TRY(parse_host(at, (size_t)(slash - at), &url));
	if (!*slash || !slash[1])
		return wrong("the address of the ClickHouse server has no database");
	at = slash + 1;
	end = strchrnul(at, '/');
	if (!is_name(at, (size_t)(end - at), "_"))
		return wrong("names of databases have letters, digits and underscores");
	snprintf(url.database, sizeof(url.database), "%.*s", (int)(end - at), at);
	if (*end && end[1]) {
		url.job = decode(end + 1);
		if (!url.job)
			return wrong("the job in the address of the ClickHouse server is no text");
	}
	*ret = url;
	return NULL;
}

void prb_clickhouse_url_deinit(struct prb_clickhouse_url *url)
{
	free(url->job);
}

struct prb_error *prb_clickhouse_password(const char *file, char **ret)
{
	const char *said = getenv("PROBING_CLICKHOUSE_PASSWORD");
	char text[MAX_PASSWORD + 1];
	prb_auto_close int fd = -1;
	ssize_t length;

	if (!file)
		return prb_str_copy(said ? said : "", ret);
	PRB_TRY(prb_file_open(-1, file, &fd));
	length = read(fd, text, sizeof(text));
	if (length < 0 || length == sizeof(text))
		return prb_error_create(PRB_ERROR_USAGE, "%.200s holds no password", file);
	text[length] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	return prb_str_copy(text, ret);
}
