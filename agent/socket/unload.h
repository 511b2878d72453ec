/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Whether the library may be unmapped: no thread of the interpreter is in its code, nor will
 * be. */
#ifndef PRB_AGENT_SOCKET_UNLOAD_H
#define PRB_AGENT_SOCKET_UNLOAD_H

enum prba_left {
	PRBA_LEFT,	/**< no thread of the interpreter is in our code, nor will be */
	PRBA_CALLS,	/**< a pending call of ours may still be made */
	PRBA_ALLOCATES, /**< another allocator calls ours */
	PRBA_ENDS,	/**< it cannot be known: the interpreter is shutting down */
};

/** After prba_work_release(): may our code go away? Waits for the GIL. */
enum prba_left prba_unload_leave(void);

#endif
