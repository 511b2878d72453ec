/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file What the files of `probing memory` share: what was read of a target, and its two forms.
 */
#ifndef PRB_CLI_COMMANDS_MEMORY_REPORT_MEMORY_H
#define PRB_CLI_COMMANDS_MEMORY_REPORT_MEMORY_H

#include "base/json.h"
#include "cli/commands/memory/report/malloc.h"
#include "target/target.h"
#include "values/census/census.h"
#include "values/census/growth.h"
#include "values/census/torch_modules.h"

struct prb_memory_settings {
	bool json;
	double growth, watch, max_seconds;
	const char *diff; /**< the earlier snapshot or core; or NULL */
	double sites;	  /**< seconds; 0: not given */
	bool cc;	  /**< C frames, too */
	const char *every, *output;
	const char *snapshot_gpu; /**< a file, or NULL */
	double duration;	  /**< seconds for that; 0: not given */
	int rows, count;
};

/** The kernel's numbers, in bytes; -1 unknown. */
struct prb_memory_process {
	int64_t rss, peak, pss, anonymous, file, shared, huge, swap;
	int64_t limit, used; /**< of the control group with the least room */
	bool told;	     /**< rss is known */
};

/** GPU memory that the process holds, in bytes; used and total -1: unknown. */
struct prb_memory_gpu {
	unsigned index;
	char name[96];
	int64_t own, used, total;
};

struct prb_memory_interpreter {
	struct prb_python *py;
	struct prb_interp state;
	struct prb_census *census;
	struct prb_error *error; /**< why there is no census */
};

struct prb_memory {
	struct prb_target *target;
	struct prb_modules *modules;
	struct prb_view *view;
	struct prb_pythons pythons;
	struct prb_memory_process process;
	struct prb_malloc malloc;
	PRB_VEC(struct prb_memory_gpu) gpus;
	struct prb_str no_gpu; /**< why there are none, of a process that has loaded CUDA */
	PRB_VEC(struct prb_memory_interpreter) interpreters;
	struct prb_error *no_python; /**< why there are none */
};

/* process.c */
void prb_memory_read_process(struct prb_target *target, struct prb_memory_process *ret);

/* gpu.c */
struct prb_error *prb_memory_read_gpus(struct prb_memory *memory) PRB_MUST_CHECK;

/* read.c */
/** Without the objects; for prb_memory_deinit() also after an error. */
struct prb_error *prb_memory_open(struct prb_target *target, struct prb_memory *ret) PRB_MUST_CHECK;
struct prb_error *prb_memory_read(struct prb_target *target, const struct prb_memory_settings *s,
				  struct prb_memory *ret) PRB_MUST_CHECK;
void prb_memory_deinit(struct prb_memory *memory);
#define prb_auto_memory __attribute__((cleanup(prb_memory_deinit)))

/* text.c */
/** With a sign. */
void prb_memory_put_change(struct prb_str *s, double bytes);
/** With commas. */
void prb_memory_put_count(struct prb_str *s, int64_t count);
/** "float32 (768, 50257)" */
void prb_memory_put_shape(struct prb_str *s, const struct prb_census_tensor *tensor);
struct prb_error *prb_memory_put_text(const struct prb_memory *memory, int rows,
				      struct prb_str *s) PRB_MUST_CHECK;
/** The line of the target, and of its Python. */
void prb_memory_put_head(const struct prb_memory *memory, struct prb_str *s);

/* json.c */
struct prb_error *prb_memory_put_json(const struct prb_memory *memory, int rows,
				      struct prb_str *s) PRB_MUST_CHECK;

/* sorted.c */
/** The types with objects, and the tensors whose bytes count: most bytes first. Freed by the
 * caller. */
struct prb_error *prb_memory_types(struct prb_census *census, struct prb_census_type **ret,
				   size_t *count) PRB_MUST_CHECK;
struct prb_error *prb_memory_tensors(struct prb_census *census, struct prb_census_tensor **ret,
				     size_t *count) PRB_MUST_CHECK;

/** Tensors of one type on one device. */
struct prb_memory_group {
	const char *device, *dtype;
	int8_t index;
	uint64_t tensors, bytes, gradients;
};
struct prb_error *prb_memory_groups(struct prb_census *census, struct prb_memory_group **ret,
				    size_t *count) PRB_MUST_CHECK;

/* cli/commands/memory/memory.c */
/** Waits; false if Ctrl-C ended the wait. */
bool prb_memory_wait(double seconds);

/* malloc_show.c */
void prb_memory_put_malloc(const struct prb_malloc *malloc, struct prb_str *s);
void prb_memory_put_malloc_json(const struct prb_malloc *malloc, int rows, struct prb_json *json);
/** The sizes of which there are more blocks, the most bytes first. */
struct prb_error *prb_memory_put_malloc_growth(const struct prb_memory *before,
					       const struct prb_memory *after, int rows,
					       struct prb_str *s) PRB_MUST_CHECK;
struct prb_error *prb_memory_put_malloc_growth_json(const struct prb_memory *before,
						    const struct prb_memory *after, int rows,
						    struct prb_json *json) PRB_MUST_CHECK;

/* growth.c */
struct prb_error *prb_memory_growth(struct prb_target *target, const struct prb_memory_settings *s,
				    struct prb_str *out) PRB_MUST_CHECK;
/** An error if there are no objects to be compared. */
struct prb_error *prb_memory_need_census(const struct prb_memory *memory) PRB_MUST_CHECK;
/** Finds what grew, and its holders; @p seconds lie between them. */
struct prb_error *prb_memory_compare(const struct prb_memory *before,
				     const struct prb_memory *after,
				     const struct prb_memory_settings *settings, double seconds,
				     struct prb_str *out) PRB_MUST_CHECK;

/* diff.c */
/** As above, for two snapshots or cores of one process. */
struct prb_error *prb_memory_diff(struct prb_target *first, struct prb_target *second,
				  const struct prb_memory_settings *settings,
				  struct prb_str *out) PRB_MUST_CHECK;

/**
 * The C++ class of objects that begin with the address @p table, for the caller to free; NULL if
 * that is no table of virtual functions. PRB_ERROR_NOMEM only.
 */
struct prb_error *prb_memory_class_name(const struct prb_memory *m, uint64_t table,
					char **ret) PRB_MUST_CHECK;

#endif
