/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the parts that describe waits. Internal to dump/waits/.
 *
 * All append words to a string, and nothing if nothing is known. They fail only when out of memory:
 * the string's `failed`.
 */
#ifndef PRB_DUMP_WAITS_WAIT_PRIVATE_H
#define PRB_DUMP_WAITS_WAIT_PRIVATE_H

#include <sys/socket.h>

#include "target/mem/maps.h"
#include "target/proc/pids.h"
#include "target/task.h"

struct prb_fd_peers;
struct prb_socket_tables;
struct prb_zeromq;

enum prb_direction {
	PRB_EITHER_WAY,
	PRB_INCOMING, /**< waits until there is something to read */
	PRB_OUTGOING, /**< waits until there is room to write */
};

/** What was found of a word in shared memory. */
struct prb_known_sharers {
	struct prb_sharers found;
	bool unknown, cut; /**< some could not be read; time was up */
};

struct prb_search {
	struct prb_fd_peers *holders; /**< NULL until first used */
	PRB_VEC(struct prb_known_sharers) sharers;
};

struct prb_wait_context {
	struct prb_target *target;
	struct prb_mem *mem;		   /* memory for the present description */
	struct prb_fd_peers *holders;	   /**< of relatives; NULL until first used */
	struct prb_socket_tables *sockets; /**< the same */
	struct prb_maps *maps;		   /**< the same */
	struct prb_zeromq *zeromq;	   /**< the same */
	int pidfd;	     /**< of the target; -1 not opened yet, -2 not available */
	struct prb_str root; /**< the target's root as we see it, "/" mostly */
	bool root_known;
	bool time_known, same_time; /**< no time namespace: the target's clocks are ours */
	char state;		    /**< of the described thread */
	uint64_t sp;		    /**< its stack pointer; 0: not known */
	struct prb_search *search;  /**< see prb_wait_context_search_all(); NULL: relatives only */
	struct prb_search *own_search; /**< NULL: it is shared, or there is none */
	struct prb_enders *enders;     /**< of the wait that is described; NULL: nobody asks */
	const char *kind;	       /**< of the object that is described */
	unsigned objects, complete; /**< what the wait is for; of how many all enders are known */
	unsigned instances;	    /**< those of the objects that are epoll instances */
	struct {
		pid_t inner, tid;
		struct prb_str words;
	} named; /**< cache: the last thread looked up for a lock */
};

/* Who can end the described wait. It ends when any of its objects lets it. */

/** Begins an object; what is not told of it is not known. */
void prb_enders_object(struct prb_wait_context *c, const char *kind);
/** Adds a process that can end the wait. */
void prb_enders_add(struct prb_wait_context *c, pid_t pid);
/** All that can are added; @p certain as in struct prb_enders. */
void prb_enders_all(struct prb_wait_context *c, bool certain);
/** The thread @p tid is to end it; @p alone as in struct prb_enders. */
void prb_enders_thread(struct prb_wait_context *c, const char *kind, pid_t tid, bool alone);

/** Somebody outside can end the wait: a client, a user, who sends a signal or changes a file. */
void prb_enders_outside(struct prb_wait_context *c);
/** Any child can. */
void prb_enders_any_child(struct prb_wait_context *c);

/** True if all went well; else frees the error, and notes in @p s if memory ran out. */
bool prb_wait_ok(struct prb_str *s, struct prb_error *err);

/** Appends "file 5 /data/x", "socket 7 → …", "pipe 4 ← …"; "descriptor 5" at the least. */
void prb_describe_fd(struct prb_wait_context *c, int fd, enum prb_direction direction,
		     struct prb_str *s);

/** Appends a path as the target sees it, printable. */
void prb_put_path(struct prb_wait_context *c, const char *path, struct prb_str *s);

/** Appends "SIGINT, SIGTERM"; bit 0 of @p mask is signal 1. */
void prb_put_signals(uint64_t mask, struct prb_str *s);

/** Appends the description of socket @p fd with this inode. */
void prb_describe_socket(struct prb_wait_context *c, int fd, uint64_t inode, struct prb_str *s);

/** Appends "10.0.0.3:29500", "[::1]:80", "/run/x.sock"; nothing if it is invalid. */
void prb_put_sockaddr(struct prb_str *s, const struct sockaddr_storage *address, socklen_t length);

/** The processes to find among those that have a file open. */
enum prb_access { PRB_HAS_OPEN, PRB_CAN_READ, PRB_CAN_WRITE };

/**
 * Appends the other processes that have @p link ("pipe:[123]") open: "4711 (cat)", "4711 (cat)
 * and 2 more", or "itself" if only the target has. Nothing if none is found in time. @p hint is a
 * process that is likely to be the only one, or 0.
 */
void prb_describe_holders(struct prb_wait_context *c, const char *link, enum prb_access access,
			  pid_t hint, struct prb_str *s);
void prb_fd_peers_destroy(struct prb_fd_peers *holders);

/** As above, without words: the processes are added to the enders alone. False if none is found. */
bool prb_note_holders(struct prb_wait_context *c, const char *link, enum prb_access access);

/** Appends "4711 (cat)". */
void prb_describe_process(pid_t pid, struct prb_str *s);

/** A socket, from the tables under /proc/PID/net or from the kernel directly. */
struct prb_socket {
	int domain, type, protocol;
	bool listening;
	int state; /**< of TCP, as in <netinet/tcp.h>; 0 if unknown */
	struct sockaddr_storage local, peer;
	socklen_t local_length, peer_length; /**< 0 if it has no such address */
	pid_t peer_pid; /**< process that connected or listened; 0 if unknown */
	bool limited;	/**< its calls end by themselves (SO_RCVTIMEO, SO_SNDTIMEO) */
};

/** Queries the socket itself, or the tables; false if neither has it. */
bool prb_socket_find(struct prb_wait_context *c, int fd, uint64_t inode, struct prb_socket *ret);

/**
 * Appends the process at the other end of a unix socket, nothing if it is unknown. @p hint as in
 * prb_describe_holders().
 */
void prb_describe_unix_peer(struct prb_wait_context *c, const struct prb_socket *socket,
			    uint64_t inode, pid_t hint, struct prb_str *s);

/** Appends address and port apart; *port is -1 if there is none. */
void prb_put_address(struct prb_str *s, const struct sockaddr_storage *address, socklen_t length,
		     int *port);

/** The number in "socket:[123]" if the link is one of @p kind; 0 otherwise. */
uint64_t prb_link_inode(const char *link, const char *kind);

/** Finds the socket with this inode in the tables; false if it is in none. */
bool prb_socket_from_tables(struct prb_wait_context *c, uint64_t inode, struct prb_socket *ret);
/**
 * The inode of the socket at the other end of a TCP connection on this machine, also in another
 * network namespace; 0: there is none, or several may be it.
 */
uint64_t prb_socket_other_end(struct prb_wait_context *c, const struct prb_socket *socket);
/** The inode of the socket that listens where @p socket is connected to, in the same network; or 0.
 */
uint64_t prb_socket_listener(struct prb_wait_context *c, const struct prb_socket *socket);
void prb_socket_tables_destroy(struct prb_socket_tables *tables);

/** Appends the descriptors that poll, select and epoll watch. */
void prb_describe_poll(struct prb_wait_context *c, uint64_t fds, uint64_t count, struct prb_str *s);
void prb_describe_select(struct prb_wait_context *c, uint64_t count, const uint64_t sets[3],
			 struct prb_str *s);
void prb_describe_epoll(struct prb_wait_context *c, int fd, struct prb_str *s);

/** Appends the holder of the lock that flock or fcntl wants on @p fd: " held by 4711 (sh)". */
void prb_describe_file_lock(struct prb_wait_context *c, int fd, struct prb_str *s);

/**
 * The thread sleeps for a moment: if SQLite does that because a database is locked, appends the
 * file and the lock's holder.
 */
void prb_describe_sqlite(struct prb_wait_context *c, struct prb_str *s);
/** "MAJOR:MINOR:INODE" of an open file as in /proc/locks; false if unknown. */
bool prb_lock_key(struct prb_wait_context *c, int fd, char *key, size_t size, struct prb_str *s);
/** True if the C library's function returns to a library whose file name begins with @p name. */
bool prb_is_called_by(struct prb_wait_context *c, const char *name, struct prb_str *s);

/** The wait ends by itself, after a time that may be unknown. */
void prb_enders_limited(struct prb_wait_context *c);

/**
 * Appends what a futex is that other processes can wake, and notes who; false if @p address is in
 * memory of the target's own.
 */
bool prb_describe_shared_futex(struct prb_wait_context *c, uint64_t address, struct prb_str *s);
void prb_shared_maps_destroy(struct prb_maps *maps);
/** The part of the target's memory map that has @p address; NULL if it is not known. */
const struct prb_map *prb_shared_map_at(struct prb_wait_context *c, uint64_t address);

/**
 * Appends "eventfd 9 of ZeroMQ REQ tcp://…", and notes the peers, if by @p fd a socket of libzmq is
 * waited for; else false. @p words are what the kernel calls it.
 */
bool prb_describe_zeromq(struct prb_wait_context *c, int fd, const char *words, struct prb_str *s);
void prb_wait_zeromq_destroy(struct prb_zeromq *zeromq);

/** Appends the kind of a futex: "a lock held by 4250 (worker-1)", "the end of thread 4251", … */
void prb_describe_futex(struct prb_wait_context *c, const struct prb_task *task,
			struct prb_wait *wait, struct prb_str *s);

/** Appends "child 4711 (sh)" for @p pid as wait4 takes it, "any of 3 children", "any child". */
void prb_describe_child(struct prb_wait_context *c, pid_t pid, struct prb_str *s);

/** Appends "child 4711 (sh)": the newest of the thread's own children. */
void prb_describe_newest_child(struct prb_wait_context *c, pid_t tid, struct prb_str *s);

/** Describes a system call that sleeps; nothing if it is unknown. */
void prb_describe_call(struct prb_wait_context *c, const char *name, const struct prb_task *task,
		       struct prb_wait *wait, struct prb_str *s);

/* Times. Addresses are the target's; 0 or an unreadable address means no limit. */

enum prb_time_unit { PRB_TIMESPEC, PRB_TIMEVAL };

/** Reads seconds; @p s notes that memory ran out. */
bool prb_read_time(struct prb_wait_context *c, uint64_t address, enum prb_time_unit unit,
		   double *ret, struct prb_str *s);

/** Notes that the wait ends after @p seconds and appends ", at most 5 s". */
void prb_put_limit(struct prb_wait *wait, double seconds, struct prb_str *s);
void prb_put_limit_at(struct prb_wait_context *c, struct prb_wait *wait, uint64_t address,
		      enum prb_time_unit unit, struct prb_str *s);

/** Notes the time left until the deadline at @p address on @p clock and appends ", 4.2 s left". */
void prb_put_deadline(struct prb_wait_context *c, struct prb_wait *wait, int clock,
		      uint64_t address, struct prb_str *s);

#endif
