/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a jitdump file, read at once and as it grows: the result must not depend on that. */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/fuzz/input.h"
#include "tests/fuzz/perf_maps.h"

#include "profile/native/jitdump.h"

enum { PID = 42 };

static int file_of(const uint8_t *data, size_t size)
{
	int fd = memfd_create("jitdump", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	return fd;
}

static void grow(struct prb_jitdump *dump, const uint8_t *data, size_t size)
{
	uint64_t before;

	if (size && pwrite(dump->names.fd, data, size, lseek(dump->names.fd, 0, SEEK_END)) < 0)
		abort();
	do {
		before = dump->names.read;
		if (prb_jitdump_read(dump))
			abort();
	} while (dump->names.read > before);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	size_t cut = input_u32(&input);
	struct prb_jitdump whole, pieces;

	cut = input.size ? cut % input.size : 0;
	prb_jitdump_init(&whole);
	prb_jitdump_init(&pieces);
	whole.pid = pieces.pid = PID;
	whole.names.fd = file_of(input.data, input.size);
	pieces.names.fd = file_of(input.data, cut);
	grow(&whole, NULL, 0);
	grow(&pieces, NULL, 0);
	grow(&pieces, input.data + cut, input.size - cut);
	compare_maps(&whole.names, &pieces.names);
	prb_jitdump_deinit(&whole);
	prb_jitdump_deinit(&pieces);
	return 0;
}
