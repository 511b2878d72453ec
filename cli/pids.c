/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/pids.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "command/command.h"
#include "target/proc/family.h"

/** Adds the pids of a word; false if it has anything else. */
static bool add_pids(const char *word, struct prb_pids *ret)
{
	size_t before = ret->list.count;

	while (*word) {
		char *end;
		long number;

		word += strspn(word, " \t\r\n");
		if (!*word)
			break;
		if (*word < '0' || *word > '9')
			return false;
		number = strtol(word, &end, 10);
		if (number < 1 || number > INT_MAX || (*end && !strchr(" \t\r\n", *end)))
			return false;

		pid_t *pid = prb_vec_push(&ret->list);
		if (!pid)
			return false;
		*pid = (pid_t)number;
		word = end;
	}
	return ret->list.count > before;
}

static bool names_target(const char *option)
{
	static const char *const options[] = {"-t", "-p", "--target", "--pid"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(options); i++)
		if (!strcmp(option, options[i]))
			return true;
	return false;
}

/** Whether a target may begin at that word: in front, behind its option, or behind a command that
 * takes no other words. */
static bool may_begin(char **words, size_t at)
{
	const struct prb_command *command = prb_command_find(words[0]);

	if (command && (command->max_arguments || !command->target_use))
		return false;
	return !at || names_target(words[at - 1]) || (at == 1 && command);
}

static struct prb_error *no_parent(const struct prb_pids *pids)
{
	prb_auto_str struct prb_str text = {};
	const pid_t *pid;

	prb_vec_each (pid, &pids->list)
		prb_str_printf(&text, "%s%d", text.length ? ", " : "", (int)*pid);
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "several processes are given (%.200s), and none is "
					       "the parent of the others",
					       prb_str_text(&text)),
			      "give one; 'probing list --tree' shows them");
}

struct prb_error *prb_pids_join(char **words, size_t *count, char text[PRB_PID_TEXT])
{
	__attribute__((cleanup(prb_pids_deinit))) struct prb_pids pids = {};
	size_t at = 0, used = 0;
	pid_t parent;

	while (at < *count && !(may_begin(words, at) && add_pids(words[at], &pids))) {
		pids.list.count = 0;
		at++;
	}
	if (at == *count)
		return NULL;
	for (used = 1; at + used < *count; used++) {
		size_t before = pids.list.count;

		if (add_pids(words[at + used], &pids))
			continue;
		pids.list.count = before;
		break;
	}
	if (pids.list.count < 2)
		return NULL;
	PRB_TRY(prb_family_parent(&pids, &parent));
	if (!parent)
		return no_parent(&pids);
	fprintf(stderr, "probing: several pids are given; %d, the parent, is the target\n",
		(int)parent);
	snprintf(text, PRB_PID_TEXT, "%d", (int)parent);
	words[at] = text;
	memmove(&words[at + 1], &words[at + used], (*count - at - used) * sizeof(*words));
	*count -= used - 1;
	return NULL;
}
