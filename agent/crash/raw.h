/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file System calls and text without libc, for a process that crashes: libc's functions may be
 * what crashed, and errno belongs to two threads at once, since the helper shares it.
 */
#ifndef PRB_AGENT_CRASH_RAW_H
#define PRB_AGENT_CRASH_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>

/** Gives what the kernel returns: a negative errno value on failure. */
static inline long prba_raw6(long number, long a, long b, long c, long d, long e, long f)
{
#if defined(__x86_64__)
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc 0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
#else
#error "no system calls for this architecture"
#endif
}

#define PRBA_RAW_PICK(_1, _2, _3, _4, _5, _6, _7, name, ...) name
#define PRBA_RAW1(n) prba_raw6(n, 0, 0, 0, 0, 0, 0)
#define PRBA_RAW2(n, a) prba_raw6(n, (long)(a), 0, 0, 0, 0, 0)
#define PRBA_RAW3(n, a, b) prba_raw6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define PRBA_RAW4(n, a, b, c) prba_raw6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define PRBA_RAW5(n, a, b, c, d) prba_raw6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define PRBA_RAW6(n, a, b, c, d, e) \
	prba_raw6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define PRBA_RAW7(n, a, b, c, d, e, f) \
	prba_raw6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/** prba_raw(SYS_…, arguments…) */
#define prba_raw(...)                                                                     \
	PRBA_RAW_PICK(__VA_ARGS__, PRBA_RAW7, PRBA_RAW6, PRBA_RAW5, PRBA_RAW4, PRBA_RAW3, \
		      PRBA_RAW2, PRBA_RAW1)                                               \
	(__VA_ARGS__)

/** Text that is put together; always terminated, cut at its size. */
struct prba_text {
	char *data;
	size_t used, size;
};

static inline void prba_text_put(struct prba_text *t, const char *from, size_t length)
{
	for (size_t i = 0; i < length && t->used + 1 < t->size; i++)
		t->data[t->used++] = from[i];
	t->data[t->used] = '\0';
}

static inline size_t prba_text_length(const char *text)
{
	size_t length = 0;

	while (text[length])
		length++;
	return length;
}

static inline void prba_text_puts(struct prba_text *t, const char *from)
{
	prba_text_put(t, from, prba_text_length(from));
}

static inline void prba_text_number(struct prba_text *t, uint64_t number)
{
	enum { DIGITS = 20 };
	char digits[DIGITS];
	size_t at = DIGITS;

	do {
		digits[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	prba_text_put(t, digits + at, DIGITS - at);
}

/** Decimal digits at *at, which moves behind them. */
static inline uint64_t prba_text_decimal(const char **at)
{
	uint64_t number = 0;

	for (; **at >= '0' && **at <= '9'; ++*at)
		number = number * 10 + (uint64_t)(**at - '0');
	return number;
}

static inline uint64_t prba_text_hex(const char **at)
{
	uint64_t number = 0;

	for (;; ++*at) {
		char c = **at;

		if (c >= '0' && c <= '9')
			number = number << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			number = number << 4 | (uint64_t)(c - 'a' + 10);
		else
			return number;
	}
}

static inline bool prba_text_begins(const char *text, const char *with)
{
	while (*with)
		if (*text++ != *with++)
			return false;
	return true;
}

#endif
