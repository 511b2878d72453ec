/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "injector/arch/scratch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "target/ptrace/fault_step.h"

/* The offsets in the comments of the struct, which all code of arch/ uses. */
#define AT(member, offset) \
	_Static_assert(offsetof(struct prb_mailbox, member) == (offset), "as the code has it")
AT(state, 0);
AT(hijack_state, 4);
AT(create, 8);
AT(create_result, 16);
AT(thread, 24);
AT(frame, 32);
AT(munmap, 40);
AT(base, 48);
AT(size, 56);
AT(fd, 64);
AT(trampoline, 72);
AT(nap, 80);
AT(short_sleep, 88);
AT(long_sleep, 104);
AT(entry, 120);
AT(tid, 128);
AT(self, 136);
AT(detach, 144);
AT(unmap, 152);
AT(gadget, 160);
AT(calls, 168);
#undef AT
#define AT(member, offset) \
	_Static_assert(offsetof(struct prb_mail_call, member) == (offset), "as the code has it")
AT(arguments, 8);
AT(result, 56);
AT(also, 64);
AT(always, 80);
AT(next, 88);

struct prb_error *prb_mail_open(pid_t pid, int *ret_fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	*ret_fd = open(path, O_RDWR | O_CLOEXEC);
	return *ret_fd >= 0 ? NULL
			    : prb_error_os(errno == ENOENT ? ESRCH : errno,
					   "cannot write the memory of process %d", pid);
}

static struct prb_error *check_done(ssize_t done, uint64_t address, size_t length)
{
	if (done == (ssize_t)length)
		return NULL;
	return done ? prb_error_fault(address, length) : prb_error_os(ESRCH, "the program is gone");
}

struct prb_error *prb_mail_read(int memory, uint64_t address, void *data, size_t length)
{
	return check_done(pread(memory, data, length, (off_t)address), address, length);
}

struct prb_error *prb_mail_write(int memory, uint64_t address, const void *data, size_t length)
{
	prb_fault_step();
	return check_done(pwrite(memory, data, length, (off_t)address), address, length);
}
