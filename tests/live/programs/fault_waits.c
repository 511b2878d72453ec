/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Targets that wait for another process in one system call: fault_waits SHARED CALL. The other
 * process, a child, does each time after EACH_MS what ends the call, and never does it twice.
 */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include "fault.h"

enum { EACH_MS = 30, CHUNK = 4096, LARGE = 1 << 20 };

static int to_target[2], from_target[2], queue, semaphore, listener, watch, file = -1;
static char path[64];
static struct sockaddr_un address = {.sun_family = AF_UNIX};
static unsigned char chunk[LARGE];

static void expect(long result, long wanted)
{
	if (result != wanted)
		fault_wrong(result < 0 ? -errno : 1000 + result);
}

static void nap(void)
{
	nanosleep(&(struct timespec){0, EACH_MS * 1000000L}, NULL);
}

/* Each case has the target's wait, the child's action, and nothing else. */

static void wait_read(void)
{
	static unsigned char next;
	unsigned char byte;

	expect(read(to_target[0], &byte, 1), 1);
	if (byte != next++)
		fault_wrong(2000);
}

static void feed_byte(void)
{
	static unsigned char next;

	expect(write(to_target[1], &next, 1), 1);
	next++;
}

static void wait_poll(void)
{
	struct pollfd fd = {.fd = to_target[0], .events = POLLIN};

	expect(poll(&fd, 1, -1), 1);
	wait_read();
}

static void wait_epoll(void)
{
	static int epoll = -1;
	struct epoll_event event = {.events = EPOLLIN};

	if (epoll < 0) {
		epoll = epoll_create1(0);
		epoll_ctl(epoll, EPOLL_CTL_ADD, to_target[0], &event);
	}
	expect(epoll_wait(epoll, &event, 1, -1), 1);
	wait_read();
}

static void wait_semop(void)
{
	expect(semop(semaphore, &(struct sembuf){.sem_op = -1}, 1), 0);
}

static void feed_semaphore(void)
{
	expect(semop(semaphore, &(struct sembuf){.sem_op = 1}, 1), 0);
}

struct message {
	long type;
	long number;
};

static void wait_message(void)
{
	static long next;
	struct message message;

	expect(msgrcv(queue, &message, sizeof(long), 0, 0), sizeof(long));
	expect(message.number, next++);
}

static void feed_message(void)
{
	static long next;

	expect(msgsnd(queue, &(struct message){1, next++}, sizeof(long), 0), 0);
}

static void wait_inotify(void)
{
	struct inotify_event event;

	expect(read(watch, &event, sizeof(event)), sizeof(event));
	expect(event.mask, IN_CLOSE_WRITE);
}

static void feed_file(void)
{
	close(open(path, O_WRONLY));
}

/* The child holds the lock for a while; the next owner must be the only one. */
static void hold(void)
{
	if (__atomic_add_fetch(&shared->sent, 1, __ATOMIC_SEQ_CST) != 1)
		fault_wrong(3000);
}

static void let_go(void)
{
	__atomic_sub_fetch(&shared->sent, 1, __ATOMIC_SEQ_CST);
}

static void wait_flock(void)
{
	expect(flock(file, LOCK_EX), 0);
	hold();
	let_go();
	expect(flock(file, LOCK_UN), 0);
	usleep(1000); /* the child shall have it again */
}

static void hold_flock(void)
{
	if (flock(file, LOCK_EX))
		return;
	hold();
	nap();
	let_go();
	flock(file, LOCK_UN);
}

static int lock(short type)
{
	return fcntl(file, F_SETLKW, &(struct flock){.l_type = type, .l_whence = SEEK_SET});
}

static void wait_fcntl(void)
{
	expect(lock(F_WRLCK), 0);
	hold();
	let_go();
	expect(lock(F_UNLCK), 0);
	usleep(1000);
}

static void hold_fcntl(void)
{
	if (lock(F_WRLCK))
		return;
	hold();
	nap();
	let_go();
	lock(F_UNLCK);
}

static void wait_accept(void)
{
	int fd = accept(listener, NULL, NULL);

	expect(fd < 0 ? -1 : 0, 0);
	close(fd);
}

static void feed_connection(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	expect(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

/* The queue of pending connections has room for one. */
static void wait_connect(void)
{
	feed_connection();
}

static void feed_accept(void)
{
	close(accept(listener, NULL, NULL));
}

/* Every byte is the next one: none is lost, none comes twice. */
static void fill(size_t length)
{
	static unsigned char next;

	for (size_t i = 0; i < length; i++)
		chunk[i] = next++;
}

static void wait_write(void)
{
	fill(CHUNK);
	expect(write(from_target[1], chunk, CHUNK), CHUNK);
}

/* More than fits at a time may end early, when a part is written. */
static void wait_write_large(void)
{
	fill(LARGE);
	for (ssize_t done = 0, n; done < LARGE; done += n) {
		n = write(from_target[1], chunk + done, (size_t)(LARGE - done));
		if (n <= 0) {
			fault_wrong(n < 0 ? -errno : 1000);
			return;
		}
	}
}

static void wait_sendfile(void)
{
	fill(CHUNK);
	expect(pwrite(file, chunk, CHUNK, 0), CHUNK);
	for (off_t at = 0; at < CHUNK;)
		if (sendfile(from_target[1], file, &at, (size_t)(CHUNK - at)) <= 0) {
			fault_wrong(-errno);
			return;
		}
}

static void drain(size_t length)
{
	static unsigned char next;
	static unsigned char seen[LARGE];
	ssize_t n = read(from_target[0], seen, length);

	for (ssize_t i = 0; i < n; i++)
		if (seen[i] != next++)
			fault_wrong(4000);
}

static void drain_chunk(void)
{
	drain(CHUNK);
}

static void drain_large(void)
{
	for (int i = 0; i < LARGE / 65536; i++)
		drain(65536);
}

static void wait_child(void)
{
	siginfo_t info = {};
	pid_t child = fork();

	if (!child) {
		nap();
		_exit(7);
	}
	expect(waitid(P_PID, (id_t)child, &info, WEXITED), 0);
	expect(info.si_pid, child);
	expect(info.si_status, 7);
}

static void nothing(void)
{
}

struct call {
	const char *name;
	void (*wait)(void);
	void (*feed)(void);
};

static void make_objects(const char *name)
{
	snprintf(path, sizeof(path), "/tmp/fault-waits-%d", getpid());
	snprintf(address.sun_path, sizeof(address.sun_path), "%s.socket", path);
	queue = msgget(IPC_PRIVATE, 0600);
	semaphore = semget(IPC_PRIVATE, 1, 0600);
	file = open(path, O_RDWR | O_CREAT, 0600);
	watch = inotify_init1(0);
	inotify_add_watch(watch, path, IN_CLOSE_WRITE);
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (pipe(to_target) || pipe(from_target) || queue < 0 || semaphore < 0 || file < 0 ||
	    bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 0)) {
		perror(name);
		exit(1);
	}
	semctl(semaphore, 0, SETVAL, 0);
}

static void remove_objects(void)
{
	semctl(semaphore, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
	unlink(path);
	unlink(address.sun_path);
}

/* The child has files of its own: locks belong to the open file. */
static void serve(const struct call *call, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	close(file);
	file = open(path, O_RDWR);
	while (getppid() == parent) {
		nap();
		call->feed();
	}
	_exit(0);
}

int main(int argc, char **argv)
{
	static const struct call calls[] = {
		{"read", wait_read, feed_byte},
		{"poll", wait_poll, feed_byte},
		{"epoll", wait_epoll, feed_byte},
		{"semop", wait_semop, feed_semaphore},
		{"msgrcv", wait_message, feed_message},
		{"inotify", wait_inotify, feed_file},
		{"flock", wait_flock, hold_flock},
		{"fcntl", wait_fcntl, hold_fcntl},
		{"accept", wait_accept, feed_connection},
		{"connect", wait_connect, feed_accept},
		{"write", wait_write, drain_chunk},
		{"write-large", wait_write_large, drain_large},
		{"sendfile", wait_sendfile, drain_chunk},
		{"waitid", wait_child, nothing},
	};
	const struct call *call = NULL;
	pid_t parent = getpid(), child;

	fault_open(argv[1]);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		if (argc > 2 && !strcmp(argv[2], calls[i].name))
			call = &calls[i];
	if (!call)
		return 2;
	make_objects(call->name);
	child = fork();
	if (!child)
		serve(call, parent);
	fault_ready();
	while (!shared->stop) {
		call->wait();
		fault_round();
	}
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	remove_objects();
	return fault_end();
}
