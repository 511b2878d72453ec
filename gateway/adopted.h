/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file A gateway to one process, at the address of its server (remote/serve/background.h). */
#ifndef PRB_GATEWAY_ADOPTED_H
#define PRB_GATEWAY_ADOPTED_H

#include "remote/serve/background.h"

/** Answers until @p from ends. Errors are dropped: there is no terminal. */
prb_serve_http prb_gateway_adopted;

#endif
