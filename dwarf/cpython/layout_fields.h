/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The fields of a layout: X(member of struct prb_layout, DWARF path as types.h explains it).
 * The list drives the DWARF reader, the disk cache, the generator of the built-in tables and its
 * check against DWARF. Alternatives of a path are names in other versions.
 */
#ifndef PRB_CPYTHON_LAYOUT_FIELDS_H
#define PRB_CPYTHON_LAYOUT_FIELDS_H

#define PRB_LAYOUT_FIELDS(X)                                                                \
	/* _PyRuntime (3.7+) */                                                             \
	X(runtime_size, "pyruntimestate")                                                   \
	X(runtime_interpreters, "pyruntimestate.interpreters.head")                         \
	X(runtime_main_interpreter, "pyruntimestate.interpreters.main")                     \
	X(runtime_main_thread, "pyruntimestate.main_thread")                                \
	X(runtime_finalizing, "pyruntimestate._finalizing|pyruntimestate.finalizing")       \
	X(runtime_tstate_current, "pyruntimestate.gilstate.tstate_current")                 \
	X(runtime_gil, "pyruntimestate.ceval.gil")                                          \
	X(runtime_gil_locked, "pyruntimestate.ceval.gil.locked")                            \
	X(runtime_gil_holder, "pyruntimestate.ceval.gil.last_holder")                       \
	X(runtime_gc_collecting, "pyruntimestate.gc.collecting")                            \
	/* PyInterpreterState */                                                            \
	X(interp_size, "_is")                                                               \
	X(interp_next, "_is.next")                                                          \
	X(interp_id, "_is.id")                                                              \
	X(interp_threads, "_is.threads.head|_is.tstate_head")                               \
	X(interp_threads_main, "_is.threads.main|_is.threads_main")                         \
	X(interp_modules, "_is.imports.modules|_is.modules")                                \
	X(interp_sysdict, "_is.sysdict")                                                    \
	X(interp_gc_collecting, "_is.gc.collecting")                                        \
	X(interp_gil, "_is.ceval.gil")                                                      \
	X(gil_size, "_gil_runtime_state")                                                   \
	X(gil_locked, "_gil_runtime_state.locked")                                          \
	X(gil_holder, "_gil_runtime_state.last_holder")                                     \
	/* PyThreadState */                                                                 \
	X(thread_size, "_ts")                                                               \
	X(thread_prev, "_ts.prev")                                                          \
	X(thread_next, "_ts.next")                                                          \
	X(thread_interp, "_ts.interp")                                                      \
	X(thread_frame, "_ts.frame")                                                        \
	X(thread_cframe, "_ts.cframe")                                                      \
	X(thread_current_frame, "_ts.current_frame")                                        \
	X(thread_id, "_ts.thread_id")                                                       \
	X(thread_native_id, "_ts.native_thread_id")                                         \
	X(thread_status, "_ts._status")                                                     \
	X(thread_state, "_ts.state")                                                        \
	X(thread_datastack_chunk, "_ts.datastack_chunk")                                    \
	X(cframe_current_frame, "_PyCFrame.current_frame|_cframe.current_frame")            \
	/* _PyInterpreterFrame (3.11+) */                                                   \
	X(frame_size, "_PyInterpreterFrame")                                                \
	X(frame_code, "_PyInterpreterFrame.f_executable|_PyInterpreterFrame.f_code")        \
	X(frame_previous, "_PyInterpreterFrame.previous")                                   \
	X(frame_function, "_PyInterpreterFrame.f_funcobj|_PyInterpreterFrame.f_func")       \
	X(frame_globals, "_PyInterpreterFrame.f_globals")                                   \
	X(frame_locals, "_PyInterpreterFrame.f_locals")                                     \
	X(frame_object, "_PyInterpreterFrame.frame_obj")                                    \
	X(frame_position, "_PyInterpreterFrame.instr_ptr|_PyInterpreterFrame.prev_instr")   \
	X(frame_owner, "_PyInterpreterFrame.owner")                                         \
	X(frame_is_entry, "_PyInterpreterFrame.is_entry")                                   \
	X(frame_localsplus, "_PyInterpreterFrame.localsplus")                               \
	X(frame_stack_top, "_PyInterpreterFrame.stackpointer|_PyInterpreterFrame.stacktop") \
	X(frame_tlbc_index, "_PyInterpreterFrame.tlbc_index")                               \
	/* PyFrameObject: the frame itself up to 3.10, a holder of f_frame after */         \
	X(pyframe_size, "_frame")                                                           \
	X(pyframe_back, "_frame.f_back")                                                    \
	X(pyframe_code, "_frame.f_code")                                                    \
	X(pyframe_globals, "_frame.f_globals")                                              \
	X(pyframe_locals, "_frame.f_locals")                                                \
	X(pyframe_localsplus, "_frame.f_localsplus")                                        \
	X(pyframe_position, "_frame.f_lasti")                                               \
	X(pyframe_lineno, "_frame.f_lineno")                                                \
	X(pyframe_interp_frame, "_frame.f_frame")                                           \
	/* PyCodeObject */                                                                  \
	X(code_size, "PyCodeObject")                                                        \
	X(code_argcount, "PyCodeObject.co_argcount")                                        \
	X(code_posonlyargcount, "PyCodeObject.co_posonlyargcount")                          \
	X(code_kwonlyargcount, "PyCodeObject.co_kwonlyargcount")                            \
	X(code_stacksize, "PyCodeObject.co_stacksize")                                      \
	X(code_nlocals, "PyCodeObject.co_nlocals")                                          \
	X(code_nlocalsplus, "PyCodeObject.co_nlocalsplus")                                  \
	X(code_flags, "PyCodeObject.co_flags")                                              \
	X(code_firstlineno, "PyCodeObject.co_firstlineno")                                  \
	X(code_firsttraceable, "PyCodeObject._co_firsttraceable")                           \
	X(code_names, "PyCodeObject.co_names")                                              \
	X(code_varnames, "PyCodeObject.co_varnames")                                        \
	X(code_freevars, "PyCodeObject.co_freevars")                                        \
	X(code_cellvars, "PyCodeObject.co_cellvars")                                        \
	X(code_cell2arg, "PyCodeObject.co_cell2arg")                                        \
	X(code_localsplusnames, "PyCodeObject.co_localsplusnames")                          \
	X(code_localspluskinds, "PyCodeObject.co_localspluskinds")                          \
	X(code_filename, "PyCodeObject.co_filename")                                        \
	X(code_name, "PyCodeObject.co_name")                                                \
	X(code_qualname, "PyCodeObject.co_qualname")                                        \
	X(code_linetable, "PyCodeObject.co_linetable|PyCodeObject.co_lnotab")               \
	X(code_bytes, "PyCodeObject.co_code_adaptive|PyCodeObject.co_code")                 \
	X(code_tlbc, "PyCodeObject.co_tlbc")                                                \
	X(code_version, "PyCodeObject.co_version")                                          \
	/* objects */                                                                       \
	X(object_size, "_object")                                                           \
	X(object_type, "_object.ob_type")                                                   \
	X(object_refcnt, "_object.ob_refcnt|_object.ob_ref_local")                          \
	X(var_size, "PyVarObject.ob_size")                                                  \
	X(type_name, "_typeobject.tp_name")                                                 \
	X(type_basicsize, "_typeobject.tp_basicsize")                                       \
	X(type_itemsize, "_typeobject.tp_itemsize")                                         \
	X(type_flags, "_typeobject.tp_flags")                                               \
	X(type_dict, "_typeobject.tp_dict")                                                 \
	X(type_base, "_typeobject.tp_base")                                                 \
	X(type_mro, "_typeobject.tp_mro")                                                   \
	X(type_dictoffset, "_typeobject.tp_dictoffset")                                     \
	X(tuple_items, "PyTupleObject.ob_item")                                             \
	X(list_items, "PyListObject.ob_item")                                               \
	X(bytes_data, "PyBytesObject.ob_sval")                                              \
	X(unicode_length, "PyASCIIObject.length")                                           \
	X(unicode_state, "PyASCIIObject.state")                                             \
	X(unicode_ascii_size, "PyASCIIObject")                                              \
	X(unicode_compact_size, "PyCompactUnicodeObject")                                   \
	X(unicode_wstr, "PyASCIIObject.wstr")                                               \
	X(unicode_any_data, "PyUnicodeObject.data")                                         \
	X(unicode_wstr_length, "PyCompactUnicodeObject.wstr_length")                        \
	X(type_repr, "_typeobject.tp_repr")                                                 \
	X(heap_type_name, "_heaptypeobject.ht_name")                                        \
	X(heap_type_qualname, "_heaptypeobject.ht_qualname")                                \
	X(heap_type_cached_keys, "_heaptypeobject.ht_cached_keys")                          \
	X(dict_used, "PyDictObject.ma_used")                                                \
	X(dict_keys, "PyDictObject.ma_keys")                                                \
	X(dict_values, "PyDictObject.ma_values")                                            \
	X(function_code, "PyFunctionObject.func_code")                                      \
	X(function_name, "PyFunctionObject.func_name")                                      \
	X(function_qualname, "PyFunctionObject.func_qualname")                              \
	X(function_module, "PyFunctionObject.func_module")                                  \
	X(function_closure, "PyFunctionObject.func_closure")                                \
	X(generator_name, "PyGenObject.gi_name")                                            \
	X(generator_qualname, "PyGenObject.gi_qualname")                                    \
	X(generator_code, "PyGenObject.gi_code")

#endif
