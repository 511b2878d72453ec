/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/polling.h"

#include <string.h>

#include "base/checked.h"
#include "base/text.h"

static const struct {
	const char *func, *file; /**< the end of its path */
} functions[] = {
	{"loop_once", "/xdist/dsession.py"}, /* waits for its workers */
	{"run", "/tqdm/_monitor.py"},	     /* refreshes bars of progress */
	{"_handle_workers", "/multiprocessing/pool.py"},
	{"_invoke_run", "/elastic/agent/server/api.py"}, /* torchrun */
	{"tail_logfile", "/elastic/multiprocessing/tail_log.py"},
};

static const char *const launchers[] = {
	"mpirun", "mpiexec",	   "orterun", "orted",		 "prterun",	   "prted",
	"prte",	  "mpiexec.hydra", "srun",    "hydra_pmi_proxy", "hydra_bstrap_pr"};

bool prb_polling_thread(const struct prb_dump_thread *thread)
{
	const struct prb_dump_frame *frame;

	prb_vec_each (frame, &thread->frames)
		for (size_t i = 0; i < PRB_ARRAY_SIZE(functions); i++)
			if (frame->kind == PRB_FRAME_PYTHON && frame->func && frame->file &&
			    !strcmp(frame->func, functions[i].func) &&
			    prb_text_ends(frame->file, functions[i].file))
				return true;
	return false;
}

bool prb_polling_program(const struct prb_process *process)
{
	for (size_t i = 0; process->comm && i < PRB_ARRAY_SIZE(launchers); i++)
		if (!strcmp(process->comm, launchers[i]))
			return true;
	return false;
}
