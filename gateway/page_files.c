/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/page_files.h"

#include "gateway/page_files.inc"
