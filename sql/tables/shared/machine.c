/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "sql/tables/shared/machine.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/cleanup.h"
#include "sql/engine/session_private.h"

bool prb_scan_machine(struct prb_scan *scan)
{
	const struct prb_session_target *t;

	prb_vec_each (t, &scan->session->targets)
		if (t->target->local)
			return true;
	if (!scan->session->targets.count)
		return true;
	t = scan->session->targets.items;
	prb_scan_note(scan, "%s.%s is empty: it tells of this machine, which a %s may not be of",
		      scan->table->schema, scan->table->name,
		      prb_target_kind_name(t->target->kind));
	return false;
}

struct prb_error *prb_machine_file(const char *path, struct prb_str *ret)
{
	prb_auto_close int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[16384];
	ssize_t n;

	if (fd < 0)
		return prb_error_os(errno, "cannot open %s", path);
	while ((n = read(fd, chunk, sizeof(chunk))) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return prb_error_os(errno, "cannot read %s", path);
		prb_str_append(ret, chunk, (size_t)n);
	}
	return ret->failed ? prb_error_nomem() : NULL;
}

double prb_machine_boot(void)
{
	struct timespec calendar, boot;

	clock_gettime(CLOCK_REALTIME, &calendar);
	clock_gettime(CLOCK_BOOTTIME, &boot);
	return (double)(calendar.tv_sec - boot.tv_sec) +
	       (double)(calendar.tv_nsec - boot.tv_nsec) / 1e9;
}
