/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/mem/mem.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

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

struct prb_error *prb_mem_read_text(struct prb_mem *mem, uint64_t address, char *ret,
				    size_t *length)
{
	enum { PAGE = 4096, LINE = 64 /* what a redacted snapshot holds at least */ };
	size_t wanted = PRB_MIN(*length, PAGE - (size_t)(address % PAGE));
	struct prb_error *err = prb_mem_peek(mem, address, ret, wanted);

	if (wanted > LINE - address % LINE && prb_error_catch(&err, PRB_ERROR_FAULT)) {
		wanted = LINE - (size_t)(address % LINE);
		err = prb_mem_peek(mem, address, ret, wanted);
	}
	PRB_TRY(err);

	const char *nul = memchr(ret, '\0', wanted);
	*length = nul ? (size_t)(nul - ret) + 1 : wanted;
	return mem->ops->peek ? prb_mem_read(mem, address, ret, *length) : NULL;
}

struct prb_error *prb_mem_read_cstr(struct prb_mem *mem, uint64_t address, size_t max,
				    struct prb_str *ret)
{
	char chunk[256];

	for (size_t done = 0; done < max;) {
		size_t length = sizeof(chunk);

		PRB_TRY(prb_mem_read_text(mem, address + done, chunk, &length));

		bool end = !chunk[length - 1];
		size_t used = length - end;

		if (done + used > max)
			break;
		prb_str_append(ret, chunk, used);
		if (end)
			return ret->failed ? prb_error_nomem() : NULL;
		done += length;
	}
	return prb_error_create(PRB_ERROR_BAD_DATA, "string at %#llx has no end within %zu bytes",
				(unsigned long long)address, max);
}
