/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The options that say where the other machines of a job are (cluster/reach/reach.h), for
 * commands whose settings have these members. */
#ifndef PRB_CLI_COMMANDS_CLUSTER_REACH_OPTIONS_H
#define PRB_CLI_COMMANDS_CLUSTER_REACH_OPTIONS_H

#include "cluster/reach/ras.h"
#include "command/command.h"

#define PRB_REACH_MEMBERS                                                             \
	const char *hosts, *host_file, *slurm, *kubernetes, *ras, *space, *container; \
	const char *bring;                                                            \
	bool tree

/** Of settings @p s. */
#define PRB_REACH_OF(s)                                                                \
	(struct prb_reach)                                                             \
	{                                                                              \
		.hosts = (s)->hosts, .host_file = (s)->host_file, .slurm = (s)->slurm, \
		.kubernetes = (s)->kubernetes, .ras = (s)->ras, .space = (s)->space,   \
		.container = (s)->container, .bring = (s)->bring, .bring_fd = -1       \
	}

#define PRB_REACH_OPTIONS(type)                                                                \
	{"hosts",                                                                              \
	 0,                                                                                    \
	 PRB_OPTION_TEXT,                                                                      \
	 "HOSTS",                                                                              \
	 "Ranks of these hosts, through ssh: node[01-16],login",                               \
	 PRB_COMPLETE_NOTHING,                                                                 \
	 offsetof(type, hosts)},                                                               \
		{"host-file",                                                                  \
		 0,                                                                            \
		 PRB_OPTION_TEXT,                                                              \
		 "FILE",                                                                       \
		 "The same, with the hosts from a file, as of MPI",                            \
		 PRB_COMPLETE_FILE,                                                            \
		 offsetof(type, host_file)},                                                   \
		{"slurm",                                                                      \
		 0,                                                                            \
		 PRB_OPTION_TEXT,                                                              \
		 "JOBID",                                                                      \
		 "Ranks of this Slurm job, through srun",                                      \
		 PRB_COMPLETE_NOTHING,                                                         \
		 offsetof(type, slurm)},                                                       \
		{"kubernetes",                                                                 \
		 0,                                                                            \
		 PRB_OPTION_TEXT,                                                              \
		 "LABELS",                                                                     \
		 "Ranks in the pods with these labels, through kubectl",                       \
		 PRB_COMPLETE_NOTHING,                                                         \
		 offsetof(type, kubernetes)},                                                  \
		{"ras",                                                                        \
		 0,                                                                            \
		 PRB_OPTION_TEXT,                                                              \
		 "ADDRESS",                                                                    \
		 "Ranks of the hosts that NCCL's RAS service names [" PRB_RAS_ADDRESS "]",     \
		 PRB_COMPLETE_NOTHING,                                                         \
		 offsetof(type, ras),                                                          \
		 .otherwise = PRB_RAS_ADDRESS},                                                \
		{"namespace",	       0,                                                      \
		 PRB_OPTION_TEXT,      "NAME",                                                 \
		 "Of the pods",	       PRB_COMPLETE_NOTHING,                                   \
		 offsetof(type, space)},                                                       \
		{"container",                                                                  \
		 0,                                                                            \
		 PRB_OPTION_TEXT,                                                              \
		 "NAME",                                                                       \
		 "Of each pod",                                                                \
		 PRB_COMPLETE_NOTHING,                                                         \
		 offsetof(type, container)},                                                   \
		{"bring",                                                                      \
		 0,                                                                            \
		 PRB_OPTION_TEXT,                                                              \
		 "FILE",                                                                       \
		 "Run a copy of this static probing there, and remove it afterwards",          \
		 PRB_COMPLETE_FILE,                                                            \
		 offsetof(type, bring)},                                                       \
	{                                                                                      \
		"tree", 0, PRB_OPTION_FLAG, NULL,                                              \
			"'--hosts': some of the hosts ask the others, for thousands of hosts", \
			PRB_COMPLETE_NOTHING, offsetof(type, tree)                             \
	}

#endif
