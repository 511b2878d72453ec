/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shared by the parts of the evaluation of an expression. See expression.h. Internal to
 * values/.
 *
 * Each step looks at s->object, the value so far, and replaces it. Errors quote the expression up
 * to the failing step.
 */
#ifndef PRB_VALUES_EXPRESSION_PRIVATE_H
#define PRB_VALUES_EXPRESSION_PRIVATE_H

#include "python/repr/arrays/numpy.h"
#include "python/repr/core/repr_private.h"
#include "values/expression.h"

/**
 * Cache of class attributes by name, for many attributes of few classes. Cleared with the types.
 */
enum { PRB_CLASS_CACHE_SIZE = 256, PRB_CLASS_CACHE_NAME = 40 };

struct prb_class_cache {
	struct prb_class_cached {
		uint64_t type; /**< 0: empty */
		uint64_t found;
		const struct prb_type *owner; /**< NULL if nothing was found */
		char name[PRB_CLASS_CACHE_NAME];
	} entries[PRB_CLASS_CACHE_SIZE];
};

/**
 * The kind of the value so far: the object, or a part that is no object of the target: its frame,
 * or the dict of the frame's variables.
 */
enum prb_search_view {
	PRB_SEARCH_OBJECT,
	PRB_SEARCH_FRAME,
	PRB_SEARCH_VARIABLES,
	PRB_SEARCH_ARRAY, /**< a part of an array of numpy */
};

enum { PRB_COMPUTED_BY = sizeof(((struct prb_py_value *)NULL)->computed_by) };

struct prb_search {
	struct prb_repr *r;
	struct prb_class_cache *cache; /**< NULL: none */
	const struct prb_py_scope *scope;
	const char *text, *at; /**< the expression, and what is left of it */
	const char *from;      /**< where what is looked into begins: behind the "(" of a call */
	int looked_into;       /**< bytes scanned of the container being indexed */
	unsigned nested;       /**< functions around it */
	uint64_t object;       /**< found so far; 0: it is what `value` has */
	enum prb_search_view view;
	struct prb_ndarray array; /**< of PRB_SEARCH_ARRAY */
	struct prb_str value;	  /**< text of what is no object */
	const char *type;	  /**< type of that */
	/** PRB_COMPUTED_BY bytes, for prb_py_value.computed_by; NULL: it is an error. */
	char *computed_by;
	bool *needs_code; /**< set if only code could compute it; NULL: not wanted */
};

/* names.c */
struct prb_error *prb_search_name(struct prb_search *s, const char *name) PRB_MUST_CHECK;

/* scopes.c: what a name means in the source of the frame's code */
/** Appends the name as the compiler has it, which adds the class to a private one. */
struct prb_error *prb_search_mangle(struct prb_search *s, const char *name,
				    struct prb_str *ret) PRB_MUST_CHECK;
/** True, and found, if it is a variable of a function around whose frame is certain. An error if
 * such a function has it, and there is no such frame. */
struct prb_error *prb_search_around(struct prb_search *s, const char *name,
				    bool *ret) PRB_MUST_CHECK;

/* attribute.c */
struct prb_error *prb_search_attribute(struct prb_search *s, const char *name) PRB_MUST_CHECK;
/** True, and found, if the class of the object hides all that it keeps. */
struct prb_error *prb_search_hidden(struct prb_search *s, bool *ret) PRB_MUST_CHECK;
/** The same of a class that hides one of its items, which are not told apart. */
struct prb_error *prb_search_hidden_item(struct prb_search *s, bool *ret) PRB_MUST_CHECK;
/** A class attribute along the MRO, also of Python's own types; 0 if there is none. */
struct prb_error *prb_search_class(struct prb_search *s, const struct prb_type *type,
				   const char *name, uint64_t *ret,
				   const struct prb_type **owner) PRB_MUST_CHECK;
/** The error for a value that only code of the program could compute. */
struct prb_error *prb_search_needs_code(const struct prb_search *s, const char *format,
					...) PRB_MUST_CHECK PRB_PRINTF(2, 3)
	__attribute__((returns_nonnull));

/* known.c: what libraries compute, where it is known how */
/** True, and found, if C code gives the attribute, and where from is known. @p owner: of the
 * descriptor. */
struct prb_error *prb_known_field(struct prb_search *s, const struct prb_type *type,
				  const struct prb_type *owner, const char *name,
				  bool *ret) PRB_MUST_CHECK;
/** True, and found, if it is known where the code of the data descriptor, of that class, gets the
 * attribute from. */
struct prb_error *prb_known_descriptor(struct prb_search *s, uint64_t descriptor,
				       const struct prb_type *owner, const char *name,
				       bool *ret) PRB_MUST_CHECK;
/** True, and found, if the object is a frame of pandas or polars that has a column of that name. */
struct prb_error *prb_known_column(struct prb_search *s, const char *name,
				   bool *ret) PRB_MUST_CHECK;
/** True, and found, if @p function is a __getattr__ that is known and has that name. */
struct prb_error *prb_known_getattr(struct prb_search *s, uint64_t function, const char *name,
				    bool *ret) PRB_MUST_CHECK;
/** True, and s->object is the container it takes its items from, if @p function is a known
 * __getitem__ or __len__. */
struct prb_error *prb_known_container(struct prb_search *s, uint64_t function,
				      bool *ret) PRB_MUST_CHECK;

/* frames.c: frames of generators and coroutines, which mostly are no objects, and their variables
 */
/** True, and found, if it is an attribute that leads to a frame, or is known of one. */
struct prb_error *prb_search_of_frame(struct prb_search *s, const char *name,
				      bool *ret) PRB_MUST_CHECK;
/** A variable. */
struct prb_error *prb_search_variable(struct prb_search *s, const char *name) PRB_MUST_CHECK;
/** Replaces a view by its text, and refuses to do so where @p more is to be looked up in it. */
struct prb_error *prb_search_end_view(struct prb_search *s, bool more) PRB_MUST_CHECK;

/* items.c */
struct prb_error *prb_search_text_item(struct prb_search *s, const char *key) PRB_MUST_CHECK;
struct prb_error *prb_search_number_item(struct prb_search *s, int64_t number) PRB_MUST_CHECK;
/** Of the part of an array that is the view. */
struct prb_error *prb_search_array_item(struct prb_search *s, int64_t number) PRB_MUST_CHECK;

/* complete.c */
/** The names of expression.h's prb_python_names(); @p find finds s->at as a whole. */
struct prb_error *prb_search_complete(struct prb_search *s,
				      struct prb_error *(*find)(struct prb_search *s),
				      struct prb_str *out) PRB_MUST_CHECK;

/* functions.c */
/** The text of what is no object of the target goes to where the value is kept. */
void prb_search_begin_text(struct prb_search *s, const char *type);
struct prb_error *prb_search_len(struct prb_search *s) PRB_MUST_CHECK;
struct prb_error *prb_search_vars(struct prb_search *s) PRB_MUST_CHECK;
struct prb_error *prb_search_dir(struct prb_search *s) PRB_MUST_CHECK;

#endif
