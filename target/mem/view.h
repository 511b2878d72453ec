/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A cached view of a target's memory at one instant, and how it is kept to one instant.
 *
 * A view keeps pages. All reads through prb_view_mem() come from the pages of the present epoch,
 * which are fetched when first touched. A new epoch forgets the contents but remembers which
 * pages were touched: prb_view_prefetch() then fetches them all in one batched call. That is how
 * a thread is stopped for microseconds only: a first pass while it runs finds out which pages a
 * stack needs, the stop fetches them, and everything is decoded after it runs again.
 *
 * While sealed, a view fetches only pages that cannot have changed (mappings that the target
 * cannot write); reading any other page that it does not hold is a PRB_ERROR_FAULT, counted by
 * prb_view_misses(), and the page is remembered for the next epoch.
 *
 * Many things that hang on pointers are read in few calls by prb_view_gather(): everything is
 * tried with what is held, what was missing is fetched in one call, and so on, level by level.
 *
 * A base that keeps everything itself is read through: then nothing is fetched in advance.
 *
 * Threading: one thread at a time. The view borrows its base, which must outlive it.
 */
#ifndef PRB_TARGET_MEM_VIEW_H
#define PRB_TARGET_MEM_VIEW_H

#include "target/mem/mem.h"

struct prb_view;
struct prb_maps;

enum {
	PRB_PAGE_SIZE = 4096,
	PRB_WORD_SIZE = 8, /* bytes that are marked as read together */
	PRB_PAGE_WORDS = PRB_PAGE_SIZE / PRB_WORD_SIZE,
};

/** Which words of a page were read: bit N % 64 of element N / 64 is for word N. */
struct prb_page_marks {
	uint64_t bits[PRB_PAGE_WORDS / 64];
};

struct prb_error *prb_view_create(struct prb_mem *base, struct prb_view **ret) PRB_MUST_CHECK;
void prb_view_destroy(struct prb_view *view);

/** The view as a memory source; owned by the view. */
struct prb_mem *prb_view_mem(struct prb_view *view);

/** Forgets contents and seal; remembers the pages that the ended epoch touched. */
void prb_view_new_epoch(struct prb_view *view);

/** Fetches all remembered pages that are not held, in batches. Unreadable pages are skipped. */
struct prb_error *prb_view_prefetch(struct prb_view *view) PRB_MUST_CHECK;

/** Fetches the pages of one range, at most @p length bytes up to the first unreadable page. */
struct prb_error *prb_view_prefetch_range(struct prb_view *view, uint64_t address,
					  uint64_t length) PRB_MUST_CHECK;

/** Makes the next epoch fetch the pages of this range too. */
void prb_view_expect(struct prb_view *view, uint64_t address, uint64_t length);

/** From now on only pages of mappings that @p maps calls read-only may be fetched; NULL: none. */
void prb_view_seal(struct prb_view *view, const struct prb_maps *maps);

/** How many reads failed because the view is sealed. */
size_t prb_view_misses(const struct prb_view *view);

/** Reads from the source behind a view's context. */
typedef struct prb_error *prb_view_attempt(void *context);

/**
 * Fetches what @p attempt reads, in one batch for each level of pointers that it follows. It is
 * called several times, with hardly anything to be had but what the view holds already; it should
 * go on with the next thing where one ends in a PRB_ERROR_FAULT, and not return that. Pages may
 * still be missing in the end. Not for a view that is sealed.
 */
struct prb_error *prb_view_gather(struct prb_view *view, prb_view_attempt *attempt,
				  void *context) PRB_MUST_CHECK;

/**
 * Calls @p visit for each page held, in no order; @p data has PRB_PAGE_SIZE bytes. @p read marks
 * its words that were read in this epoch (the rest was only fetched with them).
 */
void prb_view_each_page(const struct prb_view *view,
			void (*visit)(void *context, uint64_t address, const void *data,
				      const struct prb_page_marks *read),
			void *context);

#endif
