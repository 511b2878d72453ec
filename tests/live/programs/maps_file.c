/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Maps a file to read it, as analysis tools do, and as much memory as Python has. */
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	char *room =
		mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || room == MAP_FAILED ||
	    mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		return 1;
	puts("ready");
	fflush(stdout);
	return read(0, room, 1) < 0;
}
