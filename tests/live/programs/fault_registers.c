/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A target whose registers hold unique values: fault_registers SHARED KIND [LENGTH],
 * KIND one of ymm, zmm; neon, sve. */
#ifdef __aarch64__
#include "fault_registers_aarch64.h"
#else
#include "fault_registers_x86_64.h"
#endif

int main(int argc, char **argv)
{
	fault_open(argv[1]);
	check_registers(argc > 2 ? argv[2] : "", argc > 3 ? argv[3] : NULL);
	return fault_end();
}
