/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "python/layout/tables.h"
#include "dwarf/types/types.h"
#include "tests/unit/skip.h"

/* The text is compiled into this test, which gives the expected answers, and into the sample. */
#define SAMPLE                                     \
	enum colour { RED, GREEN = 7, BLUE = -3 }; \
	typedef struct later later_t;              \
	struct node {                              \
		struct node *next;                 \
		char tag;                          \
		const volatile short depth;        \
		union {                            \
			long number;               \
			struct {                   \
				char low;          \
				int high;          \
			};                         \
			struct {                   \
				char pad[6];       \
				short deep;        \
			} named;                   \
		};                                 \
		later_t *later;                    \
		int grid[3][5];                    \
		enum colour colour;                \
		void (*call)(int);                 \
		char rest[];                       \
	};                                         \
	struct later {                             \
		double a;                          \
		struct {                           \
			unsigned int interned : 2; \
			unsigned int kind : 3;     \
			unsigned int : 0;          \
			unsigned int compact : 1;  \
			unsigned int ascii : 30;   \
		} state;                           \
		long long wide : 40;               \
	};                                         \
	typedef struct {                           \
		char c;                            \
		struct later inner;                \
	} anonymous_t;                             \
	typedef const anonymous_t *pointer_t;      \
	union either {                             \
		int i;                             \
		double d;                          \
	};

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

SAMPLE

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/probing-test-types-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	prb_auto_free char *command = prb_format("rm -rf %s", folder);

	(void)state;
	return system(command);
}

static void write_text(const char *name, const char *text)
{
	prb_auto_free char *path = prb_format("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Compiles sample.c and another unit, as a shared object; false if the compiler cannot. */
static bool compile(const char *compiler, const char *flags)
{
	prb_auto_free char *command =
		prb_format("cd %s && mkdir -p sub && %s -w -shared -fPIC %s -o sample.so other.c "
			   "sub/sample.c 2>/dev/null",
			   folder, compiler, flags);
	prb_auto_free char *sub = prb_format("%s/sub", folder);

	mkdir(sub, 0700);
	write_text("other.c", "struct node { char other[99]; } other_unit;");
	write_text("sub/sample.c",
		   TEXT(SAMPLE) "struct node node; anonymous_t anonymous; pointer_t pointer;"
				"union either either; enum colour function(struct later *l)"
				"{ return l->state.kind ? node.colour : RED; }");
	return system(command) == 0;
}

static struct prb_elf *open_elf(const char *path)
{
	struct prb_elf *elf = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_null(prb_elf_open(fd, path, &elf));
	return elf;
}

static struct prb_elf *open_sample(void)
{
	prb_auto_free char *path = prb_format("%s/sample.so", folder);

	return open_elf(path);
}

/* Expected results; value -1: must not be found. */
struct expected {
	const char *path;
	int64_t value;
	uint32_t size;
	uint8_t bit, bits;
	bool missing;
};

#define MEMBER(type, path) offsetof(type, path), sizeof(((type *)0)->path)

static const struct expected expectations[] = {
	{"node", sizeof(struct node), sizeof(struct node)},
	{"node.next", MEMBER(struct node, next)},
	{"node.depth", MEMBER(struct node, depth)},
	{"node.number", MEMBER(struct node, number)},
	{"node.high", MEMBER(struct node, high)},
	{"node.named", MEMBER(struct node, named)},
	{"node.named.deep", MEMBER(struct node, named.deep)},
	{"node.grid", MEMBER(struct node, grid)},
	{"node.colour", MEMBER(struct node, colour)},
	{"node.call", MEMBER(struct node, call)},
	{"node.rest", offsetof(struct node, rest), 0},
	{"later_t", sizeof(struct later), sizeof(struct later)},
	{"later_t.state", MEMBER(struct later, state)},
	{"later.state.interned", offsetof(struct later, state), 4, 0, 2},
	{"later.state.kind", offsetof(struct later, state), 4, 2, 3},
	{"later.state.compact", offsetof(struct later, state) + 4, 4, 0, 1},
	{"later.state.ascii", offsetof(struct later, state) + 4, 4, 1, 30},
	{"later.wide", offsetof(struct later, state) + 8, 8, 0, 40},
	{"anonymous_t", sizeof(anonymous_t), sizeof(anonymous_t)},
	{"anonymous_t.inner.state", MEMBER(anonymous_t, inner.state)},
	{"either.d", MEMBER(union either, d)},
	{"enum:RED", RED},
	{"enum:GREEN", GREEN},
	{"enum:BLUE", BLUE},
	{"absent.x|node.absent|node.tag|node.next", MEMBER(struct node, tag)},
	{"enum:ABSENT|enum:GREEN", GREEN},
	{"node.nex", .missing = true},
	{"node.next.next", .missing = true},
	{"node.low.x", .missing = true},
	{"nod", .missing = true},
	{"enum:node", .missing = true},
	{"GREEN", .missing = true},
	{"", .missing = true},
	{".", .missing = true},
	{"|", .missing = true},
};

enum { EXPECTATIONS = PRB_ARRAY_SIZE(expectations) };

static void check_sample(const char *how)
{
	struct prb_type_query queries[EXPECTATIONS];
	struct prb_elf *elf = open_sample();

	for (size_t i = 0; i < EXPECTATIONS; i++)
		queries[i] = (struct prb_type_query){.path = expectations[i].path, .found = true};

	struct prb_error *err = prb_types_query(elf, "sample.c", queries, EXPECTATIONS);
	if (err)
		fail_msg("%s: %s", how, err->message);
	for (size_t i = 0; i < EXPECTATIONS; i++) {
		const struct expected *e = &expectations[i];
		const struct prb_type_query *q = &queries[i];

		if (q->found == e->missing ||
		    (q->found && (q->value != e->value || q->size != e->size || q->bit != e->bit ||
				  q->bits != e->bits)))
			fail_msg("%s: %s: found %d, value %lld, size %u, bits %u+%u", how, q->path,
				 q->found, (long long)q->value, q->size, q->bit, q->bits);
	}
	prb_elf_close(elf);
}

static void answers_what_compilers_write(void **state)
{
	static const char *const compilers[] = {"gcc", "clang"};
	static const char *const flags[] = {
		"-gdwarf-5",	 "-gdwarf-4",	  "-gdwarf-3",
		"-gdwarf-2",	 "-gdwarf-5 -O2", "-g -O2 -flto",
		"-gdwarf-4 -gz", "-g3 -O2",	  "-gdwarf-5 -gdwarf64",
	};
	unsigned checked = 0;

	(void)state;
	for (size_t c = 0; c < PRB_ARRAY_SIZE(compilers); c++) {
		for (size_t f = 0; f < PRB_ARRAY_SIZE(flags); f++) {
			prb_auto_free char *how = prb_format("%s %s", compilers[c], flags[f]);

			if (!compile(compilers[c], flags[f]))
				continue;
			check_sample(how);
			checked++;
		}
	}
	if (!checked)
		SKIP("no compiler for the sample");
}

static void says_what_is_missing(void **state)
{
	struct prb_type_query query = {.path = "node"};
	struct prb_elf *elf;

	(void)state;
	if (!compile("cc", "-g"))
		SKIP("no compiler for the sample");
	elf = open_sample();

	static const char *const units[] = {"ample.c", "missing.c", ""};
	for (size_t i = 0; i < PRB_ARRAY_SIZE(units); i++) {
		struct prb_error *err = prb_types_query(elf, units[i], &query, 1);

		assert_non_null(err);
		assert_int_equal(err->code, PRB_ERROR_NOT_FOUND);
		prb_error_destroy(err);
	}
	assert_null(prb_types_query(elf, "other.c", &query, 1));
	assert_int_equal(query.value, 99);
	prb_elf_close(elf);

	assert_true(compile("cc", "-g0"));
	elf = open_sample();
	struct prb_error *err = prb_types_query(elf, "sample.c", &query, 1);
	assert_non_null(err);
	assert_int_equal(err->code, PRB_ERROR_NOT_FOUND);
	prb_error_destroy(err);
	prb_elf_close(elf);
}

/*
 * What dwz and old compilers do: types in a partial unit that the unit imports (and that imports
 * itself), a declaration before the definition, an offset as an expression, a typedef of itself.
 */
static const char partial_unit[] =
	".section .debug_abbrev,\"\",@progbits\n"
	".byte 1,0x3c,1, 0,0\n"				   /* partial_unit */
	".byte 2,0x13,0, 3,8, 0x3c,0x19, 0,0\n"		   /* structure_type: declaration */
	".byte 3,0x13,1, 3,8, 0x0b,0x0b, 0,0\n"		   /* structure_type: name, byte_size */
	".byte 4,0x0d,0, 3,8, 0x49,0x10, 0x38,0x0a, 0,0\n" /* member: name, ref_addr, block1 */
	".byte 5,0x24,0, 3,8, 0x0b,0x0b, 0,0\n"		   /* base_type */
	".byte 6,0x11,1, 3,8, 0,0\n"			   /* compile_unit */
	".byte 7,0x3d,0, 0x18,0x10, 0,0\n"		   /* imported_unit */
	".byte 8,0x16,0, 3,8, 0x49,0x13, 0,0\n"		   /* typedef: name, ref4 */
	".byte 9,0x16,0, 3,8, 0x49,0xa0,0x3e, 0,0\n"	   /* typedef: name, GNU_ref_alt */
	".byte 0\n"
	".section .debug_info,\"\",@progbits\n"
	".Linfo:\n"
	".long 2f-1f\n1: .short 4\n.long 0\n.byte 8\n"
	".Lpartial: .byte 1\n"
	".byte 7\n.long .Lpartial-.Linfo\n"
	".byte 2\n.asciz \"thing\"\n"
	".Lint: .byte 5\n.asciz \"int\"\n.byte 4\n"
	".byte 3\n.asciz \"thing\"\n.byte 24\n"
	".byte 4\n.asciz \"first\"\n.long .Lint-.Linfo\n.byte 3,0x23,0x88,0x01\n"
	".byte 4\n.asciz \"odd\"\n.long .Lint-.Linfo\n.byte 1,0x9c\n"
	".byte 0\n"
	".byte 0\n"
	"2:\n"
	".Lunit: .long 4f-3f\n3: .short 4\n.long 0\n.byte 8\n"
	".byte 6\n.asciz \"dir/unit.c\"\n"
	".byte 7\n.long .Lpartial-.Linfo\n"
	".Lloop: .byte 8\n.asciz \"loop\"\n.long .Lloop-.Lunit\n"
	".byte 9\n.asciz \"elsewhere\"\n.long .Lint-.Linfo\n"
	".byte 0\n"
	"4:\n";

static void follows_imported_units(void **state)
{
	prb_auto_free char *command =
		prb_format("cd %s && cc -shared -nostdlib -o sample.so unit.s", folder);
	struct prb_type_query queries[] = {
		{.path = "thing"}, {.path = "thing.first"}, {.path = "thing.odd"},
		{.path = "loop"},  {.path = "loop.x"},	    {.path = "elsewhere"},
	};

	(void)state;
	write_text("unit.s", partial_unit);
	if (system(command))
		SKIP("no assembler for the sample");

	struct prb_elf *elf = open_sample();
	assert_null(prb_types_query(elf, "unit.c", queries, PRB_ARRAY_SIZE(queries)));
	assert_true(queries[0].found);
	assert_int_equal(queries[0].value, 24);
	assert_true(queries[1].found);
	assert_int_equal(queries[1].value, 0x88);
	assert_int_equal(queries[1].size, 4);
	for (size_t i = 3; i < PRB_ARRAY_SIZE(queries); i++)
		assert_false(queries[i].found);
	prb_elf_close(elf);
}

/* Reads a damaged file, in a child that must answer or fail, and soon. */
static void ask_damaged(unsigned seed)
{
	static const char *const names[] = {".debug_info", ".debug_abbrev"};
	prb_auto_free char *path = prb_format("%s/sample.so", folder);
	struct prb_type_query queries[EXPECTATIONS];
	uint64_t size;
	const void *data;
	struct prb_elf *elf = open_elf(path);

	for (size_t i = 0; i < EXPECTATIONS; i++)
		queries[i] = (struct prb_type_query){.path = expectations[i].path};
	srand(seed);
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		if (prb_elf_section(elf, names[i], NULL, &size, &data))
			_exit(1);

		/* The file is mapped; our copy of its pages can be made writable. */
		uintptr_t page = (uintptr_t)data & -(uintptr_t)getpagesize();
		if (mprotect((void *)page, (uintptr_t)data + size - page, PROT_READ | PROT_WRITE))
			_exit(77);
		for (unsigned flips = 1 + seed % 7; flips; flips--)
			((uint8_t *)data)[(unsigned)rand() % size] ^= (uint8_t)(1 + rand() % 255);
	}
	alarm(10);
	prb_error_destroy(prb_types_query(elf, "sample.c", queries, EXPECTATIONS));
	prb_elf_close(elf);
	_exit(0);
}

static void survives_damage(void **state)
{
	enum { SEEDS = 400 };

	(void)state;
	if (!compile("cc", "-g"))
		SKIP("no compiler for the sample");
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		pid_t child = fork();
		int status;

		if (child == 0)
			ask_damaged(seed);
		assert_int_equal(waitpid(child, &status, 0), child);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			SKIP("no compiler for the sample");
		if (status)
			fail_msg("seed %u: status %#x", seed, status);
	}
}

/*
 * Sizes of big structs change between patch releases; offsets in them must not. The lists of the
 * collector are found by a pointer in the interpreter: Debian packs 3.13 otherwise. Only
 * free-threaded builds need the place of the allocator's pages.
 */
static bool may_differ(const char *name)
{
	return !strcmp(name, "runtime_size") || !strcmp(name, "interp_size") ||
	       !strcmp(name, "gc_generations") || !strncmp(name, "mi_", 3);
}

static void check_layout(const char *path, unsigned minor)
{
	prb_auto_free struct prb_type_query *queries =
		calloc(prb_layout_field_count, sizeof(*queries));
	const struct prb_layout *table = prb_layout_table((uint16_t)(0x0300 | minor), false, false);
	struct prb_elf *elf = open_elf(path);

	assert_non_null(queries);
	assert_non_null(table);
	for (unsigned i = 0; i < prb_layout_field_count; i++)
		queries[i].path = prb_layout_fields[i].path;

	struct prb_error *err = prb_types_query(elf, "ceval.c", queries, prb_layout_field_count);
	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND)) { /* built without -g */
		prb_elf_close(elf);
		return;
	}
	assert_null(err);
	for (unsigned i = 0; i < prb_layout_field_count; i++) {
		const struct prb_layout_field *field = &prb_layout_fields[i];
		int32_t in_table = *(const int32_t *)((const char *)table + field->place);

		/* The table also has types that ceval.c does not use. */
		if (queries[i].found && !may_differ(field->name) && queries[i].value != in_table)
			fail_msg("%s: %s is %d in the table, %lld in DWARF", path, field->name,
				 in_table, (long long)queries[i].value);
	}
	assert_true(queries[0].found || minor < 7);
	prb_elf_close(elf);
}

static void agrees_with_the_tables(void **state)
{
	const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME");
	prb_auto_free char *pattern = prb_format("%s%s/versions/3.*/lib/libpython3.*.so.1.0",
						 root ? root : home, root ? "" : "/.pyenv");
	glob_t found;

	(void)state;
	if (glob(pattern, 0, NULL, &found))
		SKIP("no libpython of pyenv here");
	for (size_t i = 0; i < found.gl_pathc; i++) {
		unsigned minor;
		const char *name = strrchr(found.gl_pathv[i], '/');

		assert_int_equal(sscanf(name, "/libpython3.%u", &minor), 1);
		check_layout(found.gl_pathv[i], minor);
	}
	globfree(&found);
}

static void finds_tables(void **state)
{
	(void)state;
	for (uint16_t minor = 4; minor <= 15; minor++) {
		const struct prb_layout *table = prb_layout_table(0x0300 | minor, false, false);

		assert_non_null(table);
		assert_int_equal(table->version, 0x0300 | minor);
		assert_int_equal(table->source, PRB_LAYOUT_TABLE);
		assert_false(table->free_threaded);
		assert_int_equal(table->thread_interp, 16);
	}
	assert_null(prb_layout_table(0x0303, false, false));
	assert_null(prb_layout_table(0x0310, false, false));
	assert_null(prb_layout_table(0x030c, true, false));
	/* A debug build of 3.7 links all objects, which moves everything in them. */
	assert_null(prb_layout_table(0x0307, false, true));
	assert_ptr_equal(prb_layout_table(0x030a, false, true),
			 prb_layout_table(0x030a, false, false));
	assert_true(prb_layout_table(0x030d, true, false)->free_threaded);
}

/* The offsets in Debian's arm64 packages with DWARF. */
static void moves_offsets_to_aarch64(void **state)
{
	struct prb_layout layout = *prb_layout_table(0x0309, false, false);

	(void)state;
	prb_layout_adjust(&layout, EM_X86_64);
	assert_memory_equal(&layout, prb_layout_table(0x0309, false, false), sizeof(layout));
	prb_layout_adjust(&layout, EM_AARCH64);
	assert_int_equal(layout.runtime_size, 672);
	assert_int_equal(layout.runtime_tstate_current, 584);
	assert_int_equal(layout.gil_size, 224);

	layout = *prb_layout_table(0x030b, false, false);
	prb_layout_adjust(&layout, EM_AARCH64);
	assert_int_equal(layout.runtime_size, 166704);
	assert_int_equal(layout.runtime_tstate_current, 592);
	assert_int_equal(layout.interp_size, 107752);

	layout = *prb_layout_table(0x030d, false, false);
	prb_layout_adjust(&layout, EM_AARCH64);
	assert_int_equal(layout.runtime_size, 283392);
	assert_int_equal(layout.interp_size, 194992);
	assert_int_equal(layout.runtime_tstate_current, PRB_ABSENT);
	assert_int_equal(layout.interp_threads_main, 7352);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_what_compilers_write),
		cmocka_unit_test(says_what_is_missing),
		cmocka_unit_test(follows_imported_units),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(agrees_with_the_tables),
		cmocka_unit_test(finds_tables),
		cmocka_unit_test(moves_offsets_to_aarch64),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
