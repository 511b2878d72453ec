/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What clang's analyzer cannot see from one file: how errors are made and caught. It takes no
 * notice of returns_nonnull, and would follow paths on which a function that fails returns no
 * error. Included before each file by tests/tools/analyze; never built.
 */
#include <stddef.h>

#include "base/error.h"

#define PRB_MODEL_ERROR(call)                         \
	({                                            \
		struct prb_error *prb_model = (call); \
		if (!prb_model)                       \
			__builtin_unreachable();      \
		prb_model;                            \
	})

#define prb_error_create(...) PRB_MODEL_ERROR(prb_error_create(__VA_ARGS__))
#define prb_error_os(...) PRB_MODEL_ERROR(prb_error_os(__VA_ARGS__))
#define prb_error_fault(...) PRB_MODEL_ERROR(prb_error_fault(__VA_ARGS__))
#define prb_error_nomem() PRB_MODEL_ERROR(prb_error_nomem())
#define prb_error_prefix(err, ...) (err)
#define prb_error_hint(err, ...) (err)
#define prb_error_catch(err, kind) (*(err) && (*(err))->code == (kind) && ((*(err) = NULL), true))
