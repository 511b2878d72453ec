/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * How call frame information is laid out: versions, augmentations, pointer encodings, search
 * tables, truncation; and the frames that the kernel pushes for signals.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "base/checked.h"
#include "dwarf/unwind/cfi.h"
#include "tests/unit/cfi_builder.h"

enum { BASE = 0x100000, CODE = 0x5000, TEXT = 0x4000, DATA = 0x90000, POINTERS = 0x8000 };

static struct fake_memory memory;
static const struct prb_cfi_memory reader = {.read = read_fake, .context = &memory};
static const uint8_t usual[] = {0x0c, 7, 8, 0x90, 1};

static int clear(void **state)
{
	(void)state;
	memory = (struct fake_memory){};
	return 0;
}

static struct prb_cfi_section section_of(const struct builder *b, bool mapped)
{
	memory.pieces[1].address = b->base;
	memory.pieces[1].size = b->length;
	memory.pieces[1].data = b->bytes;
	return (struct prb_cfi_section){.address = b->base,
					.size = b->length,
					.data = mapped ? NULL : b->bytes,
					.text_base = TEXT,
					.data_base = DATA};
}

/* Reads the FDE of a section with this CIE: the status, and the FDE. */
static enum prb_cfi_status read_with(const struct cie_spec *given, struct prb_cfi_fde *fde)
{
	struct cie_spec spec = *given;
	struct builder b = {.base = BASE};
	struct prb_cfi_section section;
	enum prb_cfi_status status;

	spec.program = usual;
	spec.program_length = sizeof(usual);
	size_t cie = put_cie(&b, &spec);
	size_t at = put_fde(&b, &spec, cie, CODE, 64, "", 0);

	section = section_of(&b, false);
	section.debug_frame = spec.debug_frame;
	*fde = (struct prb_cfi_fde){};
	status = prb_cfi_fde_read(&section, &reader, BASE + at, fde);
	if (status == PRB_CFI_OK) {
		struct prb_cfi_row row;

		assert_int_equal(fde->start, CODE);
		assert_int_equal(fde->end, CODE + 64);
		assert_int_equal(prb_cfi_row_at(&section, &reader, fde, EM_X86_64, CODE, &row),
				 PRB_CFI_OK);
		assert_int_equal(row.cfa.value, 8);
	}
	return status;
}

static void test_versions(void **state)
{
	struct prb_cfi_fde fde;
	const uint8_t good[] = {1, 3, 4};

	(void)state;
	for (unsigned i = 0; i < sizeof(good); i++) {
		struct cie_spec spec = {.version = good[i]};

		assert_int_equal(read_with(&spec, &fde), PRB_CFI_OK);
		spec.debug_frame = true;
		assert_int_equal(read_with(&spec, &fde), PRB_CFI_OK);
	}
	assert_int_equal(read_with(&(struct cie_spec){.version = 2}, &fde), PRB_CFI_UNSUPPORTED);
	assert_int_equal(read_with(&(struct cie_spec){.version = 5}, &fde), PRB_CFI_UNSUPPORTED);
	assert_int_equal(read_with(&(struct cie_spec){.version = 3, .ra = 200}, &fde),
			 PRB_CFI_UNSUPPORTED);
}

static void test_augmentations(void **state)
{
	struct prb_cfi_fde fde;

	(void)state;
	assert_int_equal(read_with(&(struct cie_spec){.augmentation = ""}, &fde), PRB_CFI_OK);
	assert_int_equal(read_with(&(struct cie_spec){.augmentation = "eh"}, &fde), PRB_CFI_OK);
	assert_int_equal(read_with(&(struct cie_spec){.augmentation = "zRS"}, &fde), PRB_CFI_OK);
	assert_true(fde.cie.signal_frame);
	assert_int_equal(read_with(&(struct cie_spec){.augmentation = "zRB"}, &fde), PRB_CFI_OK);
	assert_false(fde.cie.signal_frame);

	/* personality, language data, encoding: 0x1b is pcrel, four bytes; 0x50 is aligned */
	const uint8_t usual_data[] = {0x9b, 1, 2, 3, 4, 0x1b, 0x00};
	assert_int_equal(read_with(&(struct cie_spec){.augmentation = "zPLR",
						      .data = usual_data,
						      .data_length = sizeof(usual_data)},
				   &fde),
			 PRB_CFI_OK);
	/* Data of an unknown letter is skipped by the length. */
	const uint8_t more[] = {0x00, 7, 7, 7};
	assert_int_equal(read_with(&(struct cie_spec){.augmentation = "zRG?",
						      .data = more,
						      .data_length = sizeof(more)},
				   &fde),
			 PRB_CFI_OK);

	assert_int_equal(read_with(&(struct cie_spec){.augmentation = "armcc+"}, &fde),
			 PRB_CFI_UNSUPPORTED);
	assert_int_equal(
		read_with(&(struct cie_spec){.augmentation = "zRaaaaaaaaaaaaaaaaaaa"}, &fde),
		PRB_CFI_UNSUPPORTED);
	assert_int_equal(read_with(&(struct cie_spec){.augmentation = "zR", .data = ""}, &fde),
			 PRB_CFI_BAD);
}

/* The start of the code as each encoding writes it, and its length. */
static void put_start(struct builder *b, uint8_t encoding)
{
	uint64_t here, value = CODE;

	if ((encoding & 0x70) == 0x50)
		while ((b->base + b->length) % 8)
			put_fixed(b, 0xee, 1);
	here = b->base + b->length;
	if (encoding & 0x80)
		value = POINTERS;
	if ((encoding & 0x70) == 0x10)
		value -= here;
	else if ((encoding & 0x70) == 0x20)
		value -= TEXT;
	else if ((encoding & 0x70) == 0x30)
		value -= DATA;

	static const uint8_t widths[] = {8, 0, 2, 4, 8, 0, 0, 0, 8, 0, 2, 4, 8};
	for (unsigned i = 0; i < 2; i++, value = 64) {
		if ((encoding & 15) == 1)
			put_uleb(b, value);
		else if ((encoding & 15) == 9)
			put_sleb(b, (int64_t)value);
		else if ((encoding & 15) < sizeof(widths))
			put_fixed(b, value, widths[encoding & 15]);
	}
}

static void test_encodings(void **state)
{
	static const uint8_t good[] = {0x00, 0x01, 0x02, 0x03, 0x04, 0x08, 0x09, 0x0a, 0x0b,
				       0x0c, 0x10, 0x14, 0x18, 0x19, 0x1b, 0x1c, 0x20, 0x21,
				       0x22, 0x23, 0x29, 0x2a, 0x2b, 0x2c, 0x30, 0x39, 0x3b,
				       0x3c, 0x50, 0x80, 0x82, 0x83, 0x9b, 0x9c, 0xa3, 0xbb};
	static const uint8_t wrong[] = {0x05, 0x07, 0x0d, 0x0f, 0x40, 0x43, 0x60, 0x7b};
	static const uint64_t pointer = CODE;

	(void)state;
	memory.pieces[2].address = POINTERS;
	memory.pieces[2].size = sizeof(pointer);
	memory.pieces[2].data = &pointer;
	for (unsigned i = 0; i < sizeof(good) + sizeof(wrong); i++) {
		bool is_good = i < sizeof(good);
		uint8_t encoding = is_good ? good[i] : wrong[i - sizeof(good)];
		struct cie_spec spec = {.encoding = encoding};
		struct builder b = {.base = BASE};
		size_t cie = put_cie(&b, &spec), at = begin_fde(&b, false, cie);

		put_start(&b, encoding);
		put_uleb(&b, 0);
		end_entry(&b, at);
		for (int mapped = 0; mapped < 2; mapped++) {
			struct prb_cfi_section section = section_of(&b, mapped);
			struct prb_cfi_fde fde = {};
			enum prb_cfi_status status =
				prb_cfi_fde_read(&section, &reader, BASE + at, &fde);

			if (status != (is_good ? PRB_CFI_OK : PRB_CFI_BAD))
				fail_msg("encoding %#x: status %d", encoding, status);
			if (is_good && (fde.start != CODE || fde.end != CODE + 64))
				fail_msg("encoding %#x: %#lx to %#lx", encoding,
					 (unsigned long)fde.start, (unsigned long)fde.end);
			/* Unknown bases cannot be guessed. */
			section.text_base = section.data_base = 0;
			if ((encoding & 0x70) == 0x20 || (encoding & 0x70) == 0x30)
				assert_int_equal(
					prb_cfi_fde_read(&section, &reader, BASE + at, &fde),
					PRB_CFI_BAD);
		}
	}
}

/* With bytes from the file, addresses are the file's. */
static void test_bias(void **state)
{
	struct cie_spec spec = {.debug_frame = true};
	struct builder b = {.base = BASE};
	struct prb_cfi_section section;
	struct prb_cfi_fde fde = {};
	size_t cie = put_cie(&b, &spec), at = put_fde(&b, &spec, cie, CODE, 64, "", 0);

	(void)state;
	section = section_of(&b, false);
	section.debug_frame = true;
	section.bias = 0x7000000;
	assert_int_equal(prb_cfi_fde_read(&section, &reader, BASE + at, &fde), PRB_CFI_OK);
	assert_int_equal(fde.start, 0x7000000 + CODE);
	assert_int_equal(fde.end, 0x7000000 + CODE + 64);
}

/* Lengths of 64 bits, with ids of 64 bits in .debug_frame. */
static void test_wide_entries(void **state)
{
	struct builder b = {.base = BASE};
	struct prb_cfi_section section;
	struct prb_cfi_fde fde = {};

	(void)state;
	put_fixed(&b, UINT32_MAX, 4);
	put_fixed(&b, 8 + 5 + sizeof(usual), 8);
	put_fixed(&b, UINT64_MAX, 8);
	put(&b, "\3\0\1\x78\x10", 5);
	put(&b, usual, sizeof(usual));
	size_t at = b.length;
	put_fixed(&b, UINT32_MAX, 4);
	put_fixed(&b, 24, 8);
	put_fixed(&b, 0, 8);
	put_fixed(&b, CODE, 8);
	put_fixed(&b, 64, 8);
	section = section_of(&b, false);
	section.debug_frame = true;
	assert_int_equal(prb_cfi_fde_read(&section, &reader, BASE + at, &fde), PRB_CFI_OK);
	assert_int_equal(fde.start, CODE);
	assert_int_equal(fde.cie.data_align, -8);
}

/* A section of three CIEs and FDEs, one of which cannot be understood. */
static void make_section(struct builder *b, uint64_t *fdes)
{
	struct cie_spec good = {.program = usual, .program_length = sizeof(usual)};
	struct cie_spec unknown = {.version = 9};
	size_t cie;

	*b = (struct builder){.base = BASE};
	cie = put_cie(b, &good);
	fdes[0] = BASE + put_fde(b, &good, cie, CODE, 64, "\x41\x0e\x10", 3);
	cie = put_cie(b, &unknown);
	put_fde(b, &unknown, cie, CODE + 64, 64, "", 0);
	cie = put_cie(b, &good);
	fdes[1] = BASE + put_fde(b, &good, cie, CODE + 128, 64, "\x41\x0e\x18", 3);
	fdes[2] = BASE + put_fde(b, &good, cie, CODE + 256, 64, "\x41\x0e\x20", 3);
	put_fixed(b, 0, 4);
}

static void test_iteration(void **state)
{
	struct builder b;
	struct prb_cfi_fde fde = {};
	uint64_t fdes[3], address = BASE;

	(void)state;
	make_section(&b, fdes);
	for (int mapped = 0; mapped < 2; mapped++, address = BASE) {
		struct prb_cfi_section section = section_of(&b, mapped);

		for (unsigned i = 0; i < 3; i++) {
			assert_int_equal(prb_cfi_fde_next(&section, &reader, &address, &fde),
					 PRB_CFI_OK);
			assert_int_equal(fde.address, fdes[i]);
		}
		assert_int_equal(prb_cfi_fde_next(&section, &reader, &address, &fde), PRB_CFI_END);
		section.size -= 4;
		assert_int_equal(prb_cfi_fde_next(&section, &reader, &address, &fde), PRB_CFI_END);
	}
}

/* Each prefix of a section, in memory that ends with it, read as all its FDEs. */
static void test_truncation(void **state)
{
	struct builder b;
	uint64_t fdes[3];

	(void)state;
	make_section(&b, fdes);
	for (size_t size = 0; size < b.length; size++) {
		uint8_t *copy = malloc(size ? size : 1);
		struct prb_cfi_section section = {.address = BASE, .size = size, .data = copy};

		memcpy(copy, b.bytes, size);
		for (unsigned i = 0; i < 3; i++) {
			struct prb_cfi_fde fde = {};
			struct prb_cfi_row row;
			enum prb_cfi_status status =
				prb_cfi_fde_read(&section, &reader, fdes[i], &fde);
			uint64_t length = 0;

			memcpy(&length, b.bytes + (fdes[i] - BASE), 4);
			bool whole = fdes[i] - BASE + 4 + length <= size;
			assert_int_equal(status == PRB_CFI_OK, whole);
			if (whole)
				assert_int_equal(prb_cfi_row_at(&section, &reader, &fde, EM_X86_64,
								fde.start + 1, &row),
						 PRB_CFI_OK);
		}
		free(copy);
	}
}

enum { HEADER = 0x200000 };

/* A search table over the three FDEs, with words in this encoding. */
static void make_header(struct builder *h, const uint64_t *fdes, uint8_t encoding,
			uint64_t claimed_count)
{
	*h = (struct builder){.base = HEADER};
	put_fixed(h, 1, 1);
	put_fixed(h, 0x1b, 1);
	put_fixed(h, 0x03, 1);
	put_fixed(h, encoding, 1);
	put_fixed(h, (uint64_t)BASE - (HEADER + 4), 4);
	put_fixed(h, claimed_count, 4);
	for (unsigned i = 0; i < 3; i++) {
		const uint64_t words[] = {(uint64_t[]){CODE, CODE + 128, CODE + 256}[i], fdes[i]};

		for (unsigned j = 0; j < 2; j++) {
			if (encoding == 0x3b)
				put_fixed(h, words[j] - HEADER, 4);
			else if (encoding == 0x1b)
				put_fixed(h, words[j] - (HEADER + h->length), 4);
			else
				put_fixed(h, words[j], 8);
		}
	}
}

static void test_search_table(void **state)
{
	static const uint8_t encodings[] = {0x3b, 0x1b, 0x00, 0x04};
	static const struct {
		uint64_t pc;
		int entry;
	} places[] = {{CODE - 1, -1},  {CODE, 0},	{CODE + 127, 0}, {CODE + 128, 1},
		      {CODE + 255, 1}, {CODE + 256, 2}, {UINT64_MAX, 2}};
	const uint64_t fdes[] = {BASE + 32, BASE + 64, BASE + 128};

	(void)state;
	for (unsigned i = 0; i < sizeof(encodings); i++) {
		/* A count that is too large is limited by the available room. */
		uint64_t counts[] = {3, UINT32_MAX};
		struct prb_cfi_section section;
		struct prb_cfi_index index;
		struct builder h;

		for (unsigned j = 0; j < 4; j++) {
			make_header(&h, fdes, encodings[i], counts[j / 2]);
			section = section_of(&h, j % 2);
			assert_int_equal(prb_cfi_index_read(&section, &reader, &index), PRB_CFI_OK);
			assert_int_equal(index.eh_frame, BASE);
			assert_int_equal(index.count, 3);
			for (unsigned k = 0; k < PRB_ARRAY_SIZE(places); k++) {
				uint64_t fde = 0;
				enum prb_cfi_status status =
					prb_cfi_index_find(&index, &reader, places[k].pc, &fde);

				assert_int_equal(status, places[k].entry < 0 ? PRB_CFI_NOT_FOUND
									     : PRB_CFI_OK);
				if (places[k].entry >= 0)
					assert_int_equal(fde, fdes[places[k].entry]);
			}
		}
	}
}

static void test_search_table_missing(void **state)
{
	const uint64_t fdes[3] = {};
	struct prb_cfi_section section;
	struct prb_cfi_index index;
	struct builder h;
	uint64_t fde;

	(void)state;
	make_header(&h, fdes, 0xff, 3);
	section = section_of(&h, false);
	assert_int_equal(prb_cfi_index_read(&section, &reader, &index), PRB_CFI_OK);
	assert_int_equal(index.eh_frame, BASE);
	assert_int_equal(index.count, 0);
	assert_int_equal(prb_cfi_index_find(&index, &reader, CODE, &fde), PRB_CFI_NOT_FOUND);
	h.bytes[3] = 0x01; /* numbers of different lengths cannot be halved */
	assert_int_equal(prb_cfi_index_read(&section, &reader, &index), PRB_CFI_OK);
	assert_int_equal(index.count, 0);
	h.bytes[0] = 2;
	assert_int_equal(prb_cfi_index_read(&section, &reader, &index), PRB_CFI_UNSUPPORTED);
	section.size = 3;
	h.bytes[0] = 1;
	assert_int_equal(prb_cfi_index_read(&section, &reader, &index), PRB_CFI_BAD);
	section.data = NULL;
	section.address = 0x1234;
	assert_int_equal(prb_cfi_index_read(&section, &reader, &index), PRB_CFI_UNREADABLE);
}

static void test_sigreturn_x86_64(void **state)
{
	static const uint8_t wide[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t narrow[] = {0xb8, 15, 0, 0, 0, 0x0f, 0x05};
	const uint8_t *codes[] = {wide, narrow};
	const size_t lengths[] = {sizeof(wide), sizeof(narrow)};
	static uint64_t frame[40];
	uint64_t cfa;

	(void)state;
	for (unsigned i = 0; i < 40; i++)
		frame[i] = 0x1000 + i;
	memory.pieces[0].address = 0x7000;
	memory.pieces[0].size = sizeof(frame);
	memory.pieces[0].data = frame;
	for (unsigned i = 0; i < 4; i++) {
		struct prb_regs regs = {.machine = EM_X86_64};

		memory.pieces[1].address = CODE;
		memory.pieces[1].size = lengths[i / 2];
		memory.pieces[1].data = codes[i / 2];
		regs.pc = CODE + (i % 2 ? lengths[i / 2] - 2 : 0);
		prb_regs_set(&regs, PRB_REG_X86_64_RSP, 0x7000);
		assert_int_equal(prb_cfi_sigreturn(&reader, &regs, &cfa), PRB_CFI_OK);
		/* The order of struct sigcontext: r8–r15 di si bp bx dx ax cx sp ip. */
		assert_int_equal(regs.value[8], 0x1005);
		assert_int_equal(regs.value[15], 0x100c);
		assert_int_equal(regs.value[5], 0x100d);
		assert_int_equal(regs.value[6], 0x100f);
		assert_int_equal(regs.value[3], 0x1010);
		assert_int_equal(regs.value[0], 0x1012);
		assert_int_equal(regs.value[7], 0x1014);
		assert_int_equal(regs.pc, 0x1015);
		assert_int_equal(regs.known, 0xffff);
		assert_int_equal(cfa, 0x1014);

		regs.pc = CODE + 1;
		assert_int_equal(prb_cfi_sigreturn(&reader, &regs, &cfa), PRB_CFI_NOT_FOUND);
		regs.pc = CODE;
		regs.known = 0;
		assert_int_equal(prb_cfi_sigreturn(&reader, &regs, &cfa), PRB_CFI_UNKNOWN_REGISTER);
		prb_regs_set(&regs, PRB_REG_X86_64_RSP, 0x9000);
		assert_int_equal(prb_cfi_sigreturn(&reader, &regs, &cfa), PRB_CFI_UNREADABLE_STACK);
	}
}

static void test_sigreturn_aarch64(void **state)
{
	static const uint32_t code[] = {0xd2801168, 0xd4000001};
	uint64_t frame[128], cfa;

	(void)state;
	for (unsigned i = 0; i < 128; i++)
		frame[i] = 0x1000 + i;
	memory.pieces[0].address = 0x7000;
	memory.pieces[0].size = sizeof(frame);
	memory.pieces[0].data = frame;
	memory.pieces[1].address = CODE;
	memory.pieces[1].size = sizeof(code);
	memory.pieces[1].data = code;
	for (unsigned i = 0; i < 2; i++) {
		struct prb_regs regs = {.machine = EM_AARCH64, .pc = CODE + 4 * i};

		prb_regs_set(&regs, PRB_REG_AARCH64_SP, 0x7000);
		assert_int_equal(prb_cfi_sigreturn(&reader, &regs, &cfa), PRB_CFI_OK);
		assert_int_equal(regs.value[0], 0x1000 + 39);
		assert_int_equal(regs.value[30], 0x1000 + 69);
		assert_int_equal(regs.value[PRB_REG_AARCH64_SP], 0x1000 + 70);
		assert_int_equal(regs.pc, 0x1000 + 71);
		assert_int_equal(regs.known, 0xffffffff);
	}
#if defined(__aarch64__)
	assert_int_equal(39 * 8, 128 + offsetof(ucontext_t, uc_mcontext.regs));
#endif
}

/* A stub at CODE, and the word at POINTERS that it jumps to. */
static enum prb_cfi_status leave(const void *code, size_t size, unsigned at, uint64_t *target,
				 struct prb_regs *regs)
{
	memory.pieces[1].address = CODE;
	memory.pieces[1].size = size;
	memory.pieces[1].data = code;
	memory.pieces[2].address = POINTERS;
	memory.pieces[2].size = sizeof(*target);
	memory.pieces[2].data = target;
	regs->pc = CODE + at;
	prb_regs_set(regs, prb_regs_sp(regs->machine), 0x7000);
	return prb_cfi_leave_stub(&reader, regs);
}

static void test_stubs_x86_64(void **state)
{
	struct prb_regs regs = {.machine = EM_X86_64};
	uint64_t target = 0xabc0;
	/* The displacement is from the end of the instruction to POINTERS. */
	const uint8_t secure[] = {0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf5, 0x2f, 0, 0};
	/* push $5; jmp to the first entry: push …(%rip); jmp *…(%rip) */
	const uint8_t lazy[] = {0x68, 5, 0, 0, 0, 0xe9, 0,    0,    0,	  0, 0xff,
				0x35, 0, 0, 0, 0, 0xff, 0x25, 0xea, 0x2f, 0, 0};
	const uint8_t circle[] = {0xe9, 0xfb, 0xff, 0xff, 0xff};
	const uint8_t other[] = {0x55, 0xff, 0x25, 0xf5, 0x2f, 0, 0};

	(void)state;
	for (unsigned at = 0; at < 8; at += 4) {
		assert_int_equal(leave(secure, sizeof(secure), at, &target, &regs), PRB_CFI_OK);
		assert_int_equal(regs.pc, target);
		assert_int_equal(regs.value[PRB_REG_X86_64_RSP], 0x7000);
	}
	assert_int_equal(leave(lazy, sizeof(lazy), 0, &target, &regs), PRB_CFI_OK);
	assert_int_equal(regs.pc, target);
	assert_int_equal(regs.value[PRB_REG_X86_64_RSP], 0x7000 - 16);
	assert_int_equal(leave(lazy, sizeof(lazy), 16, &target, &regs), PRB_CFI_OK);
	assert_int_equal(regs.value[PRB_REG_X86_64_RSP], 0x7000);

	assert_int_equal(leave(circle, sizeof(circle), 0, &target, &regs), PRB_CFI_NOT_FOUND);
	assert_int_equal(leave(other, sizeof(other), 0, &target, &regs), PRB_CFI_NOT_FOUND);
	assert_int_equal(leave(secure, 9, 0, &target, &regs), PRB_CFI_NOT_FOUND);
	assert_int_equal(regs.pc, CODE);
}

static void test_stubs_aarch64(void **state)
{
	struct prb_regs regs = {.machine = EM_AARCH64};
	uint64_t target = 0xabc0;
	/* bti c; adrp x16, +3 pages; ldr x17, [x16]; add x16, x16, #0; br x17 */
	const uint32_t code[] = {0xd503245f, 0xf0000010, 0xf9400211, 0x91000210, 0xd61f0220};
	/* adrp x16, +3 pages; add x16, x16, #0x123; br x16 */
	const uint32_t far_branch[] = {0xf0000010, 0x91048e10, 0xd61f0200};

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		/* The registers hold the results of the instructions before. */
		if (i >= 2)
			prb_regs_set(&regs, 16, POINTERS);
		if (i >= 3)
			prb_regs_set(&regs, 17, target);
		assert_int_equal(leave(code, sizeof(code), 4 * i, &target, &regs), PRB_CFI_OK);
		assert_int_equal(regs.pc, target);
		assert_int_equal(regs.value[PRB_REG_AARCH64_SP], 0x7000);
		regs.known = 0;
	}
	assert_int_equal(leave(code, sizeof(code), 8, &target, &regs), PRB_CFI_NOT_FOUND);
	assert_int_equal(leave(far_branch, sizeof(far_branch), 0, &target, &regs), PRB_CFI_OK);
	assert_int_equal(regs.pc, 0x8123);
	assert_int_equal(leave(code, sizeof(code) - 4, 0, &target, &regs), PRB_CFI_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_versions, clear),
		cmocka_unit_test_setup(test_augmentations, clear),
		cmocka_unit_test_setup(test_encodings, clear),
		cmocka_unit_test_setup(test_bias, clear),
		cmocka_unit_test_setup(test_wide_entries, clear),
		cmocka_unit_test_setup(test_iteration, clear),
		cmocka_unit_test_setup(test_truncation, clear),
		cmocka_unit_test_setup(test_search_table, clear),
		cmocka_unit_test_setup(test_search_table_missing, clear),
		cmocka_unit_test_setup(test_sigreturn_x86_64, clear),
		cmocka_unit_test_setup(test_sigreturn_aarch64, clear),
		cmocka_unit_test_setup(test_stubs_x86_64, clear),
		cmocka_unit_test_setup(test_stubs_aarch64, clear),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
