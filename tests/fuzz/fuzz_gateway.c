/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any texts as headers of a request to a gateway: an accepted request must have the token or the
 * cookie, must name our host, and must come from no page but ours. Any texts as an address with its
 * parameters and body, which become words of a command line. Any bytes as a command's stderr,
 * which becomes an error. And any bytes as messages of an editor (gateway/dap/).
 */
#include <jansson.h>
#include <netinet/in.h>

#include "gateway/access.h"
#include "gateway/dap/dap.h"
#include "gateway/targets/child.h"
#include "gateway/gateway_private.h"
#include "tests/fuzz/input.h"

enum {
	RIGHT_TOKEN = 1,
	RIGHT_BEARER = 2,
	RIGHT_COOKIE = 4,
	OURS = 8,
	CHANGES = 16,
	RIGHT_HOST = 32
};
enum { MESSAGES = 0x80 };

static const char HOST[] = "127.0.0.1:9922", TOKEN[] = "0123456789abcdef";

/** The next text, up to a newline; NULL if it is empty. The caller frees it. */
static char *take_text(struct input *input)
{
	const uint8_t *end = input->size ? memchr(input->data, '\n', input->size) : NULL;
	size_t length = end ? (size_t)(end - input->data) : input->size;
	char *text = length && input->data[0] ? strndup((const char *)input->data, length) : NULL;

	input->data += length + (end != NULL);
	input->size -= length + (end != NULL);
	return text;
}

static void judge(struct prb_access *access, const struct prb_ask *ask, bool had_token,
		  bool had_cookie)
{
	struct prb_access_verdict verdict = prb_access_check(access, ask, 1000);

	if (verdict.status != 200) {
		if (!verdict.why)
			abort();
		return;
	}
	if (!had_token && !had_cookie)
		abort();
	if (ask->hosts != 1 || strcasecmp(ask->host, HOST) != 0)
		abort();
	if (ask->origin && strcasecmp(ask->origin, "http://127.0.0.1:9922") != 0)
		abort();
	/* With a cookie alone, or with a token in the address, a form could change something. */
	if (ask->changes && !ask->authorization && !ask->ours)
		abort();
}

static void fuzz_access(struct input *input)
{
	struct sockaddr_storage peer = {.ss_family = AF_INET};
	struct prb_access access = {.scheme = "http", .cookie = "probing_9922"};
	uint8_t flags = input_u8(input);
	char cookie[PRB_COOKIE_SIZE], *texts[7];
	char *cookies = NULL;

	strcpy(access.token.text, TOKEN);
	prb_error_destroy(prb_access_add_host(&access, HOST));
	prb_access_cookie(&access, -1, &peer, cookie);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(texts); i++)
		texts[i] = take_text(input);
	if (flags & RIGHT_COOKIE)
		cookies = prb_format("%s; probing_9922=%s", texts[5] ? texts[5] : "", cookie);
	const struct prb_ask ask = {
		.method = flags & CHANGES ? "POST" : "GET",
		.host = flags & RIGHT_HOST ? HOST : texts[0],
		.hosts = 1,
		.origin = texts[1],
		.site = texts[2],
		.mode = texts[3],
		.authorization = flags & RIGHT_BEARER ? "Bearer 0123456789abcdef" : texts[4],
		.cookies = flags & RIGHT_COOKIE ? cookies : texts[5],
		.token = flags & RIGHT_TOKEN ? TOKEN : texts[6],
		.ours = flags & OURS,
		.changes = flags & CHANGES,
		.fd = -1,
		.peer = &peer,
	};

	judge(&access, &ask,
	      (ask.token && !strcmp(ask.token, TOKEN)) ||
		      (ask.authorization && strstr(ask.authorization, TOKEN)),
	      ask.cookies && strstr(ask.cookies, cookie));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(texts); i++)
		free(texts[i]);
	free(cookies);
	prb_access_deinit(&access);
}

/** The source of the address's arguments. */
static struct input *arguments;

/** Replaces libmicrohttpd's function. */
static int give_arguments(struct MHD_Connection *mhd, enum MHD_ValueKind kind,
			  MHD_KeyValueIteratorN tell, void *context)
{
	int count = 0;
	bool more = true;

	(void)mhd;
	for (; more && count < 16 && arguments->size; count++) {
		char *name = take_text(arguments), *value = take_text(arguments);

		more = name && tell(context, kind, name, strlen(name), value,
				    value ? strlen(value) : 0) == MHD_YES;
		free(name);
		free(value);
	}
	return count;
}

/** A name of the address is no option and no path. */
static void check_name(const char *name)
{
	if (*name == '-' || name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
		abort();
}

static void check_taken(const struct prb_request *r)
{
	if (!r->route->alias)
		check_name(r->id);
	check_name(r->name);
	for (size_t i = 0; r->route->params[i].name; i++) {
		const char *value = r->values[i];

		if (!value)
			continue;
		if (r->route->params[i].type == PRB_PARAM_TEXT)
			continue;
		/* A value must not become an option or a path. */
		if (*value == '-' || strchr(value, '/'))
			abort();
	}
}

static void fuzz_request(struct input *input)
{
	static char get[] = "GET", post[] = "POST", delete[] = "DELETE";
	char *const methods[] = {get, post, delete};
	struct prb_request r = {.method = methods[input_u8(input) % PRB_ARRAY_SIZE(methods)]};
	char *body;

	r.path = take_text(input);
	body = take_text(input);
	arguments = input;
	prb_mhd.get_connection_values_n = give_arguments;
	if (body)
		prb_str_puts(&r.body, body);
	if (r.path) {
		struct prb_error *err = prb_route_find(&r);

		if (!err)
			err = prb_params_take(&r);
		if (!err)
			check_taken(&r);
		prb_error_destroy(err);
	}
	for (size_t i = 0; i < PRB_ROUTE_MAX_PARAMS; i++)
		free(r.values[i]);
	prb_str_deinit(&r.body);
	free(r.path);
	free(body);
}

static void fuzz_log(struct input *input)
{
	struct prb_child child = {.status = 1 << 8, .ended = true};
	prb_auto_str struct prb_str warnings = {};

	prb_str_append(&child.log, input->data, input->size);

	prb_auto_error struct prb_error *err = prb_child_judge(&child);

	if (!err || strchr(err->message, '\n'))
		abort();
	prb_child_warnings(&child, &warnings);
	prb_str_deinit(&child.log);
}

/** What an editor sends: messages lie within what was received, and each takes some of it. */
static void fuzz_messages(struct input *input)
{
	size_t length, used;
	const char *body;

	while (prb_dap_next((const char *)input->data, input->size, &body, &length, &used) > 0) {
		if (!used || used > input->size ||
		    body + length != (const char *)input->data + used)
			abort();
		json_decref(json_loadb(body, length, JSON_REJECT_DUPLICATES, NULL));
		input->data += used;
		input->size -= used;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	uint8_t kind = input_u8(&input);

	if (kind == MESSAGES)
		fuzz_messages(&input);
	else if (kind & 1)
		fuzz_log(&input);
	else if (kind & 2)
		fuzz_request(&input);
	else
		fuzz_access(&input);
	return 0;
}
