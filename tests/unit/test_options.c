/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "command/command.h"
#include "command/modes.h"
#include "command/options.h"
#include "base/words.h"

struct settings {
	bool flag, other;
	unsigned count;
	const char *text, *place;
	int number;
	double seconds;
};

static const struct prb_option table[] = {
	{"flag", 'f', PRB_OPTION_FLAG, NULL, "", 0, offsetof(struct settings, flag)},
	{"count", 'c', PRB_OPTION_COUNT, NULL, "", 0, offsetof(struct settings, count)},
	{"text", 't', PRB_OPTION_TEXT, "TEXT", "", 0, offsetof(struct settings, text)},
	{"number", 'n', PRB_OPTION_NUMBER, "N", "", 0, offsetof(struct settings, number)},
	{"seconds", 's', PRB_OPTION_SECONDS, "TIME", "", 0, offsetof(struct settings, seconds)},
	{"place", 0, PRB_OPTION_TEXT, "[ADDR]", "", 0, offsetof(struct settings, place), "here:1"},
	{},
};

static const struct prb_option second[] = {
	{"tree", 't', PRB_OPTION_FLAG, NULL, "", 0, offsetof(struct settings, other)},
	{"only", 0, PRB_OPTION_FLAG, NULL, "", 0, offsetof(struct settings, other)},
	{},
};

/**
 * Parses words separated by spaces; returns the number of positional ones, or -1 with the error's
 * text.
 */
static int parse(const char *line, struct settings *ret, char rest[200], char message[200])
{
	static char buffer[200];
	char *words[16];
	size_t count = 0, positional = 0;
	const struct prb_option_scopes scopes = {
		(const struct prb_option_scope[]){{table, ret}, {second, ret}, {}}, "it"};

	*ret = (struct settings){};
	rest[0] = message[0] = '\0';
	snprintf(buffer, sizeof(buffer), "%s", line);
	for (char *word = strtok(buffer, " "); word; word = strtok(NULL, " "))
		words[count++] = word;

	struct prb_error *err = prb_options_parse(&scopes, words, count, &positional);
	if (err) {
		assert_int_equal(err->code, PRB_ERROR_USAGE);
		snprintf(message, 200, "%s", err->message);
		prb_error_destroy(err);
		return -1;
	}
	for (size_t i = 0; i < positional; i++)
		snprintf(rest + strlen(rest), 200 - strlen(rest), "%s%s", i ? " " : "", words[i]);
	return (int)positional;
}

static void test_forms(void **state)
{
	static const struct {
		const char *line, *rest;
		struct settings settings;
	} cases[] = {
		{"", "", {}},
		{"a b", "a b", {}},
		{"-f", "", {.flag = true}},
		{"--flag a", "a", {.flag = true}},
		{"-fcc", "", {.flag = true, .count = 2}},
		{"-c --count -c", "", {.count = 3}},
		{"-t x a", "a", {.text = "x"}},
		{"-tx", "", {.text = "x"}},
		{"-ftx", "", {.flag = true, .text = "x"}},
		{"--text x a", "a", {.text = "x"}},
		{"--text=x=y", "", {.text = "x=y"}},
		{"--text=", "", {.text = ""}},
		{"--text -f", "", {.text = "-f"}},
		{"--place", "", {.place = "here:1"}},
		{"--place a", "a", {.place = "here:1"}},
		{"--place -f", "", {.place = "here:1", .flag = true}},
		{"--place a:2 b", "b", {.place = "a:2"}},
		{"--place=a b", "b", {.place = "a"}},
		{"-n 42 a -f", "a", {.number = 42, .flag = true}},
		{"-n2147483647", "", {.number = 2147483647}},
		{"-n1 -n2", "", {.number = 2}},
		{"a - b", "a - b", {}},
		{"-f -- -f --text", "-f --text", {.flag = true}},
		{"a -- b", "a b", {}},
		{"--only", "", {.other = true}},
		{"--tree", "", {.other = true}},
	};
	struct settings s;
	char rest[200], message[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(parse(cases[i].line, &s, rest, message) >= 0);
		assert_string_equal(rest, cases[i].rest);
		assert_int_equal(s.flag, cases[i].settings.flag);
		assert_int_equal(s.other, cases[i].settings.other);
		assert_int_equal(s.count, cases[i].settings.count);
		assert_int_equal(s.number, cases[i].settings.number);
		assert_string_equal(s.text ? s.text : "(none)",
				    cases[i].settings.text ? cases[i].settings.text : "(none)");
		assert_string_equal(s.place ? s.place : "(none)",
				    cases[i].settings.place ? cases[i].settings.place : "(none)");
	}
}

static void test_errors(void **state)
{
	static const char *const cases[][2] = {
		{"-x", "'it' has no option '-x'"},
		{"-fx", "'it' has no option '-x'"},
		{"--nope", "'it' has no option '--nope'"},
		{"--nope=1", "'it' has no option '--nope'"},
		{"--=1", "'it' has no option '--'"},
		{"--flag=1", "option '--flag' takes no value"},
		{"-t", "option '--text' needs a value: TEXT"},
		{"a --text", "option '--text' needs a value: TEXT"},
		{"-n x", "option '--number' needs a number above 0, not 'x'"},
		{"-n 0", "option '--number' needs a number above 0, not '0'"},
		{"-n -1", "option '--number' needs a number above 0, not '-1'"},
		{"-n 1x", "option '--number' needs a number above 0, not '1x'"},
		{"--number=", "option '--number' needs a number above 0, not ''"},
		{"-n 2147483648", "option '--number' needs a number above 0, not '2147483648'"},
		{"-n 99999999999999999999",
		 "option '--number' needs a number above 0, not '99999999999999999999'"},
	};
	struct settings s;
	char rest[200], message[200];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(parse(cases[i][0], &s, rest, message), -1);
		assert_string_equal(message, cases[i][1]);
	}
}

static void test_skip(void **state)
{
	struct settings s = {};
	const struct prb_option_scopes scopes = {(const struct prb_option_scope[]){{table, &s}, {}},
						 "it"};
	char *words[] = {"-f", "-t", "x", "-n3", "--text=y", "--text", "z", "--", "-a"};
	char *plain[] = {"-ct", "x", "a", "b"};

	(void)state;
	assert_int_equal(prb_options_skip(&scopes, words, 9, 0), 8);
	assert_int_equal(prb_options_skip(&scopes, words, 2, 0), 2);
	assert_int_equal(prb_options_skip(&scopes, plain, 4, 0), 2);
	assert_int_equal(prb_options_skip(&scopes, plain, 4, 3), 3);
	assert_int_equal(prb_options_skip(&scopes, plain, 0, 0), 0);
}

static void test_distance(void **state)
{
	char longest[100];

	(void)state;
	assert_int_equal(prb_word_distance("", ""), 0);
	assert_int_equal(prb_word_distance("", "abc"), 3);
	assert_int_equal(prb_word_distance("kitten", "sitting"), 3);
	assert_int_equal(prb_word_distance("dmup", "dump"), 1);
	assert_true(prb_word_resembles("debuk", "debug"));
	assert_true(prb_word_resembles("back", "backtrace"));
	assert_false(prb_word_resembles("list", "debug"));
	assert_false(prb_word_resembles("x", "d"));
	memset(longest, 'a', sizeof(longest));
	longest[99] = '\0';
	assert_false(prb_word_resembles(longest, "debug"));
}

/** Rules for the tables of all commands, so that help, parser and completion agree. */
static void check_table(const struct prb_option *options)
{
	for (const struct prb_option *o = options; o->name; o++) {
		bool value = o->kind == PRB_OPTION_TEXT || o->kind == PRB_OPTION_NUMBER ||
			     o->kind == PRB_OPTION_TEXTS || o->kind == PRB_OPTION_SECONDS;

		assert_int_equal(value, o->value != NULL);
		assert_true(strlen(o->help) > 0 && o->help[strlen(o->help) - 1] != '.');
		for (const struct prb_option *other = options; other < o; other++) {
			assert_string_not_equal(o->name, other->name);
			assert_true(!o->letter || o->letter != other->letter);
		}
	}
}

static void test_tables(void **state)
{
	(void)state;
	check_table(prb_global_options);
	check_table(prb_hidden_options);
	for (const struct prb_command *const *c = prb_commands; *c; c++) {
		check_table((*c)->options);
		assert_ptr_equal(prb_command_find((*c)->name), *c);
		for (const char *const *alias = (*c)->aliases; *alias; alias++)
			assert_ptr_equal(prb_command_find(*alias), *c);
		assert_true((*c)->target_use != PRB_TARGET_ONE ||
			    ((*c)->examples && !(*c)->max_arguments));
		assert_int_equal((*c)->argument != NULL, (*c)->max_arguments > 0);
	}
	assert_null(prb_command_find(""));
	assert_null(prb_command_find("deb"));
}

static void test_seconds(void **state)
{
	static const struct {
		const char *line;
		double seconds;
	} good[] = {
		{"-s 5", 5},	 {"-s5s", 5},	  {"--seconds=500ms", 0.5}, {"-s .25", 0.25},
		{"-s 1.5m", 90}, {"-s 2h", 7200}, {"-s 0.001ms", 1e-6},
	};
	static const char *const bad[] = {"0",	  "0s",	 "-1",	"5x",  "s",	"",  "1e3",
					  "0x10", "nan", "inf", "5 s", "1.2.3", ".", "99999999999"};
	struct settings s;
	char rest[200], message[200], line[64];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(parse(good[i].line, &s, rest, message), 0);
		assert_true(s.seconds > good[i].seconds * 0.999999 &&
			    s.seconds < good[i].seconds * 1.000001);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		snprintf(line, sizeof(line), "--seconds=%s", bad[i]);
		if (strchr(line, ' '))
			*strchr(line, ' ') = '_';
		assert_int_equal(parse(line, &s, rest, message), -1);
		assert_non_null(strstr(message, "duration"));
	}
}

enum { BOTH, ONLY_FLAG, USUAL, MODES };

static const struct prb_mode modes[] = {
	[BOTH] = {.name = "--flag --text", .by = "flag text", .takes = "flag text"},
	[ONLY_FLAG] = {.name = "--flag", .by = "flag", .takes = "count flag"},
	[USUAL] = {.name = "the usual", .by = "", .leaves = "seconds place"},
};

static void expect_mode(const struct settings *settings, size_t mode, const char *message,
			const char *hint)
{
	size_t found = prb_mode_find(modes, table, settings);
	struct prb_error *err = prb_mode_check(modes, MODES, found, table, settings);

	assert_int_equal(found, mode);
	if (!message) {
		assert_null(err);
		return;
	}
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_USAGE);
	assert_string_equal(err->message, message);
	if (hint)
		assert_string_equal(err->hint, hint);
	else
		assert_null(err->hint);
	prb_error_destroy(err);
}

static void test_modes(void **state)
{
	(void)state;
	expect_mode(&(struct settings){}, USUAL, NULL, NULL);
	expect_mode(&(struct settings){.count = 1, .text = "", .number = 1}, USUAL, NULL, NULL);
	expect_mode(&(struct settings){.flag = true, .count = 1}, ONLY_FLAG, NULL, NULL);
	expect_mode(&(struct settings){.flag = true, .text = ""}, BOTH, NULL, NULL);
	expect_mode(&(struct settings){.flag = true, .number = 1}, ONLY_FLAG,
		    "--number is not for --flag", "it is for the usual");
	expect_mode(&(struct settings){.flag = true, .text = "", .count = 1}, BOTH,
		    "--count is not for --flag --text", "it is for --flag and the usual");
	expect_mode(&(struct settings){.seconds = 0.1}, USUAL, "--seconds is not for the usual",
		    NULL);
	expect_mode(&(struct settings){.place = ""}, USUAL, "--place is not for the usual", NULL);
}

static void test_several_modes(void **state)
{
	static const struct prb_mode pairs[] = {
		{.name = "--flag", .by = "flag", .leaves = "number"},
		{.name = "--text", .by = "text", .leaves = "count number", .instead = "so"},
	};
	const struct settings fine = {.flag = true, .count = 1}, wrong = {.text = "", .count = 1};
	struct prb_error *err;

	(void)state;
	assert_null(prb_mode_check_each(pairs, 2, table, &fine));
	err = prb_mode_check_each(pairs, 2, table, &wrong);
	assert_string_equal(err->message, "--count is not for --text");
	assert_string_equal(err->hint, "so");
	prb_error_destroy(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),  cmocka_unit_test(test_errors),
		cmocka_unit_test(test_skip),   cmocka_unit_test(test_distance),
		cmocka_unit_test(test_tables), cmocka_unit_test(test_seconds),
		cmocka_unit_test(test_modes),  cmocka_unit_test(test_several_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
