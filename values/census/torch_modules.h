/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The modules (torch.nn.Module) of a process as trees, with their parameters and buffers,
 * read from a census without running any code.
 *
 * A module has the path that it has in its model: the variable or attribute that holds the
 * outermost one, then the names in `_modules`. A module in several places has the path that was met
 * first.
 *
 * Threading: as census.h. Errors: a module that cannot be read is left out with what is below it.
 */
#ifndef PRB_VALUES_CENSUS_TORCH_MODULES_H
#define PRB_VALUES_CENSUS_TORCH_MODULES_H

#include "values/census/census.h"

struct prb_torch_module {
	uint64_t address;
	char *path;	   /**< "model.layers.3.attn" */
	char *place;	   /**< " in train()" where the model is a function's variable; else "" */
	const char *class; /**< name of its class, with its module; the census's */
	uint32_t parent;   /**< index of the module above it, PRB_CENSUS_NONE */
	unsigned depth;
	uint32_t order;		    /**< where it is if each is followed by what is below it */
	int8_t training;	    /**< 1, 0; -1 unknown */
	uint64_t parameters, bytes; /**< its own */
	uint64_t all_parameters, all_bytes; /**< with those below it */
	const char *dtype, *device;	    /**< of its first own parameter, or NULL; static */
	int8_t device_index;
	uint64_t hooks; /**< forward and backward ones */
};

/** A parameter or buffer. */
struct prb_torch_tensor {
	uint64_t address;
	char *path;	 /**< "model.embed.weight" */
	uint32_t module; /**< index of the module that has it */
	bool buffer;
};

struct prb_torch_modules {
	PRB_VEC(struct prb_torch_module) list;	  /**< each after the one above it */
	PRB_VEC(struct prb_torch_tensor) tensors; /**< by address */
};

struct prb_error *prb_torch_modules_read(struct prb_census *census,
					 struct prb_torch_modules *ret) PRB_MUST_CHECK;
void prb_torch_modules_deinit(struct prb_torch_modules *modules);
#define prb_auto_torch_modules __attribute__((cleanup(prb_torch_modules_deinit)))

/** The path of the module, parameter or buffer at @p address, or NULL. */
const char *prb_torch_name(const struct prb_torch_modules *modules, uint64_t address);

/** The parameter or buffer at @p address, or NULL. */
const struct prb_torch_tensor *prb_torch_tensor_find(const struct prb_torch_modules *modules,
						     uint64_t address);

/**
 * Appends the way to an object: as a parameter or buffer of a module if it is one, else as
 * prb_census_path().
 */
struct prb_error *prb_torch_path(struct prb_census *census, const struct prb_torch_modules *modules,
				 uint32_t object, struct prb_str *ret) PRB_MUST_CHECK;

/** The objects of classes derived from @p base ("torch.nn.modules.module.Module"), by index. */
struct prb_torch_objects {
	PRB_VEC(uint32_t) list;
};
struct prb_error *prb_torch_objects(struct prb_census *census, const char *base,
				    struct prb_torch_objects *ret) PRB_MUST_CHECK;

#endif
