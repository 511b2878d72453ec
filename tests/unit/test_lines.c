/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/lines/demangle.h"
#include "dwarf/lines/line_table.h"
#include "dwarf/lines/lines.h"
#include "dwarf/lines/record.h"
#include "target/target.h"
#include "tests/unit/skip.h"

/* libbfd 2.40 leaks some sections of DWARF 5; whole stacks distinguish that from our own leaks. */
const char *__asan_default_options(void);
const char *__lsan_default_suppressions(void);

const char *__asan_default_options(void)
{
	return "fast_unwind_on_malloc=0";
}

const char *__lsan_default_suppressions(void)
{
	return "leak:read_section\n";
}

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/probing-test-lines-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	return setenv("XDG_CACHE_HOME", folder, 1);
}

static int remove_folder(void **state)
{
	prb_auto_free char *command = prb_format("rm -rf %s", folder);

	(void)state;
	return system(command);
}

/* Ourselves as a target, with the present mappings. */
struct view {
	struct prb_target *target;
	struct prb_modules *modules;
	struct prb_resolver *resolver;
};

static struct view open_view(void)
{
	struct view view = {};

	assert_null(prb_target_open_process(getpid(), &view.target));
	assert_null(prb_modules_create(view.target, &view.modules));
	assert_null(prb_resolver_create(view.modules, &view.resolver));
	return view;
}

static void close_view(struct view *view)
{
	prb_resolver_destroy(view->resolver);
	prb_modules_destroy(view->modules);
	prb_target_destroy(view->target);
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = text ? strlen(text) : 0;

	return length >= strlen(end) && !strcmp(text + length - strlen(end), end);
}

static void assert_line(const struct prb_line *line, const char *func, const char *file,
			uint32_t number)
{
	if (!line->func || strcmp(line->func, func) || !ends_with(line->file, file) ||
	    line->line != number)
		fail_msg("got %s at %s:%u instead of %s at %s:%u", line->func ? line->func : "-",
			 line->file ? line->file : "-", line->line, func, file, number);
}

/* Functions that return their own place. The barriers keep calls from becoming tail calls. */

__attribute__((noinline)) static uint64_t return_address(void)
{
	return (uint64_t)(uintptr_t)__builtin_return_address(0);
}

enum { PLAIN_LINE = __LINE__ + 4 };

__attribute__((noinline)) static uint64_t plain_caller(void)
{
	uint64_t pc = return_address();
	__asm__ volatile("" : "+r"(pc));
	return pc;
}

enum { INLINED_LINE = __LINE__ + 4 };

__attribute__((always_inline)) static inline uint64_t inlined_caller(void)
{
	uint64_t pc = return_address();
	__asm__ volatile("" : "+r"(pc));
	return pc;
}

enum { OUTER_LINE = __LINE__ + 4 };

__attribute__((noinline)) static uint64_t outer_caller(void)
{
	uint64_t pc = inlined_caller();
	__asm__ volatile("" : "+r"(pc));
	return pc;
}

static void finds_lines_of_return_addresses(void **state)
{
	uint64_t pc = plain_caller();
	struct view view = open_view();
	struct prb_lines lines;

	(void)state;
	assert_null(prb_resolve(view.resolver, pc, false, &lines));
	assert_int_equal(lines.list.count, 1);
	assert_line(&lines.list.items[0], "plain_caller", "test_lines.c", PLAIN_LINE);
	assert_string_equal(lines.list.items[0].symbol, "plain_caller");
	assert_false(lines.list.items[0].inlined);
	prb_lines_deinit(&lines);

	/* The start of a function belongs to it if exact, and to the function before otherwise. */
	uint64_t start = (uint64_t)(uintptr_t)plain_caller;
	assert_null(prb_resolve(view.resolver, start, true, &lines));
	assert_string_equal(lines.list.items[0].func, "plain_caller");
	prb_lines_deinit(&lines);
	assert_null(prb_resolve(view.resolver, start, false, &lines));
	assert_true(!lines.list.items[0].func || strcmp(lines.list.items[0].func, "plain_caller"));
	prb_lines_deinit(&lines);
	close_view(&view);
}

static void unfolds_inlined_functions(void **state)
{
	uint64_t pc = outer_caller();
	struct view view = open_view();

	(void)state;
	/* From the file, from the resolver's memory, and from the disk cache. */
	for (int round = 0; round < 3; round++) {
		struct prb_lines lines;

		assert_null(prb_resolve(view.resolver, pc, false, &lines));
		assert_int_equal(lines.list.count, 2);
		assert_line(&lines.list.items[0], "inlined_caller", "test_lines.c", INLINED_LINE);
		assert_true(lines.list.items[0].inlined);
		assert_line(&lines.list.items[1], "outer_caller", "test_lines.c", OUTER_LINE);
		assert_false(lines.list.items[1].inlined);
		assert_string_equal(lines.list.items[0].symbol, "outer_caller");
		assert_string_equal(lines.list.items[1].symbol, "outer_caller");
		prb_lines_deinit(&lines);
		if (round == 1) {
			close_view(&view);
			view = open_view();
		}
	}
	close_view(&view);
}

static void knows_nothing_outside_of_modules(void **state)
{
	struct view view = open_view();
	struct prb_lines lines;
	int on_stack;

	(void)state;
	assert_null(prb_resolve(view.resolver, (uint64_t)(uintptr_t)&on_stack, true, &lines));
	assert_int_equal(lines.list.count, 0);
	assert_null(prb_resolve(view.resolver, 0, false, &lines));
	assert_int_equal(lines.list.count, 0);
	assert_null(prb_resolve(view.resolver, UINT64_MAX, true, &lines));
	assert_int_equal(lines.list.count, 0);

	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	if (vdso) {
		assert_null(prb_resolve(view.resolver, vdso, true, &lines));
		assert_int_equal(lines.list.count, 1);
		assert_null(lines.list.items[0].file);
		prb_lines_deinit(&lines);
	}
	close_view(&view);
}

/* A library whose debug information appears and disappears. */

static const char library[] =
	"namespace deep { struct Thing { static int method(int, char **); };\n"
	"int Thing::method(int x, char **)\n"
	"{\n"
	"	return x + 1;\n"
	"} }\n"
	"extern \"C\" int plain(int x) { return x + 2; }\n";

static bool build_library(const char *flags)
{
	prb_auto_free char *path = prb_format("%s/library.cc", folder);
	prb_auto_free char *command =
		prb_format("cd %s && c++ -O0 -shared -fPIC -Wl,--build-id=none %s -o library.so "
			   "library.cc 2>/dev/null",
			   folder, flags);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(library, file) >= 0);
	assert_int_equal(fclose(file), 0);
	return system(command) == 0;
}

static void run(const char *format, const char *argument)
{
	prb_auto_free char *command = prb_format("cd %s && %s %s", folder, format, argument);

	assert_int_equal(system(command), 0);
}

static const char method_symbol[] = "_ZN4deep5Thing6methodEiPPc";
static const char method_name[] = "deep::Thing::method(int, char**)";

/* Loads the library and resolves the start of the method. */
static void resolve_method(struct prb_lines *ret)
{
	prb_auto_free char *path = prb_format("%s/library.so", folder);
	void *handle = dlopen(path, RTLD_NOW);

	assert_non_null(handle);
	void *method = dlsym(handle, method_symbol);
	assert_non_null(method);

	struct view view = open_view();
	assert_null(prb_resolve(view.resolver, (uint64_t)(uintptr_t)method, true, ret));
	assert_int_equal(ret->list.count, 1);
	assert_string_equal(ret->list.items[0].symbol, method_symbol);
	close_view(&view);
	dlclose(handle);
}

static void demangles_with_and_without_lines(void **state)
{
	static const char *const kinds[] = {"-g", "-g -gz", "-gdwarf-4 -gz", "-gdwarf-3"};
	struct prb_lines lines;

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(kinds); i++) {
		if (!build_library(kinds[i]))
			SKIP("no compiler for the sample");
		resolve_method(&lines);
		assert_line(&lines.list.items[0], method_name, "library.cc", 3);
		prb_lines_deinit(&lines);
	}

	assert_true(build_library("-g0 -s"));
	resolve_method(&lines);
	assert_string_equal(lines.list.items[0].func, method_name);
	assert_null(lines.list.items[0].file);
	assert_int_equal(lines.list.items[0].line, 0);
	prb_lines_deinit(&lines);
}

static void notices_debug_files_that_come_later(void **state)
{
	struct prb_lines lines;

	(void)state;
	if (!build_library("-g -Wl,--build-id=sha1"))
		SKIP("no compiler for the sample");
	run("objcopy --only-keep-debug library.so library.debug && strip -g library.so &&"
	    "objcopy --add-gnu-debuglink=library.debug library.so && mv library.debug hidden",
	    "");
	for (int round = 0; round < 2; round++) {
		resolve_method(&lines);
		assert_string_equal(lines.list.items[0].func, method_name);
		assert_int_equal(lines.list.items[0].line, 0);
		prb_lines_deinit(&lines);
	}

	run("mv hidden", "library.debug");
	resolve_method(&lines);
	assert_line(&lines.list.items[0], method_name, "library.cc", 3);
	prb_lines_deinit(&lines);

	/* A result found with it is kept when it disappears. */
	run("rm", "library.debug");
	resolve_method(&lines);
	assert_line(&lines.list.items[0], method_name, "library.cc", 3);
	prb_lines_deinit(&lines);
}

/* Snapshots: the recalled answer counts, whatever the files contain. */

static struct prb_str recalled;
static char recalled_key[256];

static bool recall(struct prb_target *target, const char *key, struct prb_str *ret)
{
	(void)target;
	snprintf(recalled_key, sizeof(recalled_key), "%s", key);
	prb_str_append(ret, recalled.data, recalled.length);
	return true;
}

static struct prb_lines invented_lines(void)
{
	struct prb_lines lines = {};

	for (int i = 0; i < 3; i++) {
		struct prb_line *line = prb_vec_push(&lines.list);

		line->func = i == 1 ? NULL : prb_format("function %d", i);
		line->symbol = prb_format("symbol");
		line->file = i == 2 ? NULL : prb_format("%s", i ? "" : "file.c");
		line->line = UINT32_MAX - (uint32_t)i;
		line->inlined = i < 2;
	}
	return lines;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static void assert_same(const struct prb_lines *a, const struct prb_lines *b)
{
	assert_int_equal(a->list.count, b->list.count);
	for (size_t i = 0; i < a->list.count; i++) {
		const struct prb_line *x = &a->list.items[i], *y = &b->list.items[i];

		assert_true(same_text(x->func, y->func));
		assert_true(same_text(x->symbol, y->symbol));
		assert_true(same_text(x->file, y->file));
		assert_int_equal(x->line, y->line);
		assert_int_equal(x->inlined, y->inlined);
	}
}

static void replays_snapshots(void **state)
{
	struct prb_lines invented = invented_lines(), lines;
	struct view view = open_view();
	const struct prb_target_ops *real = view.target->ops;
	struct prb_target_ops ops = *real;

	(void)state;
	ops.recall = recall;
	view.target->ops = &ops;
	prb_line_record_encode(&invented, true, &recalled);
	assert_null(prb_resolve(view.resolver, plain_caller(), false, &lines));
	assert_same(&lines, &invented);
	assert_true(!strncmp(recalled_key, "pc:", 3));
	prb_lines_deinit(&lines);

	/* An invalid answer counts as none. */
	prb_str_truncate(&recalled, recalled.length - 1);
	assert_null(prb_resolve(view.resolver, plain_caller(), false, &lines));
	assert_int_equal(lines.list.count, 1);
	assert_line(&lines.list.items[0], "plain_caller", "test_lines.c", PLAIN_LINE);
	prb_lines_deinit(&lines);

	view.target->ops = real;
	close_view(&view);
	prb_lines_deinit(&invented);
	prb_str_deinit(&recalled);
}

static void decodes_what_it_encodes(void **state)
{
	struct prb_lines lines = invented_lines(), decoded = {};
	prb_auto_str struct prb_str record = {};
	bool had_table = true;

	(void)state;
	prb_line_record_encode(&lines, false, &record);
	assert_true(prb_line_record_decode(record.data, record.length, &decoded, &had_table));
	assert_false(had_table);
	assert_same(&lines, &decoded);
	prb_lines_deinit(&decoded);

	for (size_t length = 0; length < record.length; length++) {
		prb_auto_free char *cut = malloc(length + 1);

		memcpy(cut, record.data, length);
		assert_false(prb_line_record_decode(cut, length, &decoded, &had_table));
		prb_lines_deinit(&decoded);
	}
	for (size_t at = 0; at < record.length; at++) {
		for (int bit = 0; bit < 8; bit++) {
			record.data[at] ^= (char)(1 << bit);
			if (prb_line_record_decode(record.data, record.length, &decoded,
						   &had_table))
				assert_true(decoded.list.count > 0);
			prb_lines_deinit(&decoded);
			record.data[at] ^= (char)(1 << bit);
		}
	}
	prb_lines_deinit(&lines);
}

static void demangles(void **state)
{
	static const struct {
		const char *symbol, *name;
	} cases[] = {
		{method_symbol, method_name},
		{"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
		{"_RNvC6_123foo3bar", "123foo::bar"},
		{"_D3foo3barFiZv", "foo.bar(int)"},
		{"_ZN3fooEv.cold", "foo() [clone .cold]"},
		{"main", NULL},
		{"_start", NULL},
		{"_D", NULL},
		{"_Z", NULL},
		{"", NULL},
		{"_Dummy", NULL},
	};

	(void)state;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++) {
		prb_auto_free char *name = prb_demangle(cases[i].symbol);

		if (!same_text(name, cases[i].name))
			fail_msg("%s: %s", cases[i].symbol, name ? name : "NULL");
	}
}

/* A class whose argument is one whose arguments are twice the one before, and so on. */
static char *doubled(unsigned times, const char *begin, const char *pattern)
{
	struct prb_str symbol = {};

	prb_str_puts(&symbol, begin);
	for (unsigned i = 2; i < times + 2; i++) {
		const char digit = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i];

		prb_str_printf(&symbol, pattern, digit, digit);
	}
	prb_str_putc(&symbol, 'E');
	return prb_str_take(&symbol);
}

/* What is printed, or only looked through, is exponential in the name: it has no readable form. */
static void demangles_in_bounded_time(void **state)
{
	static const char *const cases[] = {
		/* References in Rust and in D, and template arguments that are read twice. */
		"_RIC1fTxxETB3_B3_ETB7_B7_ETBf_Bf_ETBn_Bn_ETBv_Bv_ETBD_BD_ETBL_BL_ETBT_BT_ETB"
		"11_B11_ETB19_B19_ETB1j_B1j_ETB1t_B1t_ETB1D_B1D_ETB1N_B1N_ETB1X_B1X_ETB27_B27"
		"_EE",
		"_D1fFHiiHQeQgHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQg"
		"QiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiHQgQiZv",
		"_ZN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1"
		"XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT"
		"_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IN1XcvT_IiEEEEEEEEEEEEEEEEEEEEEEEEE"
		"EEEEEEEEEEEEEEEEEEEEEEEEEv",
	};
	prb_auto_free char *few = doubled(3, "_ZTS1QI1PI1AS1_E", "S0_IS%c_S%c_E");
	prb_auto_free char *more = doubled(12, "_ZTS1QI1PI1AS1_E", "S0_IS%c_S%c_E");
	prb_auto_free char *most = doubled(24, "_ZTS1QI1PI1AS1_E", "S0_IS%c_S%c_E");
	prb_auto_free char *readable = prb_demangle(few);

	(void)state;
	alarm(20);
	assert_true(readable && strlen(readable) > strlen(few));
	assert_int_equal(strlen(more), 149);
	assert_null(prb_demangle(more));
	assert_null(prb_demangle(most));
	for (size_t i = 0; i < PRB_ARRAY_SIZE(cases); i++)
		assert_null(prb_demangle(cases[i]));
	alarm(0);
}

/* Damaged debug information may give wrong answers or none, but soon, and never ends us. */

static void ask_damaged(const char *good, size_t length, unsigned seed)
{
	prb_auto_free char *name = prb_format("%s/damaged.so", folder);
	prb_auto_free char *data = malloc(length);
	FILE *file = fopen(name, "w");
	struct prb_elf *elf;
	struct prb_line_table *table;

	memcpy(data, good, length);
	srand(seed);
	for (unsigned flips = 1 + seed % 20; flips; flips--)
		data[(size_t)rand() % length] ^= (char)(1 + rand() % 255);
	if (!file || fwrite(data, 1, length, file) != length || fclose(file))
		_exit(1);
	alarm(10);

	prb_auto_error struct prb_error *err = prb_elf_open(open(name, O_RDONLY), name, &elf);
	if (err)
		_exit(0);
	err = prb_line_table_check(elf);
	if (!err)
		err = prb_line_table_open(elf, EM_X86_64, &table);
	if (err)
		_exit(0);
	for (uint64_t address = 0x1000; address < 0x1200; address += 3) {
		struct prb_lines lines = {};

		prb_error_destroy(prb_line_table_find(table, address, &lines));
		prb_lines_deinit(&lines);
	}
	prb_line_table_close(table);
	prb_elf_close(elf);
	_exit(0);
}

static void survives_damage(void **state)
{
	enum { SEEDS = 300 };
	prb_auto_free char *path = prb_format("%s/library.so", folder);
	struct stat st;

	(void)state;
	if (!build_library("-g"))
		SKIP("no compiler for the sample");

	prb_auto_close int fd = open(path, O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	size_t length = (size_t)st.st_size;
	const char *good = mmap(NULL, length, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(good != MAP_FAILED);
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		pid_t child = fork();
		int status;

		if (child == 0)
			ask_damaged(good, length, seed);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (status)
			fail_msg("seed %u: status %#x", seed, status);
	}
	munmap((void *)good, length);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_lines_of_return_addresses),
		cmocka_unit_test(unfolds_inlined_functions),
		cmocka_unit_test(knows_nothing_outside_of_modules),
		cmocka_unit_test(demangles_with_and_without_lines),
		cmocka_unit_test(notices_debug_files_that_come_later),
		cmocka_unit_test(replays_snapshots),
		cmocka_unit_test(decodes_what_it_encodes),
		cmocka_unit_test(demangles),
		cmocka_unit_test(demangles_in_bounded_time),
		cmocka_unit_test(survives_damage),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
