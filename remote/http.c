/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/http.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "remote/http_plain.h"

bool prb_http_built(void)
{
#ifdef PRB_HAVE_CURL
	return true;
#else
	return false;
#endif
}

char *prb_http_shown(const char *address)
{
	const char *host = strstr(address, "://"), *at;
	size_t length;

	if (!host)
		return strdup(address);
	host += strlen("://");
	length = strcspn(host, "/?#");
	at = memrchr(host, '@', length);
	return prb_format("%.*s%s", (int)(host - address), address, at ? at + 1 : host);
}

#ifdef PRB_HAVE_CURL
#include <dlfcn.h>

#define CURL_DISABLE_TYPECHECK
#define CURL_DISABLE_DEPRECATION /* old versions have but the old option */
#include <curl/curl.h>
#endif

struct prb_http {
	char *base;	      /* "http://HOST:PORT/" */
	char *shown;	      /* the same, without a user and password */
	struct prb_str lines; /* headers, without libcurl */
	bool plain;	      /* it is not used */
#ifdef PRB_HAVE_CURL
	CURL *handle;
	CURLM *multi;
	struct curl_slist *headers;
	const char *tls; /* the hint where TLS does not come about; or NULL */
	char failure[CURL_ERROR_SIZE];
#endif
};

static struct prb_error *add_line(struct prb_http *http, const char *name, const char *value)
{
	/* An empty one is one that libcurl leaves out. */
	if (*value)
		prb_str_printf(&http->lines, "%s: %s\r\n", name, value);
	return http->lines.failed ? prb_error_nomem() : NULL;
}

static void destroy(struct prb_http *http)
{
	prb_str_deinit(&http->lines);
	free(http->base);
	free(http->shown);
	free(http);
}

/** Without libcurl; *why is the reason, which is taken over. */
static struct prb_error *create_plain(const char *address, struct prb_error *why,
				      struct prb_http **ret)
{
	prb_auto_error struct prb_error *reason = why;
	struct prb_http *http;

	if (why->code != PRB_ERROR_UNSUPPORTED || !prb_http_plain_can(address))
		return prb_steal(&reason);
	http = calloc(1, sizeof(*http));
	if (!http)
		return prb_error_nomem();
	http->plain = true;
	http->base = strdup(address);
	http->shown = prb_http_shown(address);
	if (!http->base || !http->shown) {
		destroy(http);
		return prb_error_nomem();
	}
	*ret = http;
	return NULL;
}

#ifdef PRB_HAVE_CURL
enum {
	MAX_ERROR = 64 << 10,
	CONNECT_S = 5,
	IDLE_S = 60, /* without a byte in either direction */
	ASK_MS = 50, /* how often the caller may end a request */
};

/* The libraries of the usual builds; they have the same functions. */
static const char *const LIBRARIES[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

#define FUNCTIONS(X)           \
	X(easy_init)           \
	X(easy_setopt)         \
	X(easy_cleanup)        \
	X(easy_reset)          \
	X(easy_getinfo)        \
	X(easy_strerror)       \
	X(easy_escape)         \
	X(multi_init)          \
	X(multi_cleanup)       \
	X(multi_add_handle)    \
	X(multi_remove_handle) \
	X(multi_perform)       \
	X(multi_poll)          \
	X(multi_info_read)     \
	X(slist_append)        \
	X(slist_free_all)      \
	X(free)

static struct {
#define MEMBER(name) __typeof__(&curl_##name) name;
	FUNCTIONS(MEMBER)
#undef MEMBER
	bool loaded;
} curl;

static struct prb_error *load(void)
{
	void *library = NULL, *function;

	if (curl.loaded)
		return NULL;
	for (size_t i = 0; !library && i < PRB_ARRAY_SIZE(LIBRARIES); i++)
		library = dlopen(LIBRARIES[i], RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "libcurl is needed to reach servers: %s",
						       dlerror()),
				      "Debian and Ubuntu: apt-get install libcurl4");
#define LOOK_UP(name)                                                                         \
	function = dlsym(library, "curl_" #name);                                             \
	if (!function)                                                                        \
		return prb_error_create(PRB_ERROR_UNSUPPORTED, "libcurl has no curl_" #name); \
	memcpy(&curl.name, &function, sizeof(function));
	FUNCTIONS(LOOK_UP)
#undef LOOK_UP
	curl.loaded = true;
	return NULL;
}

/** One request. */
struct transfer {
	struct prb_http *http;
	const struct prb_http_request *request;
	struct prb_http_outcome *outcome;
	struct prb_error *failed; /* of the sink */
};

struct prb_error *prb_http_create(const char *address, struct prb_http **ret)
{
	struct prb_error *missing = load();
	struct prb_http *http;

	if (missing)
		return create_plain(address, missing, ret);
	http = calloc(1, sizeof(*http));
	if (!http)
		return prb_error_nomem();
	http->handle = curl.easy_init();
	http->multi = curl.multi_init();
	http->base = strdup(address);
	http->shown = prb_http_shown(address);
	if (!http->handle || !http->multi || !http->base || !http->shown) {
		prb_http_destroy(http);
		return prb_error_nomem();
	}
	*ret = http;
	return NULL;
}

struct prb_error *prb_http_add_header(struct prb_http *http, const char *name, const char *value)
{
	if (http->plain)
		return add_line(http, name, value);
	prb_auto_free char *line = prb_format("%s: %s", name, value);
	struct curl_slist *list = line ? curl.slist_append(http->headers, line) : NULL;

	if (!list)
		return prb_error_nomem();
	http->headers = list;
	return NULL;
}

void prb_http_hint_of_tls(struct prb_http *http, const char *hint)
{
	http->tls = hint;
}

void prb_http_destroy(struct prb_http *http)
{
	if (!http)
		return;
	if (http->handle)
		curl.easy_cleanup(http->handle);
	if (http->multi)
		curl.multi_cleanup(http->multi);
	if (http->headers)
		curl.slist_free_all(http->headers);
	destroy(http);
}

static size_t take(char *data, size_t size, size_t count, void *context)
{
	struct transfer *transfer = context;
	struct prb_http_outcome *outcome = transfer->outcome;
	long status = 0;

	curl.easy_getinfo(transfer->http->handle, CURLINFO_RESPONSE_CODE, &status);
	if (status != 200) {
		size_t room = MAX_ERROR - outcome->error.length;

		prb_str_append(&outcome->error, data, PRB_MIN(size * count, room));
		return size * count > room ? 0 : size * count;
	}
	if (transfer->request->sink)
		transfer->failed =
			transfer->request->sink(transfer->request->context, data, size * count);
	return transfer->failed ? 0 : size * count;
}

static struct prb_error *make_address(const struct prb_http *http,
				      const struct prb_http_request *request, struct prb_str *ret)
{
	prb_str_puts(ret, http->base);
	prb_str_puts(ret, request->path ? request->path : "");
	for (const char *const *at = request->parameters; at && *at; at += 2) {
		char *value = curl.easy_escape(http->handle, at[1], (int)strlen(at[1]));

		prb_str_printf(ret, "%c%s=%s", at == request->parameters ? '?' : '&', at[0],
			       value ? value : "");
		ret->failed |= !value;
		curl.free(value);
	}
	return ret->failed ? prb_error_nomem() : NULL;
}

/** Trusted certificates: libcurl does not read these variables itself, as curl and Python do. */
static void set_authorities(CURL *handle)
{
	const char *file = getenv("SSL_CERT_FILE"), *folder = getenv("SSL_CERT_DIR");

	if (file && *file)
		curl.easy_setopt(handle, CURLOPT_CAINFO, file);
	if (folder && *folder)
		curl.easy_setopt(handle, CURLOPT_CAPATH, folder);
}

static void set_up(struct transfer *t, const char *address)
{
	const struct prb_http_request *r = t->request;
	CURL *h = t->http->handle;

	curl.easy_reset(h);
	curl.easy_setopt(h, CURLOPT_URL, address);
	curl.easy_setopt(h, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	curl.easy_setopt(h, CURLOPT_FOLLOWLOCATION, 0L);
	curl.easy_setopt(h, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl.easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
	curl.easy_setopt(h, CURLOPT_HTTPHEADER, t->http->headers);
	curl.easy_setopt(h, CURLOPT_POST, 1L);
	curl.easy_setopt(h, CURLOPT_POSTFIELDS, r->length ? r->body : "");
	curl.easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->length);
	if (r->path)
		curl.easy_setopt(h, CURLOPT_HTTPGET, 1L);
	curl.easy_setopt(h, CURLOPT_WRITEFUNCTION, take);
	curl.easy_setopt(h, CURLOPT_WRITEDATA, t);
	curl.easy_setopt(h, CURLOPT_ERRORBUFFER, t->http->failure);
	curl.easy_setopt(h, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_S);
	curl.easy_setopt(h, CURLOPT_LOW_SPEED_LIMIT, 1L);
	curl.easy_setopt(h, CURLOPT_LOW_SPEED_TIME, (long)IDLE_S);
	if (r->timeout_s > 0)
		curl.easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)(r->timeout_s * 1000) + 1);
	curl.easy_setopt(h, CURLOPT_FRESH_CONNECT, (long)r->once);
	curl.easy_setopt(h, CURLOPT_FORBID_REUSE, (long)r->once);
	set_authorities(h);
}

static enum prb_http_end end_of(CURLcode code, long status)
{
	switch (code) {
	case CURLE_OK:
		return status == 200 ? PRB_HTTP_DONE : PRB_HTTP_REFUSED;
	case CURLE_COULDNT_CONNECT:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CACERT_BADFILE:
		return PRB_HTTP_NOT_SENT;
	default:
		return PRB_HTTP_UNKNOWN;
	}
}

static struct prb_error *failure(const struct prb_http *http, CURLcode code)
{
	struct prb_error *err = prb_error_create(
		code == CURLE_OPERATION_TIMEDOUT ? PRB_ERROR_TIMEOUT : PRB_ERROR_FAILED,
		"no answer from %s: %s", http->shown,
		*http->failure ? http->failure : curl.easy_strerror(code));
	const bool tls = !strncmp(http->base, "https:", strlen("https:"));
	double secured = 0;

	if (code == CURLE_PEER_FAILED_VERIFICATION)
		return prb_error_hint(err, "if an authority of your own has signed the server's "
					   "certificate, SSL_CERT_FILE names its file");
	/* A server without TLS may wait for more. */
	curl.easy_getinfo(http->handle, CURLINFO_APPCONNECT_TIME, &secured);
	if (http->tls && (code == CURLE_SSL_CONNECT_ERROR ||
			  (code == CURLE_OPERATION_TIMEDOUT && tls && !(secured > 0))))
		return prb_error_hint(err, "%s", http->tls);
	return err;
}

/** Until it is over, or the caller ends it. */
static CURLcode perform(struct prb_http *http, const struct prb_http_request *request)
{
	CURLcode result = CURLE_ABORTED_BY_CALLBACK;
	int running = 1, left;

	if (curl.multi_add_handle(http->multi, http->handle))
		return CURLE_OUT_OF_MEMORY;
	while (running && !(request->stop && request->stop(request->stop_context))) {
		if (curl.multi_perform(http->multi, &running))
			break;
		if (running)
			curl.multi_poll(http->multi, NULL, 0, ASK_MS, NULL);
	}
	for (CURLMsg *said; (said = curl.multi_info_read(http->multi, &left));)
		if (said->msg == CURLMSG_DONE)
			result = said->data.result;
	curl.multi_remove_handle(http->multi, http->handle);
	return result;
}

struct prb_error *prb_http_send(struct prb_http *http, const struct prb_http_request *request,
				struct prb_http_outcome *ret)
{
	struct transfer transfer = {.http = http, .request = request, .outcome = ret};
	prb_auto_str struct prb_str address = {};
	CURLcode code;

	if (http->plain)
		return prb_http_plain_send(http->base, &http->lines, request, ret);
	*ret = (struct prb_http_outcome){.end = PRB_HTTP_NOT_SENT};
	PRB_TRY(make_address(http, request, &address));
	*http->failure = '\0';
	set_up(&transfer, prb_str_text(&address));
	code = perform(http, request);
	curl.easy_getinfo(http->handle, CURLINFO_RESPONSE_CODE, &ret->status);
	ret->end = end_of(code, ret->status);
	if (transfer.failed)
		return transfer.failed;
	/* An answer that is longer than any of a server was cut. */
	if (code == CURLE_WRITE_ERROR && ret->status != 200 && ret->error.length == MAX_ERROR) {
		ret->end = PRB_HTTP_REFUSED;
		return NULL;
	}
	if (code == CURLE_ABORTED_BY_CALLBACK)
		return prb_error_create(PRB_ERROR_CANCELLED, "the request to %s was cancelled",
					http->shown);
	return code == CURLE_OK ? NULL : failure(http, code);
}

#else

static struct prb_error *missing(void)
{
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "built without libcurl, which is needed to reach servers"),
		"Debian and Ubuntu: apt-get install libcurl4-openssl-dev, and build it again");
}

struct prb_error *prb_http_create(const char *address, struct prb_http **ret)
{
	return create_plain(address, missing(), ret);
}

struct prb_error *prb_http_add_header(struct prb_http *http, const char *name, const char *value)
{
	return add_line(http, name, value);
}

void prb_http_hint_of_tls(struct prb_http *http, const char *hint)
{
	(void)http, (void)hint;
}

void prb_http_destroy(struct prb_http *http)
{
	if (http)
		destroy(http);
}

struct prb_error *prb_http_send(struct prb_http *http, const struct prb_http_request *request,
				struct prb_http_outcome *ret)
{
	return prb_http_plain_send(http->base, &http->lines, request, ret);
}

#endif
