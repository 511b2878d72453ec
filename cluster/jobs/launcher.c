/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/jobs/launcher.h"

#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "dwarf/elf/module.h"
#include "dwarf/elf/symbols.h"
#include "target/mem/mem.h"
#include "target/target.h"

enum { MAX_LAUNCHED = 1 << 20, CHUNK = 1024 };

/** An entry of MPIR_proctable, on a machine with pointers of 8 bytes. */
struct entry {
	uint64_t host, executable; /* addresses of texts */
	int32_t pid;
	int32_t padding;
};

static void modules_guard(struct prb_modules **modules)
{
	prb_modules_destroy(*modules);
}

static bool is_launcher(const void *context, const char *path)
{
	return !strcmp(path, context);
}

static struct prb_error *find(struct prb_target *target, uint64_t *table, uint32_t *count)
{
	__attribute__((cleanup(modules_guard))) struct prb_modules *modules = NULL;
	prb_auto_str struct prb_str exe = {};
	uint64_t place, size;

	PRB_TRY(prb_target_read_link(target, &exe, "exe"));
	PRB_TRY(prb_modules_create_some(target, is_launcher, prb_str_text(&exe), &modules));
	if (!modules->list.count)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "it has no module");
	PRB_TRY(prb_module_symbol(modules->list.items[0], "MPIR_proctable_size", &place, &size));
	PRB_TRY(prb_mem_read(target->mem, place, count, sizeof(*count)));
	PRB_TRY(prb_module_symbol(modules->list.items[0], "MPIR_proctable", &place, &size));
	return prb_mem_read(target->mem, place, table, sizeof(*table));
}

static struct prb_error *read_table(struct prb_target *target, struct prb_launched *ret)
{
	struct entry entries[CHUNK];
	uint64_t table;
	uint32_t count;

	PRB_TRY(find(target, &table, &count));
	for (uint32_t at = 0; at < count && at < MAX_LAUNCHED; at += CHUNK) {
		uint32_t some = count - at < CHUNK ? count - at : CHUNK;

		PRB_TRY(prb_mem_read(target->mem, table + (uint64_t)at * sizeof(*entries), entries,
				     some * sizeof(*entries)));
		for (uint32_t i = 0; i < some; i++) {
			pid_t *place = prb_vec_push(&ret->list);

			if (!place)
				return prb_error_nomem();
			*place = entries[i].pid;
		}
	}
	return NULL;
}

struct prb_error *prb_launched_read(pid_t pid, struct prb_launched *ret)
{
	prb_auto_target struct prb_target *target = NULL;
	struct prb_error *err = prb_target_open_process(pid, &target);

	if (!err)
		err = read_table(target, ret);
	if (err && err->code != PRB_ERROR_NOMEM) {
		prb_error_destroy(err);
		return NULL;
	}
	return err;
}

void prb_launched_deinit(struct prb_launched *launched)
{
	prb_vec_free(&launched->list);
}
