/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A prompt for a target at a server: lines, history and completion are here, the session
 * is there, and lasts as long as the prompt. */
#include <stdint.h>

#include "command/interrupt.h"
#include "command/prompt/prompt.h"
#include "remote/remote.h"
#include "remote/token.h"
#include "base/cleanup.h"
#include "base/str.h"

enum { MARK_BYTES = 16 };

static struct prb_error *run(void *context, const char *text, size_t length)
{
	return prb_remote_talk_say(context, text, length);
}

static struct prb_error *look(void *context)
{
	return prb_remote_talk_look(context);
}

/** Makes a mark that no result contains. */
static struct prb_error *make_mark(struct prb_str *ret)
{
	uint8_t random[PRB_REMOTE_NONCE_SIZE];

	PRB_TRY(prb_token_nonce(random));
	for (size_t i = 0; i < MARK_BYTES; i++)
		prb_str_printf(ret, "%02x", random[i]);
	return ret->failed ? prb_error_nomem() : NULL;
}

struct prb_error *prb_remote_prompt(struct prb_remote_job *job,
				    struct prb_error *(*prompt)(const struct prb_prompt_runner *))
{
	prb_auto_str struct prb_str mark = {};
	struct prb_remote_talk *talk;

	PRB_TRY(make_mark(&mark));
	job->mark = prb_str_text(&mark);
	PRB_TRY(prb_words_add(&job->words, "--relay=%s", job->mark));
	PRB_TRY(prb_remote_talk_begin(job, &talk));
	prb_interrupt_catch(NULL);

	struct prb_error *err = prompt(
		&(const struct prb_prompt_runner){.run = run,
						  .look = look,
						  .context = talk,
						  .watched = prb_remote_talk_descriptor(talk)});
	prb_interrupt_release();
	prb_remote_talk_end(talk);
	return err;
}
