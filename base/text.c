/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/text.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"

enum { WRAP_COLUMN = 80 };

struct range {
	uint32_t first, last;
};

/* Characters that change what the ones around them look like. */
static const struct range harmful[] = {
	{0x00, 0x1f},	  {0x7f, 0x9f},	    {0x061c, 0x061c}, {0x200e, 0x200f},
	{0x2028, 0x202e}, {0x2066, 0x2069}, {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
};

/* Combining marks and joiners: no column of their own. */
static const struct range zero_width[] = {
	{0x0300, 0x036f}, {0x0483, 0x0489},   {0x0591, 0x05bd},	  {0x0610, 0x061a},
	{0x064b, 0x065f}, {0x06d6, 0x06dc},   {0x0900, 0x0902},	  {0x093c, 0x093c},
	{0x0941, 0x0948}, {0x094d, 0x094d},   {0x0e31, 0x0e31},	  {0x0e34, 0x0e3a},
	{0x0e47, 0x0e4e}, {0x1ab0, 0x1aff},   {0x1dc0, 0x1dff},	  {0x200b, 0x200d},
	{0x20d0, 0x20ff}, {0x302a, 0x302d},   {0x3099, 0x309a},	  {0xfe00, 0xfe0f},
	{0xfe20, 0xfe2f}, {0x1f3fb, 0x1f3ff}, {0xe0100, 0xe01ef},
};

/* East Asian wide and full-width characters and emoji. */
static const struct range double_width[] = {
	{0x1100, 0x115f},   {0x231a, 0x231b},	{0x23e9, 0x23ec},   {0x2e80, 0x303e},
	{0x3041, 0x33ff},   {0x3400, 0x4dbf},	{0x4e00, 0x9fff},   {0xa000, 0xa4cf},
	{0xa960, 0xa97f},   {0xac00, 0xd7a3},	{0xf900, 0xfaff},   {0xfe30, 0xfe6f},
	{0xff00, 0xff60},   {0xffe0, 0xffe6},	{0x16fe0, 0x18aff}, {0x1b000, 0x1b2ff},
	{0x1f300, 0x1f64f}, {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x1fa70, 0x1faff},
	{0x20000, 0x3fffd},
};

static bool in_ranges(const struct range *ranges, size_t count, uint32_t c)
{
	for (size_t i = 0; i < count; i++)
		if (c >= ranges[i].first && c <= ranges[i].last)
			return true;
	return false;
}

static size_t decode(const char *text, size_t available, uint32_t *code_point)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t length = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	uint32_t c;

	if (length == 1) {
		*code_point = p[0];
		return 1;
	}
	*code_point = PRB_TEXT_INVALID;
	if (!length || length > available || p[0] > 0xf4)
		return 1;
	c = p[0] & (0x7f >> length);
	for (size_t i = 1; i < length; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		c = c << 6 | (p[i] & 0x3f);
	}
	if ((length == 3 && c < 0x800) || (length == 4 && (c < 0x10000 || c > 0x10ffff)) ||
	    (c >= 0xd800 && c < 0xe000))
		return 1;
	*code_point = c;
	return length;
}

/* The NUL at the end is no byte of a longer sequence. */
size_t prb_text_decode(const char *text, uint32_t *code_point)
{
	return decode(text, SIZE_MAX, code_point);
}

unsigned prb_text_char_width(uint32_t c)
{
	if (c < 0x300)
		return 1;
	if (in_ranges(zero_width, PRB_ARRAY_SIZE(zero_width), c))
		return 0;
	return in_ranges(double_width, PRB_ARRAY_SIZE(double_width), c) ? 2 : 1;
}

size_t prb_text_width(const char *text)
{
	size_t width = 0;

	while (*text) {
		uint32_t c;

		text += prb_text_decode(text, &c);
		width += prb_text_char_width(c);
	}
	return width;
}

size_t prb_text_put(struct prb_str *s, uint32_t c, unsigned char byte)
{
	size_t start = s->length;

	if (c == PRB_TEXT_INVALID) {
		prb_str_put_escaped_byte(s, byte);
	} else if (in_ranges(harmful, PRB_ARRAY_SIZE(harmful), c)) {
		if (c == '\n')
			prb_str_puts(s, "\\n");
		else if (c == '\r')
			prb_str_puts(s, "\\r");
		else if (c == '\t')
			prb_str_puts(s, "\\t");
		else
			prb_str_printf(s, c < 0x100 ? "\\x%02x" : "\\u%04x", c);
	} else {
		prb_str_put_utf8(s, c);
		return prb_text_char_width(c);
	}
	return s->length - start;
}

void prb_text_escape(struct prb_str *s, const char *text)
{
	/* Nearly all text is plain ASCII: append runs of it at once. */
	while (*text) {
		size_t plain = 0;
		uint32_t c;

		while (text[plain] >= 0x20 && text[plain] < 0x7f)
			plain++;
		prb_str_append(s, text, plain);
		text += plain;
		if (!*text)
			break;

		size_t length = prb_text_decode(text, &c);
		prb_text_put(s, c, (unsigned char)*text);
		text += length;
	}
}

void prb_text_escape_bytes(struct prb_str *s, const char *text, size_t length)
{
	for (size_t i = 0, n; i < length; i += n) {
		uint32_t c;

		n = decode(text + i, length - i, &c);
		prb_text_put(s, c, (unsigned char)text[i]);
	}
}

void prb_text_escape_lines(struct prb_str *s, const char *text, const char *indent)
{
	while (*text) {
		uint32_t c;
		size_t length = prb_text_decode(text, &c);

		if (c == '\n') {
			prb_str_putc(s, '\n');
			prb_str_puts(s, indent);
		} else {
			prb_text_put(s, c, (unsigned char)*text);
		}
		text += length;
	}
}

/** Bytes of an argument that tell which it is; more would hide what comes after it. */
enum { MOST_OF_ARGUMENT = 200 };

void prb_text_argument(struct prb_str *s, const char *argument)
{
	if (*argument && !strpbrk(argument, " '\"\\$`|&;<>()*?\n\t")) {
		prb_text_escape(s, argument);
		return;
	}
	prb_str_putc(s, '\'');
	prb_text_escape(s, argument);
	prb_str_putc(s, '\'');
}

void prb_text_argument_start(struct prb_str *s, const char *argument)
{
	prb_auto_str struct prb_str cut = {};
	size_t length = strlen(argument), kept = MOST_OF_ARGUMENT;

	if (length <= MOST_OF_ARGUMENT + MOST_OF_ARGUMENT / 4) {
		prb_text_argument(s, argument);
		return;
	}
	while (kept && ((unsigned char)argument[kept] & 0xc0) == 0x80)
		kept--;
	prb_str_append(&cut, argument, kept);
	prb_str_printf(&cut, "…+%zu", length - kept);
	s->failed |= cut.failed;
	prb_text_argument(s, prb_str_text(&cut));
}

void prb_text_spaces(struct prb_str *s, size_t count)
{
	static const char blanks[] = "                                ";

	for (; count >= sizeof(blanks); count -= sizeof(blanks) - 1)
		prb_str_append(s, blanks, sizeof(blanks) - 1);
	prb_str_append(s, blanks, count);
}

void prb_text_column(struct prb_str *s, const char *text, size_t width)
{
	size_t start = s->length;

	prb_text_escape(s, text);

	size_t have = s->failed ? width : prb_text_width(prb_str_text(s) + start);
	if (have < width)
		prb_text_spaces(s, width - have);
}

void prb_text_right(struct prb_str *s, const char *text, size_t width)
{
	size_t has = prb_text_width(text);

	prb_text_spaces(s, width > has ? width - has : 0);
	prb_str_puts(s, text);
}

bool prb_text_ends(const char *text, const char *end)
{
	size_t length = text ? strlen(text) : 0, tail = strlen(end);

	return text && length >= tail && !strcmp(text + length - tail, end);
}

void prb_text_cut(struct prb_str *s, const char *text, size_t columns)
{
	size_t width = 0, length;
	const char *at, *end = NULL;
	uint32_t code_point;

	if (prb_text_width(text) <= columns) {
		prb_str_puts(s, text);
		return;
	}
	for (at = text; *at && !end; at += length ? length : 1) {
		length = prb_text_decode(at, &code_point);
		width += prb_text_char_width(code_point);
		if (width >= columns)
			end = at;
	}
	prb_str_append(s, text, end ? (size_t)(end - text) : strlen(text));
	prb_str_puts(s, end && columns ? "…" : "");
}

/** Columns in front of a last cell on a line of its own: behind a pid. */
static size_t last_indent(size_t columns)
{
	return PRB_MIN(columns / 2, (size_t)9);
}

static bool has_own_line(const struct prb_str *s, size_t start, size_t columns, size_t *used)
{
	*used = s->failed || start >= s->length ? 0 : prb_text_width(s->data + start);
	return columns && *used + PRB_TEXT_LEAST_LAST > columns;
}

size_t prb_text_last_room(const struct prb_str *s, size_t start, size_t columns)
{
	size_t used;

	if (has_own_line(s, start, columns, &used))
		used = last_indent(columns);
	return columns ? columns - used : SIZE_MAX;
}

void prb_text_last_cell(struct prb_str *s, size_t start, const char *text, size_t columns)
{
	size_t room = prb_text_last_room(s, start, columns), used;

	if (has_own_line(s, start, columns, &used)) {
		while (!s->failed && s->length > start && s->data[s->length - 1] == ' ')
			prb_str_truncate(s, s->length - 1);
		prb_str_putc(s, '\n');
		prb_text_spaces(s, last_indent(columns));
	}
	prb_text_cut(s, text, room);
}

/** Bytes of the colour that @p text begins with: it takes no columns. */
static size_t colour_length(const char *text)
{
	size_t length = 2;

	if (text[0] != '\x1b' || text[1] != '[')
		return 0;
	while (text[length] && (text[length] < 0x40 || text[length] > 0x7e))
		length++;
	return length + (text[length] != '\0');
}

/** Decodes a character, or a colour, of @p text; gives its bytes. */
static size_t decode_shown(const char *text, unsigned *width)
{
	uint32_t code_point;
	size_t length = colour_length(text);

	*width = 0;
	if (length)
		return length;
	length = prb_text_decode(text, &code_point);
	*width = prb_text_char_width(code_point);
	return length;
}

/** Columns of the text up to @p end, or that of the line; gives its bytes. */
static size_t shown_width(const char *text, const char *end, size_t *length)
{
	size_t columns = 0, whole = strlen(end);
	const char *at = text;
	unsigned width;

	while (*at && *at != '\n' && (!whole || strncmp(at, end, whole) != 0)) {
		at += decode_shown(at, &width);
		columns += width;
	}
	*length = (size_t)(at - text);
	return columns;
}

/** Where the rest of a line continues that is too wide. */
static size_t hanging_indent(const char *line, size_t columns)
{
	size_t column = strspn(line, " "), indent = PRB_MIN(column + 4, columns / 2), length;

	for (const char *at = line + column; *at && *at != '\n';) {
		column += shown_width(at, "  ", &length);
		at += length;
		length = strspn(at, " ");
		column += length;
		at += length;
		if (column > columns * 3 / 5)
			break;
		indent = column;
	}
	return indent;
}

/** Text that is brought within a width, line by line. */
struct fitting {
	struct prb_str *out;
	size_t columns, indent, column;
};

static void continue_below(struct fitting *f)
{
	prb_str_putc(f->out, '\n');
	prb_text_spaces(f->out, f->indent);
	f->column = f->indent;
}

/** Appends spaces, or goes below where only that makes @p width columns fit. */
static void fit_blanks(struct fitting *f, size_t blanks, size_t width)
{
	bool fits = f->column + blanks + width <= f->columns;

	/* A line begins where others of its kind go on, if its own place leaves no room. */
	if (!fits && !f->column)
		blanks = PRB_MIN(blanks, f->indent);
	else if (!fits && (f->indent + width <= f->columns || f->column + blanks >= f->columns)) {
		continue_below(f);
		return;
	}
	prb_text_spaces(f->out, blanks);
	f->column += blanks;
}

/** A word that is wider than the terminal is divided at its end. */
static void fit_word(struct fitting *f, const char *word, size_t length)
{
	for (const char *end = word + length; word < end;) {
		unsigned width;
		size_t bytes = decode_shown(word, &width);

		if (f->column + width > f->columns && f->column > f->indent)
			continue_below(f);
		prb_str_append(f->out, word, bytes);
		f->column += width;
		word += bytes;
	}
}

/** A cell stays whole where a line has room for it; else it is divided between its words. */
static void fit_cell(struct fitting *f, const char *cell, size_t length)
{
	const char *end = cell + length;

	while (cell < end) {
		size_t blanks = strspn(cell, " "), word, width;

		cell += blanks;
		width = shown_width(cell, " ", &word);
		if (blanks)
			fit_blanks(f, blanks, width);
		fit_word(f, cell, word);
		cell += word;
	}
}

static const char *fit_line(struct fitting *f, const char *line)
{
	f->column = 0;
	f->indent = hanging_indent(line, f->columns);
	while (*line && *line != '\n') {
		size_t blanks = strspn(line, " "), cell, word, width;

		line += blanks;
		width = shown_width(line, "  ", &cell);
		if (f->indent + width > f->columns)
			width = shown_width(line, " ", &word);
		if (cell && blanks)
			fit_blanks(f, blanks, width);
		fit_cell(f, line, cell);
		line += cell;
	}
	return line;
}

void prb_text_fit(struct prb_str *s, const char *text, size_t columns)
{
	struct fitting fitting = {.out = s, .columns = columns};
	size_t length;

	while (*text) {
		if (shown_width(text, "", &length) <= columns) {
			prb_str_append(s, text, length);
			text += length;
		} else {
			text = fit_line(&fitting, text);
		}
		if (*text)
			prb_str_putc(s, *text++);
	}
}

void prb_text_wrap_after(struct prb_str *s, const char *text, size_t column, size_t indent,
			 size_t columns)
{
	while (*text) {
		size_t length = strcspn(text, " \n");

		if (column && column + 1 + length > columns) {
			prb_str_putc(s, '\n');
			column = 0;
		}
		if (length) {
			if (column) {
				prb_str_putc(s, ' ');
				column++;
			} else {
				prb_text_spaces(s, indent);
				column = indent;
			}
			prb_str_append(s, text, length);
			column += length;
		}
		text += length;
		if (text[0] == '\n' && text[1] == '\n') {
			prb_str_puts(s, column ? "\n\n" : "\n");
			column = 0;
			text++;
		}
		text += *text != '\0';
	}
	if (column)
		prb_str_putc(s, '\n');
}

void prb_text_wrap(struct prb_str *s, const char *text, size_t indent)
{
	prb_text_wrap_after(s, text, 0, indent, WRAP_COLUMN);
}

void prb_text_bytes(struct prb_str *s, double bytes)
{
	static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
	unsigned unit = 0;

	/* 1023.96 would print as 1024.0. */
	for (; fabs(bytes) >= 1023.95 && unit + 1 < PRB_ARRAY_SIZE(units); unit++)
		bytes /= 1024;
	prb_str_printf(s, "%.*f %s", unit && fabs(bytes) < 100 ? 1 : 0, bytes, units[unit]);
}

void prb_text_duration(struct prb_str *s, double seconds)
{
	if (!(seconds >= 0) || seconds > 1e15) {
		prb_str_puts(s, "?");
	} else if (seconds < 0.0009995) {
		prb_str_printf(s, "%.0f µs", seconds * 1e6);
	} else if (seconds < 0.00995) {
		prb_str_printf(s, "%.1f ms", seconds * 1e3);
	} else if (seconds < 0.9995) {
		prb_str_printf(s, "%.0f ms", seconds * 1e3);
	} else if (seconds < 9.95) {
		prb_str_printf(s, "%.1f s", seconds);
	} else if (seconds < 59.5) {
		prb_str_printf(s, "%.0f s", seconds);
	} else {
		uint64_t total = (uint64_t)llround(seconds);

		if (total < 3600)
			prb_str_printf(s, "%u m %u s", (unsigned)(total / 60),
				       (unsigned)(total % 60));
		else if (total < 86400)
			prb_str_printf(s, "%u h %u m", (unsigned)(total / 3600),
				       (unsigned)(total / 60 % 60));
		else
			prb_str_printf(s, "%lu d %u h", (unsigned long)(total / 86400),
				       (unsigned)(total / 3600 % 24));
	}
}

size_t prb_text_command_length(const char *data, size_t length)
{
	enum { MOST_EMPTY = 8 }; /* a program may be given some empty words */
	size_t end = length;

	while (end && !data[end - 1])
		end--;
	return end && length - end > MOST_EMPTY ? end + 1 : length;
}

/** A script or the name of an option; "--option=value", "-pvalue" and "-ccode" have more. */
static bool may_be_told(const char *word, size_t length)
{
	return !memchr(word, '=', length) && (length <= 2 || word[0] != '-' || word[1] == '-');
}

void prb_text_cut_command(struct prb_str *s, const char *words, size_t length)
{
	const char *end = words + length;
	unsigned left_out = 0;

	for (unsigned i = 0; words < end; i++) {
		size_t n = strnlen(words, (size_t)(end - words));
		/* A title that the program has set (setproctitle) is one word. */
		const char *blank = i ? NULL : memchr(words, ' ', n);
		bool told = i == 0 || (i == 1 && may_be_told(words, n));

		if (told) {
			prb_str_append(s, words, blank ? (size_t)(blank - words) : n);
			prb_str_putc(s, '\0');
		}
		left_out += !told || blank;
		words += n + (n < (size_t)(end - words));
	}
	if (left_out) {
		prb_str_printf(s, "[%u argument%s left out]", left_out, left_out == 1 ? "" : "s");
		prb_str_putc(s, '\0');
	}
}
