/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dwarf/mem/mem.h"

#include <string.h>

#include "dwarf/base/checked.h"
#include "dwarf/base/cleanup.h"

struct prb_error *prb_mem_read_many(struct prb_mem *mem, struct prb_block *blocks, size_t count)
{
	if (mem->ops->read_many)
		return mem->ops->read_many(mem, blocks, count);

	for (size_t i = 0; i < count; i++) {
		struct prb_error *err =
			prb_mem_read(mem, blocks[i].address, blocks[i].buffer, blocks[i].length);

		blocks[i].ok = !err;
		if (err && !prb_error_catch(&err, PRB_ERROR_FAULT))
			return err;
	}
	return NULL;
}

struct prb_error *prb_mem_read_u8(struct prb_mem *mem, uint64_t address, uint8_t *ret)
{
	return prb_mem_read(mem, address, ret, sizeof(*ret));
}

struct prb_error *prb_mem_read_u32(struct prb_mem *mem, uint64_t address, uint32_t *ret)
{
	return prb_mem_read(mem, address, ret, sizeof(*ret));
}

struct prb_error *prb_mem_read_u64(struct prb_mem *mem, uint64_t address, uint64_t *ret)
{
	return prb_mem_read(mem, address, ret, sizeof(*ret));
}

struct prb_error *prb_mem_read_cstr(struct prb_mem *mem, uint64_t address, size_t max,
				    struct prb_str *ret)
{
	char chunk[256];

	for (size_t done = 0; done < max;) {
		/* Never across a page's end in one read: the next page may not exist. */
		size_t length = PRB_MIN(sizeof(chunk), 4096 - (size_t)((address + done) % 4096));

		PRB_TRY(prb_mem_read(mem, address + done, chunk, length));

		const char *nul = memchr(chunk, '\0', length);
		size_t used = nul ? (size_t)(nul - chunk) : length;

		if (done + used > max)
			break;
		prb_str_append(ret, chunk, used);
		if (nul)
			return ret->failed ? prb_error_nomem() : NULL;
		done += length;
	}
	return prb_error_create(PRB_ERROR_BAD_DATA, "string at %#llx has no end within %zu bytes",
				(unsigned long long)address, max);
}
