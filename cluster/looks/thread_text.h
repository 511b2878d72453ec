/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Threads and frames in a few words, escaped. Any thread. */
#ifndef PRB_CLUSTER_LOOKS_THREAD_TEXT_H
#define PRB_CLUSTER_LOOKS_THREAD_TEXT_H

#include "base/str.h"
#include "dump/model/dump.h"

/** Appends "train.py:41". */
void prb_put_place(struct prb_str *s, const struct prb_dump_frame *frame);

/** Appends the place of @p frame of @p thread; if that is a library's, also the frame of the
 * program: "__init__.py:197, by main train.py:52". */
void prb_put_caller(struct prb_str *s, const struct prb_dump_thread *thread,
		    const struct prb_dump_frame *frame);

/** Appends "Trainer.step train.py:41" for the innermost Python frame; if that is a library's, also
 * the frame of the program: "read io.py:5, called by load train.py:12". */
void prb_put_innermost(struct prb_str *s, const struct prb_dump_thread *thread);

/** Appends "thread 4251 uploader", or "thread 4251". */
void prb_put_thread_name(struct prb_str *s, const struct prb_dump_thread *thread);

/** Appends "Trainer.step train.py:41, idle 12 s in sleep". */
void prb_put_thread(struct prb_str *s, const struct prb_dump_thread *thread);

/** The number behind @p words in a text, which may be NULL; 0 if they are not there. */
long prb_number_behind(const char *text, const char *words);

/** "Trainer.step" or "step"; "?" for a frame without a name. */
const char *prb_frame_name(const struct prb_dump_frame *frame);

#endif
