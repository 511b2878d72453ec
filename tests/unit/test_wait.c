/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Descriptions of threads that sleep on sockets, pipes and files. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "dump/waits/wait_private.h"
#include "target/snapshot/snapshot.h"
#include "tests/unit/skip.h"
#include "tests/unit/sleeper.h"

/* Sockets. */

static int loopback(int domain, int type, struct sockaddr_storage *address, socklen_t *length)
{
	int fd = socket(domain, type | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_storage){.ss_family = (sa_family_t)domain};
	*length = domain == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	if (domain == AF_INET)
		((struct sockaddr_in *)address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		((struct sockaddr_in6 *)address)->sin6_addr = in6addr_loopback;
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)address, *length), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)address, length), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 4), 0);
	return fd;
}

static unsigned port_of(const struct sockaddr_storage *address)
{
	return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static void receive(void *fd)
{
	char byte;

	recv(*(int *)fd, &byte, 1, 0);
}

static void accept_one(void *fd)
{
	accept(*(int *)fd, NULL, NULL);
}

static void test_tcp(void **state)
{
	struct sockaddr_storage address;
	socklen_t length;

	(void)state;
	for (int domain = AF_INET; domain; domain = domain == AF_INET ? AF_INET6 : 0) {
		const char *host = domain == AF_INET ? "127.0.0.1" : "[::1]";
		int listener = loopback(domain, SOCK_STREAM, &address, &length);
		int fd = socket(domain, SOCK_STREAM | SOCK_CLOEXEC, 0);

		assert_int_equal(connect(fd, (struct sockaddr *)&address, length), 0);
		ASSERT_SLEEPS(receive, &fd, "recvfrom", "socket %d → %s:%u", fd, host,
			      port_of(&address));
		close(fd);
		close(accept(listener, NULL, NULL));
		ASSERT_SLEEPS(accept_one, &listener, "accept", "socket %d listening on %s:%u",
			      listener, host, port_of(&address));
		close(listener);
	}
}

static void test_mapped_address(void **state)
{
	struct sockaddr_storage address;
	socklen_t length;
	int listener = loopback(AF_INET, SOCK_STREAM, &address, &length);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in6 mapped = {.sin6_family = AF_INET6,
				      .sin6_port = ((struct sockaddr_in *)&address)->sin_port};

	(void)state;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:127.0.0.1", &mapped.sin6_addr), 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&mapped, sizeof(mapped)), 0);
	ASSERT_SLEEPS(receive, &fd, "recvfrom", "socket %d → 127.0.0.1:%u", fd, port_of(&address));
	close(fd);
	close(listener);
}

static void test_udp(void **state)
{
	struct sockaddr_storage address, other;
	socklen_t length;
	int fd = loopback(AF_INET, SOCK_DGRAM, &address, &length);
	int peer = loopback(AF_INET, SOCK_DGRAM, &other, &length);

	(void)state;
	ASSERT_SLEEPS(receive, &fd, "recvfrom", "UDP socket %d on 127.0.0.1:%u", fd,
		      port_of(&address));
	assert_int_equal(connect(fd, (struct sockaddr *)&other, length), 0);
	ASSERT_SLEEPS(receive, &fd, "recvfrom", "UDP socket %d → 127.0.0.1:%u", fd,
		      port_of(&other));
	close(fd);
	close(peer);
}

struct connection {
	int fd;
	struct sockaddr_storage address;
	socklen_t length;
};

static void connect_to(void *context)
{
	struct connection *c = context;

	connect(c->fd, (struct sockaddr *)&c->address, c->length);
}

/* A listener whose queue is full leaves the next one waiting. */
static void test_connect(void **state)
{
	struct connection c = {.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
	struct sockaddr_un *un = (struct sockaddr_un *)&c.address;
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)state;
	un->sun_family = AF_UNIX;
	c.length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			       (size_t)sprintf(un->sun_path + 1, "probing-%d", getpid()));
	assert_int_equal(bind(listener, (struct sockaddr *)un, c.length), 0);
	assert_int_equal(listen(listener, 0), 0);
	ASSERT_SLEEPS(accept_one, &listener, "accept", "unix socket %d listening on @probing-%d",
		      listener, getpid());
	assert_int_equal(connect(first, (struct sockaddr *)un, c.length), 0);
	ASSERT_SLEEPS(connect_to, &c, "connect", "unix socket %d → @probing-%d", c.fd, getpid());
	close(first);
	close(c.fd);
	close(listener);
}

static void test_unix_path(void **state)
{
	char folder[] = "/tmp/probing-test-XXXXXX";
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), accepted;

	(void)state;
	assert_non_null(mkdtemp(folder));
	snprintf(un.sun_path, sizeof(un.sun_path), "%s/a\nb", folder);
	assert_int_equal(bind(listener, (struct sockaddr *)&un, sizeof(un)), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
	accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(accepted >= 0);

	struct child child;
	start(&child, receive, &fd);
	await(&child, 'S', "recvfrom");
	close(fd);
	describe(&child);
	/* The child inherited the accepted end too, but another holder is more useful. */
	assert_what(&child, "unix socket %d → %s/a\\nb of %d (test_wait)", fd, folder, getpid());
	finish(&child);
	close(accepted);
	close(listener);
	unlink(un.sun_path);
	rmdir(folder);
}

static void receive_alone(void *pair)
{
	close(((int *)pair)[1]);
	receive(pair);
}

/* Without the module unix_diag, kernels report only the creator of a socket pair. */
static bool kernel_tells_peers(void)
{
	prb_auto_close int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	struct {
		struct nlmsghdr header;
		struct unix_diag_req request;
	} question = {
		.header = {.nlmsg_len = sizeof(question),
			   .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			   .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.request = {.sdiag_family = AF_UNIX, .udiag_states = ~0u},
	};
	struct nlmsghdr reply[512];

	assert_int_equal(send(fd, &question, sizeof(question), 0), sizeof(question));
	return recv(fd, reply, sizeof(reply), 0) > (ssize_t)sizeof(reply[0]) &&
	       reply[0].nlmsg_type != NLMSG_ERROR;
}

static void test_unix_pair(void **state)
{
	int pair[2];
	struct child child;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	start(&child, receive_alone, pair);
	await(&child, 'S', "recvfrom");
	describe(&child);
	assert_what(&child, "unix socket %d → %d (test_wait)", pair[0], getpid());
	finish(&child);

	start(&child, receive, pair);
	await(&child, 'S', "recvfrom");
	close(pair[1]);
	describe(&child);
	if (kernel_tells_peers())
		assert_what(&child, "unix socket %d → itself", pair[0]);
	else
		assert_what(&child, "unix socket %d → %d (test_wait)", pair[0], getpid());
	finish(&child);
	close(pair[0]);
}

/* Without a duplicate of a socket, the tables must give the same. */
static void assert_in_tables(struct child *child, int fd, const char *format, ...)
{
	struct prb_wait_context *c;
	char expected[256];
	va_list args;

	va_start(args, format);
	vsnprintf(expected, sizeof(expected), format, args);
	va_end(args);
	ok(prb_wait_context_create(child->target, &c));
	c->pidfd = -2;
	for (int again = 0; again < 2; again++) {
		prb_auto_str struct prb_str s = {};

		prb_describe_fd(c, fd, PRB_INCOMING, &s);
		assert_string_equal(prb_str_text(&s), expected);
	}
	prb_wait_context_destroy(c);
}

static void test_tables(void **state)
{
	struct sockaddr_storage address, address6, udp_address;
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	socklen_t length;
	int listener = loopback(AF_INET, SOCK_STREAM, &address, &length);
	int udp = loopback(AF_INET6, SOCK_DGRAM, &udp_address, &length);
	int listener6 = loopback(AF_INET6, SOCK_STREAM, &address6, &length);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int named = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_KOBJECT_UEVENT);
	struct child child;

	(void)state;
	assert_int_equal(connect(fd, (struct sockaddr *)&address6, length), 0);
	assert_int_equal(bind(netlink,
			      (struct sockaddr *)&(struct sockaddr_nl){.nl_family = AF_NETLINK},
			      sizeof(struct sockaddr_nl)),
			 0);
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
			     (size_t)sprintf(un.sun_path + 1, "probing tables %d", getpid()));
	assert_int_equal(bind(named, (struct sockaddr *)&un, length), 0);
	assert_int_equal(listen(named, 1), 0);

	start(&child, receive, &fd);
	await(&child, 'S', "recvfrom");
	assert_in_tables(&child, fd, "socket %d → [::1]:%u", fd, port_of(&address6));
	assert_in_tables(&child, listener, "socket %d listening on 127.0.0.1:%u", listener,
			 port_of(&address));
	assert_in_tables(&child, udp, "UDP socket %d on [::1]:%u", udp, port_of(&udp_address));
	assert_in_tables(&child, named, "unix socket %d listening on @probing tables %d", named,
			 getpid());
	assert_in_tables(&child, netlink, "netlink socket %d (device events)", netlink);
	assert_in_tables(&child, 1000, "descriptor 1000");
	finish(&child);
	close(fd);
	close(listener);
	close(listener6);
	close(udp);
	close(named);
	close(netlink);
}

static void test_netlink(void **state)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);

	(void)state;
	assert_true(fd >= 0);
	ASSERT_SLEEPS(receive, &fd, "recvfrom", "netlink socket %d (route)", fd);
	close(fd);
}

/* Pipes. */

static void read_one(void *fd)
{
	char byte;

	if (read(*(int *)fd, &byte, 1) < 0)
		_exit(98);
}

static void read_alone(void *ends)
{
	close(((int *)ends)[1]);
	read_one(ends);
}

static void fill(void *ends)
{
	static const char page[4096];

	close(((int *)ends)[0]);
	while (write(((int *)ends)[1], page, sizeof(page)) > 0)
		;
}

static void test_pipe(void **state)
{
	int ends[2];
	struct child child;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	ASSERT_SLEEPS(read_alone, ends, "read", "pipe %d ← %d (test_wait)", ends[0], getpid());
	ASSERT_SLEEPS(fill, ends, "write", "pipe %d → %d (test_wait)", ends[1], getpid());
	close(ends[0]);
	close(ends[1]);

	assert_int_equal(pipe(ends), 0);
	start(&child, read_one, ends);
	close(ends[0]);
	close(ends[1]);
	await(&child, 'S', "read");
	describe(&child);
	assert_what(&child, "pipe %d ← itself", ends[0]);
	finish(&child);
}

static void test_pipe_of_many(void **state)
{
	int ends[2];
	struct child child, writer;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	start(&writer, read_one, ends); /* has the end for writing open too */
	await(&writer, 'S', "read");
	start(&child, read_alone, ends);
	await(&child, 'S', "read");
	describe(&child);
	assert_what(&child, "pipe %d ← %d (test_wait) and 1 more", ends[0],
		    getpid() < writer.pid ? getpid() : writer.pid);
	finish(&child);
	finish(&writer);
	close(ends[0]);
	close(ends[1]);
}

/* A snapshot describes the same wait, though the process is gone. */
static void test_replay(void **state)
{
	char path[] = "/tmp/probing-test-XXXXXX";
	int ends[2];
	struct child child, replay = {};
	struct prb_recorder *recorder;

	(void)state;
	assert_int_equal(pipe(ends), 0);
	start(&child, read_alone, ends);
	await(&child, 'S', "read");
	ok(prb_recorder_create(&recorder));
	prb_recorder_attach(recorder, child.target);
	ok(prb_task_read(child.target, child.tid, &child.task));
	describe(&child);
	prb_recorder_detach(recorder);
	close(mkstemp(path));
	ok(prb_recorder_write(recorder, child.target, path));
	prb_recorder_destroy(recorder);
	finish(&child);
	close(ends[0]);
	close(ends[1]);

	ok(prb_target_open_snapshot(path, &replay.target));
	ok(prb_task_read(replay.target, child.tid, &replay.task));
	describe(&replay);
	assert_string_equal(replay.wait.call, "read");
	assert_what(&replay, "pipe %d ← %d (test_wait)", ends[0], getpid());
	replay.task.tid++;
	describe(&replay);
	assert_null(replay.wait.what);
	prb_target_destroy(replay.target);
	unlink(path);
}

static void test_fifo(void **state)
{
	char path[] = "/tmp/probing-test-XXXXXX";
	struct child child;
	int ends[2];

	(void)state;
	assert_non_null(mkdtemp(path));
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	ends[0] = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	ends[1] = open(path, O_WRONLY | O_CLOEXEC);
	fcntl(ends[0], F_SETFL, 0);
	start(&child, read_alone, ends);
	await(&child, 'S', "read");
	describe(&child);
	assert_what(&child, "pipe %d %s ← %d (test_wait)", ends[0], path, getpid());
	finish(&child);
	close(ends[0]);
	close(ends[1]);
	unlink(path);
}

static void open_path(void *path)
{
	open(path, O_RDONLY);
}

static void test_open(void **state)
{
	char path[] = "/tmp/probing-test-XXXXXX";

	(void)state;
	assert_non_null(mkdtemp(path));
	rmdir(path);
	assert_int_equal(mkfifo(path, 0600), 0);
	ASSERT_SLEEPS(open_path, path, "openat", "file %s", path);
	unlink(path);
}

/* With another root, paths are shown as the process sees them. */
static void read_in_chroot(void *folder)
{
	int fd;

	if (chroot(folder) || chdir("/"))
		_exit(97);
	fd = open("/fifo", O_RDWR);
	read_one(&fd);
}

static void test_chroot(void **state)
{
	char folder[] = "/tmp/probing-test-XXXXXX", fifo[64];
	struct child child;
	int next = dup(0);

	(void)state;
	close(next);
	if (geteuid())
		SKIP("needs root");
	assert_non_null(mkdtemp(folder));
	snprintf(fifo, sizeof(fifo), "%s/fifo", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	start(&child, read_in_chroot, folder);
	await(&child, 'S', "read");
	describe(&child);
	assert_what(&child, "pipe %d /fifo ← itself", next);
	finish(&child);
	unlink(fifo);
	rmdir(folder);
}

static void test_terminal(void **state)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave;

	(void)state;
	assert_true(master >= 0);
	assert_int_equal(grantpt(master) || unlockpt(master), 0);
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(slave >= 0);
	ASSERT_SLEEPS(read_one, &slave, "read", "terminal %d %s", slave, ptsname(master));
	close(slave);
	close(master);
}

/* Descriptors other than files. */

static void read_eight(void *fd)
{
	uint64_t value;

	read(*(int *)fd, &value, sizeof(value));
}

static void read_page(void *fd)
{
	char page[4096];

	read(*(int *)fd, page, sizeof(page));
}

static void test_anonymous(void **state)
{
	int event = eventfd(0, EFD_CLOEXEC), timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	int watch = inotify_init1(IN_CLOEXEC);
	sigset_t signals;

	(void)state;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	sigaddset(&signals, SIGWINCH);
	int signal = signalfd(-1, &signals, SFD_CLOEXEC);

	ASSERT_SLEEPS(read_eight, &event, "read", "eventfd %d", event);
	ASSERT_SLEEPS(read_eight, &timer, "read", "timerfd %d, not set", timer);
	ASSERT_SLEEPS(read_page, &signal, "read", "signalfd %d for SIGUSR1, SIGWINCH", signal);
	ASSERT_SLEEPS(read_page, &watch, "read", "inotify %d", watch);
	assert_true(inotify_add_watch(watch, "/tmp", IN_UNMOUNT) >= 0);
	assert_true(inotify_add_watch(watch, "/", IN_UNMOUNT) >= 0);
	assert_true(inotify_add_watch(watch, "/proc", IN_UNMOUNT) >= 0);

	struct child child;
	start(&child, read_page, &watch);
	await(&child, 'S', "read");
	describe(&child);
	assert_what(&child, "inotify %d watching 3 files", watch);
	finish(&child);
	close(event);
	close(timer);
	close(watch);
	close(signal);
}

/* poll and the like. */

static void poll_two(void *fds)
{
	struct pollfd polled[] = {
		{((int *)fds)[0], POLLIN, 0}, {-1, POLLIN, 0}, {((int *)fds)[1], POLLOUT, 0}};

	poll(polled, 3, 3600000);
}

static void poll_one(void *fd)
{
	struct pollfd polled = {*(int *)fd, POLLIN, 0};
	struct timespec limit = {1800, 500000000};

	ppoll(&polled, 1, &limit, NULL);
}

static void poll_none(void *unused)
{
	(void)unused;
	syscall(SYS_ppoll, NULL, 0, &(struct timespec){7200, 0}, NULL, 8);
}

static void select_two(void *fds)
{
	int *fd = fds;
	fd_set in, out;

	FD_ZERO(&in);
	FD_ZERO(&out);
	FD_SET(fd[0], &in);
	FD_SET(fd[1], &out);
	syscall(SYS_pselect6, 1024, &in, &out, NULL, &(struct timespec){5000, 0}, NULL);
}

static void test_poll(void **state)
{
	int in = eventfd(0, EFD_CLOEXEC), full = eventfd(0, EFD_CLOEXEC);
	int fds[] = {in, full};
	uint64_t most = UINT64_MAX - 1;
	const char *poll_call = "ppoll"; /* the system call of poll() on newer architectures */
	struct child child;

	(void)state;
	assert_int_equal(write(full, &most, sizeof(most)), sizeof(most));
#ifdef SYS_poll
	poll_call = "poll";
#endif
	start(&child, poll_two, fds);
	await(&child, 'S', poll_call);
	describe(&child);
	assert_what(&child, "2 descriptors: eventfd %d, eventfd %d, at most 3600 s", in, full);
	assert_true(child.wait.asked == 3600);
	finish(&child);
	ASSERT_SLEEPS(poll_one, &in, "ppoll", "eventfd %d, at most 1800.5 s", in);
	ASSERT_SLEEPS(select_two, fds, "pselect6",
		      "2 descriptors: eventfd %d, eventfd %d, at most 5000 s", in, full);

	start(&child, poll_none, NULL);
	await(&child, 'S', "ppoll");
	describe(&child);
	assert_what(&child, "sleep of 7200 s");
	assert_true(child.wait.asked == 7200 && child.wait.left < 0);
	finish(&child);
	close(in);
	close(full);
}

static void wait_for_events(void *epoll)
{
	struct epoll_event event;

	syscall(SYS_epoll_pwait, *(int *)epoll, &event, 1, -1, NULL, 8);
}

static void test_epoll(void **state)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC), events[6], listener;
	struct sockaddr_storage address;
	socklen_t length;

	(void)state;
	ASSERT_SLEEPS(wait_for_events, &epoll, "epoll_pwait", "epoll %d watching nothing", epoll);
	listener = loopback(AF_INET, SOCK_STREAM, &address, &length);
	epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &(struct epoll_event){.events = EPOLLIN});
	ASSERT_SLEEPS(wait_for_events, &epoll, "epoll_pwait",
		      "epoll %d watching socket %d listening on 127.0.0.1:%u", epoll, listener,
		      port_of(&address));
	for (int i = 0; i < 6; i++) {
		events[i] = eventfd(0, EFD_CLOEXEC);
		epoll_ctl(epoll, EPOLL_CTL_ADD, events[i],
			  &(struct epoll_event){.events = EPOLLIN});
	}
	ASSERT_SLEEPS(wait_for_events, &epoll, "epoll_pwait",
		      "epoll %d watching 7 descriptors: socket %d listening on 127.0.0.1:%u, "
		      "eventfd %d, eventfd %d, eventfd %d, …",
		      epoll, listener, port_of(&address), events[0], events[1], events[2]);
	for (int i = 0; i < 6; i++)
		close(events[i]);
	close(listener);
	close(epoll);
}

/* Locks of files. */

static void lock_whole(void *fd)
{
	char path[64];
	int own;

	/* A lock by flock() belongs to the open file, so the child opens its own. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", *(int *)fd);
	own = open(path, O_RDWR);
	dup2(own, *(int *)fd);
	flock(*(int *)fd, LOCK_EX);
}

static void lock_record(void *fd)
{
	fcntl(*(int *)fd, F_SETLKW, &(struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET});
}

static void test_file_locks(void **state)
{
	char path[] = "/tmp/probing-test-XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	ASSERT_SLEEPS(lock_whole, &fd, "flock", "a lock on file %d %s held by %d (test_wait)", fd,
		      path, getpid());
	assert_int_equal(flock(fd, LOCK_UN), 0);
	lock_record(&fd);
	ASSERT_SLEEPS(lock_record, &fd, "fcntl", "a lock on file %d %s held by %d (test_wait)", fd,
		      path, getpid());
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tcp),	   cmocka_unit_test(test_mapped_address),
		cmocka_unit_test(test_udp),	   cmocka_unit_test(test_connect),
		cmocka_unit_test(test_unix_path),  cmocka_unit_test(test_unix_pair),
		cmocka_unit_test(test_tables),	   cmocka_unit_test(test_netlink),
		cmocka_unit_test(test_pipe),	   cmocka_unit_test(test_pipe_of_many),
		cmocka_unit_test(test_replay),	   cmocka_unit_test(test_fifo),
		cmocka_unit_test(test_open),	   cmocka_unit_test(test_chroot),
		cmocka_unit_test(test_terminal),   cmocka_unit_test(test_anonymous),
		cmocka_unit_test(test_poll),	   cmocka_unit_test(test_epoll),
		cmocka_unit_test(test_file_locks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
