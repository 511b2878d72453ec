/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * An ssh to simulated hosts, as cheap as can be, since thousands of them run on one machine: after
 * 50 ms, or the seconds in the file HOST.delay, it prints the file that is named as the host, and
 * one without a file never answers.
 *
 * "ssh … -- HOST LINE"; $SIMULATED is the folder.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct timespec delay = {0, 50000000};
	FILE *other;
	const char *folder = getenv("SIMULATED");
	char path[4096];
	struct stat status;
	int i = 1, file;

	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	if (!folder || i + 1 >= argc)
		return 2;
	snprintf(path, sizeof(path), "%s/%s", folder, argv[i + 1]);
	file = open(path, O_RDONLY);
	if (file < 0 || fstat(file, &status))
		for (;;)
			pause();
	snprintf(path, sizeof(path), "%s/%s.delay", folder, argv[i + 1]);
	other = fopen(path, "r");
	if (other && fscanf(other, "%ld", &delay.tv_sec) != 1)
		return 2;
	nanosleep(&delay, NULL);
	for (off_t at = 0; at < status.st_size;) {
		char buffer[65536];
		ssize_t got = pread(file, buffer, sizeof(buffer), at);

		if (got <= 0 || write(1, buffer, (size_t)got) != got)
			return 1;
		at += got;
	}
	return 0;
}
