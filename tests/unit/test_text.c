/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

static void expect(struct prb_str *s, const char *expected)
{
	assert_false(s->failed);
	assert_string_equal(prb_str_text(s), expected);
	prb_str_truncate(s, 0);
}

static void test_decode(void **state)
{
	static const struct {
		const char *text;
		uint32_t code_point;
		size_t length;
	} cases[] = {
		{"a", 'a', 1},
		{"\x7f", 0x7f, 1},
		{"\xc3\xa9", 0xe9, 2},
		{"\xe6\xbc\xa2", 0x6f22, 3},
		{"\xf0\x9f\x90\x8d", 0x1f40d, 4},
		{"\xf4\x8f\xbf\xbf", 0x10ffff, 4},
		/* Cut, overlong, surrogates, past the end of Unicode, stray bytes. */
		{"\xc3", PRB_TEXT_INVALID, 1},
		{"\xe6\xbc", PRB_TEXT_INVALID, 1},
		{"\xf0\x9f\x90", PRB_TEXT_INVALID, 1},
		{"\xc0\x80", PRB_TEXT_INVALID, 1},
		{"\xc1\xbf", PRB_TEXT_INVALID, 1},
		{"\xe0\x9f\xbf", PRB_TEXT_INVALID, 1},
		{"\xf0\x8f\xbf\xbf", PRB_TEXT_INVALID, 1},
		{"\xed\xa0\x80", PRB_TEXT_INVALID, 1},
		{"\xf4\x90\x80\x80", PRB_TEXT_INVALID, 1},
		{"\xf5\x80\x80\x80", PRB_TEXT_INVALID, 1},
		{"\x80", PRB_TEXT_INVALID, 1},
		{"\xff", PRB_TEXT_INVALID, 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t code_point;

		assert_int_equal(prb_text_decode(cases[i].text, &code_point), cases[i].length);
		assert_int_equal(code_point, cases[i].code_point);
	}
}

static void test_width(void **state)
{
	(void)state;
	assert_int_equal(prb_text_width(""), 0);
	assert_int_equal(prb_text_width("abc"), 3);
	assert_int_equal(prb_text_width("é"), 1);
	assert_int_equal(prb_text_width("e\xcc\x81"), 1); /* e and a combining accent */
	assert_int_equal(prb_text_width("漢字"), 4);
	assert_int_equal(prb_text_width("\xf0\x9f\x90\x8d"), 2); /* a snake */
	assert_int_equal(prb_text_width("→–│"), 3);
}

static void test_escape(void **state)
{
	prb_auto_str struct prb_str s = {};

	(void)state;
	prb_text_escape(&s, "plain é漢 text");
	expect(&s, "plain é漢 text");
	prb_text_escape(&s, "\033[1m\r\n\t\a\x7f");
	expect(&s, "\\x1b[1m\\r\\n\\t\\x07\\x7f");
	prb_text_escape(&s, "\xc2\x9b\xe2\x80\xae\xe2\x81\xa9\xe2\x80\xa8\xef\xbb\xbf");
	expect(&s, "\\x9b\\u202e\\u2069\\u2028\\ufeff");
	prb_text_escape(&s, "\xff\xc3");
	expect(&s, "\\xff\\xc3");
	prb_text_escape_lines(&s, "one\ntwo\x1b\n", "  ");
	expect(&s, "one\n  two\\x1b\n  ");
	prb_text_argument(&s, "a-b/c.py");
	expect(&s, "a-b/c.py");
	prb_text_argument(&s, "");
	expect(&s, "''");
	prb_text_argument(&s, "a b");
	expect(&s, "'a b'");
}

static void test_layout(void **state)
{
	prb_auto_str struct prb_str s = {};

	(void)state;
	prb_text_column(&s, "漢", 4);
	expect(&s, "漢  ");
	prb_text_column(&s, "longer", 4);
	expect(&s, "longer");
	/* Escaped here, and only once. */
	prb_text_column(&s, "\x1b[2J", 9);
	expect(&s, "\\x1b[2J  ");
	prb_text_column(&s, "\\x1b[2J", 9);
	expect(&s, "\\x1b[2J  ");
	prb_text_spaces(&s, 100);
	assert_int_equal(s.length, 100);
	assert_int_equal(strspn(s.data, " "), 100);
	prb_str_truncate(&s, 0);
	prb_text_wrap(&s, "aaaa bbbb", 2);
	expect(&s, "  aaaa bbbb\n");
	prb_text_wrap(&s, "one\ntwo\n\nthree", 0);
	expect(&s, "one two\n\nthree\n");
	prb_text_wrap(&s, "", 0);
	expect(&s, "");
	prb_text_wrap_after(&s, "aaaa bbbb cccc dddd", 3, 2, 12);
	expect(&s, " aaaa\n  bbbb cccc\n  dddd\n");
	prb_text_cut(&s, "漢字", 4);
	expect(&s, "漢字");
	prb_text_cut(&s, "漢字 and", 4);
	expect(&s, "漢…");
	prb_text_cut(&s, "abc", 1);
	expect(&s, "…");
	prb_text_cut(&s, "abc", 0);
	expect(&s, "");

	char words[500];
	memset(words, 'x', sizeof(words));
	for (size_t i = 9; i < sizeof(words); i += 10)
		words[i] = ' ';
	words[sizeof(words) - 1] = '\0';
	prb_text_wrap(&s, words, 0);
	for (char *line = strtok(s.data, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 80);
}

static void test_fit(void **state)
{
	static const struct {
		const char *text, *fitting;
		size_t columns;
	} cases[] = {
		{"  12  bytes  of a text\n", "  12  bytes  of a text\n", 22},
		/* Below the last column that leaves room; a cell stays whole. */
		{"  12  bytes  of a text\n", "  12  bytes\n      of a text\n", 16},
		{"  12  bytes  of a long text\nb\n", "  12  bytes  of a\n      long text\nb\n", 18},
		{"   8.9 MiB  4\n", "   8.9 MiB\n     4\n", 10},
		{"  1      running as of now\n", "  1\n      running\n      as of\n      now\n",
		 14},
		/* Nothing is lost of a word that is too wide. */
		{"a /tmp/abcdefghijk", "a /tmp/a\n    bcde\n    fghi\n    jk", 8},
		{"a 漢字漢", "a 漢\n  字\n  漢", 5},
		/* Colours take no columns; other bytes behind an escape do. */
		{"\x1b[1;32mok\x1b[0m of it", "\x1b[1;32mok\x1b[0m of it", 8},
		{"\x1b[32maaaa\x1b[0m bbbb", "\x1b[32maaaa\x1b[0m\n   bbbb", 7},
		/* A line that begins too far to the right. */
		{"            of it\n", "     of it\n", 10},
		{"      of it all\n", "      of\n     it\n     all\n", 10},
		{"\n\n", "\n\n", 1},
		{"ab  \n", "ab\n", 2},
		{"ab", "a\nb", 1},
		{"", "", 0},
	};
	prb_auto_str struct prb_str s = {};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		prb_text_fit(&s, cases[i].text, cases[i].columns);
		expect(&s, cases[i].fitting);
	}
	prb_text_last_cell(&s, 0, "the last cell of the line", 0);
	expect(&s, "the last cell of the line");
	prb_str_puts(&s, "\n12345  ");
	prb_text_last_cell(&s, 1, "the last cell of the line", 23);
	expect(&s, "\n12345  the last cell o…");
	prb_str_puts(&s, "\n12345  ");
	prb_text_last_cell(&s, 1, "the last cell of the line", 22);
	expect(&s, "\n12345\n         the last cel…");
}

static void test_duration(void **state)
{
	static const struct {
		double seconds;
		const char *text;
	} cases[] = {
		{0, "0 µs"},
		{38e-6, "38 µs"},
		{999.4e-6, "999 µs"},
		{0.0012, "1.2 ms"},
		{0.0099, "9.9 ms"},
		{0.00999, "10 ms"},
		{0.443, "443 ms"},
		{0.9996, "1.0 s"},
		{3.04, "3.0 s"},
		{9.96, "10 s"},
		{59.4, "59 s"},
		{59.6, "1 m 0 s"},
		{130.2, "2 m 10 s"},
		{3599.6, "1 h 0 m"},
		{3 * 3600 + 300, "3 h 5 m"},
		{86400 * 2.25, "2 d 6 h"},
		{-1, "?"},
		{1e300, "?"},
		{0.0 / 0.0, "?"},
	};
	prb_auto_str struct prb_str s = {};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		prb_text_duration(&s, cases[i].seconds);
		expect(&s, cases[i].text);
	}
}

static void test_command_length(void **state)
{
	char title[] = "ray::Worker.run\0\0\0\0\0\0\0\0\0\0\0\0";
	char empty[12] = "";

	(void)state;
	assert_int_equal(prb_text_command_length(title, sizeof(title)), 16);
	assert_int_equal(prb_text_command_length("a\0b\0\0", 6), 6);
	assert_int_equal(prb_text_command_length(empty, sizeof(empty)), sizeof(empty));
	assert_int_equal(prb_text_command_length("", 0), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decode),
		cmocka_unit_test(test_width),
		cmocka_unit_test(test_escape),
		cmocka_unit_test(test_layout),
		cmocka_unit_test(test_fit),
		cmocka_unit_test(test_duration),
		cmocka_unit_test(test_command_length),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
