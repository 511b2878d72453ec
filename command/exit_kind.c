/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "command/exit_kind.h"

#include <stdlib.h>

#include "base/conflict.h"

/** Codes of shells and signals begin at 126. */
enum { FIRST = 64, CONFLICTS = 32, LAST_CODE = PRB_ERROR_NO_PROCESS };

static bool wanted;

void prb_exit_kinds_begin(void)
{
	wanted = getenv(PRB_EXIT_KINDS);
	unsetenv(PRB_EXIT_KINDS);
}

bool prb_exit_kinds_are_wanted(void)
{
	return wanted;
}

int prb_exit_kind(const struct prb_error *err)
{
	return FIRST + (int)err->code + (prb_conflict_is(err) ? CONFLICTS : 0);
}

bool prb_exit_kind_parse(int exit_code, enum prb_error_code *code, bool *conflict)
{
	int kind = exit_code - FIRST;

	*conflict = kind >= CONFLICTS;
	kind -= *conflict ? CONFLICTS : 0;
	if (kind < 0 || kind > LAST_CODE)
		return false;
	*code = (enum prb_error_code)kind;
	return true;
}
