/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "control/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

#include "control/client.h"
#include "control/sweep.h"
#include "base/checked.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "base/text.h"
#include "target/proc/text.h"

enum { USUAL_FOLDERS = 2 };

/** How long an agent may have no room for one more client. */
static const double CONNECT_SECONDS = 2;

/** The names of the agent's socket, with pid and uid as the process itself sees them. */
struct names {
	char file[32];	   /* "/agent-42.sock" */
	char abstract[32]; /* "-42" */
	unsigned uid;
	uid_t as; /* the user to connect as */
};

/** The user to connect as: the agent knows our root by no number if it has a user namespace. */
static uid_t user_for(const struct prb_target *t, const struct names *names)
{
	prb_auto_free char *path = prb_format("/proc/%d/ns/user", (int)t->pid);
	struct stat theirs, ours;

	if (geteuid() || !path || stat(path, &theirs) || stat("/proc/self/ns/user", &ours))
		return geteuid();
	return theirs.st_ino == ours.st_ino && theirs.st_dev == ours.st_dev ? 0 : names->uid;
}

/** The second of the four. */
static unsigned effective_uid(const char *status)
{
	const char *uids = prb_text_field(status, "Uid");
	char *end;

	strtoul(uids ? uids : "", &end, 10);
	return uids ? (unsigned)strtoul(end, NULL, 10) : 0;
}

static struct prb_error *read_names(struct prb_target *t, struct names *ret)
{
	prb_auto_str struct prb_str status = {};

	PRB_TRY(prb_target_read_file(t, &status, "status"));

	const char *ids = prb_text_field(prb_str_text(&status), "NSpid");
	unsigned pid = (unsigned)t->pid;
	char *end;

	/* The last one is the pid in the innermost namespace. */
	for (; ids && *ids >= '0' && *ids <= '9'; ids = end + (*end == '\t'))
		pid = (unsigned)strtoul(ids, &end, 10);
	ret->uid = effective_uid(prb_str_text(&status));
	snprintf(ret->file, sizeof(ret->file), "/agent-%u.sock", pid);
	snprintf(ret->abstract, sizeof(ret->abstract), "-%u", pid);
	ret->as = user_for(t, ret);
	return NULL;
}

/** Numbers of the kernel that the C library may not have yet. */
enum { PEER_PIDFD = 77 };

/** The process behind a pidfd has that number, and has not been waited for by its parent. */
static bool is_alive_as(int pidfd, pid_t pid)
{
	prb_auto_free char *path = prb_format("/proc/self/fdinfo/%d", pidfd);
	prb_auto_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char info[1024];
	ssize_t length = fd >= 0 ? read(fd, info, sizeof(info) - 1) : -1;
	const char *number;

	info[PRB_MAX(length, 0)] = 0;
	number = prb_text_field(info, "Pid");
	return number && strtol(number, NULL, 10) == pid;
}

/**
 * Accepts the connection only if the process itself listens there, regardless of the socket's name.
 * The kernel notes the number and the user of the process that called listen(). Both stay when that
 * process has ended, and a new process may get its number: so the user must be that of the target,
 * or root. Linux 6.5 has a pidfd besides, which distinguishes that process from a later one of the
 * same number.
 */
static bool is_of(int fd, pid_t pid, uid_t uid)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);
	int pidfd;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) || peer.pid != pid ||
	    (peer.uid != uid && peer.uid != 0))
		return false;
	length = sizeof(pidfd);
	if (getsockopt(fd, SOL_SOCKET, PEER_PIDFD, &pidfd, &length))
		return errno == ENOPROTOOPT;

	bool alive = is_alive_as(pidfd, pid);
	close(pidfd);
	return alive;
}

/** A nonblocking socket: a blocking connect() could let the listener stall us indefinitely. */
static int new_socket(void)
{
	return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/** A socket in the network of the process, where abstract names are; -1 with errno. */
static int socket_in_network(const struct prb_target *t)
{
	prb_auto_free char *path = prb_format("/proc/%d/ns/net", (int)t->pid);
	prb_auto_close int theirs = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	prb_auto_close int ours = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct stat one, other;
	int fd;

	if (theirs < 0 || ours < 0 || fstat(theirs, &one) || fstat(ours, &other))
		return -1;
	if (one.st_ino == other.st_ino && one.st_dev == other.st_dev)
		return new_socket();
	if (setns(theirs, CLONE_NEWNET))
		return -1;
	fd = new_socket();
	if (!setns(ours, CLONE_NEWNET))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

/**
 * Connects @p fd, which it owns, to a socket of that process and no other. 0, or why not as an
 * errno value: ECONNREFUSED for another process's socket, EAGAIN if its queue is full.
 */
static int connect_to(pid_t pid, const struct names *names, int socket_fd,
		      const struct sockaddr_un *address, socklen_t length, int *ret)
{
	prb_auto_close int fd = socket_fd;
	uid_t self = geteuid(), as = names->as;
	int rc;

	if (fd < 0 || (as != self && seteuid(as)))
		return errno;
	rc = connect(fd, (const struct sockaddr *)address, length) ? errno : 0;
	if (as != self && seteuid(self))
		return errno;
	if (rc)
		return rc;
	if (!is_of(fd, pid, names->uid))
		return ECONNREFUSED;
	if (fcntl(fd, F_SETFL, 0))
		return errno;
	*ret = prb_steal_fd(&fd);
	return 0;
}

/** The file was made by the process, or by root. */
static bool is_own_file(int file, const struct names *names)
{
	struct stat st;

	return !fstat(file, &st) && (st.st_uid == names->uid || st.st_uid == 0);
}

/** A path as the process sees it, which may be too long for an address with its root in front. */
static int connect_path(pid_t pid, const struct names *names, const char *path, int *ret)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	prb_auto_free char *inside = prb_format("/proc/%d/root%s", (int)pid, path);
	prb_auto_close int file = inside ? open(inside, O_PATH | O_CLOEXEC) : -1;
	int rc;

	if (file < 0 && errno == EACCES)
		file = open(path, O_PATH | O_CLOEXEC);
	if (file < 0)
		return errno;
	snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d", file);
	rc = connect_to(pid, names, new_socket(), &address, sizeof(address), ret);
	return rc == EAGAIN && !is_own_file(file, names) ? ECONNREFUSED : rc;
}

static int connect_abstract(const struct prb_target *t, const struct names *names, const char *name,
			    int *ret)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	size_t length = strlen(name);

	if (length >= sizeof(address.sun_path))
		return ENOENT;
	memcpy(address.sun_path + 1, name, length);
	return connect_to(t->pid, names, socket_in_network(t), &address,
			  (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length), ret);
}

/**
 * True for a file name that the agent's library is loaded by: its own name, or $PROBING_AGENT's.
 */
static bool is_library(const char *name)
{
	static const char library[] = "libprobing-agent.so";
	const char *said = getenv("PROBING_AGENT");
	const char *slash = said ? strrchr(said, '/') : NULL;

	if (!strncmp(name, library, strlen(library)))
		return true;
	return said && *said && !strcmp(name, slash ? slash + 1 : said);
}

bool prb_agent_is_library(const struct prb_map *map)
{
	static const char in_memory[] = "memfd:", copy[] = "probing-";
	const char *slash = strrchr(map->path, '/');

	if (!slash || !map->exec)
		return false;
	slash++;
	if (!strncmp(slash, in_memory, strlen(in_memory)))
		slash += strlen(in_memory);
	return is_library(slash) || (map->deleted && !strncmp(slash, copy, strlen(copy)));
}

static bool has_library(const struct prb_maps *maps)
{
	const struct prb_map *map;

	prb_vec_each (map, &maps->list)
		if (prb_agent_is_library(map))
			return true;
	return false;
}

bool prb_agent_is_mapped(const struct prb_target *t)
{
	return has_library(&t->maps);
}

/** As above, by the current maps: we may have loaded the library since the process was opened. */
static bool is_mapped_now(struct prb_target *t)
{
	struct prb_maps maps = {};
	prb_auto_error struct prb_error *err = prb_target_read_maps(t, &maps);
	bool mapped = !err && has_library(&maps);

	prb_maps_deinit(&maps);
	return mapped;
}

/** True if the process has the socket of that number open. */
static bool holds_socket(struct prb_target *t, unsigned long inode)
{
	prb_auto_free char *wanted = prb_format("socket:[%lu]", inode);
	prb_auto_str struct prb_str numbers = {};
	bool found = false;

	prb_error_destroy(prb_target_list(t, &numbers, "fd"));
	for (const char *at = prb_str_text(&numbers); wanted && *at && !found;) {
		prb_auto_str struct prb_str link = {};
		char *end;

		prb_error_destroy(prb_target_read_link(t, &link, "fd/%ld", strtol(at, &end, 10)));
		found = !strcmp(prb_str_text(&link), wanted);
		at = *end ? end + 1 : end;
	}
	return found;
}

/**
 * Tries the socket in a line of /proc/net/unix, if its name could be the agent's; as connect_to().
 * A socket with a full queue counts only if it is the process's: unrelated ones may have such
 * names.
 */
static int connect_line(struct prb_target *t, const struct names *names, const char *line,
			bool *removed, int *ret)
{
	const char *name = strpbrk(line, "/@");
	unsigned long inode = 0;
	int rc = ENOENT;

	if (name && *name == '/' && prb_text_ends(name, names->file)) {
		rc = connect_path(t->pid, names, name, ret);
		*removed |= rc == ENOENT && strstr(name, "/probing");
	} else if (name && !strncmp(name, "@probing-", 9) && prb_text_ends(name, names->abstract)) {
		rc = connect_abstract(t, names, name + 1, ret);
		sscanf(line, "%*s %*s %*s %*s %*s %*s %lu", &inode);
		if (rc == EAGAIN && !holds_socket(t, inode))
			rc = ECONNREFUSED;
	}
	return rc;
}

/** Keeps errors worth reporting. */
static void note_reason(int rc, int *why)
{
	if (rc == EACCES || rc == EPERM || rc == EAGAIN)
		*why = rc;
}

/**
 * Tries all sockets of the process's network whose name could be the agent's. Anybody may have made
 * them, so none is tried where the process has no agent. *removed: there is one whose file is gone.
 */
static int connect_listed(struct prb_target *t, const struct names *names, bool *removed, int *ret)
{
	prb_auto_str struct prb_str text = {};
	char *rest = NULL;
	int why = ENOENT;

	if (!prb_agent_is_mapped(t) && !is_mapped_now(t))
		return ENOENT;

	prb_auto_error struct prb_error *err = prb_target_read_file(t, &text, "net/unix");
	if (err || text.failed || !text.data)
		return ENOENT;
	for (char *line = strtok_r(text.data, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest)) {
		int rc = connect_line(t, names, line, removed, ret);

		if (!rc)
			return 0;
		note_reason(rc, &why);
	}
	return why;
}

static char *usual_folder(size_t i, unsigned uid)
{
	return i ? prb_format("/run/user/%u/probing", uid) : prb_format("/tmp/probing-%u", uid);
}

static int connect_usual(struct prb_target *t, const struct names *names, int *ret)
{
	int why = ENOENT;

	for (size_t i = 0; i < USUAL_FOLDERS; i++) {
		prb_auto_free char *folder = usual_folder(i, names->uid);
		prb_auto_free char *path = folder ? prb_format("%s%s", folder, names->file) : NULL;
		int rc = path ? connect_path(t->pid, names, path, ret) : ENOMEM;

		if (!rc)
			return 0;
		note_reason(rc, &why);
	}
	return why;
}

/** In all places once. */
static int connect_once(struct prb_target *t, const struct names *names, bool *removed, int *ret)
{
	int usual = connect_usual(t, names, ret), listed;

	if (!usual)
		return 0;
	listed = connect_listed(t, names, removed, ret);
	return listed == ENOENT ? usual : listed;
}

/** True if the thread that serves the agent's socket is there. */
static bool has_server(struct prb_target *t)
{
	static const char name[] = "probing-agent\n";
	prb_auto_str struct prb_str threads = {};
	bool found = false;
	char *end;

	if (!is_mapped_now(t))
		return false;
	prb_error_destroy(prb_target_list(t, &threads, "task"));
	for (const char *at = prb_str_text(&threads); *at && !found; at = *end ? end + 1 : end) {
		prb_auto_str struct prb_str comm = {};

		prb_error_destroy(
			prb_target_read_file(t, &comm, "task/%ld/comm", strtol(at, &end, 10)));
		found = !strcmp(prb_str_text(&comm), name);
	}
	return found;
}

/**
 * Again, while the agent's queue is full: it drains its queue in no time. Also while there is an
 * agent without a socket: it opens another one, where the program has closed the first.
 */
static int connect_in_time(struct prb_target *t, const struct names *names, bool *removed, int *ret)
{
	double by = prb_agent_deadline(CONNECT_SECONDS);
	int rc;

	while ((rc = connect_once(t, names, removed, ret)) && prb_agent_left(by)) {
		if (rc != EAGAIN && (rc != ENOENT || *removed || !has_server(t)))
			break;
		nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
	}
	return rc;
}

struct prb_error *prb_agent_socket(struct prb_target *t, int *ret_fd)
{
	struct names names;
	bool removed = false;
	int rc;

	if (!t->loadable)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"only a live process can have an agent");
	PRB_TRY(read_names(t, &names));
	rc = connect_in_time(t, &names, &removed, ret_fd);
	if (!rc)
		return NULL;
	if (rc == EAGAIN)
		return prb_error_hint(prb_error_create(PRB_ERROR_TIMEOUT,
						       "the agent of process %d accepts no "
						       "connection: too many are waiting",
						       (int)t->pid),
				      "is the process stopped, or its control group frozen?");
	if (rc != ENOENT)
		return prb_error_hint(prb_error_create(PRB_ERROR_PERMISSION,
						       "the agent of process %d is only for user "
						       "%u and root",
						       (int)t->pid, names.uid),
				      "run as that user, or as root");
	if (removed)
		return prb_error_hint(
			prb_error_create(PRB_ERROR_NOT_FOUND,
					 "the socket file of the agent of process %d was removed",
					 (int)t->pid),
			"'probing %d inject' makes the agent create a new one", (int)t->pid);
	return prb_error_create(PRB_ERROR_NOT_FOUND, "process %d has no agent", (int)t->pid);
}

void prb_agent_tidy(struct prb_target *t)
{
	struct names names;
	prb_auto_error struct prb_error *err = read_names(t, &names);
	for (size_t i = 0; !err && i < USUAL_FOLDERS; i++) {
		prb_auto_free char *folder = usual_folder(i, names.uid);

		if (folder)
			prb_agent_sweep(t, folder, names.uid);
	}
}

void prb_agent_seeker_deinit(struct prb_agent_seeker *seeker)
{
	prb_str_deinit(&seeker->network);
	prb_str_deinit(&seeker->sockets);
}

/** The sockets of the process's network are read once for all that share it. */
static struct prb_error *read_sockets(struct prb_agent_seeker *seeker, struct prb_target *t)
{
	prb_auto_str struct prb_str network = {};

	PRB_TRY(prb_target_read_link(t, &network, "ns/net"));
	if (seeker->network.length &&
	    !strcmp(prb_str_text(&network), prb_str_text(&seeker->network)))
		return NULL;
	prb_agent_seeker_deinit(seeker);
	*seeker = (struct prb_agent_seeker){};
	PRB_TRY(prb_target_read_file(t, &seeker->sockets, "net/unix"));
	prb_str_puts(&seeker->network, prb_str_text(&network));
	return NULL;
}

/** True if a line of /proc/net/unix ends in a name that ends in @p end and begins with @p start. */
static bool is_listed(const char *sockets, const char *start, const char *end)
{
	size_t length = strlen(end);

	for (const char *at = strstr(sockets, end); at; at = strstr(at + 1, end)) {
		const char *name = at;

		if (at[length] && at[length] != '\n')
			continue;
		while (name > sockets && name[-1] != ' ' && name[-1] != '\n')
			name--;
		if (!strncmp(name, start, strlen(start)))
			return true;
	}
	return false;
}

enum prb_agent_state prb_agent_seek(struct prb_agent_seeker *seeker, struct prb_target *t)
{
	struct names names;
	const char *sockets;

	if (!prb_agent_is_mapped(t))
		return PRB_AGENT_NONE;

	prb_auto_error struct prb_error *err = read_sockets(seeker, t);
	if (!err)
		err = read_names(t, &names);
	sockets = prb_str_text(&seeker->sockets);
	if (err || (!is_listed(sockets, "/", names.file) &&
		    !is_listed(sockets, "@probing-", names.abstract)))
		return PRB_AGENT_STOPPED;
	return PRB_AGENT_RUNNING;
}
