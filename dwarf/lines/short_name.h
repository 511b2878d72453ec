/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Shortens demangled names of C++ and Rust: drops what the programmer did not write.
 *
 *     std::vector<std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >,
 *         std::allocator<std::__cxx11::basic_string<char, std::char_traits<char>,
 *         std::allocator<char> > > >::push_back(int)
 *     std::vector<std::string>::push_back(int)
 *
 * Dropped are template arguments that equal the default of a standard class, ABI tags
 * (`[abi:cxx11]`), and inline namespaces (`std::__cxx11`, `std::__1`, `fmt::v9` and the like).
 * `std::basic_string<char>` becomes `std::string`, and `> >` becomes `>>`. Two different names can
 * have the same short form, so keep the complete one where it matters.
 *
 * In Rust names, modules are dropped from arguments and from the type of a method, and the
 * arguments of arguments are shown as `<…>`:
 *
 *     <alloc::vec::Vec<core::option::Option<u8>> as core::ops::drop::Drop>::drop
 *     <Vec<Option<…>> as Drop>::drop
 *
 * Hashes (`::h0123456789abcdef`, `core[f846ed4b]`) and `.llvm.123` go, too.
 *
 * Any text may be given. Text that does not parse as such a name has no short form.
 *
 * Threading: no state, any thread. Time and memory are bounded by the length of the name.
 */
#ifndef PRB_DWARF_LINES_SHORT_NAME_H
#define PRB_DWARF_LINES_SHORT_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "base/str.h"

/**
 * Returns the short form of @p name in @p ret, for the caller to free; NULL if there is none or it
 * equals @p name. Fails only when out of memory.
 */
struct prb_error *prb_short_name(const char *name, char **ret) PRB_MUST_CHECK;

/** The same for a name that is known to be of C++. */
struct prb_error *prb_cxx_short_name(const char *name, char **ret) PRB_MUST_CHECK;

/* For short_name.c. */

/** Guesses by the text: true if @p name looks like a demangled Rust name. */
bool prb_rust_is_name(const char *name);

/** Where the hash at the end of @p name begins; its length if it has none. */
size_t prb_rust_hash(const char *name);

/** Appends the short form; false if @p name is no name of Rust's. */
bool prb_rust_short_name(const char *name, struct prb_str *ret);

/* Knowledge of the standard library, for short_name.c. */

/** True if @p name (@p length bytes) is an inline namespace of @p scope, such as "std::". */
bool prb_std_is_inline_namespace(const char *scope, const char *name, size_t length);

/** Number of leading template @p arguments of class @p name that have to be shown. */
size_t prb_std_needed_arguments(const char *name, const struct prb_str *arguments, size_t count);

/** The usual name of class @p name with the one @p argument ("std::string"); NULL if none. */
const char *prb_std_alias(const char *name, const char *argument);

#endif
