/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The connections of a gateway: slow and surplus ones are dropped. */
#ifndef PRB_GATEWAY_CONNECTIONS_H
#define PRB_GATEWAY_CONNECTIONS_H

#include "gateway/gateway_private.h"

/** Called by libmicrohttpd for each that begins or ends. */
void prb_connection_notify(void *context, struct MHD_Connection *mhd, void **place,
			   enum MHD_ConnectionNotificationCode what);

/** Accepts handed-over connections, and drops slow ones. */
void prb_connections_tend(struct prb_gateway *g);

/** Ends all that goes on, before the HTTP server is stopped. */
void prb_connections_end(struct prb_gateway *g);
void prb_connections_free(struct prb_gateway *g);

#endif
