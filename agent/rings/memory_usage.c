/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/rings/memory_usage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inside/config.h"
#include "agent/inside/libc.h"
#include "agent/inside/status.h"
#include "agent/rings/write.h"

enum { MEMORY, PEAK, VIRTUAL, BLOCKS, STEP, COLUMNS };

static const char columns[] = "memory_mb real [MB], peak_mb real [MB], virtual_mb real [MB], "
			      "python_blocks integer, step integer";
enum { RING_BYTES = 1 << 20 };

static int64_t last_tick; /* of the agent's thread */

/** A field of /proc/self/status in kB, as MB. */
static struct probing_cell megabytes(const char *field)
{
	struct probing_cell cell = {.kind = PROBING_NULL};
	char text[PRBA_STATUS_VALUE];

	if (prba_status_read(PRBA_STATUS_PROCESS, field, text)) {
		cell.kind = PROBING_REAL;
		cell.real = (double)strtoull(text, NULL, 10) * 1024 / 1e6;
	}
	return cell;
}

static struct probing_cell integer(int64_t value)
{
	return (struct probing_cell){
		.kind = value == INT64_MIN ? PROBING_NULL : PROBING_INTEGER,
		.integer = value,
	};
}

PRBA_EXPORT int probing_memory_sample(int64_t blocks, int64_t step)
{
	/* Found anew each time: a child after fork() has rings of its own. */
	intptr_t ring = probing_ring_create("main.memory_usage", columns, RING_BYTES);
	struct probing_cell cells[COLUMNS];

	if (ring < 0)
		return (int)ring;
	cells[MEMORY] = megabytes("VmRSS");
	cells[PEAK] = megabytes("VmHWM");
	cells[VIRTUAL] = megabytes("VmSize");
	cells[BLOCKS] = integer(blocks);
	cells[STEP] = integer(step);
	return probing_ring_append(ring, 0, cells);
}

int prba_memory_due(void)
{
	double seconds = prba_config_number(PRB_CONFIG_MEMORY_INTERVAL);
	int64_t left;

	if (seconds <= 0)
		return -1;
	left = last_tick + (int64_t)(seconds * 1000) - prba_now_ms();
	return !last_tick || left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int)left;
}

void prba_memory_tick(void)
{
	if (prba_memory_due())
		return;
	last_tick = prba_now_ms();
	probing_memory_sample(INT64_MIN, INT64_MIN);
}
