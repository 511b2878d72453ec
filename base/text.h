/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Text on a terminal: what is safe to print, and how wide it is.
 *
 * Names, paths and values come from the target and may hold anything. Everything printed goes
 * through prb_text_escape(), so that no target can move the cursor, set a title or reverse the
 * direction of writing.
 */
#ifndef PRB_BASE_TEXT_H
#define PRB_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/** Given instead of a code point where the bytes are not UTF-8. */
#define PRB_TEXT_INVALID UINT32_MAX

/** Decodes one code point of @p text, which is not at its end; gives the bytes it takes. */
size_t prb_text_decode(const char *text, uint32_t *code_point);

/** Columns that a code point takes: 0, 1 or 2. */
unsigned prb_text_char_width(uint32_t code_point);

/** Columns of a text without control characters. */
size_t prb_text_width(const char *text);

/** Appends @p text with control and direction characters and broken UTF-8 as \n, \x1b, \u202e. */
void prb_text_escape(struct prb_str *s, const char *text);

/** As above, for @p length bytes, which may have NULs among them. */
void prb_text_escape_bytes(struct prb_str *s, const char *text, size_t length);

/** As above, but line feeds stay, each followed by @p indent. */
void prb_text_escape_lines(struct prb_str *s, const char *text, const char *indent);

/** Appends an argument of a command line: escaped, and in quotes if a shell would divide it. */
void prb_text_argument(struct prb_str *s, const char *argument);

/**
 * The same for people: of one that is longer than 250 bytes, such as a program behind -c, the
 * beginning; "…+1730" says how many bytes are missing.
 */
void prb_text_argument_start(struct prb_str *s, const char *argument);

/** Appends one code point, escaped where needed; gives its width in columns. */
size_t prb_text_put(struct prb_str *s, uint32_t code_point, unsigned char byte);

/** Appends spaces. */
void prb_text_spaces(struct prb_str *s, size_t count);

/**
 * Appends @p text, escaped, and spaces up to @p width columns. A text that is escaped already stays
 * as it is.
 */
void prb_text_column(struct prb_str *s, const char *text, size_t width);

/** Appends spaces, and @p text so that it ends at column @p width. */
void prb_text_right(struct prb_str *s, const char *text, size_t width);

/** True if @p text, which may be NULL, ends with @p end. */
bool prb_text_ends(const char *text, const char *end);

/** Appends @p text, which is escaped already; if it is wider than @p columns, its beginning and
 * "…". */
void prb_text_cut(struct prb_str *s, const char *text, size_t columns);

/**
 * Appends the last cell of the line that begins at byte @p start of @p s, cut where a terminal of
 * @p columns ends; on a line of its own if under PRB_TEXT_LEAST_LAST columns are left there.
 * @p columns 0: all of it.
 */
void prb_text_last_cell(struct prb_str *s, size_t start, const char *text, size_t columns);
/** The columns that such a cell has; SIZE_MAX without a terminal. */
size_t prb_text_last_room(const struct prb_str *s, size_t start, size_t columns);
enum { PRB_TEXT_LEAST_LAST = 16 };

/**
 * Appends @p text, which may have colours, with no line wider than @p columns: what does not fit
 * continues below, behind spaces, at the last column of the line that leaves it two fifths of the
 * terminal.
 */
void prb_text_fit(struct prb_str *s, const char *text, size_t columns);

/** Appends @p text as paragraphs wrapped at column 80, each line after @p indent spaces. */
void prb_text_wrap(struct prb_str *s, const char *text, size_t indent);

/** The same within @p columns, behind what the last line of @p s has, which is @p column columns.
 */
void prb_text_wrap_after(struct prb_str *s, const char *text, size_t column, size_t indent,
			 size_t columns);

/** Appends "512 B", "1.2 MiB", "-3.0 GiB". */
void prb_text_bytes(struct prb_str *s, double bytes);

/** Appends a duration: "38 µs", "1.2 ms", "3 s", "2 m 10 s", "3 h 5 m", "2 d 4 h". */
void prb_text_duration(struct prb_str *s, double seconds);

/**
 * How much of /proc/PID/cmdline is words: programs that set their title (setproctitle, Ray) leave
 * the rest of their old arguments behind it, as empty words.
 */
size_t prb_text_command_length(const char *data, size_t length);

/**
 * Appends the part of a command line that holds no secrets: the program, its first argument unless
 * that could hold a value, and how many are missing. A NUL ends each of @p words, as in
 * /proc/PID/cmdline, and each appended one. All redacted output uses this.
 */
void prb_text_cut_command(struct prb_str *s, const char *words, size_t length);

#endif
