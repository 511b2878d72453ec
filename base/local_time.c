/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/local_time.h"

#include <stdbool.h>

static bool write_form(struct prb_local_time *to, const struct tm *moment, enum prb_local_form form)
{
	switch (form) {
	case PRB_LOCAL_DAY:
		return strftime(to->text, sizeof(to->text), "%Y-%m-%d %H:%M:%S", moment);
	case PRB_LOCAL_CLOCK:
		return strftime(to->text, sizeof(to->text), "%H:%M:%S", moment);
	case PRB_LOCAL_STAMP:
		return strftime(to->text, sizeof(to->text), "%Y%m%d-%H%M%S", moment);
	}
	return false;
}

struct prb_local_time prb_local_time(time_t seconds, enum prb_local_form form)
{
	struct prb_local_time ret = {"?"};
	struct tm moment;

	if (!localtime_r(&seconds, &moment) || !write_form(&ret, &moment, form))
		return (struct prb_local_time){"?"};
	return ret;
}
