/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/protobuf.h"

#include <string.h>

/** How a value is written. */
enum { VARINT = 0, FIXED64 = 1, BYTES = 2 };

void prb_proto_varint(struct prb_str *s, uint64_t value)
{
	for (; value >= 0x80; value >>= 7)
		prb_str_putc(s, (char)(value | 0x80));
	prb_str_putc(s, (char)value);
}

void prb_proto_number(struct prb_str *s, unsigned field, uint64_t value)
{
	if (!value)
		return;
	prb_proto_varint(s, field << 3 | VARINT);
	prb_proto_varint(s, value);
}

static void put_fixed64(struct prb_str *s, unsigned field, uint64_t value)
{
	prb_proto_varint(s, field << 3 | FIXED64);
	for (unsigned i = 0; i < 8; i++)
		prb_str_putc(s, (char)(value >> 8 * i));
}

void prb_proto_fixed64(struct prb_str *s, unsigned field, uint64_t value)
{
	if (value)
		put_fixed64(s, field, value);
}

void prb_proto_double(struct prb_str *s, unsigned field, double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof(bits));
	put_fixed64(s, field, bits);
}

void prb_proto_bytes(struct prb_str *s, unsigned field, const void *bytes, size_t length)
{
	prb_proto_varint(s, field << 3 | BYTES);
	prb_proto_varint(s, length);
	prb_str_append(s, bytes, length);
}

void prb_proto_text(struct prb_str *s, unsigned field, const char *text)
{
	if (text)
		prb_proto_bytes(s, field, text, strlen(text));
}

void prb_proto_message(struct prb_str *s, unsigned field, struct prb_str *message)
{
	prb_proto_bytes(s, field, message->data, message->length);
	s->failed |= message->failed;
	prb_str_deinit(message);
}
