/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rings in shared memory by which a scheduler tells its workers what to do. */
#include "base/cleanup.h"
#include "judge/server/private.h"
#include "values/shared_rings.h"

/** The ring that one writes and the other reads; NULL if there is none. */
static const struct prb_shared_ring *common(const struct prb_shared_rings *writer,
					    const struct prb_shared_rings *reader)
{
	const struct prb_shared_ring *one, *other;

	prb_vec_each (one, &reader->list)
		prb_vec_each (other, &writer->list)
			if (one->has_queue && !one->writes && one->reader >= 0 && other->writes &&
			    prb_shared_ring_same(one, other))
				return one;
	return NULL;
}

struct prb_error *prb_server_unread(const struct prb_server_process *scheduler,
				    const struct prb_server_process *worker, int64_t *ret)
{
	prb_auto_shared_rings struct prb_shared_rings written = {}, read = {};
	const struct prb_shared_ring *ring;

	*ret = -1;
	if (!scheduler->target || !worker->target)
		return NULL;
	PRB_TRY(prb_error_tolerate(prb_shared_rings_read(scheduler->target, &written), NULL));
	PRB_TRY(prb_error_tolerate(prb_shared_rings_read(worker->target, &read), NULL));
	ring = common(&written, &read);
	if (ring)
		*ret = prb_shared_ring_unread(ring, ring->reader);
	return NULL;
}
