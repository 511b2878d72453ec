/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/naming.h"

#include "base/cleanup.h"
#include "base/str.h"
#include "command/exit.h"
#include "command/interrupt.h"

bool prb_naming_gives_up(void *context)
{
	(void)context;
	prb_interrupt_last();
	return prb_interrupted();
}

void prb_naming_tell(const struct prb_recording *recording)
{
	prb_auto_free char *text = NULL;

	if (!recording || !recording->unnamed)
		return;
	text = prb_format("interrupted while C functions got their names: %llu places in C code "
			  "are shown by their addresses",
			  (unsigned long long)recording->unnamed);
	if (text)
		prb_warn(text);
}
