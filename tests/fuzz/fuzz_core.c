/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Any bytes as a core file: an error or a target that answers, within memory and time. */
#include "tests/fuzz/elf_file.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "target/core/core.h"
#include "target/target.h"

enum { MAX_ASKED = 100 };

static void ask_threads(struct prb_target *t)
{
	prb_auto_str struct prb_str tasks = {}, text = {};
	struct prb_regs regs;
	unsigned asked = 0;

	prb_error_destroy(prb_target_list(t, &tasks, "task"));
	for (const char *p = prb_str_text(&tasks); *p && asked < MAX_ASKED;
	     p = strchr(p, '\n') + 1, asked++) {
		int tid = atoi(p);

		prb_error_destroy(prb_target_read_file(t, &text, "task/%d/stat", tid));
		prb_error_destroy(prb_target_read_file(t, &text, "task/%d/syscall", tid));
		prb_error_destroy(prb_target_registers(t, tid, &regs));
	}
}

static void ask_memory(struct prb_target *t)
{
	const struct prb_map *map;
	unsigned asked = 0;
	char page[4096];

	prb_vec_each (map, &t->maps.list) {
		int fd = -1;
		struct prb_error *err = prb_target_open_map(t, map, &fd);

		if (!err)
			close(fd);
		prb_error_destroy(err);
		prb_error_destroy(prb_mem_read(t->mem, map->start, page, sizeof(page)));
		prb_error_destroy(prb_mem_read(t->mem, map->end - 1, page, 2));
		if (++asked == MAX_ASKED)
			return;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = {"maps", "cmdline", "environ", "comm", "stat", "auxv"};
	prb_auto_close int fd = elf_file_fd(data, size);
	prb_auto_str struct prb_str text = {};
	struct prb_target *t;
	char path[64];

	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct prb_error *err = prb_target_open_core(path, NULL, &t);
	prb_error_destroy(err);
	if (err)
		return 0;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(names); i++)
		prb_error_destroy(prb_target_read_file(t, &text, "%s", names[i]));
	prb_error_destroy(prb_target_read_link(t, &text, "exe"));
	ask_threads(t);
	ask_memory(t);
	prb_target_destroy(t);
	return 0;
}
