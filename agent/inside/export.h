/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Marks what libprobing-agent.so exports; agent.map lists it too. */
#ifndef PRB_AGENT_INSIDE_EXPORT_H
#define PRB_AGENT_INSIDE_EXPORT_H

#define PRBA_EXPORT __attribute__((visibility("default")))

#endif
