/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/reach.h"

#include "remote/ssh_words.h"

struct prb_error *prb_reach(struct prb_answer *answer, const char *const *words)
{
	return prb_ssh_words(answer->host, words, &answer->words);
}
