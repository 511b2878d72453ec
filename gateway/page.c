/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of the page, which `make web` builds, and the page shown without them. */
#include <string.h>

#include "gateway/gateway_private.h"
#include "gateway/page_files.h"

/* Styles that are set by scripts are no inline ones; nothing else needs to be let in. */
static const char POLICY[] = "default-src 'none'; script-src 'self'; style-src 'self'; "
			     "img-src 'self' data:; connect-src 'self'; frame-src 'self'; "
			     "base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

static const char LOGIN[] =
	"<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"color-scheme\" content=\"light dark\">"
	"<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
	"<title>Probing</title></head><body><main><h1>Probing</h1>"
	"<p>%s</p>"
	"<form method=\"post\" action=\"/login\"><label>Token "
	"<input name=\"token\" type=\"password\" autocomplete=\"off\" autofocus required></label> "
	"<button>Open</button></form>"
	"<p>It was printed when this was started, by <code>probing serve</code> or "
	"<code>probing inject</code>.</p></main></body></html>\n";

static const char LEADS_ON[] = "<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
			       "<meta name=\"color-scheme\" content=\"light dark\">"
			       "<meta http-equiv=\"refresh\" content=\"0; url=/\">"
			       "<title>Probing</title></head><body></body></html>\n";

static const char NO_PAGE[] =
	"<!DOCTYPE html><html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"color-scheme\" content=\"light dark\">"
	"<title>Probing</title></head><body><main><h1>Probing</h1>"
	"<p>This probing was built without its page: <code>make web</code>, then "
	"<code>make</code>, with node and npm installed, builds it.</p>"
	"<p>The interface for programs is here: <a href=\"/v1/openapi.json\">/v1/openapi.json</a>, "
	"<a href=\"/v1/targets\">/v1/targets</a>.</p></main></body></html>\n";

void prb_page_login(struct prb_request *r)
{
	prb_str_printf(&r->reply, LOGIN,
		       r->form ? "That token is wrong." : "This page needs the token.");
	r->media = "text/html; charset=utf-8";
	r->policy = POLICY;
}

static const struct prb_page_file *find(const char *path)
{
	for (const struct prb_page_file *file = prb_page_files; file->path; file++)
		if (!strcmp(file->path, path))
			return file;
	return NULL;
}

bool prb_page_find(struct prb_request *r)
{
	bool start = !strcmp(r->path, "/");
	const struct prb_page_file *file = find(start ? "/index.html" : r->path);

	if (strcmp(r->method, "GET") != 0 || (!file && !start))
		return false;
	r->policy = POLICY;
	r->media = "text/html; charset=utf-8";
	if (r->set_cookie && start) {
		/*
		 * So that the token does not stay in the address. A browser that follows another
		 * site's link sends no strict cookie until a page of ours leads on.
		 */
		r->status = r->followed ? 200 : 303;
		r->location = r->followed ? NULL : "/";
		prb_str_puts(&r->reply, r->followed ? LEADS_ON : "");
		return true;
	}
	r->status = 200;
	if (!file) {
		prb_str_puts(&r->reply, NO_PAGE);
		return true;
	}
	r->media = file->media;
	r->fixed = file->data;
	r->fixed_length = file->length;
	r->packed = true;
	return true;
}
