/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The characteristic attributes of objects of the standard library. The others (locks, caches,
 * callbacks) are left out where it is shown among others; vars() and python.attributes have all.
 */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

static const struct {
	const char *name; /* module and qualified name */
	const char *attributes;
} chosen[] = {
	{"asyncio.locks.Event", "_value _waiters"},
	{"asyncio.locks.Lock", "_locked _waiters"},
	{"asyncio.locks.Semaphore", "_value _waiters"},
	{"asyncio.queues.Queue", "_maxsize _queue _getters _putters _unfinished_tasks"},
	{"concurrent.futures._base.Future", "_state _result _exception"},
	{"concurrent.futures.process.ProcessPoolExecutor",
	 "_max_workers _processes _broken _pending_work_items"},
	{"concurrent.futures.thread.ThreadPoolExecutor",
	 "_max_workers _work_queue _threads _shutdown"},
	{"logging.LogRecord", "name levelname levelno msg args pathname lineno"},
	{"logging.Logger", "name level disabled handlers parent"},
	{"logging.RootLogger", "name level disabled handlers"},
	{"multiprocessing.context.Process", "_name _identity _popen _parent_pid"},
	{"multiprocessing.sharedctypes.Synchronized", "_obj"},
	{"multiprocessing.sharedctypes.SynchronizedArray", "_obj"},
	{"multiprocessing.sharedctypes.SynchronizedString", "_obj"},
	{"multiprocessing.synchronize.BoundedSemaphore", "_semlock"},
	{"multiprocessing.synchronize.Lock", "_semlock"},
	{"multiprocessing.synchronize.RLock", "_semlock"},
	{"multiprocessing.synchronize.Semaphore", "_semlock"},
	{"queue.LifoQueue", "maxsize queue unfinished_tasks is_shutdown"},
	{"queue.PriorityQueue", "maxsize queue unfinished_tasks is_shutdown"},
	{"queue.Queue", "maxsize queue unfinished_tasks is_shutdown"},
	{"subprocess.Popen", "args pid returncode stdin stdout stderr"},
	{"threading.Barrier", "_parties _count _state"},
	{"threading.Timer", "interval function args finished"},
};

const char *prb_repr_chosen(struct prb_repr *r, const struct prb_type *type)
{
	prb_auto_str struct prb_str name = {};
	struct prb_str *out = r->out;
	struct prb_error *err;
	const char *found = NULL;

	if (!(type->flags & PRB_PY_HEAP_TYPE))
		return NULL;
	r->out = &name;
	err = prb_repr_put_module(r, type);
	if (!err)
		err = prb_repr_put_qualname(r, type);
	r->out = out;
	for (size_t i = 0; !err && i < PRB_ARRAY_SIZE(chosen); i++)
		if (!strcmp(prb_str_text(&name), chosen[i].name))
			found = chosen[i].attributes;
	prb_error_destroy(err);
	return found;
}
