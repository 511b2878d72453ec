/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Reads the certificate and the key that a gateway uses for TLS. */
#ifndef PRB_GATEWAY_KEYS_H
#define PRB_GATEWAY_KEYS_H

#include "base/error.h"
#include "base/str.h"

/** Starts as {}. */
struct prb_keys {
	struct prb_str certificate, key; /**< PEM */
};

/** PRB_ERROR_PERMISSION if other users may read the key. */
struct prb_error *prb_keys_read(struct prb_keys *keys, const char *certificate,
				const char *key) PRB_MUST_CHECK;
/** Overwrites the key. */
void prb_keys_deinit(struct prb_keys *keys);

#endif
