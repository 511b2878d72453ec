/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Targets that sit in one system call: fault_calls SHARED CALL [MILLISECONDS]. Each call ends by
 * its own timeout or by an alarm, and must end in no other way and not before its time. How long
 * the last took is left in `took`, in microseconds.
 */
#include <linux/futex.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "fault.h"

static int timeout_ms = 60;
static int early_ms = 1; /* by which a call may end too early */
static int pipes[2];
static struct timespec timeout;

static void expect(long result, long wanted, int wanted_errno)
{
	if (result != wanted || (result < 0 && errno != wanted_errno))
		fault_wrong(result < 0 ? -errno : 1000 + result);
}

static void in_nanosleep(void)
{
	expect(nanosleep(&timeout, NULL), 0, 0);
}

static struct timespec end_of_timeout(clockid_t clock)
{
	struct timespec until;

	clock_gettime(clock, &until);
	until.tv_sec += timeout.tv_sec;
	until.tv_nsec += timeout.tv_nsec;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	return until;
}

static void in_clock_nanosleep(void)
{
	struct timespec until = end_of_timeout(CLOCK_MONOTONIC);

	expect(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL), 0, 0);
}

#ifndef SYS_futex_waitv /* musl's headers are older */
#define SYS_futex_waitv 449
#endif

static void in_futex_waitv(void)
{
	static int word;
	struct futex_waitv waiter = {.uaddr = (uintptr_t)&word,
				     .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
	struct timespec until = end_of_timeout(CLOCK_MONOTONIC);

	expect(syscall(SYS_futex_waitv, &waiter, 1, 0, &until, CLOCK_MONOTONIC), -1, ETIMEDOUT);
}

static void in_futex(void)
{
	static int word;

	expect(syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &timeout), -1, ETIMEDOUT);
}

static void in_sem(void)
{
	static sem_t sem;
	struct timespec until = end_of_timeout(CLOCK_REALTIME);

	expect(sem_timedwait(&sem, &until), -1, ETIMEDOUT);
}

static void in_poll(void)
{
	struct pollfd fd = {.fd = pipes[0], .events = POLLIN};

	expect(poll(&fd, 1, timeout_ms), 0, 0);
}

static void in_select(void)
{
	struct timeval t = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

	expect(select(0, NULL, NULL, NULL, &t), 0, 0);
}

static void in_pselect(void)
{
	sigset_t none;

	sigemptyset(&none);
	expect(pselect(0, NULL, NULL, NULL, &timeout, &none), 0, 0);
}

static void in_epoll(void)
{
	static int epoll = -1;
	struct epoll_event event;

	if (epoll < 0)
		epoll = epoll_create1(0);
	expect(epoll_wait(epoll, &event, 1, timeout_ms), 0, 0);
}

static void in_epoll_pwait2(void)
{
	static int epoll = -1;
	struct epoll_event event;

	if (epoll < 0)
		epoll = epoll_create1(0);
	expect(syscall(SYS_epoll_pwait2, epoll, &event, 1, &timeout, NULL, 0), 0, 0);
}

/* A ring with one request, a timeout, which is waited for. */
struct ring {
	int fd;
	struct io_uring_params params;
	char *submissions, *completions;
	struct io_uring_sqe *entries;
};

static void open_ring(struct ring *r)
{
	size_t size;

	r->fd = (int)syscall(SYS_io_uring_setup, 4, &r->params);
	if (r->fd < 0) {
		perror("io_uring_setup");
		exit(1);
	}
	size = r->params.sq_off.array + r->params.sq_entries * sizeof(unsigned);
	r->submissions =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_SQ_RING);
	size = r->params.cq_off.cqes + r->params.cq_entries * sizeof(struct io_uring_cqe);
	r->completions =
		mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, IORING_OFF_CQ_RING);
	r->entries = mmap(NULL, r->params.sq_entries * sizeof(*r->entries), PROT_READ | PROT_WRITE,
			  MAP_SHARED, r->fd, IORING_OFF_SQES);
}

static unsigned *in_ring(char *ring, unsigned offset)
{
	return (unsigned *)(ring + offset);
}

static void in_io_uring(void)
{
	static struct ring r = {.fd = -1};
	struct __kernel_timespec each = {timeout.tv_sec, timeout.tv_nsec};
	unsigned tail, head;

	if (r.fd < 0)
		open_ring(&r);
	tail = *in_ring(r.submissions, r.params.sq_off.tail);
	r.entries[0] = (struct io_uring_sqe){.opcode = IORING_OP_TIMEOUT,
					     .fd = -1,
					     .addr = (uintptr_t)&each,
					     .len = 1,
					     .user_data = 77};
	*in_ring(r.submissions, r.params.sq_off.array + tail % r.params.sq_entries * 4) = 0;
	__atomic_store_n(in_ring(r.submissions, r.params.sq_off.tail), tail + 1, __ATOMIC_RELEASE);
	expect(syscall(SYS_io_uring_enter, r.fd, 1, 0, 0, NULL, 0), 1, 0);
	expect(syscall(SYS_io_uring_enter, r.fd, 0, 1, IORING_ENTER_GETEVENTS, NULL, 0), 0, 0);
	head = *in_ring(r.completions, r.params.cq_off.head);
	if (head ==
	    __atomic_load_n(in_ring(r.completions, r.params.cq_off.tail), __ATOMIC_ACQUIRE)) {
		fault_wrong(5000);
		return;
	}
	struct io_uring_cqe *done = (struct io_uring_cqe *)(r.completions + r.params.cq_off.cqes) +
				    head % r.params.cq_entries;
	expect(done->res, -ETIME, 0);
	__atomic_store_n(in_ring(r.completions, r.params.cq_off.head), head + 1, __ATOMIC_RELEASE);
}

static void in_recv(void)
{
	static int pair[2];
	struct timeval t = {timeout_ms / 1000, timeout_ms % 1000 * 1000};
	char byte;

	early_ms = 10; /* it is counted in ticks, and one that came late shortens it */
	if (!pair[0]) {
		socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
		setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
	}
	expect(recv(pair[0], &byte, 1, 0), -1, EAGAIN);
}

static void in_sigtimedwait(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	expect(sigtimedwait(&set, NULL, &timeout), -1, EAGAIN);
}

static void in_semtimedop(void)
{
	static int id = -1;
	struct sembuf take = {.sem_op = -1};

	if (id < 0) {
		id = semget(IPC_PRIVATE, 1, 0600);
		semctl(id, 0, SETVAL, 0);
	}
	expect(semtimedop(id, &take, 1, &timeout), -1, EAGAIN);
	if (shared->stop)
		semctl(id, 0, IPC_RMID);
}

static void in_wait(void)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		nanosleep(&timeout, NULL);
		_exit(0);
	}
	expect(waitpid(child, &status, 0), child, 0);
}

static void ring_alarm(void)
{
	struct timeval t = {timeout_ms / 1000, timeout_ms % 1000 * 1000};

	setitimer(ITIMER_REAL, &(struct itimerval){.it_value = t}, NULL);
}

/* Only the alarm ends it, and is received once. */
static void expect_alarm(int result, int64_t before)
{
	expect(result, -1, EINTR);
	if (shared->received != before + 1)
		fault_wrong(6000 + shared->received - before);
}

static void in_sigsuspend(void)
{
	int64_t before = shared->received;
	sigset_t none;

	sigemptyset(&none);
	ring_alarm();
	expect_alarm(sigsuspend(&none), before);
}

static void in_pselect_mask(void)
{
	int64_t before = shared->received;
	sigset_t none;

	sigemptyset(&none);
	ring_alarm();
	expect_alarm(pselect(0, NULL, NULL, NULL, NULL, &none), before);
}

static void in_ppoll_mask(void)
{
	int64_t before = shared->received;
	sigset_t none;

	sigemptyset(&none);
	ring_alarm();
	expect_alarm(ppoll(NULL, 0, NULL, &none), before);
}

static void on_alarm(int number)
{
	(void)number;
	shared->received++;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} calls[] = {
		{"nanosleep", in_nanosleep},
		{"clock_nanosleep", in_clock_nanosleep},
		{"futex", in_futex},
		{"futex_waitv", in_futex_waitv},
		{"sem", in_sem},
		{"poll", in_poll},
		{"select", in_select},
		{"pselect", in_pselect},
		{"pselect-mask", in_pselect_mask},
		{"ppoll-mask", in_ppoll_mask},
		{"epoll", in_epoll},
		{"epoll_pwait2", in_epoll_pwait2},
		{"io_uring", in_io_uring},
		{"recv", in_recv},
		{"sigtimedwait", in_sigtimedwait},
		{"semtimedop", in_semtimedop},
		{"wait", in_wait},
		{"sigsuspend", in_sigsuspend},
	};
	const char *name = argc > 2 ? argv[2] : "";
	static sigset_t blocked, now; /* musl's have bytes that are never written */
	sigset_t alarm_set;

	fault_open(argv[1]);
	if (pipe(pipes))
		return 1;
	if (argc > 3)
		timeout_ms = atoi(argv[3]);
	timeout = (struct timespec){timeout_ms / 1000, timeout_ms % 1000 * 1000000L};
	signal(SIGALRM, on_alarm);
	sigemptyset(&alarm_set);
	sigaddset(&alarm_set, SIGALRM);
	sigaddset(&alarm_set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &alarm_set, NULL);
	sigprocmask(SIG_SETMASK, NULL, &blocked);
	fault_ready();
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		while (!strcmp(calls[i].name, name) && !shared->stop) {
			double start = fault_now(), took;

			calls[i].run();
			took = (fault_now() - start) * 1000;
			sigprocmask(SIG_SETMASK, NULL, &now);
			if (memcmp(&now, &blocked, sizeof(now)))
				fault_wrong(9000);
			if (took < timeout_ms - early_ms)
				fault_wrong((int64_t)(-10000 - took));
			shared->took = (int64_t)(took * 1000);
			fault_round();
		}
	}
	return fault_end();
}
