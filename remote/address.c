/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/address.h"

#include <stdlib.h>
#include <string.h>

enum { PORT_MAX = 65535, PORT_DIGITS = 5 };

static bool parse_port(const char *text, int *ret)
{
	size_t digits = strspn(text, "0123456789");

	if (!digits || digits > PORT_DIGITS || text[digits])
		return false;
	*ret = atoi(text);
	return *ret <= PORT_MAX;
}

static bool is_plain(const char *host, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)host[i] <= ' ' || host[i] == 0x7f)
			return false;
	return true;
}

struct prb_error *prb_address_parse(const char *text, struct prb_address *ret)
{
	const char *colon = strrchr(text, ':'), *host = text;
	size_t length = colon ? (size_t)(colon - text) : 0;
	bool brackets = length > 2 && host[0] == '[' && host[length - 1] == ']';

	if (brackets) {
		host++;
		length -= 2;
	} else if (!length) {
		host = "127.0.0.1";
		length = strlen(host);
	}
	/* An address with colons of its own needs the brackets. No name has blanks or controls. */
	if (colon && is_plain(host, length) && parse_port(colon + 1, &ret->port) &&
	    length <= PRB_HOST_MAX && (brackets || !memchr(host, ':', length))) {
		memcpy(ret->host, host, length);
		ret->host[length] = '\0';
		return NULL;
	}
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "'%.100s' is not an address; expected HOST:PORT",
					       text),
			      "for example 127.0.0.1:5678, [::1]:5678, or :0 for any free port");
}
