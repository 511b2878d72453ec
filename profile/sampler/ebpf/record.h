/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the BPF program and its loader share: the layout that it walks by, and its records.
 *
 * Internal to profile/sampler/. Included by the BPF program, so without headers of ours.
 */
#ifndef PRB_PROFILE_SAMPLER_EBPF_RECORD_H
#define PRB_PROFILE_SAMPLER_EBPF_RECORD_H

#ifndef __bpf__
#include <stdint.h>
#else
typedef __u64 uint64_t;
typedef __u32 uint32_t;
typedef __s32 int32_t;
#endif

enum {
	PRB_EBPF_FRAMES = 2048, /* of one stack; a deeper one is not complete */

	/* flags of a record */
	PRB_EBPF_ENDED = 1,	/* the chain of frames was followed to its end */
	PRB_EBPF_DEEP = 2,	/* there are more frames */
	PRB_EBPF_RESTARTED = 4, /* an eval loop was just being entered: begun at its caller */
	PRB_EBPF_CYCLE = 8,
	PRB_EBPF_DOUBT = 32,   /* the chain may be one of an earlier call */
	PRB_EBPF_STRANGE = 16, /* the state found is not the thread's own */
};

/** Offsets; all but `slot` in structures of CPython. Negative: the version has no such member. */
struct prb_ebpf_layout {
	int32_t slot; /**< of the pointer to the thread state, from the thread pointer on */
	int32_t thread_id;
	int32_t thread_frame; /**< of the innermost frame, or of the cframe */
	int32_t cframe_frame; /**< in a cframe: of its frame; `previous` follows it */
	int32_t frame_code, frame_previous, frame_position, frame_owner;
	int32_t position_size; /**< 4 or 8 bytes */
	uint32_t tag_mask;     /**< bits of a reference that are no address */
	int32_t code_name, code_file, code_lines, code_first_line;
	int32_t name_hash;
	int32_t gil_locked, gil_holder;
	/* Of a generator and its resumer: known where one of them may have no link (3.12). */
	int32_t generator_owner, generator_frame;
	int32_t frame_stack_top, frame_stack, code_variables, code_stack_size;
	int32_t unused;
	uint64_t gil; /**< its address; 0: unknown */
};

struct prb_ebpf_frame {
	uint64_t address, code, position;
	int32_t owner;
	/* The identity of the code object at that instant. */
	uint32_t first_line;
	uint64_t file, lines, name_hash;
};

struct prb_ebpf_record {
	uint64_t time;		     /**< CLOCK_MONOTONIC, ns */
	uint64_t pthread;	     /**< the thread pointer, which is pthread_self() */
	uint64_t state;		     /**< the thread state; 0: it has none */
	uint64_t ran, waited, turns; /**< as in /proc/PID/task/TID/schedstat */
	uint64_t wanted;	     /**< 3.11, 3.12: the frame of the eval loop outside; 0: none */
	uint32_t gil;		     /**< 1: it holds the GIL */
	uint32_t count, flags;
	uint32_t unused;
	struct prb_ebpf_frame frames[PRB_EBPF_FRAMES]; /**< innermost first */
};

#endif
