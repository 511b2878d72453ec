/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/client.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "control/socket.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/log.h"

/** How long an agent may take to greet; its thread does nothing else. */
static const double GREETING_SECONDS = 2;
/** How long it may take to read a request of any size; it does nothing else meanwhile. */
static const double SEND_SECONDS = 10;
/** How long running code may take to end. */
static const double STOP_SECONDS = 10;

/** After an answer's deadline, other frames are accepted for so long. */
static const double GRACE_SECONDS = 2;
/** Added to a deadline for our own work on earlier frames, at most. */
static const double BUSY_SECONDS = 10;

enum { END_MS = 1000 };

struct prb_agent {
	int fd;
	struct prb_target *target; /**< borrowed; NULL: of another machine */
	pid_t pid;		   /**< 0 there until its hello */
	uint16_t requests;
	double until;	   /**< when the answer should be complete; negative: not known */
	double late_since; /**< when a frame came after that first; 0: none did */
	double given;	   /**< when the last frame was handed out */
	double busy;	   /**< that was added to `until` since */
	bool heard;	   /**< a frame came since the limit was set */
	bool never;
	struct prb_wire_hello hello;
	uint8_t greeting[512]; /**< holds the texts of the hello */
	size_t used, taken;    /**< of `in`: received, and handed out by the last call */
	uint8_t in[2 * (PRB_WIRE_MAX_REPLY + PRB_WIRE_HEADER_SIZE)];
};

void prb_agent_close(struct prb_agent *agent)
{
	if (!agent)
		return;
	close(agent->fd);
	free(agent);
}

struct prb_target *prb_agent_target(const struct prb_agent *agent)
{
	return agent->target;
}

const struct prb_wire_hello *prb_agent_hello(const struct prb_agent *agent)
{
	return &agent->hello;
}

static struct prb_error *ended(const struct prb_agent *agent)
{
	return prb_error_create(PRB_ERROR_NO_PROCESS,
				"the agent of process %d closed the connection", (int)agent->pid);
}

/** Waits a little for the end of the process, whose connections close before it exits. */
static bool process_ended(pid_t pid)
{
	prb_auto_close int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd wait = {.fd = fd, .events = POLLIN};

	if (fd < 0)
		return errno == ESRCH;
	return poll(&wait, 1, END_MS) > 0;
}

static struct prb_error *has_ended(pid_t pid, struct prb_error *err)
{
	prb_error_destroy(err);
	return prb_error_create(PRB_ERROR_NO_PROCESS, "process %d has ended", (int)pid);
}

struct prb_error *prb_agent_explain_end(const struct prb_agent *agent, struct prb_error *err)
{
	if (!agent->target || !process_ended(agent->pid))
		return prb_error_hint(err, "the agent was stopped, or the process runs another "
					   "program now");
	return has_ended(agent->pid, err);
}

uint16_t prb_agent_last_request(const struct prb_agent *agent)
{
	return agent->requests;
}

int prb_agent_descriptor(const struct prb_agent *agent)
{
	return agent->fd;
}

bool prb_agent_has_more(const struct prb_agent *agent)
{
	struct pollfd look = {.fd = agent->fd, .events = POLLIN};

	return agent->used > agent->taken || poll(&look, 1, 0) > 0;
}

double prb_agent_deadline(double seconds)
{
	return prb_clock_seconds() + seconds;
}

double prb_agent_left(double deadline)
{
	double left = deadline - prb_clock_seconds();

	return PRB_MAX(left, 0);
}

static struct prb_error *no_answer(const struct prb_agent *agent)
{
	return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
					       "the agent of process %d does not answer",
					       (int)agent->pid),
			      "'probing %d dump' shows what the process does", (int)agent->pid);
}

void prb_agent_limit(struct prb_agent *agent, double seconds)
{
	agent->until = seconds < 0 ? -1 : prb_agent_deadline(seconds);
	agent->late_since = agent->given = agent->busy = 0;
	agent->never = agent->heard = false;
}

double prb_agent_patience(const struct prb_agent *agent)
{
	/* An agent that never sends a whole frame gets no grace. */
	return agent->until < 0 ? -1
				: prb_agent_left(agent->until + (agent->heard ? GRACE_SECONDS : 0));
}

bool prb_agent_never_answers(const struct prb_agent *agent)
{
	return agent->never;
}

/** The agent does not wait for us while it sends, but what it has sent does. */
static void count_busy(struct prb_agent *agent)
{
	double own = agent->given ? prb_clock_seconds() - agent->given : 0;

	own = PRB_MIN(own, BUSY_SECONDS - agent->busy);
	agent->busy += own;
	agent->until += agent->until < 0 ? 0 : own;
	agent->given = 0;
}

/** A frame came: it is one too many if others did for long when the answer should have. */
static struct prb_error *check_late(struct prb_agent *agent)
{
	double now = agent->given = prb_clock_seconds();

	agent->heard = true;
	if (agent->until < 0 || now < agent->until)
		return NULL;
	if (!agent->late_since)
		agent->late_since = now;
	if (now - agent->late_since < GRACE_SECONDS)
		return NULL;
	agent->never = true;
	return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
					       "the agent of process %d goes on sending, and never "
					       "answers",
					       (int)agent->pid),
			      "something else may listen in its place");
}

/** Waits for something to read or write until @p by; no limit if that is negative. */
static struct prb_error *wait_for(struct prb_agent *agent, short events, double by)
{
	struct pollfd wait = {.fd = agent->fd, .events = events};
	double left = by < 0 ? 0 : prb_agent_left(by);
	struct timespec timeout = {.tv_sec = (time_t)left,
				   .tv_nsec = (long)((left - (double)(time_t)left) * 1e9)};
	sigset_t mask;
	int rc;

	/* A caller that blocks SIGINT can be interrupted here, and only here. */
	sigprocmask(SIG_BLOCK, NULL, &mask);
	sigdelset(&mask, SIGINT);
	rc = ppoll(&wait, 1, by < 0 ? NULL : &timeout, &mask);

	if (rc < 0 && errno == EINTR)
		return prb_error_create(PRB_ERROR_CANCELLED, "interrupted");
	if (rc < 0)
		return prb_error_os(errno, "cannot wait for the agent");
	return rc ? NULL : no_answer(agent);
}

static struct prb_error *send_all(struct prb_agent *agent, const void *data, size_t length,
				  double by)
{
	const char *at = data;

	while (length) {
		ssize_t sent = send(agent->fd, at, length, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0 && errno == EAGAIN) {
			PRB_TRY(wait_for(agent, POLLOUT, by));
			continue;
		}
		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return ended(agent);
		if (sent < 0)
			return prb_error_os(errno, "cannot send to the agent");
		at += sent;
		length -= (size_t)sent;
	}
	return NULL;
}

struct prb_error *prb_agent_request(struct prb_agent *agent, double seconds,
				    enum prb_wire_type type, const void *head, size_t head_length,
				    const void *body, size_t body_length)
{
	struct prb_error *err = prb_agent_send(agent, type, head, head_length, body, body_length);

	prb_agent_limit(agent, seconds);
	return err;
}

struct prb_error *prb_agent_send(struct prb_agent *agent, enum prb_wire_type type, const void *head,
				 size_t head_length, const void *body, size_t body_length)
{
	/* Nothing is known of the way to another machine. */
	double by = agent->target ? prb_agent_deadline(SEND_SECONDS) : -1;
	uint8_t header[PRB_WIRE_HEADER_SIZE];

	prb_wire_put_header(header, (uint32_t)(head_length + body_length), (uint16_t)type,
			    ++agent->requests);
	PRB_TRY(send_all(agent, header, sizeof(header), by));
	PRB_TRY(send_all(agent, head, head_length, by));
	return send_all(agent, body, body_length, by);
}

/** Receives more, until @p by on our clock; no limit if that is negative. */
static struct prb_error *receive_more(struct prb_agent *agent, double by)
{
	ssize_t got;

	PRB_TRY(wait_for(agent, POLLIN, by));
	got = recv(agent->fd, agent->in + agent->used, sizeof(agent->in) - agent->used,
		   MSG_DONTWAIT);
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return NULL;
	if (got <= 0)
		return ended(agent);
	agent->used += (size_t)got;
	return NULL;
}

struct prb_error *prb_agent_receive(struct prb_agent *agent, double seconds,
				    struct prb_wire_frame *ret)
{
	double by;
	int whole;

	count_busy(agent);
	if (seconds < 0)
		seconds = prb_agent_patience(agent);
	by = seconds < 0 ? -1 : prb_agent_deadline(seconds);
	memmove(agent->in, agent->in + agent->taken, agent->used - agent->taken);
	agent->used -= agent->taken;
	agent->taken = 0;
	while (!(whole = prb_wire_next(agent->in, agent->used, PRB_WIRE_MAX_REPLY, ret)))
		PRB_TRY(receive_more(agent, by));
	if (whole < 0)
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"the agent of process %d violates the protocol: "
					"a frame of %u bytes",
					(int)agent->pid, ret->length);
	agent->taken = PRB_WIRE_HEADER_SIZE + ret->length;
	return check_late(agent);
}

struct prb_error *prb_agent_ask(struct prb_agent *agent, enum prb_wire_type request,
				enum prb_wire_type reply, double seconds,
				struct prb_wire_frame *ret)
{
	double by = prb_agent_deadline(seconds), grace = 0;

	PRB_TRY(prb_agent_request(agent, seconds, request, NULL, 0, NULL, 0));
	do {
		double left = prb_agent_left(by);

		/* An agent that has to stop may be busy for as long as its code is. */
		PRB_TRY(request == PRB_WIRE_STOP ? prb_agent_receive(agent, left + grace, ret)
						 : prb_agent_await(agent, left, ret));
		grace = GRACE_SECONDS; /* it sends something else */
	} while (ret->type != reply && ret->type != PRB_WIRE_ERROR);
	if (ret->type == PRB_WIRE_ERROR)
		return prb_error_create(PRB_ERROR_FAILED, "the agent refused: %.*s",
					(int)PRB_MIN(ret->length, 400u),
					(const char *)ret->payload);
	return NULL;
}

struct prb_error *prb_agent_stop(struct prb_agent *agent)
{
	struct prb_wire_frame frame;
	struct prb_error *err =
		prb_agent_ask(agent, PRB_WIRE_STOP, PRB_WIRE_STOPPED, STOP_SECONDS, &frame);

	if (agent->never || !prb_error_catch(&err, PRB_ERROR_TIMEOUT))
		return err;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_TIMEOUT,
				 "the agent of process %d is waiting for interrupted code to end",
				 (int)agent->pid),
		"it takes no more clients, and ends with that code");
}

static struct prb_error *greet(struct prb_agent *agent)
{
	uint8_t hello[PRB_WIRE_HELLO_SIZE];
	struct prb_wire_frame frame;

	prb_wire_put_hello(hello, PRB_WIRE_VERSION, PRB_WIRE_VERSION);
	PRB_TRY(prb_agent_request(agent, GREETING_SECONDS, PRB_WIRE_HELLO, hello, sizeof(hello),
				  NULL, 0));
	PRB_TRY(prb_agent_await(agent, GREETING_SECONDS, &frame));
	if (frame.type == PRB_WIRE_ERROR)
		return prb_error_create(PRB_ERROR_FAILED, "the agent of process %d: %.*s",
					(int)agent->pid, (int)PRB_MIN(frame.length, 400u),
					(const char *)frame.payload);
	if (frame.length <= sizeof(agent->greeting)) {
		memcpy(agent->greeting, frame.payload, frame.length);
		frame.payload = agent->greeting;
		if (prb_wire_get_hello(&frame, &agent->hello))
			return NULL;
	}
	return prb_error_create(PRB_ERROR_BAD_DATA, "what listens in process %d is not an agent",
				(int)agent->pid);
}

/** Tells of an agent that another version of ours has loaded, once for a process. */
static void note_version(const struct prb_agent *agent)
{
	static _Atomic pid_t noted;

	if (strcmp(agent->hello.agent, PRB_VERSION) != 0 &&
	    atomic_exchange(&noted, agent->pid) != agent->pid)
		prb_log("agent", 0,
			"process %d has the agent of probing %.32s, and this is "
			"probing " PRB_VERSION
			": what one of them lacks is refused. 'probing %d eject' stops it",
			(int)agent->pid, agent->hello.agent, (int)agent->pid);
}

/** Greets the agent of @p t, or of a process elsewhere if that is NULL, over @p socket. */
static struct prb_error *attach(int socket, struct prb_target *t, struct prb_agent **ret)
{
	prb_auto_close int fd = socket;
	struct prb_agent *agent = calloc(1, sizeof(*agent));

	if (!agent)
		return prb_error_nomem();
	agent->fd = prb_steal_fd(&fd);
	agent->target = t;
	agent->until = -1;
	agent->pid = t ? t->pid : 0;

	struct prb_error *err = greet(agent);
	if (!err && !t)
		agent->pid = (pid_t)agent->hello.pid;
	if (err) {
		prb_agent_close(agent);
		return err;
	}
	note_version(agent);
	*ret = agent;
	return NULL;
}

struct prb_error *prb_agent_requires(const struct prb_agent *agent, uint32_t capabilities,
				     const char *what)
{
	int pid = (int)agent->pid;

	if ((agent->hello.capabilities & capabilities) == capabilities)
		return NULL;
	if (!*agent->hello.python)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"the agent of process %d cannot %s: there is no Python",
					pid, what);
	return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
					       "the agent of process %d is of probing %.32s and "
					       "cannot %s",
					       pid, agent->hello.agent, what),
			      "'probing %d eject' stops it; then this version's is loaded", pid);
}

struct prb_error *prb_agent_attach(int fd, struct prb_agent **ret)
{
	return attach(fd, NULL, ret);
}

static struct prb_error *connect_once(struct prb_target *t, struct prb_agent **ret)
{
	int fd;

	PRB_TRY(prb_agent_socket(t, &fd));
	return attach(fd, t, ret);
}

struct prb_error *prb_agent_connect(struct prb_target *t, struct prb_agent **ret)
{
	enum { TRIES = 4 };
	struct prb_error *err = connect_once(t, ret);

	/* Where the program has closed the agent's socket, our coming made it open another, which
	 * it may close as well. */
	for (int i = 1; i < TRIES && prb_error_catch(&err, PRB_ERROR_NO_PROCESS); i++)
		err = connect_once(t, ret);
	if (err && err->code == PRB_ERROR_NO_PROCESS && process_ended(t->pid))
		return has_ended(t->pid, err);
	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
		return prb_error_hint(
			prb_error_create(PRB_ERROR_PERMISSION,
					 "the agent of process %d refuses the connection",
					 (int)t->pid),
			"only its own user and root may connect");
	return err;
}
