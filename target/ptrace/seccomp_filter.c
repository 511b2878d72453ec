/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/ptrace/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <stdlib.h>

#include "base/checked.h"
#include "base/cleanup.h"

#ifdef __x86_64__
static const uint32_t audit_arch = AUDIT_ARCH_X86_64;
#else
static const uint32_t audit_arch = AUDIT_ARCH_AARCH64;
#endif

enum {
	WORD = sizeof(uint32_t),
	WORDS = sizeof(struct seccomp_data) / WORD,
	FIRST_ARGUMENT = offsetof(struct seccomp_data, args) / WORD, /* its low word */
	NO_WORD = -1,
};

struct range {
	uint32_t low, high;
};
static const struct range all = {0, UINT32_MAX};

/* Content of a register: a word of seccomp_data, or a calculated value. */
struct value {
	int word;
	struct range range; /* if word is NO_WORD */
};

/* What is known before an instruction is executed. */
struct state {
	struct range words[WORDS];
	struct value a, x, memory[BPF_MEMWORDS];
};

struct evaluation {
	const struct sock_filter *code;
	size_t count;
	const struct prb_seccomp_call *call;
	struct state *states; /* before each instruction that is reached */
	bool *reached;
	prb_seccomp_result *each;
	void *context;
};

static struct range exactly(uint32_t value)
{
	return (struct range){value, value};
}

static bool is_exact(struct range r)
{
	return r.low == r.high;
}

static struct range both(struct range a, struct range b)
{
	return (struct range){PRB_MIN(a.low, b.low), PRB_MAX(a.high, b.high)};
}

static struct value calculated(struct range range)
{
	return (struct value){NO_WORD, range};
}

static struct range *place_of(struct state *s, struct value *v)
{
	return v->word == NO_WORD ? &v->range : &s->words[v->word];
}

static struct range range_of(const struct state *s, const struct value *v)
{
	return v->word == NO_WORD ? v->range : s->words[v->word];
}

/* Bits in which values of the range may differ: all up to the highest one in which its bounds do.
 */
static uint32_t unsure(struct range r)
{
	uint32_t differ = r.low ^ r.high;

	return differ ? UINT32_MAX >> __builtin_clz(differ) : 0;
}

static uint32_t always_set(struct range r)
{
	return r.low & ~unsure(r);
}

static uint32_t ever_set(struct range r)
{
	return r.low | unsure(r);
}

static uint32_t calculate_one(uint16_t operation, uint32_t a, uint32_t b)
{
	switch (operation) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_OR:
		return a | b;
	case BPF_AND:
		return a & b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	case BPF_XOR:
		return a ^ b;
	case BPF_NEG:
		return -a;
	}
	return 0;
}

static struct range calculate(uint16_t operation, struct range a, struct range b)
{
	if (is_exact(a) && is_exact(b))
		return exactly(calculate_one(operation, a.low, b.low));
	if (operation == BPF_AND && is_exact(b))
		return (struct range){always_set(a) & b.low, ever_set(a) & b.low};
	if (operation == BPF_OR && is_exact(b))
		return (struct range){always_set(a) | b.low, ever_set(a) | b.low};
	if (operation == BPF_RSH && is_exact(b))
		return (struct range){calculate_one(BPF_RSH, a.low, b.low),
				      calculate_one(BPF_RSH, a.high, b.low)};
	return all;
}

/* Narrows the range to values for which the comparison holds, or does not. False if there is none.
 */
static bool narrow(struct range *r, uint16_t comparison, uint32_t k, bool holds)
{
	switch (comparison) {
	case BPF_JEQ:
		if (holds ? k < r->low || k > r->high : is_exact(*r) && k == r->low)
			return false;
		if (holds)
			*r = exactly(k);
		else if (r->low == k)
			r->low++;
		else if (r->high == k)
			r->high--;
		return true;
	case BPF_JGT:
		if (holds ? r->high <= k : r->low > k)
			return false;
		if (holds)
			r->low = PRB_MAX(r->low, k + 1);
		else
			r->high = PRB_MIN(r->high, k);
		return true;
	case BPF_JGE:
		if (holds ? r->high < k : r->low >= k)
			return false;
		if (holds)
			r->low = PRB_MAX(r->low, k);
		else
			r->high = PRB_MIN(r->high, k - 1);
		return true;
	case BPF_JSET:
		return holds ? ever_set(*r) & k : !(always_set(*r) & k);
	}
	return true;
}

/* Makes both words of an argument agree with its 64-bit bounds. False if no value is left. */
static bool agrees(struct state *s, const struct prb_seccomp_call *call, int word)
{
	const int argument = (word - FIRST_ARGUMENT) / 2;

	if (word < FIRST_ARGUMENT)
		return true;
	const uint64_t low = call->args[argument].low, high = call->args[argument].high;
	struct range *l = &s->words[FIRST_ARGUMENT + 2 * argument], *h = l + 1;

	if (is_exact(*h) && h->low == low >> 32)
		l->low = PRB_MAX(l->low, (uint32_t)low);
	if (is_exact(*h) && h->low == high >> 32)
		l->high = PRB_MIN(l->high, (uint32_t)high);
	/* No value with the high word of a bound is left if its low word lies outside. */
	if (l->high < (uint32_t)low && h->low == low >> 32 && !narrow(h, BPF_JEQ, h->low, false))
		return false;
	if (l->low > (uint32_t)high && h->high == high >> 32 && !narrow(h, BPF_JEQ, h->high, false))
		return false;
	return l->low <= l->high;
}

static void unite_values(struct value *to, const struct state *in, const struct value *from,
			 const struct state *from_in)
{
	if (to->word != from->word)
		*to = calculated(both(range_of(in, to), range_of(from_in, from)));
	else if (to->word == NO_WORD)
		to->range = both(to->range, from->range);
}

static void unite(struct state *to, const struct state *from)
{
	unite_values(&to->a, to, &from->a, from);
	unite_values(&to->x, to, &from->x, from);
	for (size_t i = 0; i < BPF_MEMWORDS; i++)
		unite_values(&to->memory[i], to, &from->memory[i], from);
	for (size_t i = 0; i < WORDS; i++)
		to->words[i] = both(to->words[i], from->words[i]);
}

/* Continues at instruction @next. False if @each does not want more results. */
static bool reach(struct evaluation *e, size_t next, const struct state *s)
{
	if (next >= e->count)
		return e->each(e->context, SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_PROCESS);
	if (e->reached[next])
		unite(&e->states[next], s);
	else
		e->states[next] = *s;
	e->reached[next] = true;
	return true;
}

static struct value load(const struct sock_filter *i, const struct state *s)
{
	switch (BPF_MODE(i->code)) {
	case BPF_ABS:
		if (i->k % WORD || i->k / WORD >= WORDS)
			break;
		return (struct value){.word = (int)(i->k / WORD)};
	case BPF_IMM:
		return calculated(exactly(i->k));
	case BPF_MEM:
		return s->memory[i->k % BPF_MEMWORDS];
	case BPF_LEN:
		return calculated(exactly(sizeof(struct seccomp_data)));
	}
	return calculated(exactly(0));
}

static struct range operand_of(const struct sock_filter *i, const struct state *s)
{
	return BPF_SRC(i->code) == BPF_X ? range_of(s, &s->x) : exactly(i->k);
}

/* Executes an instruction that is neither a jump nor a return. */
static void step(const struct sock_filter *i, struct state *s)
{
	switch (BPF_CLASS(i->code)) {
	case BPF_LD:
		s->a = load(i, s);
		break;
	case BPF_LDX:
		s->x = load(i, s);
		break;
	case BPF_ST:
		s->memory[i->k % BPF_MEMWORDS] = s->a;
		break;
	case BPF_STX:
		s->memory[i->k % BPF_MEMWORDS] = s->x;
		break;
	case BPF_ALU:
		s->a = calculated(calculate(BPF_OP(i->code), range_of(s, &s->a), operand_of(i, s)));
		break;
	case BPF_MISC:
		if (BPF_MISCOP(i->code) == BPF_TAX)
			s->x = s->a;
		else
			s->a = s->x;
		break;
	}
}

static bool jump(struct evaluation *e, size_t at)
{
	const struct sock_filter *i = &e->code[at];
	const struct range operand = operand_of(i, &e->states[at]);

	if (BPF_OP(i->code) == BPF_JA)
		return reach(e, at + 1 + i->k, &e->states[at]);
	for (int holds = 0; holds < 2; holds++) {
		struct state s = e->states[at];

		if (is_exact(operand) &&
		    (!narrow(place_of(&s, &s.a), BPF_OP(i->code), operand.low, holds) ||
		     !agrees(&s, e->call, s.a.word)))
			continue;
		if (!reach(e, at + 1 + (holds ? i->jt : i->jf), &s))
			return false;
	}
	return true;
}

static bool evaluate(struct evaluation *e, size_t at)
{
	const struct sock_filter *i = &e->code[at];
	struct state s = e->states[at];

	if (BPF_CLASS(i->code) == BPF_JMP)
		return jump(e, at);
	if (BPF_CLASS(i->code) == BPF_RET) {
		struct range result =
			BPF_RVAL(i->code) == BPF_A ? range_of(&s, &s.a) : exactly(i->k);

		return e->each(e->context, result.low, result.high);
	}
	if (BPF_CLASS(i->code) == BPF_ALU && BPF_OP(i->code) == BPF_DIV) {
		struct range by = operand_of(i, &s);

		if (!by.low &&
		    !e->each(e->context, SECCOMP_RET_KILL_THREAD, SECCOMP_RET_KILL_THREAD))
			return false;
		if (!by.high)
			return true;
	}
	step(i, &s);
	return reach(e, at + 1, &s);
}

static void begin(struct state *s, const struct prb_seccomp_call *call)
{
	*s = (struct state){.a.word = NO_WORD, .x.word = NO_WORD};
	for (size_t i = 0; i < BPF_MEMWORDS; i++)
		s->memory[i].word = NO_WORD;
	for (size_t i = 0; i < FIRST_ARGUMENT; i++)
		s->words[i] = all; /* the instruction pointer */
	s->words[offsetof(struct seccomp_data, nr) / WORD] = exactly((uint32_t)call->number);
	s->words[offsetof(struct seccomp_data, arch) / WORD] = exactly(audit_arch);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(call->args); i++) {
		const uint64_t low = call->args[i].low, high = call->args[i].high;
		struct range *words = &s->words[FIRST_ARGUMENT + 2 * i];

		words[0] = low >> 32 == high >> 32 ? (struct range){(uint32_t)low, (uint32_t)high}
						   : all;
		words[1] = (struct range){(uint32_t)(low >> 32), (uint32_t)(high >> 32)};
	}
}

struct prb_error *prb_seccomp_results(const struct sock_filter *code, size_t count,
				      const struct prb_seccomp_call *call, prb_seccomp_result *each,
				      void *context, bool *ret)
{
	prb_auto_free struct state *states = malloc(sizeof(*states) * (count + 1));
	prb_auto_free bool *reached = calloc(count + 1, sizeof(*reached));
	struct evaluation e = {code, count, call, states, reached, each, context};
	struct state first;

	if (!states || !reached)
		return prb_error_nomem();
	begin(&first, call);
	*ret = reach(&e, 0, &first);
	for (size_t at = 0; at < count && *ret; at++)
		*ret = !reached[at] || evaluate(&e, at);
	return NULL;
}
