/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads threads that do not run: of a core, of a snapshot, or in a debugger. */
#include "base/cleanup.h"
#include "dump/read/call.h"
#include "dump/read/reader.h"
#include "dump/read/recorded.h"
#include "target/snapshot/snapshot.h"

/* Notes a doubt that no further reading can resolve. */
static struct prb_error *tell_doubt(struct prb_reader *r, struct prb_reader_thread *thread)
{
	struct prb_dump_thread *out = prb_reader_out(r, thread);

	if (thread->doubt != PRB_NATIVE_BARE_LOOP || thread->recorded || out->error)
		return NULL;
	return prb_str_copy("it enters or leaves a call, or its Python stack is switched: Python "
			    "frames may stand one call too far out among the native ones",
			    &out->error);
}

struct prb_error *prb_read_still(struct prb_reader *r)
{
	struct prb_reader_thread *thread;

	prb_vec_each (thread, &r->threads) {
		pid_t tid = thread->task ? thread->task->tid : 0;
		struct prb_mem *mem = tid ? prb_snapshot_thread_mem(r->target, tid) : NULL;

		if (!mem)
			mem = prb_view_mem(r->view);
		if (r->native && tid)
			prb_error_destroy(prb_target_registers(r->target, tid, &thread->regs));
		PRB_TRY(prb_read_recorded(r, thread));
		if (tid && (r->native || !r->options->no_waits))
			PRB_TRY(prb_read_call(r, thread));
		PRB_TRY(prb_read_wait(r, thread, r->target->mem));
		if (!thread->frames.list.count)
			PRB_TRY(prb_reader_walk(thread, mem));
		PRB_TRY(prb_reader_decode(r, thread, mem));
		PRB_TRY(tell_doubt(r, thread));
	}
	return NULL;
}
