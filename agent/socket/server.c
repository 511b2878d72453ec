/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/socket/server.h"

#include <errno.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/client/connection.h"
#include "agent/crash/crash.h"
#include "agent/eval/debugger.h"
#include "agent/eval/enter_python.h"
#include "agent/eval/worker.h"
#include "agent/inside/config.h"
#include "agent/inside/libc.h"
#include "agent/inside/own_folder.h"
#include "agent/inside/python.h"
#include "agent/inside/status.h"
#include "agent/inside/thread.h"
#include "agent/pause/pause.h"
#include "agent/rings/memory_usage.h"
#include "agent/socket/clients.h"
#include "agent/socket/listen.h"
#include "agent/socket/wake.h"

enum {
	STACK = 256 << 10,
	MAX_HELLO = 128,
	LOST_MS = 100, /* poll interval while the thread has no wake-up descriptor */
};

/** Whether the thread alone is to end, or has ended. */
enum parking { IN_USE, PARKING, PARKED };

static struct {
	pthread_mutex_t lock; /* of starting and stopping */
	bool has_thread;      /* to be joined */
	pthread_t thread;
	atomic_bool running, stopping;
	atomic_bool reopen;	   /* the socket, which clients do not find any more */
	_Atomic uint32_t reopened; /* changes when that is done */
	_Atomic uint32_t parking;  /* enum parking */
	pthread_mutex_t wake_lock; /* of changing `wake` */
	struct prba_wake wake;
	struct prba_socket socket;
	char folder[sizeof(((struct sockaddr_un *)0)->sun_path)]; /* that was asked for, or "" */
	struct prba_clients clients;
	int64_t started_ms;
	uint64_t evaluations;
	bool clean; /* nothing of it was left in the interpreter */
} server = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.wake_lock = PTHREAD_MUTEX_INITIALIZER,
	.wake.fd = -1,
	.socket.fd = -1,
};

static void notify(void)
{
	pthread_mutex_lock(&server.wake_lock);
	prba_wake_send(&server.wake);
	pthread_mutex_unlock(&server.wake_lock);
}

/** Makes the thread, if it runs, look anew at the settings. Any thread. */
static void settings_changed(void)
{
	if (atomic_load(&server.running))
		notify();
}

static void say(struct prba_connection *c, uint16_t type, uint16_t request, const char *text)
{
	if (prba_connection_send(c, type, request, text, strlen(text)) == PRBA_FULL)
		prba_connection_give_up(c);
}

static void greet(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	uint8_t hello[PRB_WIRE_HELLO_REPLY_SIZE + MAX_HELLO] = PRB_WIRE_MAGIC;
	char *texts = (char *)hello + PRB_WIRE_HELLO_REPLY_SIZE;
	int version = prb_wire_agree(frame), length;

	if (version <= 0) {
		say(c, PRB_WIRE_ERROR, frame->request,
		    version ? "this is the agent of probing, which is greeted first"
			    : "this agent speaks version 1 of the protocol only");
		prba_connection_give_up(c);
		return;
	}
	c->greeted = true;
	prb_wire_put16(hello + 4, (uint16_t)version);
	prb_wire_put32(hello + 8, (uint32_t)getpid());
	prb_wire_put32(hello + 12,
		       PRB_WIRE_CAN_CONFIG | PRB_WIRE_CAN_CRASH |
			       (*prba_python_version()
					? PRB_WIRE_CAN_EVAL | PRB_WIRE_CAN_INTERACT |
						  PRB_WIRE_CAN_PAUSE | PRB_WIRE_CAN_STEP |
						  PRB_WIRE_CAN_PLACE | PRB_WIRE_CAN_TRACE |
						  PRB_WIRE_CAN_CALLS | PRB_WIRE_CAN_TORCH |
						  PRB_WIRE_CAN_SITES | PRB_WIRE_CAN_SITES_NATIVE |
						  PRB_WIRE_CAN_BREAK | PRB_WIRE_CAN_OPS |
						  PRB_WIRE_CAN_SLOW | PRB_WIRE_CAN_PREPARE |
						  PRB_WIRE_CAN_HISTORY
					: 0));
	length = snprintf(texts, MAX_HELLO, "%s%c%s", PRB_VERSION, 0, prba_python_version());
	if (prba_connection_send(c, PRB_WIRE_HELLO_REPLY, frame->request, hello,
				 PRB_WIRE_HELLO_REPLY_SIZE + (size_t)length + 1) == PRBA_FULL)
		prba_connection_give_up(c);
}

static void tell_status(struct prba_connection *c, uint16_t request)
{
	unsigned clients, busy;
	char text[1024 + PRBA_CRASH_PATH], paused[96] = "", crashes[64 + PRBA_CRASH_PATH] = "";
	const char *folder = prba_crash_folder();
	int64_t since;
	int32_t pid;

	if (prba_pause_who(&pid, &since))
		snprintf(paused, sizeof(paused), "paused_by=%d\npaused_since=%lld\n", (int)pid,
			 (long long)since / 1000000);
	if (folder)
		snprintf(crashes, sizeof(crashes), "crash_hooks=%d\ncrash_folder=%s\n",
			 prba_crash_has_hooks(), folder);
	prba_clients_count(&server.clients, &clients, &busy);
	snprintf(text, sizeof(text),
		 "version=%s\npid=%d\npython=%s\nuptime_ms=%lld\nclients=%u\nrunning=%u\n"
		 "evaluations=%llu\npaused_us=%lld\n%s%ssocket=%s%s\n%s%s",
		 PRB_VERSION, (int)getpid(), prba_python_version(),
		 (long long)(prba_now_ms() - server.started_ms), clients, busy,
		 (unsigned long long)(server.evaluations + prba_debugger_evaluations()),
		 (long long)prba_pause_held_us(), paused, crashes,
		 server.socket.address.sun_path[0] ? "" : "@",
		 server.socket.address.sun_path + !server.socket.address.sun_path[0],
		 *server.socket.note ? "socket_note=" : "", server.socket.note);
	say(c, PRB_WIRE_STATUS_REPLY, request, text);
}

/** Changes a setting, if the frame says so, and sends all settings. NULL, or why it cannot. */
static const char *configure(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	char text[PRB_CONFIG_KEYS * (PRB_CONFIG_TEXT_SIZE + 64)];
	size_t used = 0;

	if (frame->length >= sizeof(text))
		return "the value is too long";
	memcpy(text, frame->payload, frame->length);
	text[frame->length] = '\0';
	switch (frame->length ? probing_config_set(text) : 0) {
	case 0:
		break;
	case -ENOENT:
		return "this agent has no such setting";
	case -EAGAIN:
		return "the program changes a setting right now: try again";
	default:
		return "the value is out of bounds or too long";
	}
	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++) {
		const char *name = prb_config_keys[i].name;
		int length = snprintf(text + used, sizeof(text) - used, "%s=", name);

		used += (size_t)length;
		length = probing_config_get(name, text + used, sizeof(text) - used - 1);
		used += length < 0 ? 0 : (size_t)length;
		text[used++] = '\n';
	}
	text[used - 1] = '\0';
	say(c, PRB_WIRE_CONFIG_REPLY, frame->request, text);
	return NULL;
}

/** In memory of the server's thread, which alone comes here. */
static const char *no_folder(const char *path)
{
	static char text[192 + PRBA_CRASH_PATH];
	char why[96 + PRBA_CRASH_PATH] = "";

	if (*path)
		prba_own_folder_why(path, why, sizeof(why));
	snprintf(text, sizeof(text),
		 "no folder for crash records can be made that is the user's alone%s%s",
		 *path ? ": " : "", why);
	return text;
}

/** NULL, or why not. */
static const char *handle_crashes(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	char config[PRBA_CRASH_CONFIG], folder[PRBA_CRASH_PATH] = "";
	int rc;

	if (frame->length >= sizeof(config))
		return "the configuration is too long";
	memcpy(config, frame->payload, frame->length);
	config[frame->length] = '\0';
	rc = prba_crash_start(config, folder);
	if (rc == -EINVAL)
		return "a key or value of the configuration is wrong";
	if (rc)
		return no_folder(folder);
	say(c, PRB_WIRE_CRASH_REPLY, frame->request, folder);
	return NULL;
}

static void take(struct prba_connection *c, const struct prb_wire_frame *frame)
{
	const char *why = NULL;

	if (!c->greeted) {
		greet(c, frame);
		return;
	}
	switch (frame->type) {
	case PRB_WIRE_EVAL:
	case PRB_WIRE_COMPLETE:
	case PRB_WIRE_PAUSE:
	case PRB_WIRE_STEP:
		why = atomic_load(&server.stopping) ? "the agent is stopping"
						    : prba_worker_start(c, frame);
		server.evaluations += !why && frame->type == PRB_WIRE_EVAL;
		break;
	case PRB_WIRE_INTERRUPT:
		prba_worker_interrupt(c, PRB_WIRE_OK);
		break;
	case PRB_WIRE_RESUME:
	case PRB_WIRE_FROZEN:
		why = prba_pause_request(c, frame);
		break;
	case PRB_WIRE_CRASH:
		why = handle_crashes(c, frame);
		break;
	case PRB_WIRE_STATUS:
		tell_status(c, frame->request);
		break;
	case PRB_WIRE_CONFIG:
		why = configure(c, frame);
		break;
	case PRB_WIRE_STOP:
		c->wants_stop = true;
		c->stop_request = frame->request;
		atomic_store(&server.stopping, true);
		prba_crash_stop();
		break;
	default:
		why = "the agent does not know this type of request";
	}
	if (why)
		say(c, PRB_WIRE_ERROR, frame->request, why);
}

static void receive(struct prba_connection *c)
{
	struct prb_wire_frame frame;
	int whole;

	if (!prba_connection_receive(c)) {
		prba_connection_give_up(c);
		return;
	}
	while (!atomic_load(&c->gone) && (whole = prba_connection_next(c, &frame))) {
		if (whole < 0) {
			say(c, PRB_WIRE_ERROR, frame.request, "the request is too large");
			prba_connection_give_up(c);
			return;
		}
		take(c, &frame);
		prba_connection_drop(c, &frame);
	}
}

static void accept_client(void)
{
	int fd = prba_socket_accept(&server.socket);
	struct prba_connection *c;

	if (fd < 0)
		return;
	c = prba_connection_create(fd);
	if (!c) {
		close(fd);
		return;
	}
	if (prba_clients_add(&server.clients, c))
		return;
	say(c, PRB_WIRE_ERROR, 0, "the agent has its maximum number of clients");
	prba_connection_destroy(c);
}

static bool wake_is_ours(void)
{
	return server.wake.fd >= 0 && prba_inode(server.wake.fd) == server.wake.inode;
}

static bool socket_is_ours(void)
{
	return server.socket.fd >= 0 && prba_inode(server.socket.fd) == server.socket.inode;
}

/** Programs close descriptors that they have not opened; what is lost is opened again. */
static bool mend(void)
{
	int rc = 0;

	if (!wake_is_ours()) {
		pthread_mutex_lock(&server.wake_lock);
		server.wake.fd = -1;
		rc = prba_wake_open(&server.wake);
		pthread_mutex_unlock(&server.wake_lock);
	}
	if (!rc && (!socket_is_ours() || atomic_load(&server.reopen))) {
		prba_socket_close(&server.socket);
		rc = prba_socket_open(&server.socket, *server.folder ? server.folder : NULL);
	}
	if (atomic_exchange(&server.reopen, false))
		prba_wake(&server.reopened);
	return !rc;
}

/** Descriptors to be polled, and the connections that they are of. */
struct polled {
	struct pollfd fds[2 + PRBA_CLIENTS];
	struct prba_connection *of[2 + PRBA_CLIENTS];
	nfds_t count;
};

static void add_polled(struct polled *p, int fd, struct prba_connection *c)
{
	if (fd < 0)
		return;
	p->fds[p->count] = (struct pollfd){.fd = fd, .events = POLLIN};
	p->of[p->count] = c;
	if (c && prba_connection_flush(c))
		p->fds[p->count].events |= POLLOUT;
	if (!c || !atomic_load(&c->gone))
		p->count++;
}

static int look_after(void)
{
	return prba_clients_look_after(&server.clients, atomic_load(&server.stopping));
}

/** Sleeps until something happens and does what it asks for. */
static void serve_once(void)
{
	struct polled polled = {};
	int timeout = look_after(), due = prba_memory_due();
	bool accepts = false;

	if (due >= 0 && (timeout < 0 || timeout > due))
		timeout = due;

	/* New clients wait meanwhile, rather than being refused. */
	if (!prba_clients_expect_room(&server.clients))
		add_polled(&polled, server.socket.fd, NULL);
	add_polled(&polled, server.wake.fd, NULL);
	for (int i = 0; i < PRBA_CLIENTS; i++) {
		struct prba_connection *c = server.clients.list[i];

		if (c && !atomic_load(&c->gone))
			add_polled(&polled, c->fd, c);
	}
	if (!wake_is_ours() && (timeout < 0 || timeout > LOST_MS))
		timeout = LOST_MS;
	if (poll(polled.fds, polled.count, timeout) < 0) {
		/*
		 * More descriptors than the program's limit allows, or no memory: wait, then poll
		 * again.
		 */
		if (errno != EINTR)
			poll(NULL, 0, LOST_MS);
		return;
	}
	prba_wake_take(&server.wake);
	prba_memory_tick();
	for (nfds_t i = 0; i < polled.count; i++) {
		if (polled.of[i] && polled.fds[i].revents)
			receive(polled.of[i]);
		accepts |= !polled.of[i] && polled.fds[i].revents &&
			   polled.fds[i].fd == server.socket.fd;
	}
	if (accepts && socket_is_ours()) {
		accept_client();
		/* It has come by a way that others may not have any more. */
		if (!prba_socket_is_there(&server.socket))
			atomic_store(&server.reopen, true);
	}
}

/** Answers the clients that asked for the end. */
static void tell_stopped(void)
{
	for (int i = 0; i < PRBA_CLIENTS; i++) {
		struct prba_connection *c = server.clients.list[i];

		if (c && c->wants_stop)
			say(c, PRB_WIRE_STOPPED, c->stop_request, "");
	}
}

/** Answers the client that parks the thread: true if the thread has to end. */
static bool park(void)
{
	unsigned clients, busy;
	bool good;

	if (atomic_load(&server.parking) != PARKING)
		return false;
	prba_clients_count(&server.clients, &clients, &busy);
	good = !clients && !busy && prba_clients_are_over(&server.clients);
	atomic_store(&server.parking, good ? PARKED : IN_USE);
	syscall(SYS_futex, &server.parking, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
	return good;
}

static void *serve(void *argument)
{
	(void)argument;
	while (!atomic_load(&server.stopping)) {
		if (park())
			return NULL;
		if ((!wake_is_ours() || !socket_is_ours() || atomic_load(&server.reopen)) &&
		    !mend())
			break;
		serve_once();
	}
	/* No client is accepted any more; running code is interrupted and waited for. */
	atomic_store(&server.stopping, true);
	prba_socket_close(&server.socket);
	while (look_after(), !prba_clients_are_over(&server.clients))
		serve_once();
	server.clean = prba_work_release();
	tell_stopped();
	prba_clients_end(&server.clients);
	pthread_mutex_lock(&server.wake_lock);
	prba_wake_close(&server.wake);
	pthread_mutex_unlock(&server.wake_lock);
	atomic_store(&server.running, false);
	if (atomic_exchange(&server.reopen, false))
		prba_wake(&server.reopened);
	return NULL;
}

static void join(void)
{
	if (server.has_thread)
		pthread_join(server.thread, NULL);
	server.has_thread = false;
}

/** Clients cannot find the socket: its file was removed, or the process is another user's now. */
static void reopen_socket(void)
{
	uint32_t seen = atomic_load(&server.reopened);

	atomic_store(&server.reopen, true);
	notify();
	while (atomic_load(&server.running) && atomic_load(&server.reopen))
		prba_wait(&server.reopened, seen);
}

/** The thread, for what is open already; 0 or an errno value. Under the lock. */
static int start_thread(void)
{
	int rc;

	atomic_store(&server.running, true);
	rc = prba_thread_start(&server.thread, STACK, "agent", serve, NULL);
	if (rc) {
		atomic_store(&server.running, false);
		prba_socket_close(&server.socket);
		prba_wake_close(&server.wake);
	}
	server.has_thread = !rc;
	return rc;
}

/** Under the lock. */
static void unpark(void)
{
	if (atomic_load(&server.parking) != PARKED)
		return;
	atomic_store(&server.parking, IN_USE);
	start_thread();
}

/** A thread that was joined is counted until the kernel has done with it. */
static void wait_until_alone(void)
{
	enum { TRIES = 200, PAUSE_NS = 50000 };
	char threads[PRBA_STATUS_VALUE];

	for (int i = 0; i < TRIES; i++) {
		struct timespec pause = {.tv_nsec = PAUSE_NS};

		if (!prba_status_read(PRBA_STATUS_PROCESS, "Threads", threads) ||
		    !strcmp(threads, "1"))
			return;
		syscall(SYS_nanosleep, &pause, NULL);
	}
}

bool prba_server_park(void)
{
	char threads[PRBA_STATUS_VALUE];
	bool parked = false;

	if (!atomic_load(&server.running) ||
	    !prba_status_read(PRBA_STATUS_PROCESS, "Threads", threads) || strcmp(threads, "2") != 0)
		return false;
	pthread_mutex_lock(&server.lock);
	if (server.has_thread && !atomic_load(&server.stopping)) {
		atomic_store(&server.parking, PARKING);
		notify();
		while (atomic_load(&server.parking) == PARKING && atomic_load(&server.running))
			prba_wait_for(&server.parking, PARKING, LOST_MS * 1000);
		parked = atomic_load(&server.parking) == PARKED;
	}
	if (parked) {
		join();
		wait_until_alone();
	}
	pthread_mutex_unlock(&server.lock);
	return parked;
}

void prba_server_unpark(void)
{
	pthread_mutex_lock(&server.lock);
	unpark();
	pthread_mutex_unlock(&server.lock);
}

/** Under the lock. */
static int start(const char *folder)
{
	int rc;

	if (atomic_load(&server.running)) {
		if (atomic_load(&server.stopping))
			return -EBUSY;
		unpark();
		if (!prba_socket_is_there(&server.socket))
			reopen_socket();
		return PRBA_RUNS_ALREADY;
	}
	join();
	atomic_store(&server.stopping, false);
	snprintf(server.folder, sizeof(server.folder), "%s", folder ? folder : "");
	rc = prba_socket_open(&server.socket, folder);
	if (rc)
		return rc;
	rc = prba_wake_open(&server.wake);
	if (rc) {
		prba_socket_close(&server.socket);
		return rc;
	}
	server.started_ms = prba_now_ms();
	server.evaluations = 0;
	server.clean = true;
	prba_job_notify = notify;
	atomic_store(&prba_config_changed, settings_changed);
	rc = start_thread();
	return rc ? -rc : PRBA_STARTED;
}

int prba_server_start(const char *folder)
{
	int rc;

	pthread_mutex_lock(&server.lock);
	rc = start(folder);
	pthread_mutex_unlock(&server.lock);
	return rc;
}

bool prba_server_stop(void)
{
	bool clean;

	pthread_mutex_lock(&server.lock);
	if (atomic_load(&server.running)) {
		unpark();
		atomic_store(&server.stopping, true);
		notify();
	}
	join();
	clean = server.clean;
	pthread_mutex_unlock(&server.lock);
	return clean;
}

void prba_server_unlink(void)
{
	if (atomic_load(&server.running))
		prba_socket_unlink(&server.socket);
}

/** In a child: its copies of our descriptors go, and nothing that has taken their numbers. */
void prba_server_forked(void)
{
	static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

	prba_wake_close(&server.wake);
	if (socket_is_ours())
		close(server.socket.fd);
	prba_clients_forked(&server.clients);
	server.socket.fd = -1;
	server.socket.address.sun_path[0] = 0;
	server.wake_lock = fresh;
	server.lock = fresh;
	server.has_thread = false;
	atomic_store(&server.stopping, false);
	atomic_store(&server.running, false);
	atomic_store(&server.reopen, false);
	atomic_store(&server.parking, IN_USE);
}
