/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Our interpreter of call frame information against libdwarf: for real libraries, each row of each
 * FDE must have the same CFA and the same rule for every register.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/types/debug_info.h"
#include "dwarf/unwind/cfi.h"
#include "tests/unit/in_range.h"
#include "tests/unit/skip.h"

enum { COLUMNS = 100 };

#ifdef DW_LIBDWARF_VERSION

typedef Dwarf_Small fde_bytes;

static int open_file(const char *path, Dwarf_Debug *dbg, Dwarf_Error *error)
{
	return dwarf_init_path(path, NULL, 0, DW_GROUPNUMBER_ANY, NULL, NULL, dbg, error);
}

static void close_file(Dwarf_Debug dbg, Dwarf_Cie *cies, Dwarf_Signed cie_count, Dwarf_Fde *fdes,
		       Dwarf_Signed fde_count)
{
	dwarf_dealloc_fde_cie_list(dbg, cies, cie_count, fdes, fde_count);
	dwarf_finish(dbg);
}

static int64_t offset_of(const struct Dwarf_Regtable_Entry3_s *entry)
{
	return (int64_t)entry->dw_offset;
}

static uint64_t block_of(const struct Dwarf_Regtable_Entry3_s *entry, const void **data)
{
	*data = entry->dw_block.bl_data;
	return entry->dw_block.bl_len;
}

#else /* before 0.3 (2021): versions are dates */

typedef void fde_bytes;

static int open_file(const char *path, Dwarf_Debug *dbg, Dwarf_Error *error)
{
	return dwarf_init_path(path, NULL, 0, DW_DLC_READ, DW_GROUPNUMBER_ANY, NULL, NULL, dbg,
			       NULL, 0, NULL, error);
}

static void close_file(Dwarf_Debug dbg, Dwarf_Cie *cies, Dwarf_Signed cie_count, Dwarf_Fde *fdes,
		       Dwarf_Signed fde_count)
{
	Dwarf_Error error = NULL;

	dwarf_fde_cie_list_dealloc(dbg, cies, cie_count, fdes, fde_count);
	dwarf_finish(dbg, &error);
}

static int64_t offset_of(const struct Dwarf_Regtable_Entry3_s *entry)
{
	return (int64_t)entry->dw_offset_or_block_len;
}

static uint64_t block_of(const struct Dwarf_Regtable_Entry3_s *entry, const void **data)
{
	*data = entry->dw_block_ptr;
	return entry->dw_offset_or_block_len;
}

#endif

static bool read_own(void *context, uint64_t address, void *buffer, size_t length)
{
	(void)context;
	memcpy(buffer, (const void *)(uintptr_t)address, length);
	return true;
}

static const struct prb_cfi_memory own_memory = {.read = read_own};

/* A library that is mapped into this process. */
struct library {
	const char *name; /* part of the path */
	char path[512];
	uint64_t bias, header, header_size, start, end;
};

static int find_library(struct dl_phdr_info *info, size_t size, void *data)
{
	struct library *library = data;

	(void)size;
	if (!strstr(info->dlpi_name, library->name))
		return 0;
	snprintf(library->path, sizeof(library->path), "%s", info->dlpi_name);
	library->bias = info->dlpi_addr;
	library->start = UINT64_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		uint64_t address = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type == PT_GNU_EH_FRAME) {
			library->header = address;
			library->header_size = segment->p_memsz;
		} else if (segment->p_type == PT_LOAD) {
			library->start = address < library->start ? address : library->start;
			library->end = address + segment->p_memsz;
		}
	}
	return 1;
}

static bool same_expression(const struct prb_cfi_section *section, struct prb_cfi_rule rule,
			    const struct Dwarf_Regtable_Entry3_s *theirs)
{
	const void *ours = (const void *)(uintptr_t)(section->address + rule.expression);
	const void *block;

	return rule.length == block_of(theirs, &block) && memcmp(ours, block, rule.length) == 0;
}

/* @initial: libdwarf's rule for registers without a rule. */
static bool same_rule(const struct prb_cfi_section *section, struct prb_cfi_rule rule,
		      const struct Dwarf_Regtable_Entry3_s *theirs, unsigned initial)
{
	int64_t offset = offset_of(theirs);

	switch (theirs->dw_value_type) {
	case DW_EXPR_EXPRESSION:
		return rule.kind == PRB_CFI_EXPRESSION && same_expression(section, rule, theirs);
	case DW_EXPR_VAL_EXPRESSION:
		return rule.kind == PRB_CFI_VAL_EXPRESSION &&
		       same_expression(section, rule, theirs);
	case DW_EXPR_VAL_OFFSET:
		return rule.kind == PRB_CFI_VAL_OFFSET && rule.value == offset;
	default:
		break;
	}
	if (theirs->dw_offset_relevant)
		return rule.kind == PRB_CFI_OFFSET && rule.value == offset;
	if (theirs->dw_regnum == initial && rule.kind == PRB_CFI_UNSPECIFIED)
		return true;
	if (theirs->dw_regnum == DW_FRAME_UNDEFINED_VAL)
		return rule.kind == PRB_CFI_UNDEFINED;
	if (theirs->dw_regnum == DW_FRAME_SAME_VAL)
		return rule.kind == PRB_CFI_SAME;
	return rule.kind == PRB_CFI_REGISTER && rule.reg == theirs->dw_regnum;
}

static bool same_cfa(const struct prb_cfi_section *section, struct prb_cfi_rule rule,
		     const struct Dwarf_Regtable_Entry3_s *theirs)
{
	if (theirs->dw_value_type == DW_EXPR_VAL_EXPRESSION ||
	    theirs->dw_value_type == DW_EXPR_EXPRESSION)
		return rule.kind == PRB_CFI_VAL_EXPRESSION &&
		       same_expression(section, rule, theirs);
	return rule.kind == PRB_CFI_REGISTER && rule.reg == theirs->dw_regnum &&
	       rule.value == offset_of(theirs);
}

struct comparison {
	struct library *library;
	unsigned initial;
	struct prb_cfi_index index;
	struct prb_cfi_section section;
	size_t fdes, rows;
};

/* Returns the end of our row. */
static uint64_t compare_row(struct comparison *c, Dwarf_Fde fde, const struct prb_cfi_fde *ours,
			    uint64_t pc)
{
	struct Dwarf_Regtable_Entry3_s rules[COLUMNS];
	Dwarf_Regtable3 table = {.rt3_reg_table_size = COLUMNS, .rt3_rules = rules};
	Dwarf_Error error = NULL;
	Dwarf_Addr row_pc;
	struct prb_cfi_row row;

	assert_int_equal(prb_cfi_row_at(&c->section, &own_memory, ours, EM_X86_64, pc, &row),
			 PRB_CFI_OK);
	assert_int_equal(dwarf_get_fde_info_for_all_regs3(fde, pc - c->library->bias, &table,
							  &row_pc, &error),
			 DW_DLV_OK);
	if (!same_cfa(&c->section, row.cfa, &table.rt3_cfa_rule))
		fail_msg("%s: the CFA differs at %#lx", c->library->path,
			 (unsigned long)(pc - c->library->bias));
	assert_int_equal(row.start - c->library->bias, row_pc);
	for (unsigned i = 0; i < PRB_REG_COUNT; i++) {
		if (!same_rule(&c->section, prb_cfi_row_rule(&row, i), &rules[i], c->initial))
			fail_msg("%s: the rule of register %u differs at %#lx", c->library->path, i,
				 (unsigned long)(pc - c->library->bias));
	}
	c->rows++;
	return row.end;
}

/* Goes through our rows: at the first and at the last byte of each, libdwarf's starts where ours
 * does. */
static void compare_fde(struct comparison *c, Dwarf_Fde fde)
{
	Dwarf_Signed cie_index;
	Dwarf_Addr low;
	Dwarf_Unsigned length, bytes_length;
	Dwarf_Error error = NULL;
	Dwarf_Off cie_offset, offset_in_section;
	fde_bytes *bytes;
	struct prb_cfi_fde ours = {};
	uint64_t address, end;

	assert_int_equal(dwarf_get_fde_range(fde, &low, &length, &bytes, &bytes_length, &cie_offset,
					     &cie_index, &offset_in_section, &error),
			 DW_DLV_OK);
	if (length == 0)
		return;
	assert_int_equal(
		prb_cfi_index_find(&c->index, &own_memory, low + c->library->bias, &address),
		PRB_CFI_OK);
	assert_int_equal(prb_cfi_fde_read(&c->section, &own_memory, address, &ours), PRB_CFI_OK);
	assert_int_equal(ours.start, low + c->library->bias);
	assert_int_equal(ours.end - ours.start, length);
	c->fdes++;

	for (uint64_t pc = ours.start; pc < ours.end; pc = end) {
		end = compare_row(c, fde, &ours, pc);
		assert_uint_in_range(end, pc + 1, ours.end);
		if (end > pc + 1)
			compare_row(c, fde, &ours, end - 1);
	}
}

static size_t compare_with(const char *name, bool direct, unsigned initial)
{
	struct library library = {.name = name};
	struct comparison c = {.library = &library, .initial = initial};
	struct prb_cfi_section header;
	Dwarf_Debug dbg = NULL;
	Dwarf_Error error = NULL;
	Dwarf_Cie *cies;
	Dwarf_Fde *fdes;
	Dwarf_Signed cie_count, fde_count;

	assert_int_equal(dl_iterate_phdr(find_library, &library), 1);
	header = (struct prb_cfi_section){.address = library.header, .size = library.header_size};
	c.section = (struct prb_cfi_section){.address = library.start,
					     .size = library.end - library.start};
	if (direct) {
		header.data = (const void *)(uintptr_t)header.address;
		c.section.data = (const void *)(uintptr_t)c.section.address;
	}
	assert_int_equal(prb_cfi_index_read(&header, &own_memory, &c.index), PRB_CFI_OK);

	assert_int_equal(open_file(library.path, &dbg, &error), DW_DLV_OK);
	dwarf_set_frame_rule_table_size(dbg, COLUMNS);
	dwarf_set_frame_rule_initial_value(dbg, (Dwarf_Half)initial);
	dwarf_set_frame_cfa_value(dbg, DW_FRAME_CFA_COL3);
	dwarf_set_frame_same_value(dbg, DW_FRAME_SAME_VAL);
	dwarf_set_frame_undefined_value(dbg, DW_FRAME_UNDEFINED_VAL);
	assert_int_equal(dwarf_get_fde_list_eh(dbg, &cies, &cie_count, &fdes, &fde_count, &error),
			 DW_DLV_OK);
	for (Dwarf_Signed i = 0; i < fde_count; i++)
		compare_fde(&c, fdes[i]);
	print_message("%s: %zu FDEs, %zu comparisons\n", library.path, c.fdes, c.rows);
	close_file(dbg, cies, cie_count, fdes, fde_count);
	return c.rows;
}

/*
 * Compares a loaded library; @direct: its bytes are read in place, not in pieces. Twice, since
 * libdwarf uses one of two rules for registers without a rule.
 */
static size_t compare_library(const char *name, bool direct)
{
	size_t rows = compare_with(name, direct, DW_FRAME_SAME_VAL);

	assert_int_equal(compare_with(name, direct, DW_FRAME_UNDEFINED_VAL), rows);
	return rows;
}

static void test_libc(void **state)
{
	(void)state;
	assert_true(compare_library("/libc.so.6", true) > 10000);
}

static void test_loader(void **state)
{
	(void)state;
	assert_true(compare_library("/ld-linux-", false) > 500);
}

static void test_libstdcxx(void **state)
{
	(void)state;
	if (!dlopen("libstdc++.so.6", RTLD_NOW | RTLD_LOCAL))
		SKIP("no libstdc++ here");
	assert_true(compare_library("/libstdc++.so.6", false) > 10000);
}

static void test_libpython(void **state)
{
	const char *home = getenv("HOME");
	prb_auto_free char *pattern =
		prb_format("%s/.pyenv/versions/3.12.*/lib/libpython3.12.so.1.0", home ? home : "");
	glob_t found = {};
	bool loaded;

	(void)state;
	loaded = glob(pattern, 0, NULL, &found) == 0 &&
		 dlopen(found.gl_pathv[0], RTLD_NOW | RTLD_LOCAL);
	globfree(&found);
	if (!loaded)
		SKIP("no libpython of pyenv here");
	assert_true(compare_library("/libpython3.12.so", true) > 50000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_libc),
		cmocka_unit_test(test_loader),
		cmocka_unit_test(test_libstdcxx),
		cmocka_unit_test(test_libpython),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
