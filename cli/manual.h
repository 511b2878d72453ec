/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The man page, generated from the command tables.
 */
#ifndef PRB_CLI_MANUAL_H
#define PRB_CLI_MANUAL_H

#include "base/str.h"

/** Appends probing(1) in man(7) format. */
void prb_manual_page(struct prb_str *ret);

#endif
