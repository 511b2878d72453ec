/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the files that read libzmq's objects. Internal to dump/zeromq/. */
#ifndef PRB_DUMP_ZEROMQ_PRIVATE_H
#define PRB_DUMP_ZEROMQ_PRIVATE_H

#include "dump/zeromq/classes.h"
#include "dump/zeromq/zeromq.h"

enum {
	PRB_ZEROMQ_MOST = 4096,	  /**< descriptors, sockets, connections */
	PRB_ZEROMQ_OBJECT = 4096, /**< bytes of an object; none is as large */
};

/** What an epoll instance of libzmq watches. */
struct prb_zeromq_watched {
	int fd;
	uint64_t object; /**< that is called then: an engine, a listener, an I/O thread */
	bool engine;	 /**< of a connection */
	bool listener;
};

struct prb_zeromq_reader {
	struct prb_target *t;
	struct prb_classes classes; /**< has the memory */
	int64_t pid;		    /**< of the target, as it sees itself; -1: not known */
	PRB_VEC(struct prb_zeromq_watched) watched; /**< sorted by object */
	PRB_VEC(uint64_t) contexts;
	PRB_VEC(int) eventfds;
	unsigned pipes; /**< read so far */
	bool cut;
};

/** The words of an object, as many as can be read. */
struct prb_zeromq_words {
	uint64_t address;
	size_t count;
	uint64_t items[PRB_ZEROMQ_OBJECT / sizeof(uint64_t)];
};

void prb_zeromq_words(struct prb_zeromq_reader *r, uint64_t address, struct prb_zeromq_words *ret);

/** Finds a std::vector of pointers between two words; its items are *first to *end. */
bool prb_zeromq_is_vector(const uint64_t words[3], uint64_t *first, uint64_t *count);

/** Appends the text, with its NUL in memory, at @p address. */
bool prb_zeromq_text(struct prb_zeromq_reader *r, uint64_t address, struct prb_str *ret);

/** Appends the text at @p address if it is an endpoint ("tcp://…"). */
bool prb_zeromq_endpoint(struct prb_zeromq_reader *r, uint64_t address, struct prb_str *ret);

/** Reads the connection at @p address; false if it is none. @p ret is empty. */
bool prb_zeromq_pipe(struct prb_zeromq_reader *r, uint64_t address, struct prb_zeromq_pipe *ret);

#endif
