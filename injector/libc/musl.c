/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/libc/musl.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dwarf/elf/elf.h"

enum {
	NAMED_MAX = 1 << 16,
	UNSIZED_MAX = 256, /* bytes assumed for a function in assembly, whose symbol has no size */
};

static const struct {
	const char *name, *what;
	bool lone;
} unsafe_functions[] = {
	{"atexit", "in atexit()", true},
	{"__cxa_atexit", "in atexit()", true},
	{"at_quick_exit", "in atexit()", true},
	{"membarrier", "in membarrier()", false},
	{"pthread_atfork", "in pthread_atfork()", false},
	{"pthread_cancel", "in pthread_cancel()", false},
	{"pthread_key_create", "in pthread_key_create()", false},
	{"pthread_key_delete", "in pthread_key_delete()", false},
	{"thrd_create", "in pthread_create()", false},
	{"thrd_exit", "at its end", false},
	{"timer_create", "in timer_create()", false},
	{"mq_notify", "in mq_notify()", false},
	{"sem_open", "in sem_open()", true},
	{"sem_close", "in sem_close()", true},
	{"setlocale", "in setlocale()", true},
	{"newlocale", "in newlocale()", true},
	{"freelocale", "in freelocale()", true},
	{"bindtextdomain", "in bindtextdomain()", true},
	{"dcngettext", "in gettext()", true},
	{"tzset", "in tzset()", true},
	{"localtime_r", "in localtime()", true},
	{"mktime", "in mktime()", true},
	{"random", "in random()", true},
	{"srandom", "in random()", true},
	{"initstate", "in random()", true},
	{"setstate", "in random()", true},
	{"syslog", "in syslog()", true},
	{"vsyslog", "in syslog()", true},
	{"openlog", "in syslog()", true},
	{"closelog", "in syslog()", true},
};

static struct prb_error *add(struct prb_libc *libc, const struct prb_elf_symbol *symbol,
			     uint64_t bias)
{
	struct prb_unsafe_range range = {.start = symbol->address + bias,
					 .end = symbol->address + bias +
						(symbol->size ? symbol->size : UNSIZED_MAX)};
	struct prb_unsafe_range *item;

	if (range.end < range.start || libc->named.count >= NAMED_MAX)
		return NULL;
	item = prb_vec_push(&libc->named);
	if (!item)
		return prb_error_nomem();
	*item = range;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(unsafe_functions); i++) {
		if (strcmp(symbol->name, unsafe_functions[i].name))
			continue;
		range.what = unsafe_functions[i].what;
		range.lone = unsafe_functions[i].lone;
		item = prb_vec_push(&libc->unsafe);
		if (!item)
			return prb_error_nomem();
		*item = range;
	}
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct prb_unsafe_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* One without a size ends where the next begins. */
static void cut(struct prb_libc *libc)
{
	struct prb_unsafe_range *named = libc->named.items;

	for (size_t i = 0; i + 1 < libc->named.count; i++)
		if (named[i].end > named[i + 1].start && named[i].start < named[i + 1].start)
			named[i].end = named[i + 1].start;
}

struct prb_error *prb_libc_musl_add(struct prb_libc *libc, struct prb_module *part)
{
	struct prb_elf_symbol_place place = {};
	struct prb_elf_symbol symbol;
	struct prb_unsafe_range *range;
	struct prb_elf *elf;
	struct prb_error *err;
	uint64_t mark, size;

	/* musl looks it up in itself when it starts. */
	PRB_TRY(prb_module_exported_symbol(part, "__dls2b", &mark, &size));
	if (!mark)
		return NULL;
	libc->musl = true;
	prb_vec_each (range, &libc->unsafe)
		range->lone = range->brief && prb_libc_holds(libc, range->start);
	err = prb_module_elf(part, &elf);
	if (err) {
		/* Without its file all of its functions are without names. */
		prb_error_destroy(err);
		return NULL;
	}
	while (prb_elf_symbol_next(elf, &place, &symbol))
		if (symbol.function && !symbol.local)
			PRB_TRY(add(libc, &symbol, part->bias));
	if (libc->named.count)
		qsort(libc->named.items, libc->named.count, sizeof(*libc->named.items), by_start);
	cut(libc);
	return NULL;
}

/* The head of struct pthread since musl 1.2; before it, nothing there is what is asked for. */
struct thread_head {
	uint64_t self, previous, next;
};

static struct prb_error *read_head(struct prb_mem *mem, uint64_t at, size_t neighbours,
				   struct thread_head *ret)
{
	PRB_TRY(prb_mem_read_u64(mem, at, &ret->self));
	PRB_TRY(prb_mem_read_u64(mem, at + neighbours, &ret->previous));
	return prb_mem_read_u64(mem, at + neighbours + sizeof(uint64_t), &ret->next);
}

struct prb_error *prb_libc_musl_threads(struct prb_mem *mem, uint64_t self, size_t neighbours,
					bool *ret)
{
	struct thread_head own, next;
	struct prb_error *err = read_head(mem, self, neighbours, &own);

	*ret = false;
	if (!err && own.self == self && own.next != self) {
		err = read_head(mem, own.next, neighbours, &next);
		*ret = !err && next.self == own.next && next.previous == self;
	}
	return prb_error_catch(&err, PRB_ERROR_FAULT) ? NULL : err;
}

bool prb_libc_musl_unnamed(const struct prb_libc *libc, uint64_t pc)
{
	size_t low = 0, high = libc->named.count;

	if (!libc->musl || !prb_libc_holds(libc, pc))
		return false;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (libc->named.items[middle].start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return !low || pc >= libc->named.items[low - 1].end;
}
