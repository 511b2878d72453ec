/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * _Py_DebugOffsets: from 3.13 on the interpreter begins _PyRuntime with a table of its own
 * offsets. The table's own layout differs per minor version; the numbers below are byte offsets
 * in it, as DWARF of Debian's builds has them.
 */
#include "python/layout/debug_offsets.h"

#include <stddef.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"

struct entry {
	uint16_t place; /* offsetof in struct prb_layout */
	uint16_t at;	/* byte offset in _Py_DebugOffsets */
};

#define AT(member, offset)                                  \
	{                                                   \
		offsetof(struct prb_layout, member), offset \
	}

static const struct entry offsets_3_13[] = {
	AT(runtime_size, 24),
	AT(runtime_finalizing, 32),
	AT(runtime_interpreters, 40),
	AT(interp_size, 48),
	AT(interp_id, 56),
	AT(interp_next, 64),
	AT(interp_threads, 72),
	AT(interp_gc_collecting, 80),
	AT(interp_gc, 80),
	AT(interp_modules, 88),
	AT(interp_sysdict, 96),
	AT(interp_gil, 112),
	AT(gil_locked, 136),
	AT(gil_holder, 144),
	AT(thread_size, 152),
	AT(thread_prev, 160),
	AT(thread_next, 168),
	AT(thread_interp, 176),
	AT(thread_current_frame, 184),
	AT(thread_id, 192),
	AT(thread_native_id, 200),
	AT(thread_datastack_chunk, 208),
	AT(thread_status, 216),
	AT(frame_size, 224),
	AT(frame_previous, 232),
	AT(frame_code, 240),
	AT(frame_position, 248),
	AT(frame_localsplus, 256),
	AT(frame_owner, 264),
	AT(code_size, 272),
	AT(code_filename, 280),
	AT(code_name, 288),
	AT(code_qualname, 296),
	AT(code_linetable, 304),
	AT(code_firstlineno, 312),
	AT(code_argcount, 320),
	AT(code_localsplusnames, 328),
	AT(code_localspluskinds, 336),
	AT(code_bytes, 344),
	AT(object_size, 352),
	AT(object_type, 360),
	AT(type_name, 376),
	AT(type_flags, 392),
	AT(tuple_items, 408),
	AT(var_size, 416),
	AT(list_items, 432),
	AT(bytes_data, 528),
	AT(unicode_state, 544),
	AT(unicode_length, 552),
	AT(unicode_ascii_size, 560),
};

static const struct entry offsets_3_14[] = {
	AT(runtime_size, 24),
	AT(runtime_finalizing, 32),
	AT(runtime_interpreters, 40),
	AT(interp_size, 48),
	AT(interp_id, 56),
	AT(interp_next, 64),
	AT(interp_threads, 72),
	AT(interp_threads_main, 80),
	AT(interp_gc_collecting, 88),
	AT(interp_gc, 88),
	AT(interp_modules, 96),
	AT(interp_sysdict, 104),
	AT(interp_gil, 120),
	AT(gil_locked, 144),
	AT(gil_holder, 152),
	AT(thread_size, 176),
	AT(thread_prev, 184),
	AT(thread_next, 192),
	AT(thread_interp, 200),
	AT(thread_current_frame, 208),
	AT(thread_id, 216),
	AT(thread_native_id, 224),
	AT(thread_datastack_chunk, 232),
	AT(thread_status, 240),
	AT(frame_size, 248),
	AT(frame_previous, 256),
	AT(frame_code, 264),
	AT(frame_position, 272),
	AT(frame_localsplus, 280),
	AT(frame_owner, 288),
	AT(frame_stack_top, 296),
	AT(frame_tlbc_index, 304),
	AT(code_size, 312),
	AT(code_filename, 320),
	AT(code_name, 328),
	AT(code_qualname, 336),
	AT(code_linetable, 344),
	AT(code_firstlineno, 352),
	AT(code_argcount, 360),
	AT(code_localsplusnames, 368),
	AT(code_localspluskinds, 376),
	AT(code_bytes, 384),
	AT(code_tlbc, 392),
	AT(object_size, 400),
	AT(object_type, 408),
	AT(type_name, 424),
	AT(type_flags, 440),
	AT(tuple_items, 456),
	AT(var_size, 464),
	AT(list_items, 480),
	AT(bytes_data, 608),
	AT(unicode_state, 624),
	AT(unicode_length, 632),
	AT(unicode_ascii_size, 640),
	AT(generator_frame, 680),
	AT(generator_frame_state, 688),
};

static const struct entry offsets_3_15[] = {
	AT(runtime_size, 24),
	AT(runtime_finalizing, 32),
	AT(runtime_interpreters, 40),
	AT(interp_size, 48),
	AT(interp_id, 56),
	AT(interp_next, 64),
	AT(interp_threads, 72),
	AT(interp_threads_main, 80),
	AT(interp_gc_collecting, 88),
	AT(interp_gc, 88),
	AT(interp_modules, 96),
	AT(interp_sysdict, 104),
	AT(interp_gil, 120),
	AT(gil_locked, 144),
	AT(gil_holder, 152),
	AT(thread_size, 176),
	AT(thread_prev, 184),
	AT(thread_next, 192),
	AT(thread_interp, 200),
	AT(thread_current_frame, 208),
	AT(thread_id, 240),
	AT(thread_native_id, 248),
	AT(thread_datastack_chunk, 256),
	AT(thread_status, 264),
	AT(frame_size, 312),
	AT(frame_previous, 320),
	AT(frame_code, 328),
	AT(frame_position, 336),
	AT(frame_localsplus, 344),
	AT(frame_owner, 352),
	AT(frame_stack_top, 360),
	AT(frame_tlbc_index, 368),
	AT(code_size, 376),
	AT(code_filename, 384),
	AT(code_name, 392),
	AT(code_qualname, 400),
	AT(code_linetable, 408),
	AT(code_firstlineno, 416),
	AT(code_argcount, 424),
	AT(code_localsplusnames, 432),
	AT(code_localspluskinds, 440),
	AT(code_bytes, 448),
	AT(code_tlbc, 456),
	AT(object_size, 464),
	AT(object_type, 472),
	AT(type_name, 488),
	AT(type_flags, 504),
	AT(type_basicsize, 512),
	AT(type_dictoffset, 520),
	AT(tuple_items, 552),
	AT(var_size, 560),
	AT(list_items, 576),
	AT(bytes_data, 704),
	AT(unicode_state, 720),
	AT(unicode_length, 728),
	AT(unicode_ascii_size, 736),
	AT(unicode_compact_size, 744),
	AT(gc_stats, 784),
	AT(generator_frame, 808),
	AT(generator_frame_state, 816),
};
/* Values that are not a plain entry. */
static const struct table {
	uint16_t version;
	const struct entry *entries;
	size_t count;
	uint16_t size;		/* of the whole table */
	uint16_t gc_collecting; /* within the interpreter's gc structure */
	uint16_t gil;		/* the interpreter's own GIL, to which locked and holder belong */
} tables[] = {
	{0x030d, offsets_3_13, PRB_ARRAY_SIZE(offsets_3_13), 584, 576, 120},
	{0x030e, offsets_3_14, PRB_ARRAY_SIZE(offsets_3_14), 760, 656, 128},
	{0x030f, offsets_3_15, PRB_ARRAY_SIZE(offsets_3_15), 888, 760, 128},
};

enum { MAX_SIZE = 1024, MAX_OFFSET = 1 << 24 /* no structure of CPython is 16 MiB large */ };

static uint64_t word(const uint8_t *data, unsigned at)
{
	uint64_t value;

	memcpy(&value, data + at, sizeof(value));
	return value;
}

static struct prb_error *fill(const struct table *table, const uint8_t *data,
			      struct prb_layout *layout)
{
	for (size_t i = 0; i < table->count; i++) {
		uint64_t value = word(data, table->entries[i].at);

		if (value >= MAX_OFFSET)
			return prb_error_create(
				PRB_ERROR_BAD_DATA,
				"_Py_DebugOffsets holds %#llx at byte %u, which is no offset",
				(unsigned long long)value, table->entries[i].at);
		*(int32_t *)((char *)layout + table->entries[i].place) = (int32_t)value;
	}

	uint64_t collecting = word(data, table->gc_collecting), gil = word(data, table->gil);
	if (collecting >= MAX_OFFSET || gil >= MAX_OFFSET)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"_Py_DebugOffsets holds an impossible place of the GIL or "
					"of the garbage collector");
	layout->gc_collecting = (int32_t)collecting;
	layout->interp_gc_collecting += (int32_t)collecting;
	layout->gil_locked -= (int32_t)gil;
	layout->gil_holder -= (int32_t)gil;
	return NULL;
}

bool prb_debug_offsets_present(struct prb_mem *mem, uint64_t runtime, uint32_t *hexversion)
{
	uint8_t head[24];
	prb_auto_error struct prb_error *err = prb_mem_read(mem, runtime, head, sizeof(head));

	if (err || memcmp(head, "xdebugpy", 8))
		return false;

	uint64_t version = word(head, 8);
	*hexversion = (uint32_t)version;
	return version >> 24 == 3 && (version >> 16 & 0xff) >= 13;
}

struct prb_error *prb_debug_offsets_read(struct prb_mem *mem, uint64_t runtime,
					 struct prb_layout *layout)
{
	uint8_t data[MAX_SIZE];

	for (size_t i = 0; i < PRB_ARRAY_SIZE(tables); i++) {
		if (tables[i].version != layout->version)
			continue;
		PRB_TRY(prb_mem_read(mem, runtime, data, tables[i].size));
		layout->free_threaded = word(data, 16) != 0;
		layout->source = PRB_LAYOUT_DEBUG_OFFSETS;
		return fill(&tables[i], data, layout);
	}
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "no table of offsets for Python %u.%u",
				layout->version >> 8, layout->version & 0xff);
}

struct prb_error *prb_debug_offsets_remote_exec(struct prb_mem *mem, uint64_t runtime,
						struct prb_remote_exec_offsets *ret)
{
	enum { FIRST = 14, BREAKER = 0, SUPPORT, ENABLED, PENDING, PATH, PATH_SIZE, COUNT };
	uint64_t at[COUNT];
	uint32_t version = 0;

	for (size_t i = 0;
	     i < PRB_ARRAY_SIZE(tables) && prb_debug_offsets_present(mem, runtime, &version); i++) {
		if (tables[i].version != version >> 16 || (tables[i].version & 0xff) < FIRST)
			continue;
		/* The last member. */
		PRB_TRY(prb_mem_read(mem, runtime + tables[i].size - sizeof(at), at, sizeof(at)));
		for (size_t j = 0; j < COUNT; j++)
			if (at[j] >= MAX_OFFSET)
				return prb_error_create(PRB_ERROR_BAD_DATA,
							"_Py_DebugOffsets holds an impossible "
							"place of the debugger's support");
		*ret = (struct prb_remote_exec_offsets){
			.eval_breaker = at[BREAKER],
			.enabled = at[ENABLED],
			.pending = at[SUPPORT] + at[PENDING],
			.path = at[SUPPORT] + at[PATH],
			.path_size = at[PATH_SIZE],
		};
		return NULL;
	}
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "sys.remote_exec() came with Python 3.14");
}
