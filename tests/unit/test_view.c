/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Views of memory: their fetches, the number of calls, and that they keep one instant. The memory
 * is made by hand, and counts reads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/mem/view.h"
#include "tests/unit/in_range.h"

enum { BASE = 0x10000, PAGES = 256, CHAINS = 40, LINKS = 5 };

static struct source {
	struct prb_mem mem;
	size_t singles, batches;
	uint64_t bad_page; /* cannot be read; 0: none */
	uint64_t words[PAGES][PRB_PAGE_WORDS];
} source;

static bool copy(uint64_t address, void *buffer, size_t length)
{
	if (address < BASE || !prb_inside(address - BASE, length, sizeof(source.words)) ||
	    address / PRB_PAGE_SIZE == source.bad_page)
		return false;
	memcpy(buffer, (const char *)source.words + (address - BASE), length);
	return true;
}

static struct prb_error *read_one(struct prb_mem *mem, uint64_t address, void *buffer,
				  size_t length)
{
	(void)mem;
	source.singles++;
	return copy(address, buffer, length) ? NULL : prb_error_fault(address, length);
}

static struct prb_error *read_many(struct prb_mem *mem, struct prb_block *blocks, size_t count)
{
	(void)mem;
	source.batches++;
	for (size_t i = 0; i < count; i++)
		blocks[i].ok = copy(blocks[i].address, blocks[i].buffer, blocks[i].length);
	return NULL;
}

static const struct prb_mem_ops source_ops = {.read = read_one, .read_many = read_many};

static uint64_t page_address(size_t page)
{
	return BASE + page * PRB_PAGE_SIZE;
}

/* CHAINS chains of LINKS words, each word in a page of its own with the address of the next. */
static int setup(void **state)
{
	memset(&source, 0, sizeof(source));
	source.mem.ops = &source_ops;
	for (size_t i = 0; i < CHAINS; i++)
		for (size_t link = 0; link + 1 < LINKS; link++)
			source.words[link * CHAINS + i][0] = page_address((link + 1) * CHAINS + i);

	struct prb_view *view;
	assert_null(prb_view_create(&source.mem, &view));
	*state = view;
	return 0;
}

static int teardown(void **state)
{
	prb_view_destroy(*state);
	return 0;
}

struct chains {
	struct prb_view *view;
	size_t whole; /* chains followed to their end */
};

static struct prb_error *follow(void *context)
{
	struct chains *chains = context;

	chains->whole = 0;
	for (size_t i = 0; i < CHAINS; i++) {
		uint64_t next = page_address(i);
		struct prb_error *err = NULL;

		while (next && !err)
			err = prb_mem_read_u64(prb_view_mem(chains->view), next, &next);
		chains->whole += !err;
		if (err && !prb_error_catch(&err, PRB_ERROR_FAULT))
			return err;
	}
	return NULL;
}

static void test_gather_reads_level_by_level(void **state)
{
	struct chains chains = {.view = *state};

	assert_null(prb_view_gather(chains.view, follow, &chains));
	assert_int_equal(chains.whole, CHAINS);
	assert_uint_in_range(source.batches, 1, LINKS);
	assert_uint_in_range(source.singles, 0, CHAINS * LINKS / 2);

	/* All pages are held now, and a missing page may be fetched again. */
	source.singles = source.batches = 0;
	assert_null(follow(&chains));
	assert_int_equal(chains.whole, CHAINS);
	assert_int_equal(source.singles + source.batches, 0);
	uint64_t word;
	assert_null(prb_mem_read_u64(prb_view_mem(chains.view), page_address(PAGES - 1), &word));
	assert_int_equal(source.singles, 1);
}

static void test_gather_ends_at_what_cannot_be_read(void **state)
{
	struct chains chains = {.view = *state};

	source.bad_page = page_address(CHAINS + 3) / PRB_PAGE_SIZE;
	assert_null(prb_view_gather(chains.view, follow, &chains));
	assert_int_equal(chains.whole, CHAINS - 1);
}

static struct prb_error *be_gone(void *context)
{
	(void)context;
	return prb_error_create(PRB_ERROR_NO_PROCESS, "it is gone");
}

static void test_gather_hands_on_errors(void **state)
{
	struct prb_error *err = prb_view_gather(*state, be_gone, NULL);
	uint64_t word;

	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_NO_PROCESS);
	prb_error_destroy(err);
	assert_null(prb_mem_read_u64(prb_view_mem(*state), page_address(0), &word));
}

static void test_view_stays_with_its_epoch(void **state)
{
	struct prb_mem *mem = prb_view_mem(*state);
	uint64_t word;

	source.words[7][3] = 1;
	assert_null(prb_mem_read_u64(mem, page_address(7) + 24, &word));
	source.words[7][3] = 2;
	assert_null(prb_mem_read_u64(mem, page_address(7) + 24, &word));
	assert_int_equal(word, 1);

	prb_view_new_epoch(*state);
	source.singles = 0;
	assert_null(prb_view_prefetch(*state));
	assert_int_equal(source.batches, 1);
	assert_null(prb_mem_read_u64(mem, page_address(7) + 24, &word));
	assert_int_equal(word, 2);
	assert_int_equal(source.singles, 0);
}

static void test_sealed_view_fetches_nothing(void **state)
{
	struct prb_mem *mem = prb_view_mem(*state);
	uint64_t word;

	source.words[8][0] = 5;
	prb_view_seal(*state, NULL);

	struct prb_error *err = prb_mem_read_u64(mem, page_address(8), &word);
	assert_true(prb_error_catch(&err, PRB_ERROR_FAULT));
	assert_int_equal(prb_view_misses(*state), 1);
	assert_int_equal(source.singles + source.batches, 0);

	/* The page is expected in the next epoch. */
	prb_view_new_epoch(*state);
	assert_null(prb_view_prefetch(*state));
	prb_view_seal(*state, NULL);
	assert_null(prb_mem_read_u64(mem, page_address(8), &word));
	assert_int_equal(word, 5);
}

static void test_reads_cross_pages(void **state)
{
	char bytes[3 * PRB_PAGE_SIZE];

	memset(source.words[20], 'a', PRB_PAGE_SIZE);
	memset(source.words[21], 'b', PRB_PAGE_SIZE);
	memset(source.words[22], 'c', PRB_PAGE_SIZE);
	assert_null(prb_view_prefetch_range(*state, page_address(20), sizeof(bytes)));
	assert_int_equal(source.batches, 1);
	assert_null(
		prb_mem_read(prb_view_mem(*state), page_address(20) + 1, bytes, 2 * PRB_PAGE_SIZE));
	assert_int_equal(bytes[PRB_PAGE_SIZE - 2], 'a');
	assert_int_equal(bytes[PRB_PAGE_SIZE - 1], 'b');
	assert_int_equal(bytes[2 * PRB_PAGE_SIZE - 1], 'c');
	assert_int_equal(source.singles, 0);
}

static void note_words(void *context, uint64_t address, const void *data,
		       const struct prb_page_marks *read)
{
	size_t *words = context;

	(void)address;
	(void)data;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(read->bits); i++)
		*words += (size_t)__builtin_popcountll(read->bits[i]);
}

static size_t words_needed(const struct prb_view *view)
{
	size_t words = 0;

	prb_view_each_page(view, note_words, &words);
	return words;
}

/* Peeked words, and bytes after the end of a text, do not count as needed. */
static void test_only_what_is_needed_is_noted(void **state)
{
	struct prb_mem *mem = prb_view_mem(*state);
	prb_auto_str struct prb_str text = {};
	char bytes[1024];
	size_t length = 3;

	memset(source.words[20], 'a', PRB_PAGE_SIZE);
	memcpy(source.words[20], "a name of 18 bytes", 19);
	assert_null(prb_mem_peek(mem, page_address(20), bytes, sizeof(bytes)));
	assert_string_equal(bytes, "a name of 18 bytes");
	assert_int_equal(words_needed(*state), 0);
	assert_null(prb_mem_read_text(mem, page_address(20), bytes, &length));
	assert_int_equal(length, 3);
	assert_int_equal(words_needed(*state), 1);
	assert_null(prb_mem_read_cstr(mem, page_address(20), sizeof(bytes), &text));
	assert_string_equal(text.data, "a name of 18 bytes");
	assert_int_equal(words_needed(*state), 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_gather_reads_level_by_level, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gather_ends_at_what_cannot_be_read, setup,
						teardown),
		cmocka_unit_test_setup_teardown(test_gather_hands_on_errors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_view_stays_with_its_epoch, setup, teardown),
		cmocka_unit_test_setup_teardown(test_sealed_view_fetches_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(test_reads_cross_pages, setup, teardown),
		cmocka_unit_test_setup_teardown(test_only_what_is_needed_is_noted, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
