/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Code in a subinterpreter that threads of the program use already.
 *
 * Threading: the caller is attached to the main interpreter.
 */
#ifndef PRB_AGENT_EVAL_SUBINTERPRETER_H
#define PRB_AGENT_EVAL_SUBINTERPRETER_H

#include "agent/inside/python_table.h"

enum { PRBA_SUBINTERPRETER_METHODS = 1 };

/** For cli/commands/eval/interpreter.py: run_beside(number, text): 1 if it ran the text to its
 * end, 0 if it did not begin, -1 if the code was interrupted. Not for an interpreter with a GIL of
 * its own. */
extern struct prba_method prba_subinterpreter_methods[PRBA_SUBINTERPRETER_METHODS];

#endif
