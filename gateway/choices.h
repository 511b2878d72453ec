/* SPDX-License-Identifier: GPL-3.0-or-later */
/** @file The words that a parameter may be, as one text with spaces between them. */
#ifndef PRB_GATEWAY_CHOICES_H
#define PRB_GATEWAY_CHOICES_H

#include "base/error.h"
#include "base/json.h"

/** PRB_ERROR_USAGE if @p value of the parameter @p name is none of @p choices. */
struct prb_error *prb_choices_check(const char *name, const char *choices,
				    const char *value) PRB_MUST_CHECK;

/** Writes them as a schema's enum. */
void prb_choices_put(struct prb_json *json, const char *choices);

#endif
