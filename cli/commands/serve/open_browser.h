/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Opens the address of a gateway in a browser, without telling its token to anybody else.
 *
 * Command lines can be read by every user of the machine, and browsers keep theirs. So a browser is
 * given the name of a file that only its user can read, and that leads to the address.
 */
#ifndef PRB_CLI_COMMANDS_SERVE_OPEN_BROWSER_H
#define PRB_CLI_COMMANDS_SERVE_OPEN_BROWSER_H

#include "base/error.h"

/** Opens @p address, as the desktop does, no matter how that ends. *file: what leads there; the
 * caller removes it when the gateway ends. */
struct prb_error *prb_serve_open(const char *address, char **file) PRB_MUST_CHECK;

#endif
