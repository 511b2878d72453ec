/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file A switch for tests: a build with -DPRB_FAULT_STEPS sends a signal before the step that
 * $PROBING_FAULT_STEP numbers, counted from 1: SIGKILL or $PROBING_FAULT_SIGNAL, to itself or to
 * $PROBING_FAULT_PID. A step is whatever changes the target or its state: a ptrace request, a write
 * to its memory, a word between a pause and the agent.
 */
#ifndef PRB_TARGET_PTRACE_FAULT_STEP_H
#define PRB_TARGET_PTRACE_FAULT_STEP_H

#ifdef PRB_FAULT_STEPS
void prb_fault_step(void);
#else
static inline void prb_fault_step(void)
{
}
#endif

#endif
