/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a jitdump file, read at once and as it grows: the result must not depend on that. */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/input.h"

#include "profile/native/jitdump.h"

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static void grow(struct prb_jitdump *dump, const uint8_t *data, size_t size)
{
	if (size && pwrite(dump->names.fd, data, size, lseek(dump->names.fd, 0, SEEK_END)) < 0)
		abort();
	if (prb_jitdump_read(dump))
		abort();
}

static void compare(const struct prb_jitdump *a, const struct prb_jitdump *b, uint64_t address)
{
	const char *x = prb_perf_map_find(&a->names, address);
	const char *y = prb_perf_map_find(&b->names, address);

	if (!x != !y || (x && strcmp(x, y) != 0))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t cut = input_u32(&input);
	struct prb_jitdump whole, pieces;

	cut = input.size ? cut % input.size : 0;
	prb_jitdump_init(&whole);
	prb_jitdump_init(&pieces);
	whole.names.fd = file_of(input.data, input.size);
	pieces.names.fd = file_of(input.data, cut);
	grow(&whole, NULL, 0);
	grow(&pieces, NULL, 0);
	grow(&pieces, input.data + cut, input.size - cut);
	if (whole.names.symbols.count != pieces.names.symbols.count)
		abort();
	for (size_t i = 0; i < whole.names.symbols.count; i++) {
		const struct prb_perf_symbol *symbol = &whole.names.symbols.items[i];

		compare(&whole, &pieces, symbol->start);
		compare(&whole, &pieces, symbol->start + symbol->size - 1);
	}
	prb_jitdump_deinit(&whole);
	prb_jitdump_deinit(&pieces);
	return 0;
}
