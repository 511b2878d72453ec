/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Finds files of the Python package that was installed together with the program.
 *
 * pip puts the program into PREFIX/bin and the package into PREFIX/lib/python3.X/site-packages, so
 * no fixed path leads from one to the other. With --target the package is beside bin.
 *
 * Threading: any thread. Ownership: the caller frees the paths.
 */
#ifndef PRB_BASE_PACKAGE_PLACE_H
#define PRB_BASE_PACKAGE_PLACE_H

#include <stddef.h>

#include "base/error.h"

/** The folder that this program is in; empty if the kernel does not say. */
void prb_program_folder(char *ret, size_t size);

/** The absolute path of @p name in the package, where the program is in @p folder; or NULL. */
char *prb_package_file(const char *folder, const char *name);

/**
 * The absolute path of the package itself, where the program is in @p folder: in the sources,
 * beside the build, or where 'make install' or pip has put it. An error if it is in none of them.
 */
struct prb_error *prb_package_find(const char *folder, char **ret) PRB_MUST_CHECK;

#endif
