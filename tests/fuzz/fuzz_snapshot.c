/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any bytes as a snapshot. If the first byte is odd the rest is a whole file; if it is even the
 * rest is the content of one, which is compressed and given right sizes and checksums, so that
 * what is behind those is reached too. The four bytes before the content are its record count.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "dwarf/base/cleanup.h"
#include "dwarf/base/str.h"
#include "dwarf/snapshot/format.h"
#include "dwarf/snapshot/snapshot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_wrapped(int fd, const uint8_t *data, size_t size)
{
	uint32_t records = 0;
	size_t room = ZSTD_compressBound(size);
	prb_auto_free char *frame = malloc(room);

	if (size < sizeof(records) || !frame)
		return;
	memcpy(&records, data, sizeof(records));
	data += sizeof(records);
	size -= sizeof(records);

	size_t stored = ZSTD_compress(frame, room, data, size, 1);
	struct snapshot_header header = {
		.format = SNAPSHOT_FORMAT,
		.header_size = sizeof(header),
		.stored_size = stored,
		.body_size = size,
		.record_count = records,
		.stored_crc = (uint32_t)crc32(0, (const Bytef *)frame, (uInt)stored),
	};
	memcpy(header.magic, snapshot_magic, sizeof(header.magic));
	header.crc =
		(uint32_t)crc32(0, (const Bytef *)&header, offsetof(struct snapshot_header, crc));
	if (write(fd, &header, sizeof(header)) < 0 || write(fd, frame, stored) < 0)
		return;
}

static void ask(struct prb_target *t)
{
	static const char *const names[] = {"maps", "cmdline", "", "task/1/stat", "a"};
	prb_auto_str struct prb_str text = {};
	const struct prb_map *map;
	struct prb_regs regs;
	char page[4096];

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		prb_error_destroy(prb_target_read_file(t, &text, "%s", names[i]));
		prb_error_destroy(prb_target_read_link(t, &text, "%s", names[i]));
		prb_error_destroy(prb_target_list(t, &text, "%s", names[i]));
		prb_target_recall(t, names[i], &text);
	}
	for (pid_t tid = 0; tid < 3; tid++) {
		struct prb_mem *mem = prb_snapshot_thread_mem(t, tid);

		prb_error_destroy(prb_target_registers(t, tid, &regs));
		if (!mem)
			mem = t->mem;
		for (uint64_t address = 0; address < 5 * sizeof(page); address += 1000)
			prb_error_destroy(prb_mem_read(mem, address, page, sizeof(page)));
	}
	size_t asked = 0;
	prb_vec_each (map, &t->maps.list) {
		int fd = -1;
		struct prb_error *err = prb_target_open_map(t, map, &fd);

		if (!err)
			close(fd);
		prb_error_destroy(err);
		if (++asked == 20)
			break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	prb_auto_close int fd = memfd_create("snapshot", MFD_CLOEXEC);
	struct prb_target *t;
	char path[64];

	if (fd < 0 || !size)
		return 0;
	if (data[0] & 1) {
		if (write(fd, data + 1, size - 1) != (ssize_t)size - 1)
			return 0;
	} else {
		write_wrapped(fd, data + 1, size - 1);
	}
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct prb_error *err = prb_target_open_snapshot(path, &t);
	prb_error_destroy(err);
	if (err)
		return 0;
	ask(t);
	prb_target_destroy(t);
	return 0;
}
