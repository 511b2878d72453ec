/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/looks/pace_spots.h"

#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/str.h"

void prb_pace_destroy(struct prb_pace *pace)
{
	struct prb_spot *spot;

	if (!pace)
		return;
	prb_vec_each (spot, &pace->spots)
		free(spot->name);
	prb_vec_free(&pace->spots);
	free(pace);
}

struct prb_error *prb_pace_count(struct prb_pace *pace, const char *name, long count)
{
	struct prb_spot *spot;

	if (pace->spots.count >= PRB_MAX_SPOTS - 1)
		name = "elsewhere";
	prb_vec_each (spot, &pace->spots)
		if (!strcmp(spot->name, name)) {
			spot->count += count;
			return NULL;
		}
	spot = prb_vec_push(&pace->spots);
	if (!spot)
		return prb_error_nomem();
	spot->count = count;
	PRB_TRY(prb_str_copy(name, &spot->name));
	return NULL;
}
