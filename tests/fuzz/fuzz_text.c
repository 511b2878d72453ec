/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Any text as /proc files of a process: the memory map, the state and system call of a thread (see
 * input.h for their form), and its wait, in memory that repeats the input. Any bytes as records of
 * resolved lines. The first byte chooses.
 */
#include "tests/fuzz/input.h"

#include "dwarf/lines/record.h"
#include "dwarf/lines/runs.h"
#include "target/task.h"

static void read_maps(struct input *input)
{
	prb_auto_free char *text = input_text(input);
	struct prb_maps maps;
	struct prb_error *err = prb_maps_parse(text, &maps);

	if (!err) {
		for (size_t i = 0; i < maps.list.count; i++) {
			const struct prb_map *map = &maps.list.items[i];

			if (map->start >= map->end || (i && map->start < map[-1].end) ||
			    prb_maps_find(&maps, map->start) != map ||
			    prb_maps_find(&maps, map->end - 1) != map)
				abort();
		}
		prb_maps_deinit(&maps);
	}
	prb_error_destroy(err);
}

/* A live process's kernel is queried directly; no process has this pid. */
enum { NO_PID = 0x7ffffff0 };

static void read_task(struct input *input, enum prb_target_kind kind)
{
	struct repeated_memory memory = repeat(input, false);
	struct fact_target facts = fact_target(*input, kind, &memory.mem);
	struct prb_task task;
	struct prb_wait wait;

	facts.target.pid = NO_PID;
	struct prb_error *err = prb_task_read(&facts.target, 1, &task);

	if (!err) {
		(void)prb_syscall_name(facts.target.machine, task.syscall);
		err = prb_task_wait(&facts.target, &task, &wait);
		if (!err)
			prb_wait_deinit(&wait);
	}
	prb_error_destroy(err);
}

/* Parsed records must be written as they were. */
static void read_lines(const void *data, size_t size)
{
	prb_auto_str struct prb_str again = {};
	struct prb_lines lines = {}, same = {};
	bool had_table, had;

	if (prb_line_record_decode(data, size, &lines, &had_table)) {
		prb_line_record_encode(&lines, had_table, &again);
		if (!prb_line_record_decode(again.data, again.length, &same, &had) ||
		    had != had_table || same.list.count != lines.list.count)
			abort();
	}
	prb_lines_deinit(&lines);
	prb_lines_deinit(&same);
}

static void read_runs(struct input *input)
{
	const void *record;
	size_t length;

	for (uint64_t at = 0; at < 64; at++)
		if (prb_line_runs_find(input->data, input->size, at, &record, &length))
			read_lines(record, length);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};

	switch (input_u8(&input) & 7) {
	case 0:
		read_maps(&input);
		break;
	case 1:
		read_task(&input, PRB_TARGET_SNAPSHOT);
		break;
	case 2:
		read_task(&input, PRB_TARGET_PROCESS);
		break;
	case 3:
		read_lines(input.data, input.size);
		break;
	default:
		read_runs(&input);
		break;
	}
	return 0;
}
