/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Memory of a live process: process_vm_readv, and /proc/PID/mem where that is not to be had. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/uio.h>

#include "base/cleanup.h"
#include "target/mem/mem.h"

enum { MAX_VECTOR = 1024 /* UIO_MAXIOV: the kernel's limit of one call */ };

struct live {
	struct prb_mem mem;
	pid_t pid;
	int fd; /* /proc/PID/mem, -1 until process_vm_readv turns out not to work */
};

static struct prb_error *open_mem(struct live *live)
{
	char path[64];

	if (live->fd >= 0)
		return NULL;
	snprintf(path, sizeof(path), "/proc/%d/mem", live->pid);
	live->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (live->fd < 0)
		return prb_error_os(errno == ENOENT ? ESRCH : errno,
				    "cannot read the memory of process %d", live->pid);
	return NULL;
}

static struct prb_error *read_by_file(struct live *live, uint64_t address, void *buffer,
				      size_t length)
{
	PRB_TRY(open_mem(live));
	for (size_t done = 0; done < length;) {
		ssize_t n = pread(live->fd, (char *)buffer + done, length - done,
				  (off_t)(address + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return prb_error_os(ESRCH, "process %d is gone", live->pid);
		if (n < 0)
			return prb_error_fault(address + done, length - done);
		done += (size_t)n;
	}
	return NULL;
}

/* True if this errno of process_vm_readv means "not this way" rather than "not there". */
static bool call_refused(int os_errno)
{
	return os_errno == ENOSYS || os_errno == EPERM;
}

static struct prb_error *live_read(struct prb_mem *mem, uint64_t address, void *buffer,
				   size_t length)
{
	struct live *live = (struct live *)mem;
	struct iovec local = {buffer, length};
	struct iovec remote = {(void *)address, length};

	if (!length)
		return NULL;
	if (live->fd >= 0)
		return read_by_file(live, address, buffer, length);

	ssize_t n = process_vm_readv(live->pid, &local, 1, &remote, 1, 0);
	if (n == (ssize_t)length)
		return NULL;
	if (n < 0 && call_refused(errno))
		return read_by_file(live, address, buffer, length);
	if (n < 0 && errno == ESRCH)
		return prb_error_os(ESRCH, "process %d is gone", live->pid);
	return prb_error_fault(address + (n > 0 ? (uint64_t)n : 0),
			       length - (n > 0 ? (size_t)n : 0));
}

/*
 * One call for up to MAX_VECTOR blocks. The kernel stops at the first block it cannot read, so
 * that one is marked and the call is made again for those behind it.
 */
static struct prb_error *read_batch(struct live *live, struct prb_block *blocks, size_t count)
{
	struct iovec local[MAX_VECTOR], remote[MAX_VECTOR];

	for (size_t i = 0; i < count; i++) {
		local[i] = (struct iovec){blocks[i].buffer, blocks[i].length};
		remote[i] = (struct iovec){(void *)blocks[i].address, blocks[i].length};
		blocks[i].ok = false;
	}
	for (size_t next = 0; next < count;) {
		ssize_t n = process_vm_readv(live->pid, local + next, count - next, remote + next,
					     count - next, 0);

		if (n < 0 && errno != EFAULT)
			return prb_error_os(errno, "cannot read the memory of process %d",
					    live->pid);
		for (; n > 0 && next < count && (size_t)n >= blocks[next].length; next++) {
			n -= (ssize_t)blocks[next].length;
			blocks[next].ok = true;
		}
		if (next < count)
			next++;
	}
	return NULL;
}

static struct prb_error *live_read_many(struct prb_mem *mem, struct prb_block *blocks, size_t count)
{
	struct live *live = (struct live *)mem;

	for (size_t done = 0; done < count && live->fd < 0;) {
		size_t batch = count - done < MAX_VECTOR ? count - done : MAX_VECTOR;
		struct prb_error *err = read_batch(live, blocks + done, batch);

		if (err && call_refused(err->os_errno)) {
			prb_error_destroy(err);
			PRB_TRY(open_mem(live));
			break;
		}
		PRB_TRY(err);
		done += batch;
		if (done == count)
			return NULL;
	}
	for (size_t i = 0; i < count; i++) {
		struct prb_error *err =
			read_by_file(live, blocks[i].address, blocks[i].buffer, blocks[i].length);

		blocks[i].ok = !err;
		if (err && !prb_error_catch(&err, PRB_ERROR_FAULT))
			return err;
	}
	return NULL;
}

static void live_destroy(struct prb_mem *mem)
{
	struct live *live = (struct live *)mem;

	if (live->fd >= 0)
		close(live->fd);
	free(live);
}

static const struct prb_mem_ops live_ops = {
	.read = live_read,
	.read_many = live_read_many,
	.destroy = live_destroy,
};

struct prb_error *prb_mem_live_create(int pid, struct prb_mem **ret)
{
	struct live *live = calloc(1, sizeof(*live));

	if (!live)
		return prb_error_nomem();
	live->mem.ops = &live_ops;
	live->pid = pid ? pid : getpid();
	live->fd = -1;
	*ret = &live->mem;
	return NULL;
}
