/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file SipHash, the keyed hash of short texts by Aumasson and Bernstein; Python's dicts use it.
 */
#ifndef PRB_BASE_SIPHASH_H
#define PRB_BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/** SipHash-@p rounds-@p end: rounds for each eight bytes, and rounds at the end. */
uint64_t prb_siphash(unsigned rounds, unsigned end, const uint64_t key[2], const void *data,
		     size_t length);

#endif
