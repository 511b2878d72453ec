/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The built page, inside of the program: files that build-aux/embed-page found. */
#ifndef PRB_GATEWAY_PAGE_FILES_H
#define PRB_GATEWAY_PAGE_FILES_H

#include <stddef.h>

struct prb_page_file {
	const char *path; /**< in the address: "/main.js" */
	const char *media;
	const unsigned char *data; /**< compressed by gzip */
	size_t length;
};

/** Ends with an entry without a path; empty if the page was not built. */
extern const struct prb_page_file prb_page_files[];

#endif
