/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Prints what each thread of a Python process does, through libprobing:
 *
 *     cc stacks.c $(pkg-config --cflags --libs probing) -o stacks && ./stacks 4242
 */
#include <inttypes.h>
#include <stdio.h>

#include <probing.h>

static int print_thread(void *context, struct probing_statement *row)
{
	const char *function = probing_value_text(row, 3, NULL);

	(void)context;
	printf("%" PRId64 " %s is %s", probing_value_integer(row, 0),
	       probing_value_text(row, 1, NULL), probing_value_text(row, 2, NULL));
	if (function)
		printf(" in %s, line %" PRId64, function, probing_value_integer(row, 4));
	putchar('\n');
	return 0;
}

int main(int argc, char **argv)
{
	static const char sql[] =
		"SELECT t.tid, coalesce(t.name, t.os_name), t.state, s.func, s.lineno "
		"FROM python.threads t LEFT JOIN python.stacks s "
		"ON s.tid = t.tid AND s.depth = 0";
	struct probing *session = NULL;
	struct probing_error *error;

	if (argc != 2) {
		fprintf(stderr, "usage: stacks TARGET\n");
		return 2;
	}
	error = probing_create(&session);
	if (!error)
		error = probing_open(session, argv[1], NULL);
	if (!error)
		error = probing_query(session, sql, print_thread, NULL);
	if (error) {
		const char *hint = probing_error_hint(error);

		fprintf(stderr, "%s\n%s%s", probing_error_message(error), hint ? hint : "",
			hint ? "\n" : "");
	}
	int failed = error != NULL;
	probing_error_destroy(error);
	probing_destroy(session);
	return failed;
}
