/* SPDX-License-Identifier: GPL-3.0-or-later */
/**
 * @file Included before all else, by the compiler's command line. Since glibc 2.38, a program that
 * is compiled with GNU extensions gets strtol() and scanf() of C23: others that take "0b1" for a
 * number, and that no older C library has, so that the agent could not be loaded into a process
 * with one.
 */
#ifndef PRB_BASE_PLAIN_STRTOL_H
#define PRB_BASE_PLAIN_STRTOL_H

#include <features.h>

#undef __GLIBC_USE_C2X_STRTOL /* of glibc 2.38 */
#define __GLIBC_USE_C2X_STRTOL 0
#undef __GLIBC_USE_C23_STRTOL
#define __GLIBC_USE_C23_STRTOL 0

#endif
