/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file An entry of a folder, as the system call getdents64() writes it. */
#ifndef PRB_AGENT_INSIDE_FOLDER_ENTRY_H
#define PRB_AGENT_INSIDE_FOLDER_ENTRY_H

#include <stdint.h>

struct prba_folder_entry {
	uint64_t inode;
	int64_t next;
	uint16_t length; /**< of the entry, in bytes: the next one follows it */
	uint8_t type;
	char name[];
};

#endif
