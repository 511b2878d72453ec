/* SPDX-License-Identifier: GPL-3.0-or-later */
/* libprobing: saving a target. */
#include "base/cleanup.h"
#include "target/snapshot/snapshot.h"
#include "lib/library_private.h"
#include "sql/engine/record.h"

static void recorder_guard(struct prb_recorder **recorder)
{
	prb_recorder_destroy(*recorder);
}

static struct prb_error *save(struct prb_session *session, const char *path, bool redact)
{
	__attribute__((cleanup(recorder_guard))) struct prb_recorder *recorder = NULL;
	struct prb_target *target;
	size_t threads;

	if (prb_session_target_count(session) != 1)
		return prb_error_create(PRB_ERROR_USAGE, "a snapshot is of one target, not of %zu",
					prb_session_target_count(session));
	target = prb_session_target(session);
	if (target->replayed)
		return prb_error_create(PRB_ERROR_USAGE, "it is a snapshot already");
	PRB_TRY(prb_recorder_create(&recorder));
	prb_recorder_set_redact(recorder, redact);
	prb_recorder_attach(recorder, target);

	struct prb_error *err =
		prb_record(session, redact ? PRB_RECORD_NO_VALUES : PRB_RECORD_VARIABLES, &threads);
	prb_session_end_instants(session);
	prb_recorder_detach(recorder);
	return err ? err : prb_recorder_write(recorder, target, path);
}

struct probing_error *probing_snapshot(struct probing *p, const char *path, int redact)
{
	return prb_public_error(save(p->session, path, redact));
}
