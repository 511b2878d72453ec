/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/client/request.h"

#include <stdio.h>
#include <string.h>

#include "agent/client/connection.h"

enum { MAX_TEXT = 400 };

void (*prba_job_notify)(void);

void prba_job_finish(struct prba_connection *c, enum prb_wire_outcome outcome, const char *text)
{
	struct prba_job *job = &c->job;
	uint8_t payload[4 + MAX_TEXT];
	uint64_t lost = atomic_load(&job->lost);
	uint16_t request = job->request;
	bool answered;
	char *said = (char *)payload + 4;

	pthread_mutex_lock(&job->lock);
	answered = atomic_exchange(&job->answered, true);
	pthread_mutex_unlock(&job->lock);
	prb_wire_put32(payload, outcome);
	if (lost)
		snprintf(said, MAX_TEXT, "%llu bytes of output were lost: %s",
			 (unsigned long long)lost,
			 c->keeps ? "there is no room for more than 192 KiB"
				  : "the client did not follow, and the main thread waits for "
				    "nobody");
	else
		snprintf(said, MAX_TEXT, "%s", text);
	/* IDLE comes first: the client may ask for more as soon as it has the answer. */
	atomic_store(&job->state, PRBA_IDLE);
	while (!answered && prba_connection_send(c, PRB_WIRE_DONE, request, payload,
						 4 + strlen(said)) == PRBA_FULL)
		prba_connection_wait(c);
}

bool prba_job_begin(struct prba_connection *c, unsigned long thread)
{
	int waiting = PRBA_WAITING;
	bool begun;

	pthread_mutex_lock(&c->job.lock);
	c->job.thread = thread;
	begun = atomic_compare_exchange_strong(&c->job.state, &waiting, PRBA_RUNNING);
	pthread_mutex_unlock(&c->job.lock);
	if (begun && c->job.begins)
		c->job.begins(c);
	return begun;
}

void prba_job_end(struct prba_connection *c)
{
	pthread_mutex_lock(&c->job.lock);
	atomic_store(&c->job.state, PRBA_ENDING);
	pthread_mutex_unlock(&c->job.lock);
}
