/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Decompression of parts of an ELF file into memory, with bounds.
 */
#ifndef PRB_DWARF_ELF_INFLATE_H
#define PRB_DWARF_ELF_INFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

/** How many bytes an SHF_COMPRESSED section claims to hold; 0 if it has no header. */
uint64_t prb_inflate_size(const void *data, uint64_t size);

/** The content of an SHF_COMPRESSED section (zlib or zstd), header included; the caller frees. */
struct prb_error *prb_inflate_section(const void *data, uint64_t size, void **ret,
				      uint64_t *ret_size) PRB_MUST_CHECK;

/** The content of an xz stream (`.gnu_debugdata`); the caller frees. */
struct prb_error *prb_inflate_xz(const void *data, uint64_t size, void **ret,
				 uint64_t *ret_size) PRB_MUST_CHECK;

#endif
