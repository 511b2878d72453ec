/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <pthread.h>
#include <string.h>
#include <sys/uio.h>

#include "agent/inside/libc.h"
#include "agent/sites/private.h"

enum { CHAIN_FRAMES, CHAIN_CFRAME, CHAIN_DIRECT, MOST_SHIMS = 4096 };

static const struct prba_python_table *const py = &prba_python;

uint64_t prba_sites_recipe[PRB_SITES_RECIPE];

#define recipe prba_sites_recipe

static bool read_through_kernel(uint64_t address, void *ret, size_t size)
{
	struct iovec here = {ret, size}, there = {(void *)(uintptr_t)address, size};

	return syscall(SYS_process_vm_readv, getpid(), &here, 1, &there, 1, 0) == (long)size;
}

static bool load(uint64_t address, void *ret, size_t size, bool careful)
{
	if (careful)
		return read_through_kernel(address, ret, size);
	memcpy(ret, (const void *)(uintptr_t)address, size);
	return true;
}

static bool load64(uint64_t address, uint64_t *ret, bool careful)
{
	return load(address, ret, sizeof(*ret), careful);
}

const void *prba_sites_thread(void)
{
	const void *thread = py->PyThreadState_GetUnchecked    ? py->PyThreadState_GetUnchecked()
			     : py->_PyThreadState_UncheckedGet ? py->_PyThreadState_UncheckedGet()
							       : NULL;
	uint64_t at = (uint64_t)(uintptr_t)thread, id, interp;

	if (!thread)
		return NULL;
	/* Before 3.12 it is the GIL holder's thread state, which need not be this thread's. */
	load64(at + recipe[PRB_SITES_THREAD_ID], &id, false);
	load64(at + recipe[PRB_SITES_THREAD_INTERP], &interp, false);
	return id == (uint64_t)pthread_self() && interp == recipe[PRB_SITES_INTERP] ? thread : NULL;
}

/**
 * 3.11 and 3.12: an eval loop that is just being entered has linked its cframe, and has put no
 * frame into it. The one before says where Python is.
 */
static bool first_of_cframe(uint64_t thread, uint64_t cframe, bool careful, uint64_t *ret)
{
	*ret = 0;
	for (int i = 0; i < 2 && cframe && !*ret; i++) {
		uint64_t place = cframe + recipe[PRB_SITES_CFRAME_FRAME];

		if (!load64(place, ret, careful))
			return false;
		if (*ret || cframe - thread < recipe[PRB_SITES_THREAD_SIZE])
			return true;
		if (!load64(place + sizeof(place), &cframe, careful))
			return false;
	}
	return true;
}

static bool first_frame(uint64_t thread, bool careful, uint64_t *ret)
{
	if (!load64(thread + recipe[PRB_SITES_FIRST_FRAME], ret, careful))
		return false;
	return recipe[PRB_SITES_CHAIN] != CHAIN_CFRAME ||
	       first_of_cframe(thread, *ret, careful, ret);
}

/** 3.11: whether it is the first frame of an eval loop. */
static bool mark_entry(uint64_t frame, bool careful, uint64_t *word)
{
	uint8_t entry = 0;

	if (!recipe[PRB_SITES_NATIVE] || !recipe[PRB_SITES_ENTRY])
		return true;
	if (!load(frame + recipe[PRB_SITES_ENTRY], &entry, 1, careful))
		return false;
	*word |= entry != 0;
	return true;
}

/** Free-threaded builds run copies of the bytecode; the reader sees the position in the original.
 */
static bool in_the_original(uint64_t frame, uint64_t code, bool careful, uint64_t *position)
{
	uint64_t copies, start;
	uint32_t copy;

	if (!recipe[PRB_SITES_COPY])
		return true;
	if (!load(frame + recipe[PRB_SITES_COPY], &copy, sizeof(copy), careful))
		return false;
	if (!copy)
		return true;
	if (!load64(code + recipe[PRB_SITES_COPIES], &copies, careful) ||
	    !load64(copies + sizeof(copies) * (1 + (uint64_t)copy), &start, careful))
		return false;
	*position += code + recipe[PRB_SITES_BYTES] - start;
	return true;
}

/** One frame's words; *shim: it is none of Python's. */
static bool read_frame(uint64_t frame, bool careful, uint64_t words[2], uint64_t *previous,
		       bool *shim)
{
	int32_t position = 0;
	uint8_t owner = 0;

	if (!load64(frame + recipe[PRB_SITES_CODE], &words[0], careful) ||
	    !load64(frame + recipe[PRB_SITES_PREVIOUS], previous, careful))
		return false;
	words[0] &= ~recipe[PRB_SITES_TAGS];
	if (recipe[PRB_SITES_HAS_OWNER] &&
	    !load(frame + recipe[PRB_SITES_OWNER], &owner, 1, careful))
		return false;
	*shim = !words[0] || owner >= recipe[PRB_SITES_SHIM];
	if (*shim) {
		words[0] = 0;
		words[1] = frame;
		return true;
	}
	if (recipe[PRB_SITES_POSITION_SIZE] == sizeof(uint64_t))
		return load64(frame + recipe[PRB_SITES_POSITION], &words[1], careful) &&
		       in_the_original(frame, words[0], careful, &words[1]) &&
		       mark_entry(frame, careful, &words[0]);
	if (!load(frame + recipe[PRB_SITES_POSITION], &position, sizeof(position), careful))
		return false;
	words[1] = (uint64_t)(int64_t)position;
	return true;
}

bool prba_sites_walk(const void *thread, bool careful, struct prba_sites_stack *ret)
{
	uint64_t frame;

	ret->count = 0;
	ret->more = false;
	if (!first_frame((uint64_t)(uintptr_t)thread, careful, &frame))
		return false;
	for (int steps = 0; frame && steps < MOST_SHIMS; steps++) {
		uint64_t words[2];
		bool shim;

		ret->more = ret->count == PRB_SITES_FRAMES;
		if (ret->more)
			return true;
		if (!read_frame(frame, careful, words, &frame, &shim))
			return false;
		if (shim && !recipe[PRB_SITES_NATIVE])
			continue;
		memcpy(ret->words + 2 * ret->count++, words, sizeof(words));
	}
	return true;
}
