/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The connections of a gateway: who is too slow, or one too many, has to go. */
#ifndef PRB_GATEWAY_CONNECTIONS_H
#define PRB_GATEWAY_CONNECTIONS_H

#include "gateway/gateway_private.h"

/** Told by libmicrohttpd of each that begins or ends. */
void prb_connection_notify(void *context, struct MHD_Connection *mhd, void **place,
			   enum MHD_ConnectionNotificationCode what);

/** Takes those that are handed over, and drops the slow ones. */
void prb_connections_tend(struct prb_gateway *g);

/** Ends all that goes on, before the HTTP server is stopped. */
void prb_connections_end(struct prb_gateway *g);
void prb_connections_free(struct prb_gateway *g);

#endif
