/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "judge/polling.h"

#include <string.h>

#include "base/checked.h"
#include "judge/threads.h"

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
	for (size_t i = 0; i < PRB_ARRAY_SIZE(functions); i++)
		if (prb_thread_frame(thread, functions[i].func, functions[i].file))
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
