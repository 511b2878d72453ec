/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the files that implement lib/probing.h. Internal to lib/. */
#ifndef PRB_LIB_LIBRARY_PRIVATE_H
#define PRB_LIB_LIBRARY_PRIVATE_H

#include "lib/probing.h"
#include "sql/engine/session.h"

struct probing {
	struct prb_session *session;
	struct probing_statement *statements; /**< all that have not ended */
	struct prb_library_debugger *debuggers;
	struct prb_library_objects *objects;	 /**< of the only target; NULL: none were read */
	struct prb_library_extension *extension; /**< NULL: none */
	struct prb_pause *pause; /**< of the only target, by this session; NULL: none */
};

struct probing_statement {
	struct probing *owner;
	struct probing_statement *next, **place;
	struct prb_statement *statement;
};

/** Ends what probing_open_debugger() made; NULL is allowed. */
void prb_library_debuggers_destroy(struct prb_library_debugger *debuggers);

/** Ends what probing_set_extension() made; NULL is allowed. */
void prb_library_extension_destroy(struct prb_library_extension *extension);

/** Ends what reading objects keeps; NULL is allowed. */
void prb_library_objects_destroy(struct prb_library_objects *objects);

/** Ends a pause without a word, as the end of our process does; NULL is allowed. */
struct prb_pause;
void prb_library_pause_destroy(struct prb_pause *pause);

/** An error of ours as the caller has it; NULL stays NULL. */
static inline struct probing_error *prb_public_error(struct prb_error *err)
{
	return (struct probing_error *)err;
}

#endif
