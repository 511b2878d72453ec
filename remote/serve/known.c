/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "remote/serve/known.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "remote/address.h"
#include "base/cleanup.h"
#include "base/new_file.h"
#include "base/own_file.h"
#include "dump/text/paths.h"

enum {
	MAX_ADDRESS = 80,
	/* The folder may belong to another user, who can fill it. */
	MAX_ENTRIES = 4096,
	MAX_SERVERS = 16, /* that are shown of one process */
};

/** A folder of servers' files, and whose it is. */
struct place {
	int fd;
	uid_t uid;
};

/** The address that the file of a running server holds; false if it does not run. */
static bool read_address(const struct place *place, const char *name, char address[MAX_ADDRESS],
			 bool *dead)
{
	struct prb_address parsed;
	uint64_t size;
	prb_auto_close int fd = prb_own_file_open(place->fd, name, O_RDONLY, place->uid, &size);
	ssize_t length;

	*dead = false;
	if (fd < 0)
		return false;
	if (!flock(fd, LOCK_SH | LOCK_NB)) {
		*dead = true;
		return false;
	}
	length = read(fd, address, MAX_ADDRESS - 1);
	if (length <= 1)
		return false;
	address[length] = 0;
	address[strcspn(address, "\n")] = 0;

	prb_auto_error struct prb_error *err = prb_address_parse(address, &parsed);
	return !err;
}

/**
 * Appends the addresses of the servers of @p pid in a folder; 0: removes the entries of dead
 * servers.
 */
static void look_through(const struct place *place, pid_t pid, struct prb_str *ret)
{
	prb_auto_closedir DIR *dir = fdopendir(dup(place->fd));
	struct dirent *entry;
	unsigned found = 0;

	for (unsigned n = 0; dir && n < MAX_ENTRIES && (entry = readdir(dir)); n++) {
		char address[MAX_ADDRESS];
		int target, server;
		bool dead;

		if (sscanf(entry->d_name, "serve-%d-%d", &target, &server) != 2 ||
		    (pid && target != pid))
			continue;
		if (read_address(place, entry->d_name, address, &dead) && pid) {
			prb_str_printf(ret, "%s%s", ret->length ? " " : "",
				       found < MAX_SERVERS ? address : "…");
			if (found++ == MAX_SERVERS)
				return;
		}
		if (dead && !pid)
			unlinkat(place->fd, entry->d_name, 0);
	}
}

struct prb_error *prb_serve_known_add(struct prb_serve_known *known, pid_t pid, const char *address)
{
	prb_auto_new_file struct prb_new_file file = PRB_NO_FILE;
	prb_auto_free char *path = NULL;
	prb_auto_close int folder = prb_run_folder_make(&path);
	int length = (int)strlen(address);

	if (folder < 0)
		return prb_error_create(PRB_ERROR_FAILED,
					"there is no folder to note the service in");
	look_through(&(const struct place){folder, geteuid()}, 0, NULL);
	known->path = prb_format("%s/serve-%d-%d", path, (int)pid, (int)getpid());
	if (!known->path)
		return prb_error_nomem();
	PRB_TRY(prb_new_file_open_in(&file, folder, prb_path_last(known->path)));
	/* It is locked before it has the name that others look for. */
	if (flock(file.fd, LOCK_EX) || dprintf(file.fd, "%s\n", address) != length + 1)
		return prb_error_os(errno, "cannot note the service in %s", path);
	PRB_TRY(prb_new_file_place(&file));
	known->fd = prb_steal_fd(&file.fd);
	return NULL;
}

void prb_serve_known_remove(struct prb_serve_known *known)
{
	if (known->fd >= 0) {
		unlink(known->path);
		close(known->fd);
	}
	free(prb_steal(&known->path));
	known->fd = -1;
}

void prb_serve_known_find(pid_t pid, struct prb_str *ret)
{
	prb_auto_free char *process = prb_format("/proc/%d", (int)pid);
	struct stat st;

	if (!process || stat(process, &st))
		return;

	const uid_t users[] = {geteuid(), st.st_uid};

	for (size_t i = 0; i < (users[0] == users[1] ? 1u : 2u); i++) {
		for (int runtime = 0; runtime < 2; runtime++) {
			prb_auto_close int folder = prb_run_folder_open(users[i], runtime, NULL);

			if (folder >= 0)
				look_through(&(const struct place){folder, users[i]}, pid, ret);
		}
	}
}
