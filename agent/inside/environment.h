/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The environment of the process: all that is loaded into it reads a variable by this
 * function alone. probing_startup.variable() is the same in Python.
 *
 * Threading: any thread, but what is read before a Python was found (agent/inside/python.h) is
 * obeyed.
 */
#ifndef PRB_AGENT_INSIDE_ENVIRONMENT_H
#define PRB_AGENT_INSIDE_ENVIRONMENT_H

/**
 * The variable's text, or NULL. None is read where the process has the rights of another user
 * (AT_SECURE), and none of ours, PROB…, where Python ignores its environment (-E, -I).
 */
const char *prba_environment(const char *name);

#endif
