/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Parts of a server that need no network: delays, proofs of a token, accepted words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "command/commands.h"
#include "remote/token.h"
#include "remote/wire.h"
#include "remote/serve/serve.h"
#include "remote/serve/limit.h"
#include "remote/serve/words.h"
#include "base/checked.h"
#include "base/cleanup.h"

static struct sockaddr_storage address(const char *text)
{
	struct sockaddr_storage ret = {};

	ret.ss_family = strchr(text, ':') ? AF_INET6 : AF_INET;
	inet_pton(ret.ss_family, text,
		  ret.ss_family == AF_INET6 ? (void *)&((struct sockaddr_in6 *)&ret)->sin6_addr
					    : (void *)&((struct sockaddr_in *)&ret)->sin_addr);
	return ret;
}

static void an_address_waits_ever_longer(void **state)
{
	static struct prb_limit limit;
	struct sockaddr_storage here = address("10.0.0.1"), there = address("10.0.0.2");
	double now = 1000, waits[] = {0, 0, 0, 0, 1, 2, 4, 8, 16, 30, 30};

	(void)state;
	limit = (struct prb_limit){};
	for (size_t i = 0; i < PRB_ARRAY_SIZE(waits); i++) {
		assert_true(prb_limit_wait(&limit, &here, now) <= 0);
		prb_limit_fail(&limit, &here, now);
		assert_true(prb_limit_wait(&limit, &here, now) == waits[i]);
		assert_true(prb_limit_wait(&limit, &there, now) == 0);
		now += waits[i];
	}
	prb_limit_pass(&limit, &here);
	prb_limit_fail(&limit, &here, now);
	assert_true(prb_limit_wait(&limit, &here, now) == 0);
}

static void a_network_of_ipv6_is_one_address(void **state)
{
	static struct prb_limit limit;
	struct sockaddr_storage one = address("2001:db8::1"), other = address("2001:db8::ffff:2"),
				far = address("2001:db8:1::1");

	(void)state;
	limit = (struct prb_limit){};
	for (int i = 0; i < 5; i++)
		prb_limit_fail(&limit, i % 2 ? &one : &other, 1000);
	assert_true(prb_limit_wait(&limit, &one, 1000) == 1);
	assert_true(prb_limit_wait(&limit, &far, 1000) == 0);
}

static void all_together_are_limited(void **state)
{
	static struct prb_limit limit;
	struct sockaddr_storage other = address("192.0.2.1");
	char text[32];

	(void)state;
	limit = (struct prb_limit){};
	for (int i = 0; i < 600; i++) {
		snprintf(text, sizeof(text), "10.0.%d.%d", i / 200, i % 200);

		struct sockaddr_storage from = address(text);
		double wait = prb_limit_wait(&limit, &from, 1000);

		/* The table of addresses forgets its entries, but the sum stays. */
		if (wait > 0) {
			assert_true(i >= 60 && wait <= 1);
			break;
		}
		prb_limit_fail(&limit, &from, 1000);
		assert_true(i < 100);
	}
	assert_true(prb_limit_wait(&limit, &other, 1000) > 0);
	assert_true(prb_limit_wait(&limit, &other, 1002) == 0);
}

static void proofs_differ_in_all_that_counts(void **state)
{
	const struct prb_token token = {.text = "0123456789abcdef"},
			       other = {.text = "0123456789abcdeg"};
	uint8_t client[PRB_REMOTE_NONCE_SIZE] = {1}, server[PRB_REMOTE_NONCE_SIZE] = {2};
	uint8_t proofs[4][PRB_REMOTE_PROOF_SIZE], again[PRB_REMOTE_PROOF_SIZE];

	(void)state;
	prb_token_prove(&token, PRB_TOKEN_CLIENT, client, server, proofs[0]);
	prb_token_prove(&token, PRB_TOKEN_CLIENT, client, server, again);
	assert_true(prb_token_equal(proofs[0], again));
	prb_token_prove(&token, PRB_TOKEN_SERVER, client, server, proofs[1]);
	prb_token_prove(&token, PRB_TOKEN_CLIENT, server, client, proofs[2]);
	prb_token_prove(&other, PRB_TOKEN_CLIENT, client, server, proofs[3]);
	for (size_t i = 1; i < 4; i++)
		assert_false(prb_token_equal(proofs[0], proofs[i]));
	again[31] ^= 1;
	assert_false(prb_token_equal(proofs[0], again));
}

/** The words that run for a client's words, separated by spaces; the message if refused. */
static const char *served(const char *line)
{
	static char text[500];
	char copy[200];
	const char *words[20];
	size_t count = 0;
	prb_auto_words struct prb_words put = {};
	char *rest = NULL, *const * word;

	snprintf(copy, sizeof(copy), "%s", line);
	for (char *w = strtok_r(copy, " ", &rest); w; w = strtok_r(NULL, " ", &rest))
		words[count++] = w;

	struct prb_error *err = prb_serve_words(words, count, "42", &put);

	text[0] = 0;
	if (err)
		snprintf(text, sizeof(text), "!%s", err->message);
	prb_error_destroy(err);
	if (text[0])
		return text;
	prb_vec_each (word, &put.list)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
			 text[0] ? " " : "", *word);
	return text;
}

static void words_come_through_in_one_form(void **state)
{
	(void)state;
	assert_string_equal(served("backtrace"), "probing --target=42 backtrace --");
	assert_string_equal(served("debug -d --tid 7 -v"),
			    "probing --target=42 -v debug --dump --tid=7 --");
	assert_string_equal(served("eval 1 --timeout 500ms"),
			    "probing --target=42 eval --timeout=0.5s -- 1");
	assert_string_equal(served("eval -- -f"), "probing --target=42 eval -- -f");
	assert_string_equal(served("list --tree"), "probing list --tree --");
	assert_string_equal(served("snapshot -o -"), "probing --target=42 snapshot --output=- --");
	assert_string_equal(served("query - -vvvvvvvvv"),
			    "probing --target=42 -v -v -v query -- -");
}

static void others_do_not(void **state)
{
	static const char *const lines[] = {
		"snapshot -ox",
		"query -i x",
		"eval -f x",
		"backtrace 1",
		"backtrace -t1",
		"backtrace -p 1",
		"bt",
		"gdb",
		"launch sh",
		"debug --dap --debugpy x",
		"debug --pause --address :0",
		"inject -l 1",
		"inject -L x",
		"query --all x",
		"eval 1 2",
		"debug --help",
		"--help",
		"backtrace --token-file x",
		"list -t 1.2.3.4:5",
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(lines); i++)
		if (served(lines[i])[0] != '!')
			fail_msg("'%s' comes through: %s", lines[i], served(lines[i]));
}

static void addresses(void **state)
{
	static const char *const wrong[] = {
		"",	 ":",	     "x",     "1.2.3.4",     "1.2.3.4:", "1.2.3.4:65536",
		"[::1]", "::1:9922", "a b:x", "127.0.0.1:-1"};
	static const struct {
		const char *given, *where;
	} right[] = {{":0", "127.0.0.1:"}, {"127.0.0.1:0", "127.0.0.1:"}};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(wrong); i++) {
		struct prb_listener listener = {.fd = -1};
		struct prb_error *err = prb_listener_open(wrong[i], &listener);

		if (!err || err->code != PRB_ERROR_USAGE)
			fail_msg("'%s': %s", wrong[i], err ? err->message : "listens");
		prb_error_destroy(err);
	}
	for (size_t i = 0; i < PRB_ARRAY_SIZE(right); i++) {
		struct prb_listener listener = {.fd = -1};

		assert_null(prb_listener_open(right[i].given, &listener));
		assert_true(listener.loopback);
		assert_memory_equal(listener.address, right[i].where, strlen(right[i].where));
		prb_listener_close(&listener);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_waits_ever_longer),
		cmocka_unit_test(a_network_of_ipv6_is_one_address),
		cmocka_unit_test(all_together_are_limited),
		cmocka_unit_test(proofs_differ_in_all_that_counts),
		cmocka_unit_test(words_come_through_in_one_form),
		cmocka_unit_test(others_do_not),
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
