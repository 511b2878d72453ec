/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file libmicrohttpd, loaded when a gateway starts.
 *
 * The library brings GnuTLS with it, which takes longer to load than most commands run. So the
 * program is not linked with it: `prb_mhd` has the functions that we call, and is filled by
 * prb_mhd_load(). Everything about them is in <microhttpd.h>.
 *
 * Threading: load once, before the first call.
 */
#ifndef PRB_GATEWAY_MHD_H
#define PRB_GATEWAY_MHD_H

#include <microhttpd.h>

#include "base/error.h"

#define PRB_MHD_FUNCTIONS(X)             \
	X(start_daemon)                  \
	X(stop_daemon)                   \
	X(quiesce_daemon)                \
	X(run)                           \
	X(get_timeout)                   \
	X(get_daemon_info)               \
	X(add_connection)                \
	X(get_connection_info)           \
	X(get_connection_values_n)       \
	X(lookup_connection_value)       \
	X(suspend_connection)            \
	X(resume_connection)             \
	X(create_response_from_buffer)   \
	X(create_response_from_callback) \
	X(add_response_header)           \
	X(queue_response)                \
	X(destroy_response)

struct prb_mhd {
#define PRB_MHD_MEMBER(name) __typeof__(&MHD_##name) name;
	PRB_MHD_FUNCTIONS(PRB_MHD_MEMBER)
#undef PRB_MHD_MEMBER
};

/** Filled by prb_mhd_load(). */
extern struct prb_mhd prb_mhd;

/** PRB_ERROR_UNSUPPORTED if the library is not installed here; the hint says how to get it. */
struct prb_error *prb_mhd_load(void) PRB_MUST_CHECK;

#endif
