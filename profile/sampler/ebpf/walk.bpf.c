/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Runs in the kernel, in the context of the sampled thread, when its clock ticks: copies the chain
 * of Python frames. Judges nothing; that is for the loader.
 */
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <stdbool.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "profile/sampler/ebpf/record.h"

/* Members of the kernel's structures, found by their names when the program is loaded. */
struct thread_struct {
#ifdef __TARGET_ARCH_arm64
	struct {
		unsigned long tp_value;
	} uw;
#else
	unsigned long fsbase;
#endif
} __attribute__((preserve_access_index));

struct sched_entity {
	__u64 sum_exec_runtime;
} __attribute__((preserve_access_index));

struct sched_info {
	unsigned long pcount;
	unsigned long long run_delay;
} __attribute__((preserve_access_index));

struct task_struct {
	struct thread_struct thread;
	struct sched_entity se;
	struct sched_info sched_info;
} __attribute__((preserve_access_index));

const volatile struct prb_ebpf_layout layout = {};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 << 20);
} ring SEC(".maps");

/* By processor, since values of per-CPU maps are at most 32 KiB. A tick is never interrupted by
 * another one. The loader sets the number. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct prb_ebpf_record);
} scratch SEC(".maps");

/* Records that the ring had no room for. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} lost SEC(".maps");

struct walk {
	__u64 next, wanted; /* wanted: a frame that the chain has to meet */
	__u32 count, flags;
	__u32 met, turn;
	__u64 finger; /* Brent's guard against cycles: the frame at the last power of two */
};

static __always_inline __u64 read64(__u64 address)
{
	__u64 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (const void *)address);
	return value;
}

static __always_inline __u32 read32(__u64 address)
{
	__u32 value = 0;

	bpf_probe_read_user(&value, sizeof(value), (const void *)address);
	return value;
}

static __always_inline void identify(struct prb_ebpf_frame *frame)
{
	__u64 code = frame->code;

	frame->file = read64(code + layout.code_file);
	frame->lines = read64(code + layout.code_lines);
	frame->first_line = read32(code + layout.code_first_line);
	frame->name_hash = read64(read64(code + layout.code_name) + layout.name_hash);
}

static __always_inline struct prb_ebpf_record *find_scratch(void)
{
	__u32 processor = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratch, &processor);
}

static long step(__u32 i, struct walk *w)
{
	__u32 n = w->count;
	struct prb_ebpf_record *record = find_scratch();
	struct prb_ebpf_frame *frame;
	__u64 code, at = w->next;
	__u8 owner = 0xff;

	if (!record)
		return 1;
	if (!at) {
		w->flags |= PRB_EBPF_ENDED;
		return 1;
	}
	if (at == w->finger) {
		w->flags |= PRB_EBPF_CYCLE;
		return 1;
	}
	if (n >= w->turn) {
		w->finger = at;
		w->turn = n ? n * 2 : 1;
	}
	if (n >= PRB_EBPF_FRAMES) {
		w->flags |= PRB_EBPF_DEEP;
		return 1;
	}
	if (at == w->wanted)
		w->met = 1;
	/* The first read that fails ends the chain without its end. */
	if (bpf_probe_read_user(&code, sizeof(code), (const void *)(at + layout.frame_code)))
		return 1;
	frame = &record->frames[n];
	frame->address = at;
	frame->code = code & ~(__u64)layout.tag_mask;
	frame->position = layout.position_size == 4
				  ? (__u64)(__s64)(__s32)read32(at + layout.frame_position)
				  : read64(at + layout.frame_position);
	if (layout.frame_owner >= 0)
		bpf_probe_read_user(&owner, 1, (const void *)(at + layout.frame_owner));
	frame->owner = (__s8)owner;
	identify(frame);
	w->count = n + 1;
	w->next = read64(at + layout.frame_previous);
	return 0;
}

static __always_inline void follow(struct prb_ebpf_record *record, __u64 first, __u64 wanted)
{
	struct walk w = {.next = first, .wanted = wanted};

	bpf_loop(PRB_EBPF_FRAMES + 1, step, &w, 0);
	/*
	 * 3.11 and 3.12: an eval loop that is being entered has linked its own cframe already, and
	 * put no frame into it. What is there is garbage, or a frame of an earlier call. Greenlets
	 * look the same, so only a chain that cannot be is begun anew.
	 */
	if (wanted && !w.met && w.flags & PRB_EBPF_ENDED)
		w.flags |= PRB_EBPF_DOUBT;
	else if (wanted && !w.met && !(w.flags & PRB_EBPF_DEEP)) {
		w = (struct walk){.next = wanted, .flags = PRB_EBPF_RESTARTED};
		bpf_loop(PRB_EBPF_FRAMES + 1, step, &w, 0);
	}
	record->count = w.count;
	record->flags |= w.flags;
}

/* The general registers of the interrupted code, all of which a compiler may keep a frame in. */
#ifdef __TARGET_ARCH_arm64
enum { REGISTERS = 29 };
#define IN_USER_CODE(regs) (!((regs)->pstate & 0xf))
#else
enum { REGISTERS = 15 };
#define IN_USER_CODE(regs) ((regs)->cs & 3)
#endif

/* What a frame that waits for a call has on top of its stack: the generator that it resumes. A
 * frame that runs has no top in memory: the top is in a register, too. */
static __always_inline bool resumes(__u64 frame, __u64 generator, __u64 top)
{
	enum { MOST = 1 << 20 };
	__u64 code, stack = frame + layout.frame_stack;
	__u32 count, size;

	if (frame < 4096 || frame % 8)
		return false;
	count = read32(frame + layout.frame_stack_top);
	if (count && count < MOST)
		return read64(stack + 8 * ((__u64)count - 1)) == generator;
	if (count != (__u32)-1 || !top)
		return false;
	code = read64(frame + layout.frame_code);
	size = read32(code + layout.code_variables);
	if (size >= MOST || top <= stack + 8 * (__u64)size)
		return false;
	size += read32(code + layout.code_stack_size);
	return size < MOST && top <= stack + 8 * (__u64)size;
}

struct search {
	__u64 registers[REGISTERS];
	__u64 self, generator; /* the frame of the generator, and its object */
	__u64 top, found;
};

static long find_top(__u32 i, struct search *s)
{
	__u64 value = i < REGISTERS ? s->registers[i] : 0;

	if (value >= 4096 && !(value % 8) && read64(value - 8) == s->generator)
		s->top = value;
	return s->top != 0;
}

static long find_frame(__u32 i, struct search *s)
{
	__u64 value = i < REGISTERS ? s->registers[i] : 0;

	if (value != s->self && resumes(value, s->generator, s->top))
		s->found = value;
	return s->found != 0;
}

/*
 * 3.12: while a generator is resumed or yields, there are some instructions in which it is the
 * innermost frame and has no link to the resumer, which is in a register. The resumer has that
 * generator on top of its stack, and is on the chain that the eval loop outside belongs to.
 */
static __always_inline void find_resumer(struct bpf_perf_event_data *context,
					 struct prb_ebpf_record *record)
{
	struct walk w = {.wanted = record->wanted, .count = 1};
	struct search s = {.self = record->frames[0].address};

	if (layout.generator_frame < 0 || record->count != 1 || !(record->flags & PRB_EBPF_ENDED) ||
	    record->frames[0].owner != layout.generator_owner || !IN_USER_CODE(&context->regs))
		return;
	s.generator = s.self - layout.generator_frame;
#pragma unroll
	for (int i = 0; i < REGISTERS; i++)
		s.registers[i] = ((const __u64 *)&context->regs)[i];
	bpf_loop(REGISTERS, find_top, &s, 0);
	bpf_loop(REGISTERS, find_frame, &s, 0);
	if (!s.found)
		return;
	w.next = s.found;
	bpf_loop(PRB_EBPF_FRAMES + 1, step, &w, 0);
	if (!(w.flags & PRB_EBPF_ENDED) || (w.wanted && !w.met))
		return;
	record->count = w.count;
	record->flags = w.flags;
}

/* The GIL holder's state is in the lock itself. */
static __always_inline __u32 holds_gil(__u64 state)
{
	return layout.gil && layout.gil_locked >= 0 && layout.gil_holder >= 0 &&
	       read32(layout.gil + layout.gil_locked) == 1 &&
	       read64(layout.gil + layout.gil_holder) == state;
}

static __always_inline void begin(struct prb_ebpf_record *record)
{
	__u64 first = read64(record->state + layout.thread_frame), wanted = 0, before;

	if (layout.cframe_frame >= 0) {
		__u64 cframe = first;

		first = read64(cframe + layout.cframe_frame);
		before = read64(cframe + layout.cframe_frame + 8);
		wanted = before ? read64(before + layout.cframe_frame) : 0;
		if (!first) {
			first = wanted;
			wanted = 0;
		}
	}
	record->wanted = wanted;
	record->gil = holds_gil(record->state);
	follow(record, first, wanted);
}

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *context)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	__u32 zero = 0, size;
	struct prb_ebpf_record *record = find_scratch();
	__u64 *count;

	if (!record)
		return 0;
	record->time = bpf_ktime_get_ns();
#ifdef __TARGET_ARCH_arm64
	record->pthread = BPF_CORE_READ(task, thread.uw.tp_value);
#else
	record->pthread = BPF_CORE_READ(task, thread.fsbase);
#endif
	record->ran = BPF_CORE_READ(task, se.sum_exec_runtime);
	record->waited = BPF_CORE_READ(task, sched_info.run_delay);
	record->turns = BPF_CORE_READ(task, sched_info.pcount);
	record->count = record->flags = record->gil = 0;
	record->wanted = 0;
	record->state = read64(record->pthread + layout.slot);
	if (record->state && read64(record->state + layout.thread_id) != record->pthread)
		record->flags = PRB_EBPF_STRANGE;
	else if (record->state) {
		begin(record);
		find_resumer(context, record);
	}
	size = record->count;
	if (size > PRB_EBPF_FRAMES)
		return 0;
	size = __builtin_offsetof(struct prb_ebpf_record, frames) +
	       size * sizeof(struct prb_ebpf_frame);
	if (bpf_ringbuf_output(&ring, record, size, BPF_RB_NO_WAKEUP)) {
		count = bpf_map_lookup_elem(&lost, &zero);
		if (count)
			__sync_fetch_and_add(count, 1);
	}
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
