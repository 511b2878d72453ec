/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/user.h"

#include <pwd.h>

bool prb_user_name(uid_t uid, struct prb_str *ret)
{
	struct passwd entry, *found = NULL;
	char buffer[4096];

	if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) || !found)
		return false;
	prb_str_puts(ret, found->pw_name);
	return true;
}
