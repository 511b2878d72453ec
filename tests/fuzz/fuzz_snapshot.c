/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a snapshot: an error, or a target that answers whatever is asked. */
#include "tests/fuzz/snapshot_file.h"

#include "base/str.h"

static void ask_facts(struct prb_target *t)
{
	static const char *const names[] = {"maps", "cmdline", "", "task/1/stat", "task", "exe"};
	prb_auto_str struct prb_str text = {};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++) {
		prb_error_destroy(prb_target_read_file(t, &text, "%s", names[i]));
		prb_error_destroy(prb_target_read_link(t, &text, "%s", names[i]));
		prb_error_destroy(prb_target_list(t, &text, "%s", names[i]));
		prb_target_recall(t, names[i], &text);
	}
}

static void ask_threads(struct prb_target *t)
{
	struct prb_regs regs;
	char page[PRB_PAGE_SIZE];

	for (pid_t tid = 0; tid < 3; tid++) {
		struct prb_mem *mem = prb_snapshot_thread_mem(t, tid ? t->pid + tid - 1 : 0);

		prb_error_destroy(prb_target_registers(t, t->pid + tid, &regs));
		if (!mem)
			mem = t->mem;
		for (uint64_t address = 0; address < 5 * sizeof(page); address += 1000)
			prb_error_destroy(prb_mem_read(mem, address, page, sizeof(page)));
	}
}

static void ask_maps(struct prb_target *t)
{
	const struct prb_map *map;
	size_t asked = 0;
	char page[PRB_PAGE_SIZE];

	prb_vec_each (map, &t->maps.list) {
		int fd = -1;
		struct prb_error *err = prb_target_open_map(t, map, &fd);

		if (!err)
			close(fd);
		prb_error_destroy(err);
		prb_error_destroy(prb_mem_read(t->mem, map->start, page, sizeof(page)));
		if (++asked == 20)
			break;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct prb_target *t = open_snapshot(data, size);

	if (!t)
		return 0;
	ask_facts(t);
	ask_threads(t);
	ask_maps(t);
	prb_target_destroy(t);
	return 0;
}
