/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/siphash.h"

#include <string.h>

struct state {
	uint64_t a, b, c, d;
};

static uint64_t rotate(uint64_t word, unsigned bits)
{
	return word << bits | word >> (64 - bits);
}

static void mix(struct state *s, unsigned rounds)
{
	while (rounds--) {
		s->a += s->b;
		s->c += s->d;
		s->b = rotate(s->b, 13) ^ s->a;
		s->d = rotate(s->d, 16) ^ s->c;
		s->a = rotate(s->a, 32);
		s->c += s->b;
		s->a += s->d;
		s->b = rotate(s->b, 17) ^ s->c;
		s->d = rotate(s->d, 21) ^ s->a;
		s->c = rotate(s->c, 32);
	}
}

static void take(struct state *s, unsigned rounds, uint64_t word)
{
	s->d ^= word;
	mix(s, rounds);
	s->a ^= word;
}

uint64_t prb_siphash(unsigned rounds, unsigned end, const uint64_t key[2], const void *data,
		     size_t length)
{
	/* "somepseudorandomlygeneratedbytes" */
	struct state s = {
		.a = key[0] ^ 0x736f6d6570736575,
		.b = key[1] ^ 0x646f72616e646f6d,
		.c = key[0] ^ 0x6c7967656e657261,
		.d = key[1] ^ 0x7465646279746573,
	};
	const char *bytes = data;
	uint64_t word;
	size_t i = 0;

	for (; length - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, bytes + i, sizeof(word));
		take(&s, rounds, word);
	}
	word = 0;
	memcpy(&word, bytes + i, length - i);
	take(&s, rounds, word | (uint64_t)length << 56);
	s.c ^= 0xff;
	mix(&s, end);
	return s.a ^ s.b ^ s.c ^ s.d;
}
