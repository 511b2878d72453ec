/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file The fields of a layout: X(member of struct prb_layout, DWARF path as types.h explains it).
 * The list drives the DWARF reader, the disk cache, the generator of the built-in tables and its
 * check against DWARF. Alternatives of a path are names in other versions.
 */
#ifndef PRB_PYTHON_LAYOUT_FIELDS_H
#define PRB_PYTHON_LAYOUT_FIELDS_H

#define PRB_LAYOUT_FIELDS(X)                                                                      \
	/* _PyRuntime (3.7+) */                                                                   \
	X(runtime_size, "pyruntimestate")                                                         \
	X(runtime_interpreters, "pyruntimestate.interpreters.head")                               \
	X(runtime_main_interpreter, "pyruntimestate.interpreters.main")                           \
	X(runtime_main_thread, "pyruntimestate.main_thread")                                      \
	X(runtime_finalizing, "pyruntimestate._finalizing|pyruntimestate.finalizing")             \
	X(runtime_tstate_current, "pyruntimestate.gilstate.tstate_current")                       \
	X(runtime_auto_key,                                                                       \
	  "pyruntimestate.gilstate.autoTSSkey._key|pyruntimestate.autoTSSkey._key")               \
	X(runtime_gil, "pyruntimestate.ceval.gil")                                                \
	X(runtime_gc_collecting, "pyruntimestate.gc.collecting")                                  \
	/* PyInterpreterState */                                                                  \
	X(interp_size, "_is")                                                                     \
	X(interp_next, "_is.next")                                                                \
	X(interp_id, "_is.id")                                                                    \
	X(interp_threads, "_is.threads.head|_is.tstate_head")                                     \
	X(interp_threads_main, "_is.threads.main|_is.threads_main")                               \
	X(interp_modules, "_is.imports.modules|_is.modules")                                      \
	X(interp_sysdict, "_is.sysdict")                                                          \
	X(interp_gc_collecting, "_is.gc.collecting")                                              \
	X(interp_gil, "_is.ceval.gil")                                                            \
	X(gil_size, "_gil_runtime_state")                                                         \
	X(gil_locked, "_gil_runtime_state.locked")                                                \
	X(gil_holder, "_gil_runtime_state.last_holder")                                           \
	/* Garbage collector: in the runtime up to 3.8, in the interpreter since; its generations \
	 */                                                                                       \
	X(runtime_gc, "pyruntimestate.gc")                                                        \
	X(interp_gc, "_is.gc")                                                                    \
	X(gc_size, "_gc_runtime_state")                                                           \
	X(gc_enabled, "_gc_runtime_state.enabled")                                                \
	X(gc_collecting, "_gc_runtime_state.collecting")                                          \
	X(gc_generations, "_gc_runtime_state.generations|_gc_runtime_state.young")                \
	X(gc_generation0, "_gc_runtime_state.generation0")                                        \
	X(gc_permanent, "_gc_runtime_state.permanent_generation")                                 \
	X(gc_stats, "_gc_runtime_state.generation_stats")                                         \
	X(gc_garbage, "_gc_runtime_state.garbage")                                                \
	X(gc_long_lived_total, "_gc_runtime_state.long_lived_total")                              \
	X(gc_long_lived_pending, "_gc_runtime_state.long_lived_pending")                          \
	X(gc_visited_space, "_gc_runtime_state.visited_space")                                    \
	X(gc_head_size, "_gc_head|PyGC_Head")                                                     \
	X(generation_size, "gc_generation")                                                       \
	X(generation_threshold, "gc_generation.threshold")                                        \
	X(generation_count, "gc_generation.count")                                                \
	X(stats_size, "gc_generation_stats")                                                      \
	X(stats_collections, "gc_generation_stats.collections")                                   \
	X(stats_collected, "gc_generation_stats.collected")                                       \
	X(stats_uncollectable, "gc_generation_stats.uncollectable")                               \
	X(stats_duration, "gc_generation_stats.duration")                                         \
	X(stats_young_index, "gc_stats.young.index")                                              \
	X(stats_old, "gc_stats.old")                                                              \
	X(stats_old_size, "gc_old_stats_buffer")                                                  \
	X(stats_old_index, "gc_old_stats_buffer.index")                                           \
	/* Further members of interpreters */                                                     \
	X(runtime_next_interp, "pyruntimestate.interpreters.next_id")                             \
	X(interp_finalizing, "_is.finalizing")                                                    \
	X(interp_own_gil, "_is.ceval.own_gil")                                                    \
	X(interp_features, "_is.feature_flags")                                                   \
	X(interp_next_thread,                                                                     \
	  "_is.threads.next_unique_id|_is.tstate_next_unique_id|_is.next_unique_id")              \
	/* Where free-threaded builds keep objects */                                             \
	X(object_gc_bits, "_object.ob_gc_bits")                                                   \
	X(object_refcnt_shared, "_object.ob_ref_shared")                                          \
	X(interp_abandoned, "_is.mimalloc.abandoned_pool.abandoned")                              \
	X(interp_abandoned_visited, "_is.mimalloc.abandoned_pool.abandoned_visited")              \
	X(thread_mi_heaps, "_PyThreadStateImpl.mimalloc.heaps")                                   \
	X(mi_heap_size, "mi_heap_s")                                                              \
	X(mi_heap_pages, "mi_heap_s.pages")                                                       \
	X(mi_heap_pages_end, "mi_heap_s.thread_delayed_free")                                     \
	X(mi_queue_size, "mi_page_queue_s")                                                       \
	X(mi_page_size, "mi_page_s")                                                              \
	X(mi_page_slice_count, "mi_page_s.slice_count")                                           \
	X(mi_page_debug_offset, "mi_page_s.debug_offset")                                         \
	X(mi_page_capacity, "mi_page_s.capacity")                                                 \
	X(mi_page_block_size, "mi_page_s.xblock_size")                                            \
	X(mi_page_free, "mi_page_s.free")                                                         \
	X(mi_page_local_free, "mi_page_s.local_free")                                             \
	X(mi_page_thread_free, "mi_page_s.xthread_free")                                          \
	X(mi_page_keys, "mi_page_s.keys")                                                         \
	X(mi_page_tag, "mi_page_s.tag")                                                           \
	X(mi_page_next, "mi_page_s.next")                                                         \
	X(mi_page_used, "mi_page_s.used")                                                         \
	X(mi_segment_abandoned_next, "mi_segment_s.abandoned_next")                               \
	X(mi_segment_slice_entries, "mi_segment_s.slice_entries")                                 \
	X(mi_segment_slices, "mi_segment_s.slices")                                               \
	/* PyThreadState */                                                                       \
	X(thread_size, "_ts")                                                                     \
	X(thread_prev, "_ts.prev")                                                                \
	X(thread_next, "_ts.next")                                                                \
	X(thread_interp, "_ts.interp")                                                            \
	X(thread_frame, "_ts.frame")                                                              \
	X(thread_cframe, "_ts.cframe")                                                            \
	X(thread_current_frame, "_ts.current_frame")                                              \
	X(thread_id, "_ts.thread_id")                                                             \
	X(thread_native_id, "_ts.native_thread_id")                                               \
	X(thread_status, "_ts._status")                                                           \
	X(thread_state, "_ts.state")                                                              \
	X(thread_datastack_chunk, "_ts.datastack_chunk")                                          \
	X(cframe_current_frame, "_PyCFrame.current_frame|_cframe.current_frame")                  \
	/* _PyInterpreterFrame (3.11+) */                                                         \
	X(frame_size, "_PyInterpreterFrame")                                                      \
	X(frame_code, "_PyInterpreterFrame.f_executable|_PyInterpreterFrame.f_code")              \
	X(frame_previous, "_PyInterpreterFrame.previous")                                         \
	X(frame_function, "_PyInterpreterFrame.f_funcobj|_PyInterpreterFrame.f_func")             \
	X(frame_globals, "_PyInterpreterFrame.f_globals")                                         \
	X(frame_locals, "_PyInterpreterFrame.f_locals")                                           \
	X(frame_object, "_PyInterpreterFrame.frame_obj")                                          \
	X(frame_position, "_PyInterpreterFrame.instr_ptr|_PyInterpreterFrame.prev_instr")         \
	X(frame_owner, "_PyInterpreterFrame.owner")                                               \
	X(frame_is_entry, "_PyInterpreterFrame.is_entry")                                         \
	X(frame_localsplus, "_PyInterpreterFrame.localsplus")                                     \
	X(frame_stack_top, "_PyInterpreterFrame.stackpointer|_PyInterpreterFrame.stacktop")       \
	X(frame_tlbc_index, "_PyInterpreterFrame.tlbc_index")                                     \
	/* PyFrameObject: the frame itself up to 3.10, a holder of f_frame after */               \
	X(pyframe_size, "_frame")                                                                 \
	X(pyframe_back, "_frame.f_back")                                                          \
	X(pyframe_code, "_frame.f_code")                                                          \
	X(pyframe_globals, "_frame.f_globals")                                                    \
	X(pyframe_locals, "_frame.f_locals")                                                      \
	X(pyframe_localsplus, "_frame.f_localsplus")                                              \
	X(pyframe_position, "_frame.f_lasti")                                                     \
	X(pyframe_lineno, "_frame.f_lineno")                                                      \
	X(pyframe_interp_frame, "_frame.f_frame")                                                 \
	X(pyframe_iblock, "_frame.f_iblock")                                                      \
	X(pyframe_blockstack, "_frame.f_blockstack")                                              \
	/* PyCodeObject */                                                                        \
	X(code_size, "PyCodeObject")                                                              \
	X(code_argcount, "PyCodeObject.co_argcount")                                              \
	X(code_posonlyargcount, "PyCodeObject.co_posonlyargcount")                                \
	X(code_kwonlyargcount, "PyCodeObject.co_kwonlyargcount")                                  \
	X(code_stacksize, "PyCodeObject.co_stacksize")                                            \
	X(code_nlocals, "PyCodeObject.co_nlocals")                                                \
	X(code_nlocalsplus, "PyCodeObject.co_nlocalsplus")                                        \
	X(code_flags, "PyCodeObject.co_flags")                                                    \
	X(code_firstlineno, "PyCodeObject.co_firstlineno")                                        \
	X(code_firsttraceable, "PyCodeObject._co_firsttraceable")                                 \
	X(code_names, "PyCodeObject.co_names")                                                    \
	X(code_varnames, "PyCodeObject.co_varnames")                                              \
	X(code_freevars, "PyCodeObject.co_freevars")                                              \
	X(code_cellvars, "PyCodeObject.co_cellvars")                                              \
	X(code_cell2arg, "PyCodeObject.co_cell2arg")                                              \
	X(code_localsplusnames, "PyCodeObject.co_localsplusnames")                                \
	X(code_localspluskinds, "PyCodeObject.co_localspluskinds")                                \
	X(code_filename, "PyCodeObject.co_filename")                                              \
	X(code_name, "PyCodeObject.co_name")                                                      \
	X(code_qualname, "PyCodeObject.co_qualname")                                              \
	X(code_linetable, "PyCodeObject.co_linetable|PyCodeObject.co_lnotab")                     \
	X(code_exceptiontable, "PyCodeObject.co_exceptiontable")                                  \
	X(code_bytes, "PyCodeObject.co_code_adaptive|PyCodeObject.co_code")                       \
	X(code_tlbc, "PyCodeObject.co_tlbc")                                                      \
	X(code_version, "PyCodeObject.co_version")                                                \
	/* objects */                                                                             \
	X(object_size, "_object")                                                                 \
	X(object_type, "_object.ob_type")                                                         \
	X(object_refcnt, "_object.ob_refcnt|_object.ob_ref_local")                                \
	X(var_size, "PyVarObject.ob_size")                                                        \
	X(type_name, "_typeobject.tp_name")                                                       \
	X(type_basicsize, "_typeobject.tp_basicsize")                                             \
	X(type_itemsize, "_typeobject.tp_itemsize")                                               \
	X(type_flags, "_typeobject.tp_flags")                                                     \
	X(type_dict, "_typeobject.tp_dict")                                                       \
	X(type_base, "_typeobject.tp_base")                                                       \
	X(type_mro, "_typeobject.tp_mro")                                                         \
	X(type_dictoffset, "_typeobject.tp_dictoffset")                                           \
	X(type_members, "_typeobject.tp_members")                                                 \
	/* Static types of Python itself keep their dict in the interpreter since 3.12 */         \
	X(type_subclasses, "_typeobject.tp_subclasses")                                           \
	X(interp_static_types, "_is.types.builtins.initialized|_is.types.builtins")               \
	X(static_type_size, "managed_static_type_state|static_builtin_state")                     \
	X(static_type_dict, "managed_static_type_state.tp_dict|static_builtin_state.tp_dict")     \
	X(tuple_items, "PyTupleObject.ob_item")                                                   \
	X(list_items, "PyListObject.ob_item")                                                     \
	X(bytes_data, "PyBytesObject.ob_sval")                                                    \
	X(unicode_length, "PyASCIIObject.length")                                                 \
	X(unicode_state, "PyASCIIObject.state")                                                   \
	X(unicode_ascii_size, "PyASCIIObject")                                                    \
	X(unicode_compact_size, "PyCompactUnicodeObject")                                         \
	X(unicode_wstr, "PyASCIIObject.wstr")                                                     \
	X(unicode_any_data, "PyUnicodeObject.data")                                               \
	X(unicode_wstr_length, "PyCompactUnicodeObject.wstr_length")                              \
	X(type_repr, "_typeobject.tp_repr")                                                       \
	X(heap_type_name, "_heaptypeobject.ht_name")                                              \
	X(heap_type_qualname, "_heaptypeobject.ht_qualname")                                      \
	X(heap_type_cached_keys, "_heaptypeobject.ht_cached_keys")                                \
	X(dict_used, "PyDictObject.ma_used")                                                      \
	X(dict_keys, "PyDictObject.ma_keys")                                                      \
	X(dict_values, "PyDictObject.ma_values")                                                  \
	X(function_code, "PyFunctionObject.func_code")                                            \
	X(function_name, "PyFunctionObject.func_name")                                            \
	X(function_qualname, "PyFunctionObject.func_qualname")                                    \
	X(function_module, "PyFunctionObject.func_module")                                        \
	X(function_closure, "PyFunctionObject.func_closure")                                      \
	X(generator_name, "PyGenObject.gi_name")                                                  \
	X(generator_qualname, "PyGenObject.gi_qualname")                                          \
	X(generator_code, "PyGenObject.gi_code")                                                  \
	/* what a generator has of its frame */                                                   \
	X(generator_frame, "PyGenObject.gi_iframe|PyGenObject.gi_frame")                          \
	X(generator_frame_state, "PyGenObject.gi_frame_state")                                    \
	X(pyframe_stack_top, "_frame.f_stacktop")                                                 \
	X(pyframe_value_stack, "_frame.f_valuestack")                                             \
	X(pyframe_stack_depth, "_frame.f_stackdepth")

#endif
