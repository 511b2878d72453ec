/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The bundle: a snapshot of each process, and where all of them were. */
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/new_file.h"
#include "cli/commands/run/report.h"
#include "cli/commands/run/round.h"
#include "cluster/looks/json.h"
#include "sql/engine/record.h"
#include "target/snapshot/bundle.h"
#include "target/snapshot/snapshot.h"

/** Makes a snapshot of one process, in the file @p fd. */
static struct prb_error *make_snapshot(pid_t pid, bool redact, int fd)
{
	struct prb_session *session = NULL;
	struct prb_recorder *recorder = NULL;
	struct prb_target *target = NULL;
	struct prb_error *err;
	size_t threads;

	PRB_TRY(prb_session_create(&session));
	err = prb_target_open_process(pid, &target);
	if (!err)
		err = prb_session_add_target(session, "", target);
	if (!err)
		err = prb_recorder_create(&recorder);
	if (!err) {
		prb_recorder_set_redact(recorder, redact);
		prb_recorder_attach(recorder, target);
		err = prb_record(session, redact ? PRB_RECORD_NO_VALUES : PRB_RECORD_VARIABLES,
				 &threads);
	}
	if (!err)
		err = prb_recorder_write_to(recorder, target, fd, "the snapshot");
	prb_recorder_destroy(recorder);
	prb_session_destroy(session);
	return err;
}

/** Adds a process to the bundle; *failed: it cannot be read. */
static struct prb_error *save_one(int bundle, pid_t pid, bool redact, bool *failed)
{
	prb_auto_close int fd = memfd_create("snapshot", MFD_CLOEXEC);
	off_t size;

	if (fd < 0)
		return prb_error_create(PRB_ERROR_FAILED, "cannot make a file in memory");
	PRB_TRY(prb_error_tolerate(make_snapshot(pid, redact, fd), failed));
	if (*failed)
		return NULL;
	size = lseek(fd, 0, SEEK_END);
	return prb_bundle_add(bundle, PRB_BUNDLE_SNAPSHOT, pid, fd, 0,
			      size > 0 ? (uint64_t)size : 0);
}

/** Where all were, so that the bundle is shown as one. */
static struct prb_error *add_looks(int bundle, const struct prb_standstill *s, bool redact)
{
	prb_auto_still_round struct prb_still_round round = {};
	prb_auto_str struct prb_str looks = {};

	PRB_TRY(prb_still_round_make(s, false, &round));
	prb_looks_write(&round.job, &round.round, true, redact, &looks);
	if (looks.failed)
		return prb_error_nomem();
	return prb_bundle_add_text(bundle, PRB_BUNDLE_LOOKS, 0, looks.data, looks.length);
}

struct prb_error *prb_report_save(const struct prb_standstill *s, const char *path, bool chosen,
				  bool redact, double seconds, size_t *count, size_t *left)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	double end = prb_clock_seconds() + seconds;
	const struct prb_still_process *process;

	*count = *left = 0;
	file.replaces_links = !chosen;
	PRB_TRY(prb_new_file_open(&file, path));
	PRB_TRY(prb_bundle_begin(file.fd));
	prb_vec_each (process, &s->list) {
		bool failed = prb_clock_seconds() > end;

		if (!prb_why_main(process->one))
			continue;
		if (!failed)
			PRB_TRY(save_one(file.fd, process->pid, redact, &failed));
		*(failed ? left : count) += 1;
	}
	if (!*count)
		return NULL;
	PRB_TRY(add_looks(file.fd, s, redact));
	PRB_TRY(prb_bundle_end(file.fd));
	return prb_new_file_finish(&file);
}
