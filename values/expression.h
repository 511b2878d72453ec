/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finding a value by an expression, without running any code in the target.
 *
 * An expression is a name, then any number of .NAME, [NUMBER] and ['TEXT']: "self.queue",
 * "sys.modules['json'].__file__", "rows[-1]"; and around it len(), type(), vars() and dir(). Names
 * are looked for in the frame, its globals, the builtins, and among the modules that are imported.
 * Attributes are found as Python finds them: what the classes have that decides (slots, fields of C
 * types), then what the instance has, then what the classes have. Parts that would run code (other
 * calls, operators, properties, __getattr__, __getitem__) are not evaluated: the error names the
 * part.
 *
 * Threading: as python/repr/core/repr.h. Errors: PRB_ERROR_USAGE for what is no such expression,
 * PRB_ERROR_NOT_FOUND for what does not exist, or would run code, with where the search ended.
 */
#ifndef PRB_VALUES_EXPRESSION_H
#define PRB_VALUES_EXPRESSION_H

#include "base/str.h"
#include "python/python.h"
#include "python/repr/core/repr.h"

enum { PRB_EXPRESSION_MAX = 4096 /**< bytes */ };

/** Which of the places where a name may be are searched. */
enum prb_py_names {
	PRB_NAMES_ALL,	     /**< all that follow but `__main__`, as Python does */
	PRB_NAMES_FRAME,     /**< the frame's variables, those around it, and globals */
	PRB_NAMES_MAIN,	     /**< the module `__main__` */
	PRB_NAMES_ELSEWHERE, /**< builtins of the frame, and imported modules */
};

/** Where names are looked for. */
struct prb_py_scope {
	const struct prb_py_frame *frame; /**< NULL: only modules are known */
	uint64_t interp;		  /**< whose modules; 0: none are */
	size_t callers;			  /**< frames behind that one in its list */
	unsigned depth;			  /**< its number, for messages */
	enum prb_py_names names;
	/** NULL, or becomes the first name of the expression if nothing has that name (then the
	 * error is PRB_ERROR_NOT_FOUND), else empty. */
	struct prb_str *missing;
};

/** An object, or (object is 0) what is none in the target: a number in C, a length, a list of
 * names, as text. */
struct prb_py_value {
	uint64_t object;
	const char *type;    /**< of the text; static */
	struct prb_str text; /**< the caller ends it with prb_str_deinit() */
	/** The class whose __getattribute__ may answer otherwise than what the object stores, which
	 * this is; "" if there is none. */
	char computed_by[128];
};

/** Evaluates @p expression in @p scope. @p options: of texts, as for prb_object_repr(). */
struct prb_error *prb_python_find(struct prb_python *py, struct prb_mem *mem,
				  const struct prb_py_scope *scope, const char *expression,
				  const struct prb_repr_options *options,
				  struct prb_py_value *ret) PRB_MUST_CHECK;

/**
 * Appends the expressions that @p prefix may become, one on a line: with variables and globals for
 * its end, or behind a dot with attributes, in no order, and perhaps twice. Names of ASCII letters,
 * digits and "_" only, so that a shell can take them for words.
 */
struct prb_error *prb_python_names(struct prb_python *py, struct prb_mem *mem,
				   const struct prb_py_scope *scope, const char *prefix,
				   struct prb_str *ret) PRB_MUST_CHECK;

#endif
