/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/rights.h"

#include <linux/capability.h>
#include <stdbool.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {};

	return !syscall(SYS_capget, &header, data) && (data[0].permitted || data[1].permitted);
}

struct prb_error *prb_rights_check(void)
{
	/* A security module may set this, too, and gives no rights by it. */
	if (!getauxval(AT_SECURE))
		return NULL;
	if (geteuid() == getuid() && getegid() == getgid() && (!geteuid() || !has_capabilities()))
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
					       "the program file gives rights to whoever runs it"),
			      "take away its setuid and setgid bits and its capabilities: with "
			      "them, every user could run code in every process");
}
