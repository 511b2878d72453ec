/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by drive.c and breaks.c. Internal to control/drive/. */
#ifndef PRB_CONTROL_DRIVE_PRIVATE_H
#define PRB_CONTROL_DRIVE_PRIVATE_H

#include "control/drive/drive.h"
#include "control/freeze.h"
#include "control/pause.h"
#include "control/step.h"

struct prb_drive {
	struct prb_target *target; /**< borrowed */
	struct prb_drive_how how;
	struct prb_pause pause;	  /**< its connection holds the process */
	struct prb_freeze freeze; /**< threads that are stopped while code is evaluated */
	struct prb_agent *agent;  /**< another connection: steps and code */
	struct prb_error *err;	  /**< of the first, until it is reported */
	bool busy;		  /**< code was left that runs on the other */
};

/** Does what the agent asks of the client that pauses. */
void prb_drive_pump(struct prb_drive *d);

/** Asks the agent about breakpoints: what it answers. */
struct prb_error *prb_drive_request(struct prb_drive *d, const struct prb_str *request,
				    struct prb_str *ret) PRB_MUST_CHECK;

/** What Python calls the thread; 0 if @p tid is 0. */
struct prb_error *prb_drive_ident(struct prb_drive *d, pid_t tid, uint64_t *ret) PRB_MUST_CHECK;

#endif
