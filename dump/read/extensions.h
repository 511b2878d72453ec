/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Texts of the user's extensions for threads and values of a dump (target/custom.h). */
#ifndef PRB_DUMP_READ_EXTENSIONS_H
#define PRB_DUMP_READ_EXTENSIONS_H

#include "dump/model/dump.h"

/** Puts their texts into a complete dump. The target must have a `custom`. */
struct prb_error *prb_dump_customise(struct prb_target *target,
				     const struct prb_dump_options *options,
				     struct prb_dump *dump) PRB_MUST_CHECK;

#endif
