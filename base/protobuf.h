/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Writes messages of Protocol Buffers into texts.
 *
 * A message is a row of fields, each a key (its number, and how its value is written) and a value.
 * Numbers that are zero and texts that are NULL are left out, as they are the defaults. A failed
 * allocation marks the text (base/str.h).
 */
#ifndef PRB_BASE_PROTOBUF_H
#define PRB_BASE_PROTOBUF_H

#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

/** A number in groups of seven bits, without a key: for packed fields. */
void prb_proto_varint(struct prb_str *s, uint64_t value);
void prb_proto_number(struct prb_str *s, unsigned field, uint64_t value);
void prb_proto_fixed64(struct prb_str *s, unsigned field, uint64_t value);
/** Also if it is zero. */
void prb_proto_double(struct prb_str *s, unsigned field, double value);
/** Also if it is empty. */
void prb_proto_bytes(struct prb_str *s, unsigned field, const void *bytes, size_t length);
void prb_proto_text(struct prb_str *s, unsigned field, const char *text);
/** Puts a message into another one, and frees it. */
void prb_proto_message(struct prb_str *s, unsigned field, struct prb_str *message);

#endif
