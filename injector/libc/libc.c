/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/libc/libc.h"

#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "dwarf/elf/elf.h"
#include "injector/libc/musl.h"

enum {
	MALLOC_MAX = 128 << 10, /* bytes of code that one allocator of libc has at most */
};

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool starts(const char *name, const char *const *prefixes, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!strncmp(name, prefixes[i], strlen(prefixes[i])))
			return true;
	return false;
}

static bool is_loader(const struct prb_module *module)
{
	static const char *const names[] = {"ld-linux", "ld-2.", "ld.so"};

	return starts(base_name(module->path), names, PRB_ARRAY_SIZE(names));
}

static bool is_libc_part(const struct prb_module *module)
{
	static const char *const names[] = {"libc.so",	     "libc-2.",	  "libpthread.so",
					    "libpthread-2.", "libdl.so",  "libdl-2.",
					    "ld-musl-",	     "libc.musl-"};

	return starts(base_name(module->path), names, PRB_ARRAY_SIZE(names)) || is_loader(module);
}

/* Allocators that take the place of libc's: all of their code may hold their locks. */
static bool is_allocator(const struct prb_module *module)
{
	static const char *const names[] = {
		"libjemalloc", "libtcmalloc", "libmimalloc", "libtbbmalloc", "libhoard", "libasan",
		"libtsan",     "liblsan",     "libsnmalloc", "librpmalloc",  "libscudo"};

	return starts(base_name(module->path), names, PRB_ARRAY_SIZE(names));
}

static struct prb_error *add_unsafe(struct prb_libc *libc, uint64_t start, uint64_t end,
				    const char *what)
{
	struct prb_unsafe_range *range = prb_vec_push(&libc->unsafe);

	if (!range)
		return prb_error_nomem();
	*range = (struct prb_unsafe_range){.start = start, .end = end, .what = what};
	return NULL;
}

static struct prb_error *add_brief(struct prb_libc *libc, uint64_t start, uint64_t end,
				   const char *what)
{
	PRB_TRY(add_unsafe(libc, start, end, what));
	libc->unsafe.items[libc->unsafe.count - 1].brief = true;
	return NULL;
}

/*
 * Functions of the vdso that read a clock or the processor's number: they take no lock, and
 * handlers of signals interrupt them anywhere. They are where a program that looks at the clock all
 * the time is met.
 */
static const char *const readers[] = {
	"__vdso_clock_gettime",	 "__vdso_gettimeofday",	  "__vdso_time",
	"__vdso_clock_getres",	 "__vdso_getcpu",	  "__kernel_clock_gettime",
	"__kernel_gettimeofday", "__kernel_clock_getres",
};

/* The first of them that begins at or after @from; none: @end. */
static struct prb_error *next_reader(struct prb_module *vdso, uint64_t from, uint64_t end,
				     uint64_t *start, uint64_t *reader_end)
{
	*start = *reader_end = end;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(readers); i++) {
		uint64_t address, size;

		PRB_TRY(prb_module_exported_symbol(vdso, readers[i], &address, &size));
		if (!size || address < from || address >= *start || size > end - address)
			continue;
		*start = address;
		*reader_end = address + size;
	}
	return NULL;
}

/* Its names and tables, which lie in executable memory too, are pointed to from many stacks. */
static struct prb_error *add_vdso(struct prb_libc *libc, struct prb_module *module)
{
	uint64_t start = module->start, size = module->end - module->start, reader, reader_end;
	struct prb_error *err = prb_module_section(module, ".text", &start, &size);

	prb_error_destroy(err);
	for (uint64_t at = start; at < start + size; at = reader_end) {
		PRB_TRY(next_reader(module, at, start + size, &reader, &reader_end));
		if (reader > at)
			PRB_TRY(add_brief(libc, at, reader, "in the vdso"));
	}
	return NULL;
}

static struct prb_error *find_parts(struct prb_modules *modules, struct prb_libc *libc)
{
	for (size_t i = 0; i < modules->list.count; i++) {
		struct prb_module *module = modules->list.items[i];

		if (is_loader(module))
			PRB_TRY(add_unsafe(libc, module->start, module->end,
					   "in the dynamic loader"));
		if (!strcmp(module->path, "[vdso]"))
			PRB_TRY(add_vdso(libc, module));
		if (is_allocator(module))
			PRB_TRY(add_unsafe(libc, module->start, module->end,
					   "in the memory allocator"));
		if (!is_libc_part(module))
			continue;

		const struct prb_module **part = prb_vec_push(&libc->parts);
		if (!part)
			return prb_error_nomem();
		*part = module;
	}
	if (libc->parts.count)
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "process %d has no dynamic C library: it is statically linked",
				 modules->target->pid),
		"only dynamically linked programs can load a library");
}

/* In its own file only: debug files, which would be opened in vain, know nothing more. */
static struct prb_error *look_up_in(struct prb_module *part, const char *name, uint64_t *address,
				    uint64_t *size)
{
	struct prb_elf *elf;
	struct prb_elf_symbol symbol;
	struct prb_error *err = prb_module_elf(part, &elf);

	if (err) {
		prb_error_destroy(err);
		return prb_module_symbol(part, name, address, size);
	}
	PRB_TRY(prb_elf_symbol(elf, name, &symbol));
	*address = symbol.address + part->bias;
	*size = symbol.size;
	return NULL;
}

/* Looks a symbol up in all parts; 0 if there is none. */
static struct prb_error *look_up(struct prb_libc *libc, const char *name, uint64_t *address,
				 uint64_t *size)
{
	*address = *size = 0;
	for (size_t i = 0; i < libc->parts.count && !*address; i++) {
		struct prb_module *part = (struct prb_module *)libc->parts.items[i];

		/* Before its 2.34 the loader has a few functions of its own with such names. */
		if (is_loader(part) && strncmp(name, "dl", 2))
			continue;
		struct prb_error *err = look_up_in(part, name, address, size);
		if (err && !prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
			return err;
	}
	return NULL;
}

static struct prb_error *find_functions(struct prb_modules *modules, struct prb_libc *libc)
{
	const struct {
		const char *name;
		uint64_t *address;
	} needed[] = {{"pthread_create", &libc->pthread_create},
		      {"pthread_self", &libc->pthread_self},
		      {"pthread_detach", &libc->pthread_detach},
		      {"munmap", &libc->munmap}};
	uint64_t size;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(needed); i++) {
		PRB_TRY(look_up(libc, needed[i].name, needed[i].address, &size));
		if (!*needed[i].address)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_UNSUPPORTED, "process %d has no %s()",
						 modules->target->pid, needed[i].name),
				"it uses a C library without threads: start it with "
				"LD_PRELOAD=libpthread.so.0");
	}
	PRB_TRY(look_up(libc, "dlopen", &libc->dlopen, &size));
	PRB_TRY(look_up(libc, "dlsym", &libc->dlsym, &size));
	PRB_TRY(look_up(libc, "dlerror", &libc->dlerror, &size));
	PRB_TRY(look_up(libc, "dlclose", &libc->dlclose, &size));
	if (libc->dlopen && libc->dlsym && libc->dlerror)
		return NULL;
	libc->internal_dlopen = true;
	libc->dlerror = libc->dlclose = 0;
	PRB_TRY(look_up(libc, "__libc_dlopen_mode", &libc->dlopen, &size));
	PRB_TRY(look_up(libc, "__libc_dlsym", &libc->dlsym, &size));
	if (libc->dlopen && libc->dlsym)
		return NULL;
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "process %d has no dlopen()",
				modules->target->pid);
}

/* By functions that were new in each; musl may have them or not. */
static struct prb_error *find_age(struct prb_libc *libc)
{
	uint64_t address, size;

	PRB_TRY(look_up(libc, "closefrom", &address, &size));
	libc->before_2_34 = !address;
	PRB_TRY(look_up(libc, "stat", &address, &size));
	libc->before_2_33 = !address;
	PRB_TRY(look_up(libc, "reallocarray", &address, &size));
	libc->before_2_26 = !address;
	return NULL;
}

struct unsafe_function {
	const char *name, *what;
};

static struct prb_error *add_list(struct prb_libc *libc, const struct unsafe_function *list,
				  size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t address, size;

		PRB_TRY(look_up(libc, list[i].name, &address, &size));
		if (address && size)
			PRB_TRY(add_unsafe(libc, address, address + size, list[i].what));
	}
	return NULL;
}

/* Functions that hold locks which pthread_create() takes too, or that end a thread or process. */
static const struct unsafe_function always_unsafe[] = {
	{"pthread_create", "in pthread_create()"},
	{"pthread_exit", "at its end"},
	{"pthread_detach", "in pthread_detach()"},
	{"pthread_getattr_np", "in pthread_getattr_np()"},
	{"pthread_setattr_default_np", "in pthread_setattr_default_np()"},
	{"pthread_getattr_default_np", "in pthread_getattr_default_np()"},
	{"fork", "in fork()"},
	{"_Fork", "in fork()"},
	{"vfork", "in vfork()"},
	{"posix_spawn", "in posix_spawn()"},
	{"posix_spawnp", "in posix_spawnp()"},
	{"system", "in system()"},
	{"popen", "in popen()"},
	{"daemon", "in daemon()"},
	{"exit", "in exit()"},
	{"quick_exit", "in exit()"},
	{"abort", "in abort()"},
	{"dlopen", "in dlopen()"},
	{"dlmopen", "in dlopen()"},
	{"dlclose", "in dlclose()"},
	{"dlsym", "in dlsym()"},
	{"dlvsym", "in dlsym()"},
	{"dladdr", "in dladdr()"},
	{"dladdr1", "in dladdr()"},
	{"dlinfo", "in dlinfo()"},
	{"dl_iterate_phdr", "in dl_iterate_phdr()"},
	{"__libc_dlopen_mode", "in dlopen()"},
	{"setuid", "in setuid()"},
	{"setgid", "in setgid()"},
	{"seteuid", "in seteuid()"},
	{"setegid", "in setegid()"},
	{"setreuid", "in setreuid()"},
	{"setregid", "in setregid()"},
	{"setresuid", "in setresuid()"},
	{"setresgid", "in setresgid()"},
	{"setgroups", "in setgroups()"},
	{"initgroups", "in initgroups()"},
};

/* They hold locks that loading a library takes: a new thread would wait for those. */
static const struct unsafe_function unsafe_to_call[] = {
	{"atexit", "in atexit()"},
	{"on_exit", "in on_exit()"},
	{"at_quick_exit", "in at_quick_exit()"},
	{"__cxa_atexit", "in atexit()"},
	{"__cxa_finalize", "in exit()"},
	{"pthread_once", "in pthread_once()"},
	{"setlocale", "in setlocale()"},
	{"newlocale", "in newlocale()"},
	{"getaddrinfo", "in getaddrinfo()"},
	{"dlerror", "in dlerror()"},
};

static struct prb_error *add_functions(struct prb_libc *libc)
{
	PRB_TRY(add_list(libc, always_unsafe, PRB_ARRAY_SIZE(always_unsafe)));
	if (libc->purpose == PRB_HIJACK_CALL)
		PRB_TRY(add_list(libc, unsafe_to_call, PRB_ARRAY_SIZE(unsafe_to_call)));
	PRB_TRY(look_up(libc, "pthread_join", &libc->join, &libc->join_end));
	libc->join_end += libc->join;
	return NULL;
}

static const char *const malloc_names[] = {
	"malloc",
	"free",
	"calloc",
	"realloc",
	"memalign",
	"malloc_trim",
	"malloc_usable_size",
	"mallopt",
	"malloc_stats",
	"malloc_info",
	"mallinfo",
	"mallinfo2",
	"pvalloc",
	"valloc",
	"cfree",
	"aligned_alloc",
	"posix_memalign",
	"__libc_malloc",
	"__libc_free",
	"__libc_calloc",
	"__libc_realloc",
	"__libc_memalign",
	"__libc_mallopt",
	"__libc_valloc",
	"__libc_pvalloc",
	"__libc_mallinfo",
	"__default_morecore",
	"__morecore",
	"reallocarray",
};

static bool is_malloc_name(const char *name)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(malloc_names); i++)
		if (!strcmp(name, malloc_names[i]))
			return true;
	return false;
}

/*
 * The allocator's inner functions have no public names, and some are jumped to, so that no frame
 * shows their callers. They are contiguous with the public ones: all code between the public
 * functions of other parts of libc around is the allocator's.
 */
static void widen(struct prb_elf *elf, uint64_t *start, uint64_t *end)
{
	uint64_t low = *start - PRB_MIN(*start, MALLOC_MAX / 2), high = *end + MALLOC_MAX / 2;
	struct prb_elf_symbol_place place = {.from = low, .to = high};
	struct prb_elf_symbol symbol;

	while (prb_elf_symbol_next(elf, &place, &symbol)) {
		if (!symbol.function || symbol.local || symbol.address + symbol.size <= low ||
		    symbol.address >= high || is_malloc_name(symbol.name))
			continue;
		if (symbol.address < *start)
			low = PRB_MAX(low, symbol.address + symbol.size);
		else if (symbol.address >= *end)
			high = PRB_MIN(high, symbol.address);
	}
	*start = PRB_MIN(low, *start);
	*end = PRB_MAX(high, *end);
}

static struct prb_error *add_malloc(struct prb_libc *libc)
{
	uint64_t malloc_start, start, end, size;
	struct prb_module *module = NULL;
	struct prb_elf *elf;

	PRB_TRY(look_up(libc, "malloc", &malloc_start, &size));
	if (!malloc_start)
		return NULL;
	start = malloc_start;
	end = malloc_start + size;
	for (size_t i = 0; i < libc->parts.count; i++)
		if (libc->parts.items[i]->start <= start && start < libc->parts.items[i]->end)
			module = (struct prb_module *)libc->parts.items[i];
	for (size_t i = 0; i < PRB_ARRAY_SIZE(malloc_names); i++) {
		uint64_t address;

		PRB_TRY(look_up(libc, malloc_names[i], &address, &size));
		if (!address)
			continue;
		PRB_TRY(add_brief(libc, address, address + size, "in malloc() or free()"));
		if (address + MALLOC_MAX / 2 < malloc_start ||
		    address > malloc_start + MALLOC_MAX / 2)
			continue;
		start = PRB_MIN(start, address);
		end = PRB_MAX(end, address + size);
	}
	struct prb_error *err = module ? prb_module_elf(module, &elf) : prb_error_nomem();
	if (!err) {
		start -= module->bias;
		end -= module->bias;
		widen(elf, &start, &end);
		start += module->bias;
		end += module->bias;
	} else {
		prb_error_destroy(err);
		start -= MALLOC_MAX / 2;
		end += MALLOC_MAX / 2;
	}
	prb_log("inject", 3, "the allocator of libc: %#llx to %#llx", (unsigned long long)start,
		(unsigned long long)end);
	return add_brief(libc, start, end, "in malloc() or free()");
}

/* The program may bring an allocator of its own, and exports it, so that libc itself finds it. */
static struct prb_error *add_own_malloc(struct prb_modules *modules, struct prb_libc *libc)
{
	prb_auto_str struct prb_str exe = {};
	struct prb_error *err = prb_target_read_link(modules->target, &exe, "exe");

	prb_error_destroy(err);
	for (size_t i = 0; i < modules->list.count; i++) {
		struct prb_module *module = modules->list.items[i];

		if (strcmp(module->path, prb_str_text(&exe)))
			continue;
		for (size_t n = 0; n < PRB_ARRAY_SIZE(malloc_names); n++) {
			uint64_t address, size;

			PRB_TRY(prb_module_exported_symbol(module, malloc_names[n], &address,
							   &size));
			if (address)
				PRB_TRY(add_unsafe(libc, address, address + size,
						   "in the program's own malloc() or free()"));
		}
	}
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct prb_unsafe_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

struct prb_error *prb_libc_find(struct prb_modules *modules, enum prb_hijack_purpose purpose,
				struct prb_libc *ret)
{
	ret->purpose = purpose;
	PRB_TRY(find_parts(modules, ret));
	PRB_TRY(find_functions(modules, ret));
	PRB_TRY(find_age(ret));
	PRB_TRY(add_functions(ret));
	PRB_TRY(add_malloc(ret));
	PRB_TRY(add_own_malloc(modules, ret));
	for (size_t i = 0; i < ret->parts.count; i++)
		PRB_TRY(prb_libc_musl_add(ret, (struct prb_module *)ret->parts.items[i]));
	qsort(ret->unsafe.items, ret->unsafe.count, sizeof(*ret->unsafe.items), by_start);
	return NULL;
}

void prb_libc_deinit(struct prb_libc *libc)
{
	prb_vec_free(&libc->unsafe);
	prb_vec_free(&libc->named);
	prb_vec_free(&libc->parts);
}

bool prb_libc_holds(const struct prb_libc *libc, uint64_t address)
{
	for (size_t i = 0; i < libc->parts.count; i++)
		if (address >= libc->parts.items[i]->start && address < libc->parts.items[i]->end)
			return true;
	return false;
}

const struct prb_unsafe_range *prb_libc_unsafe_range(const struct prb_libc *libc, uint64_t pc)
{
	for (size_t i = 0; i < libc->unsafe.count; i++) {
		const struct prb_unsafe_range *range = &libc->unsafe.items[i];

		if (range->start > pc)
			break;
		if (pc < range->end)
			return range;
	}
	return NULL;
}

const char *prb_libc_unsafe(const struct prb_libc *libc, uint64_t pc)
{
	const struct prb_unsafe_range *range = prb_libc_unsafe_range(libc, pc);

	return range ? range->what : NULL;
}
