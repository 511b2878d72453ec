/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes from clients of a served process, in pieces, before or after authentication; and as the
 * words of their commands, which must not pass if they name files or another target.
 */
#include <stdio.h>

#include "remote/serve/serve_private.h"
#include "remote/serve/words.h"
#include "tests/fuzz/input.h"

enum { MAX_PIECE = 255 * 8 + 1, LET_IN = 1 };

/** An accepted command has the served target, and no file but stdout. */
static void check(const struct prb_words *words)
{
	static const char target[] = "--target=";
	char *const *word;

	prb_vec_each (word, &words->list) {
		if (!strcmp(*word, "--"))
			break;
		if (!strncmp(*word, target, strlen(target)) &&
		    (word != words->list.items + 1 || strcmp(*word, "--target=42") != 0))
			abort();
		if (!strncmp(*word, "--output=", 9) && strcmp(*word, "--output=-") != 0)
			abort();
		if (!strncmp(*word, "--input", 7) || !strncmp(*word, "--file", 6) ||
		    !strncmp(*word, "--library", 9) || !strcmp(*word, "-t") ||
		    !strncmp(*word, "--exe=", 6) || !strncmp(*word, "--listen", 8))
			abort();
	}
}

/** The fuzzer starts no processes: all commands are run by the caller. */
static bool command(void *context, const char *const *words, size_t count,
		    struct prb_serve_answer *answer)
{
	prb_auto_words struct prb_words put = {};
	struct prb_error *err = prb_serve_words(words, count, "42", &put);

	(void)context;
	if (!err)
		check(&put);
	else
		prb_str_puts(&answer->err, err->message);
	prb_error_destroy(err);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct prb_token token = {.text = "0123456789abcdef"};
	const struct prb_serve how = {.token = &token, .target = "42", .command = command};
	struct prb_server server = {.how = &how, .now = 1000};
	struct prb_serve_client client = {.fd = -1, .child = PRB_SERVE_NO_CHILD};
	struct input input = {data, size};

	if (input_u8(&input) & LET_IN) {
		client.state = PRB_SERVE_LET_IN;
		server.let_in = 1;
	}
	while (input.size && client.state <= PRB_SERVE_LET_IN) {
		uint8_t piece[MAX_PIECE];
		size_t length = PRB_MIN((size_t)input_u8(&input) * 8 + 1, input.size);

		input_take(&input, piece, length);
		prb_str_append(&client.in, piece, length);
		prb_serve_client_take(&server, &client);
		/* The client reads its output. */
		prb_str_truncate(&client.out, 0);
		if (client.state == PRB_SERVE_LET_IN && !server.let_in)
			abort();
	}
	prb_serve_client_drop(&server, &client);
	if (server.let_in)
		abort();
	prb_str_deinit(&client.in);
	prb_str_deinit(&client.out);
	return 0;
}
