/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The text and the JSON of `probing server`. Internal to cli/commands/server/. */
#ifndef PRB_CLI_COMMANDS_SERVER_SERVER_H
#define PRB_CLI_COMMANDS_SERVER_SERVER_H

#include "base/str.h"
#include "judge/server/server.h"

/** One process waits for another one of the server: for a message, a lock, its end. */
struct prb_server_wait {
	pid_t pid, other;
	const char *kind; /**< "work", "answer", or as in wait.edges; static */
};

struct prb_server_waits {
	PRB_VEC(struct prb_server_wait) list; /**< in the order of the processes */
};

/** By what is known of the processes already: no rings are searched. @p ret starts as {}. */
struct prb_error *prb_server_waits_read(const struct prb_server *server,
					struct prb_server_waits *ret) PRB_MUST_CHECK;
void prb_server_waits_deinit(struct prb_server_waits *waits);
#define prb_auto_server_waits __attribute__((cleanup(prb_server_waits_deinit)))

/** What is printed. */
struct prb_server_shown {
	const struct prb_server_looks *looks;
	const struct prb_findings *findings;
	const struct prb_server_waits *waits;
};

void prb_server_text(const struct prb_server_shown *shown, struct prb_str *out);
/** @p pid: of the target. */
void prb_server_json(const struct prb_server_shown *shown, pid_t pid, struct prb_str *out);

#endif
