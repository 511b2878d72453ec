/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file How many descriptors we may have: of each thread, and each file with code, of a process
 * that is recorded, some stay open, and what shells allow at first is often 1024. And the first
 * three.
 *
 * Threading: one thread at a time.
 */
#ifndef PRB_COMMAND_DESCRIPTORS_H
#define PRB_COMMAND_DESCRIPTORS_H

/**
 * First of all: standard descriptors that are closed are opened, so that no file of ours gets their
 * numbers. Reading from stdin, or writing to stdout, fails as before; programs that we start find
 * them closed.
 */
void prb_descriptors_begin(void);

/** From now on as many as the hard limit is. */
void prb_descriptors_raise(void);

/** In a child of ours that is to run another program: restores the earlier limit. */
void prb_descriptors_restore(void);

#endif
