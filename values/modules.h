/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file An interpreter's sys.modules, read from outside.
 *
 * Threading: as python.h. Unreadable parts of a module are unknown (NULL, -1), and the other
 * modules are listed; an error is returned when sys.modules itself cannot be read.
 */
#ifndef PRB_VALUES_MODULES_H
#define PRB_VALUES_MODULES_H

#include "base/error.h"
#include "base/vec.h"
#include "python/python.h"

/** The origin of a module, from its loader. */
enum prb_import_kind {
	PRB_IMPORT_UNKNOWN, /**< made by a program, or by a loader that is not Python's own */
	PRB_IMPORT_BUILTIN,
	PRB_IMPORT_FROZEN,
	PRB_IMPORT_EXTENSION, /**< a shared object */
	PRB_IMPORT_SOURCE,
	PRB_IMPORT_BYTECODE, /**< without source */
	PRB_IMPORT_NAMESPACE,
	PRB_IMPORT_ZIP,
};

/** "builtin", …; NULL for unknown. */
const char *prb_import_kind_name(enum prb_import_kind kind);

struct prb_import {
	char *name;	  /**< the key in sys.modules */
	uint64_t address; /**< of the object; any object can be there, also None */
	char *type;	  /**< its type with module: "module", "NoneType" */
	/** Texts of __file__, __version__ and __package__; NULL if there are none, or no str. */
	char *file, *version, *package;
	int64_t names; /**< entries of its namespace; -1 unknown, or no module */
	enum prb_import_kind kind;
};

struct prb_imports {
	PRB_VEC(struct prb_import) list; /**< in the order of the dict; from 3.6 on of import */
};

/** Reads sys.modules of the interpreter at @p interp. */
struct prb_error *prb_imports_read(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				   struct prb_imports *ret) PRB_MUST_CHECK;
void prb_imports_deinit(struct prb_imports *imports);

/** len(sys.modules) */
struct prb_error *prb_imports_count(struct prb_python *py, struct prb_mem *mem, uint64_t interp,
				    int64_t *ret) PRB_MUST_CHECK;

#endif
