/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which handler prints the repr that a builtin or extension type brings. */
#include <string.h>

#include "base/checked.h"
#include "python/repr/core/handlers.h"

static struct prb_error *handle_none(struct prb_repr *r, uint64_t object __attribute__((unused)),
				     struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "None");
	return NULL;
}

static struct prb_error *handle_ellipsis(struct prb_repr *r,
					 uint64_t object __attribute__((unused)),
					 struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "Ellipsis");
	return NULL;
}

static struct prb_error *handle_not_implemented(struct prb_repr *r,
						uint64_t object __attribute__((unused)),
						struct prb_type *type __attribute__((unused)))
{
	prb_str_puts(r->out, "NotImplemented");
	return NULL;
}

/* By tp_name of the type whose tp_repr it is. */
static const struct {
	const char *name;
	prb_repr_handler *handler;
} handlers[] = {
	{"BaseException", prb_repr_handle_exception},
	{"BaseExceptionGroup", prb_repr_handle_exception},
	{"ImportError", prb_repr_handle_import_error},
	{"NoneType", handle_none},
	{"NotImplementedType", handle_not_implemented},
	{"PyCapsule", prb_repr_handle_capsule},
	{"_asyncio.Future", prb_repr_handle_future},
	{"_asyncio.Task", prb_repr_handle_future},
	{"ContextVar", prb_repr_handle_context_variable}, /* up to 3.9 */
	{"_contextvars.ContextVar", prb_repr_handle_context_variable},
	{"_io.BufferedRandom", prb_repr_handle_file},
	{"_io.BufferedReader", prb_repr_handle_file},
	{"_io.BufferedWriter", prb_repr_handle_file},
	{"_io.FileIO", prb_repr_handle_file},
	{"_io.TextIOWrapper", prb_repr_handle_file},
	{"_io._Buffered", prb_repr_handle_file},
	{"_sre.SRE_Match", prb_repr_handle_match},
	{"_sre.SRE_Pattern", prb_repr_handle_pattern},
	{"_struct.Struct", prb_repr_handle_struct},
	{"_thread.RLock", prb_repr_handle_rlock},
	{"_thread.lock", prb_repr_handle_lock},
	{"array.array", prb_repr_handle_array},
	{"async_generator", prb_repr_handle_generator},
	{"bool", prb_repr_handle_bool},
	{"builtin_function_or_method", prb_repr_handle_builtin},
	{"bytearray", prb_repr_handle_bytearray},
	{"bytes", prb_repr_handle_bytes},
	{"cell", prb_repr_handle_cell},
	{"classmethod", prb_repr_handle_wrapped},
	{"classmethod_descriptor", prb_repr_handle_method_descriptor},
	{"code", prb_repr_handle_code},
	{"collections.OrderedDict", prb_repr_handle_ordered_dict},
	{"collections.defaultdict", prb_repr_handle_defaultdict},
	{"collections.deque", prb_repr_handle_deque},
	{"complex", prb_repr_handle_complex},
	{"coroutine", prb_repr_handle_generator},
	{"datetime.date", prb_repr_handle_date},
	{"datetime.datetime", prb_repr_handle_datetime},
	{"datetime.time", prb_repr_handle_time},
	{"datetime.timedelta", prb_repr_handle_timedelta},
	{"datetime.timezone", prb_repr_handle_timezone},
	{"decimal.Context", prb_repr_handle_decimal_context},
	{"decimal.Decimal", prb_repr_handle_decimal},
	{"dict", prb_repr_handle_dict},
	{"dict_items", prb_repr_handle_dict_items},
	{"dict_keys", prb_repr_handle_dict_keys},
	{"dict_values", prb_repr_handle_dict_values},
	{"ellipsis", handle_ellipsis},
	{"float", prb_repr_handle_float},
	{"frame", prb_repr_handle_frame},
	{"frozenset", prb_repr_handle_set},
	{"function", prb_repr_handle_function},
	{"functools.partial", prb_repr_handle_partial},
	{"generator", prb_repr_handle_generator},
	{"getset_descriptor", prb_repr_handle_getset},
	{"google._upb._message.Message", prb_repr_handle_protobuf},
	{"int", prb_repr_handle_int},
	{"itertools.count", prb_repr_handle_count},
	{"itertools.repeat", prb_repr_handle_repeat},
	{"list", prb_repr_handle_list},
	{"mappingproxy", prb_repr_handle_mappingproxy},
	{"member_descriptor", prb_repr_handle_member},
	{"memoryview", prb_repr_handle_memoryview},
	{"method", prb_repr_handle_method},
	{"method-wrapper", prb_repr_handle_method_wrapper},
	{"method_descriptor", prb_repr_handle_method_descriptor},
	{"mmap.mmap", prb_repr_handle_mmap},
	{"module", prb_repr_handle_module},
	{"numpy.dtype", prb_repr_handle_dtype},
	{"numpy.random._generator.Generator", prb_repr_handle_random_generator},
	{"numpy.random.mtrand.RandomState", prb_repr_handle_random_generator},
	{"numpy.ufunc", prb_repr_handle_ufunc},
	{"numpy.ndarray", prb_repr_handle_ndarray},
	{"object", prb_repr_handle_default},
	{"operator.attrgetter", prb_repr_handle_attribute_getter},
	{"operator.itemgetter", prb_repr_handle_item_getter},
	{"operator.methodcaller", prb_repr_handle_method_caller},
	{"pandas._libs.interval.Interval", prb_repr_handle_pandas_interval},
	{"pandas._libs.tslibs.nattype._NaT", prb_repr_handle_pandas_nat},
	{"pandas._libs.tslibs.offsets.BaseOffset", prb_repr_handle_pandas_offset},
	{"pandas._libs.tslibs.period._Period", prb_repr_handle_pandas_period},
	{"pandas._libs.tslibs.timedeltas._Timedelta", prb_repr_handle_pandas_timedelta},
	{"pandas._libs.tslibs.timestamps._Timestamp", prb_repr_handle_timestamp},
	{"range", prb_repr_handle_range},
	{"re.Match", prb_repr_handle_match},
	{"re.Pattern", prb_repr_handle_pattern},
	{"set", prb_repr_handle_set},
	{"slice", prb_repr_handle_slice},
	{"staticmethod", prb_repr_handle_wrapped},
	{"str", prb_repr_handle_str},
	{"super", prb_repr_handle_super},
	{"torch.Size", prb_repr_handle_torch_size},
	{"torch.device", prb_repr_handle_torch_device},
	{"torch.dtype", prb_repr_handle_torch_dtype},
	{"tuple", prb_repr_handle_tuple},
	{"type", prb_repr_handle_type},
	{"types.GenericAlias", prb_repr_handle_generic_alias},
	{"types.SimpleNamespace", prb_repr_handle_namespace},
	{"types.UnionType", prb_repr_handle_union},
	{"typing.ParamSpec", prb_repr_handle_type_variable},
	{"typing.TypeAliasType", prb_repr_handle_type_variable},
	{"typing.TypeVar", prb_repr_handle_type_variable},
	{"typing.TypeVarTuple", prb_repr_handle_type_variable},
	{"typing.Union", prb_repr_handle_union},
	{"weakref", prb_repr_handle_weakref},
	{"weakref.ReferenceType", prb_repr_handle_weakref},
	{"wrapper_descriptor", prb_repr_handle_slot_wrapper},
	{"xml.etree.ElementTree.Element", prb_repr_handle_xml_element},
	{"zoneinfo.ZoneInfo", prb_repr_handle_zone_info},
};

prb_repr_handler *prb_repr_c_handler(const char *name)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(handlers); i++)
		if (strcmp(handlers[i].name, name) == 0)
			return handlers[i].handler;
	return strncmp(name, "numpy.", 6) == 0 ? prb_repr_handle_numpy_scalar : NULL;
}

/* By tp_name of types of C that have no tp_repr of their own, in every version. */
static const struct {
	const char *name;
	prb_repr_handler *handler;
} silent[] = {
	{"_multiprocessing.SemLock", prb_repr_handle_semlock},
	{"_struct.Struct", prb_repr_handle_struct}, /* up to 3.12 */
	{"pandas._libs.missing.C_NAType", prb_repr_handle_pandas_na},
};

prb_repr_handler *prb_repr_silent_handler(const struct prb_type *type)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(silent); i++)
		if (prb_type_is(type, silent[i].name))
			return silent[i].handler;
	return NULL;
}
