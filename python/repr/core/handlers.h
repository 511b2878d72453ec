/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The handlers of single kinds of objects, by the file that has them. See repr_private.h
 * for what a handler may do; handlers.c says which types they print.
 */
#ifndef PRB_PYTHON_REPR_CORE_HANDLERS_H
#define PRB_PYTHON_REPR_CORE_HANDLERS_H

#include "python/repr/core/repr_private.h"

/* handlers.c */
/** The handler for the repr that the builtin or extension type @p name brings, or NULL. */
prb_repr_handler *prb_repr_c_handler(const char *name);
/** As above, for a type of C that brings none, or whose text is code of another kind; or NULL. */
prb_repr_handler *prb_repr_silent_handler(const struct prb_type *type);

/* default.c */
prb_repr_handler prb_repr_handle_default;
/** True of a class of a program that prints like the plain type that it is derived from. */
bool prb_repr_is_derived(struct prb_repr *r, const struct prb_type *type);
/** Appends " name=value" for each variable of a frame object. */
struct prb_error *prb_repr_put_variables(struct prb_repr *r, uint64_t object) PRB_MUST_CHECK;

/* builtin/str.c, builtin/bytes.c */
prb_repr_handler prb_repr_handle_str, prb_repr_handle_bytes, prb_repr_handle_bytearray;

/** Appends bytes that lie one in each word, as a literal. */
void prb_repr_quote_bytes(struct prb_repr *r, const uint32_t *bytes, size_t count);

/* builtin/numbers.c */
prb_repr_handler prb_repr_handle_int, prb_repr_handle_bool, prb_repr_handle_float,
	prb_repr_handle_complex;
void prb_repr_put_complex(struct prb_repr *r, double real, double imaginary);
/**
 * Appends the shortest text that a type whose numbers lie @p step apart here reads back as the
 * same number; @p point: with ".0" for whole numbers.
 */
void prb_repr_put_shortest(struct prb_repr *r, double value, double step, bool point);
/** Appends decimal digits; those over the limit as a count. */
void prb_repr_put_digits(struct prb_repr *r, const char *text);

/* builtin/lists_and_sets.c */
/** Prints @p count objects whose addresses lie at @p address, separated by ", ". */
struct prb_error *prb_repr_array(struct prb_repr *r, uint64_t address,
				 uint64_t count) PRB_MUST_CHECK;
prb_repr_handler prb_repr_handle_list, prb_repr_handle_tuple, prb_repr_handle_set,
	prb_repr_handle_range, prb_repr_handle_slice, prb_repr_handle_deque;

/* builtin/dicts.c */
prb_repr_handler prb_repr_handle_dict, prb_repr_handle_dict_keys, prb_repr_handle_dict_values,
	prb_repr_handle_dict_items, prb_repr_handle_defaultdict, prb_repr_handle_ordered_dict,
	prb_repr_handle_mappingproxy, prb_repr_handle_namespace;
/** Prints the entries of a dict as keyword arguments, "a=1, b=2". */
struct prb_error *prb_repr_put_fields(struct prb_repr *r, uint64_t dict) PRB_MUST_CHECK;
/** The value of the very object @p key; PRB_ERROR_NOT_FOUND. */
struct prb_error *prb_repr_value_of(struct prb_repr *r, uint64_t dict, uint64_t key,
				    uint64_t *ret) PRB_MUST_CHECK;

/* builtin/functions.c */
prb_repr_handler prb_repr_handle_function, prb_repr_handle_builtin, prb_repr_handle_method,
	prb_repr_handle_method_descriptor, prb_repr_handle_slot_wrapper, prb_repr_handle_getset,
	prb_repr_handle_member, prb_repr_handle_method_wrapper, prb_repr_handle_wrapped,
	prb_repr_handle_partial, prb_repr_handle_code, prb_repr_handle_cell,
	prb_repr_handle_generator;

/* builtin/modules_and_classes.c */
prb_repr_handler prb_repr_handle_type, prb_repr_handle_super, prb_repr_handle_module;

/* builtin/other_types.c */
prb_repr_handler prb_repr_handle_exception, prb_repr_handle_memoryview, prb_repr_handle_weakref,
	prb_repr_handle_pattern, prb_repr_handle_structseq, prb_repr_handle_array,
	prb_repr_handle_import_error, prb_repr_handle_context_variable;
/** Prints a number of a struct format code from 8 readable bytes; false for other codes. */
bool prb_repr_put_number(struct prb_repr *r, char code, const uint8_t *bytes);

/* builtin/generic_types.c */
prb_repr_handler prb_repr_handle_generic_alias, prb_repr_handle_union;

/* library/threading.c */
prb_repr_handler prb_repr_handle_lock, prb_repr_handle_rlock, prb_repr_handle_condition,
	prb_repr_handle_event, prb_repr_handle_semaphore, prb_repr_handle_thread;

/* library/datetime.c, library/decimal.c */
prb_repr_handler prb_repr_handle_date, prb_repr_handle_datetime, prb_repr_handle_time,
	prb_repr_handle_timedelta, prb_repr_handle_timezone, prb_repr_handle_decimal,
	prb_repr_handle_timestamp, prb_repr_handle_zone_info;

/* arrays/numpy.c */
prb_repr_handler prb_repr_handle_ndarray, prb_repr_handle_numpy_scalar, prb_repr_handle_dtype,
	prb_repr_handle_ufunc, prb_repr_handle_masked_array;

/* arrays/pandas_scalars.c */
prb_repr_handler prb_repr_handle_pandas_timedelta, prb_repr_handle_pandas_nat,
	prb_repr_handle_pandas_na, prb_repr_handle_pandas_interval, prb_repr_handle_pandas_period,
	prb_repr_handle_pandas_array, prb_repr_handle_pandas_offset;

/* arrays/pandas.c */
prb_repr_handler prb_repr_handle_data_frame, prb_repr_handle_series, prb_repr_handle_index;
/**
 * An attribute of a DataFrame or Series that code computes: an object, or else (*part is 0) its
 * repr() and its type's name are returned. PRB_ERROR_NOT_FOUND for all others.
 */
struct prb_error *prb_repr_pandas_part(struct prb_repr *r, uint64_t object, const char *name,
				       uint64_t *part, const char **type) PRB_MUST_CHECK;
/** Appends a column of a DataFrame, as a Series. PRB_ERROR_NOT_FOUND if it has none of that name,
 * PRB_ERROR_BAD_DATA if that is not known. */
struct prb_error *prb_repr_pandas_column(struct prb_repr *r, uint64_t object,
					 const char *name) PRB_MUST_CHECK;

/** Prints with @p put, and as an ordinary object what that does not know (PRB_ERROR_BAD_DATA,
 * PRB_ERROR_FAULT, PRB_ERROR_NOT_FOUND). */
struct prb_error *prb_repr_put_or_default(struct prb_repr *r, uint64_t object,
					  struct prb_type *type,
					  prb_repr_handler *put) PRB_MUST_CHECK;

/* arrays/polars.c: the same of polars */
prb_repr_handler prb_repr_handle_polars_frame, prb_repr_handle_polars_series;
struct prb_error *prb_repr_polars_part(struct prb_repr *r, uint64_t object, const char *name,
				       uint64_t *part, const char **type) PRB_MUST_CHECK;
struct prb_error *prb_repr_polars_column(struct prb_repr *r, uint64_t object,
					 const char *name) PRB_MUST_CHECK;

/* arrays/torch.c */
prb_repr_handler prb_repr_handle_tensor, prb_repr_handle_torch_size, prb_repr_handle_torch_dtype,
	prb_repr_handle_torch_device;
/** The number of a tensor of one element on the CPU; ret->kind stays for all others. */
struct prb_elements;
struct prb_error *prb_repr_open_tensor(struct prb_repr *r, uint64_t object,
				       struct prb_elements *ret) PRB_MUST_CHECK;
/* elements.c: of a tensor that was read. */
struct prb_tensor;
struct prb_error *prb_repr_tensor_elements(const struct prb_tensor *tensor,
					   struct prb_elements *ret) PRB_MUST_CHECK;
struct prb_error *prb_repr_tensor_number(struct prb_repr *r, uint64_t object,
					 struct prb_object_number *ret) PRB_MUST_CHECK;

/* arrays/numpy.c, arrays/torch.c */
/**
 * Appends the repr() of an attribute of an array or tensor (shape, dtype, …), and returns the name
 * of its type. PRB_ERROR_NOT_FOUND for all others.
 */
typedef struct prb_error *prb_repr_part(struct prb_repr *r, uint64_t object, const char *name,
					const char **type);
prb_repr_part prb_repr_ndarray_part, prb_repr_tensor_part;

/* builtin/frames.c */
prb_repr_handler prb_repr_handle_frame;
/** Appends ", suspended at prog.py:12" and the like for a generator or coroutine. */
struct prb_error *prb_repr_put_suspension(struct prb_repr *r, uint64_t object) PRB_MUST_CHECK;

/* library/asyncio.c */
prb_repr_handler prb_repr_handle_future;
/** Where a task or future has the object that its attribute of that name gives; -1 if unknown. */
int32_t prb_repr_future_field(const struct prb_repr *r, const char *name);

/* library/io.c */
prb_repr_handler prb_repr_handle_file, prb_repr_handle_socket;

/* library/re.c */
prb_repr_handler prb_repr_handle_match;

/* library/ctypes.c */
/** What ctypes derives a class from. */
enum prb_c_kind {
	PRB_C_NONE, /**< of no class of ctypes that has a value */
	PRB_C_SIMPLE,
	PRB_C_STRUCTURE, /**< or a union */
	PRB_C_ARRAY,
	PRB_C_POINTER,
};
enum prb_c_kind prb_repr_c_kind(struct prb_repr *r, const struct prb_type *type);
prb_repr_handler prb_repr_handle_c_value, prb_repr_handle_capsule;
/** A field of a structure or union, `value` of a simple object, `contents` of a pointer. */
prb_repr_part prb_repr_c_part;

/* library/typing.c */
prb_repr_handler prb_repr_handle_typing_alias, prb_repr_handle_abc_callable,
	prb_repr_handle_annotated, prb_repr_handle_unpack, prb_repr_handle_special_form,
	prb_repr_handle_type_variable, prb_repr_handle_forward_ref, prb_repr_handle_new_type;

/* library/c_types.c, library/ipaddress.c */
prb_repr_handler prb_repr_handle_count, prb_repr_handle_repeat, prb_repr_handle_item_getter,
	prb_repr_handle_attribute_getter, prb_repr_handle_method_caller, prb_repr_handle_mmap,
	prb_repr_handle_xml_element, prb_repr_handle_semlock, prb_repr_handle_decimal_context,
	prb_repr_handle_struct, prb_repr_handle_ip_address;

/* library/packages.c */
prb_repr_handler prb_repr_handle_row, prb_repr_handle_row_mapping, prb_repr_handle_image,
	prb_repr_handle_random_generator;

/* library/protobuf.c */
prb_repr_handler prb_repr_handle_protobuf;

/* library/chosen_attributes.c */
/**
 * The characteristic attributes, divided by blanks, of a class of the standard library; NULL: all
 * do.
 */
const char *prb_repr_chosen(struct prb_repr *r, const struct prb_type *type);

/* library/repr_functions.c */
/**
 * The handler for a repr that is the Python function @p function of the class @p owner; NULL if
 * we do not know what it prints.
 */
struct prb_error *prb_repr_python_handler(struct prb_repr *r, const struct prb_type *owner,
					  uint64_t function, prb_repr_handler **ret) PRB_MUST_CHECK;
prb_repr_handler prb_repr_handle_namedtuple, prb_repr_handle_dataclass;

/* library/enum.c */
prb_repr_handler prb_repr_handle_enum, prb_repr_handle_flag, prb_repr_handle_global_enum,
	prb_repr_handle_enum_class;

/* library/pure_python.c, library/pathlib.c */
prb_repr_handler prb_repr_handle_user_data, prb_repr_handle_chain_map, prb_repr_handle_fraction,
	prb_repr_handle_uuid, prb_repr_handle_counter, prb_repr_handle_old_ordered_dict,
	prb_repr_handle_path;

#endif
