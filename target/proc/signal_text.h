/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Signals in words: their names, and what the kernel says of why one was sent.
 *
 * Threading: any thread; nothing here keeps state.
 */
#ifndef PRB_TARGET_PROC_SIGNAL_TEXT_H
#define PRB_TARGET_PROC_SIGNAL_TEXT_H

#include "base/str.h"

/** Appends "SIGSEGV", "SIGRTMIN+2"; "SIG32" for a number that the C library keeps for itself. */
void prb_put_signal(struct prb_str *s, int number);

/** "SEGV_MAPERR", "SI_USER": the name of an si_code of that signal, or NULL. Static. */
const char *prb_signal_code_name(int number, int code);

/** "not mapped", "division by zero": the same for people, or NULL. Static. */
const char *prb_signal_code_text(int number, int code);

#endif
