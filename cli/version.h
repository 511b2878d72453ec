/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file What `probing --version` prints: the version, and what this build has. */
#ifndef PRB_CLI_VERSION_H
#define PRB_CLI_VERSION_H

#include "base/str.h"

/** Three lines: "probing 1.0.0", how it was built, and its features. The first is for programs. */
void prb_version_text(struct prb_str *s);

#endif
