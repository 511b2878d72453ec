/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "dump/read/method_self.h"

#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/text.h"

struct prb_error *prb_read_method_self(const struct prb_reader_thread *thread, struct prb_mem *mem,
				       const char *name, const char *file, uint64_t *ret)
{
	enum { INNER = 6 }; /* deeper than any of `threading` that waits */

	*ret = 0;
	for (size_t i = 0; i < PRB_MIN(thread->frames.list.count, (size_t)INNER) && !*ret; i++) {
		const struct prb_py_frame *frame = &thread->frames.list.items[i];
		struct prb_py_code code;
		bool is_it;

		if (frame->shim)
			continue;
		PRB_TRY(prb_python_code(thread->py, mem, frame->code, &code));
		is_it = !strcmp(code.name, name) && (!file || prb_text_ends(code.file, file));
		prb_py_code_deinit(&code);
		if (is_it)
			PRB_TRY(prb_python_first_value(thread->py, mem, frame, ret));
	}
	return NULL;
}
