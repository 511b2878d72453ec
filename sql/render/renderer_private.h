/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file Shared by the renderers. Internal to sql/render/. */
#ifndef PRB_SQL_RENDER_RENDERER_PRIVATE_H
#define PRB_SQL_RENDER_RENDERER_PRIVATE_H

#include "sql/render/renderer.h"

/** A format. What it is called with is checked by renderer.c. */
struct prb_renderer_ops {
	size_t state_size; /**< of its own state, zeroed at first */
	struct prb_error *(*begin)(struct prb_renderer *renderer)PRB_MUST_CHECK;
	struct prb_error *(*row)(struct prb_renderer *renderer,
				 const struct prb_value *values)PRB_MUST_CHECK;
	struct prb_error *(*end)(struct prb_renderer *renderer)PRB_MUST_CHECK;
	void (*left_out)(const struct prb_renderer *renderer, struct prb_str *ret); /**< or NULL */
	void (*deinit)(struct prb_renderer *renderer);				    /**< or NULL */
};

extern const struct prb_renderer_ops prb_renderer_table, prb_renderer_json, prb_renderer_ndjson,
	prb_renderer_csv, prb_renderer_tsv;

struct prb_renderer {
	const struct prb_renderer_format *format;
	struct prb_renderer_look look;
	prb_renderer_sink *sink;
	void *context;
	void *state; /**< of the format */
	char **names;
	size_t columns;
	struct prb_value *values; /**< of a row of a statement; NULL without one */
	uint64_t rows;
	bool begun;	    /**< between begin and end */
	struct prb_str out; /**< what is not handed on yet */
};

/** Hands on what there is. */
struct prb_error *prb_renderer_flush(struct prb_renderer *renderer) PRB_MUST_CHECK;

/* Values as all formats but tables write them. */
void prb_renderer_integer(struct prb_str *s, int64_t value);
/** The shortest digits that read back the same, with a point or exponent: "1.0", "1e+300". */
void prb_renderer_real(struct prb_str *s, double value);
/** Two lower-case digits for each byte. */
void prb_renderer_hex(struct prb_str *s, const char *bytes, size_t length);

#endif
