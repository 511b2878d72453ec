/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Messages: headers like those of HTTP, and a body of JSON. */
#include <string.h>
#include <strings.h>

#include "gateway/dap/dap.h"

enum { MAX_HEADER = 4096, MAX_BODY = 8 << 20, MAX_DIGITS = 8 };

/** The number in a line of digits, which may have spaces around it; -1: it is none. */
static long read_number(const char *at, const char *end)
{
	long number = 0;
	int digits = 0;

	while (at < end && (*at == ' ' || *at == '\t'))
		at++;
	for (; at < end && *at >= '0' && *at <= '9' && digits <= MAX_DIGITS; at++, digits++)
		number = number * 10 + (*at - '0');
	while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	return at == end && digits && digits <= MAX_DIGITS ? number : -1;
}

int prb_dap_next(const char *data, size_t size, const char **body, size_t *length, size_t *used)
{
	static const char name[] = "Content-Length:", blank[] = "\r\n\r\n";
	const size_t name_length = sizeof(name) - 1, blank_length = sizeof(blank) - 1;
	size_t looked = size < MAX_HEADER ? size : MAX_HEADER;
	const char *end = size ? memmem(data, looked, blank, blank_length) : NULL;
	long bytes = -1;

	if (!end)
		return looked == MAX_HEADER ? -1 : 0;
	for (const char *line = data; line < end;) {
		const char *stop = memchr(line, '\n', (size_t)(end - line));

		stop = stop ? stop : end;
		if ((size_t)(stop - line) > name_length && !strncasecmp(line, name, name_length))
			bytes = read_number(line + name_length, stop);
		line = stop + 1;
	}
	if (bytes < 0 || bytes > MAX_BODY)
		return -1;
	*body = end + blank_length;
	*length = (size_t)bytes;
	*used = (size_t)(*body - data) + *length;
	return size >= *used;
}
