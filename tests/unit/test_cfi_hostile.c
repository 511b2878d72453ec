/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Hostile call frame information: libc's own, damaged in many ways, always the same. Nothing may
 * crash, read outside, or take long; run it with sanitizers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/cleanup.h"
#include "tests/fuzz/exercise_cfi.h"

enum { LOOKUPS = 250000, MAX_CHANGES = 4 };

static uint64_t seed = 88172645463325252ULL;

static uint64_t random_number(void)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return seed;
}

/* libc's table and the rest of its segment, which holds the entries, in memory of their size. */
static struct hostile_target original;

static int find_libc(struct dl_phdr_info *info, size_t size, void *data)
{
	const ElfW(Phdr) *table = NULL;
	uint64_t start, end;

	(void)size;
	(void)data;
	if (!strstr(info->dlpi_name, "/libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			table = &info->dlpi_phdr[i];
	}
	for (int i = 0; table && i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *s = &info->dlpi_phdr[i];

		if (s->p_type != PT_LOAD || table->p_vaddr < s->p_vaddr ||
		    table->p_vaddr >= s->p_vaddr + s->p_memsz)
			continue;
		start = info->dlpi_addr + table->p_vaddr;
		end = info->dlpi_addr + s->p_vaddr + s->p_memsz;
		original.header.address = start;
		original.header.size = table->p_memsz;
		original.frames.address = start + table->p_memsz;
		original.frames.size = end - original.frames.address;
		return 1;
	}
	return 0;
}

static uint8_t *copy_of(uint64_t address, uint64_t size)
{
	uint8_t *copy = malloc(size);

	assert_non_null(copy);
	memcpy(copy, (const void *)(uintptr_t)address, size);
	return copy;
}

/* A few bytes of one section changed, and back. */
struct changes {
	uint8_t *at[MAX_CHANGES], old[MAX_CHANGES];
	unsigned count;
};

static void change(struct changes *changes, uint8_t *bytes, uint64_t start, uint64_t length)
{
	static const uint8_t likely[] = {0x00, 0xff, 0x7f, 0x80, 0x0f,
					 0x10, 0x16, 0x0a, 0x0b, 0x2f};

	changes->count = 1 + (unsigned)(random_number() % MAX_CHANGES);
	for (unsigned i = 0; i < changes->count; i++) {
		uint8_t *at = bytes + start + random_number() % length;
		uint64_t r = random_number();

		changes->at[i] = at;
		changes->old[i] = *at;
		*at = r & 256 ? (uint8_t)r : likely[r % sizeof(likely)];
	}
}

static void change_back(struct changes *changes)
{
	while (changes->count) {
		changes->count--;
		*changes->at[changes->count] = changes->old[changes->count];
	}
}

/* Looks up a pc of a random FDE while bytes in it, its CIE or the table are wrong. */
static enum prb_cfi_status damaged_lookup(struct hostile_target *target, uint8_t *table,
					  uint8_t *frames, const struct prb_cfi_index *index)
{
	const int32_t *entries = (const int32_t *)(const void *)(table + 12);
	uint64_t entry = random_number() % index->count;
	uint64_t pc = target->header.address + (uint64_t)(int64_t)entries[2 * entry];
	uint64_t fde = target->header.address + (uint64_t)(int64_t)entries[2 * entry + 1] -
		       target->frames.address;
	uint16_t machine = random_number() % 4 ? EM_X86_64 : EM_AARCH64;
	enum prb_cfi_status status;
	struct changes changes;
	uint32_t back;

	memcpy(&back, frames + fde + 4, sizeof(back));
	switch (random_number() % 8) {
	case 0:
		change(&changes, table, 0, target->header.size);
		break;
	case 1:
		change(&changes, table, 0, 12);
		break;
	case 2:
	case 3:
		change(&changes, frames, fde + 4 - back, 32); /* its CIE */
		break;
	default:
		change(&changes, frames, fde, 40);
		break;
	}
	status = exercise_lookup(target, machine, random_number() % 2, pc + random_number() % 32);
	change_back(&changes);
	return status;
}

static void test_damaged_libc(void **state)
{
	struct hostile_target target = original;
	prb_auto_free uint8_t *table = copy_of(original.header.address, original.header.size);
	prb_auto_free uint8_t *frames = copy_of(original.frames.address, original.frames.size);
	size_t results[PRB_CFI_NO_RULE + 1] = {};
	struct prb_cfi_memory memory = {.read = read_hostile, .context = &target};
	struct timespec start, end;
	struct prb_cfi_index index;

	(void)state;
	target.header.data = table;
	target.frames.data = frames;
	assert_int_equal(prb_cfi_index_read(&target.header, &memory, &index), PRB_CFI_OK);
	assert_int_equal(index.encoding, 0x3b);
	assert_true(index.count > 1000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	for (unsigned i = 0; i < LOOKUPS; i++)
		results[damaged_lookup(&target, table, frames, &index)]++;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);

	/* All results must have occurred, and the damage must be undone. */
	assert_true(results[PRB_CFI_OK] > LOOKUPS / 20);
	assert_true(results[PRB_CFI_NOT_FOUND] > LOOKUPS / 100);
	assert_true(results[PRB_CFI_BAD] > LOOKUPS / 100);
	assert_true(results[PRB_CFI_UNSUPPORTED] > LOOKUPS / 100);
	assert_memory_equal(frames, (const void *)(uintptr_t)original.frames.address,
			    original.frames.size);
	/* A lookup takes some 0.3 µs; even the worst of them must not take a thousand times that,
	 * on an emulated machine neither.
	 */
	assert_true(end.tv_sec - start.tv_sec < 60);
}

/* The first entries as if they were of the other format, and cut off anywhere. */
static void test_wrong_format_and_end(void **state)
{
	enum { PART = 2000 };

	(void)state;
	for (uint64_t size = 0; size < PART; size++) {
		prb_auto_free uint8_t *frames = copy_of(original.frames.address, size ? size : 1);
		struct hostile_target target = original;

		target.header.data = (const void *)(uintptr_t)original.header.address;
		target.frames.data = frames;
		target.frames.size = size;
		for (unsigned i = 0; i < 4; i++) {
			target.frames.debug_frame = i & 1;
			exercise_all(&target, EM_X86_64, i & 2, 100);
		}
	}
}

static int set_up(void **state)
{
	(void)state;
	return dl_iterate_phdr(find_libc, NULL) == 1 ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_damaged_libc),
		cmocka_unit_test(test_wrong_format_and_end),
	};

	return cmocka_run_group_tests(tests, set_up, NULL);
}
