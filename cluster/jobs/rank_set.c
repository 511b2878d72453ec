/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cluster/jobs/rank_set.h"

void prb_rank_set_text(struct prb_str *s, const struct prb_rank_set *set)
{
	for (size_t i = 0; i < set->list.count;) {
		size_t last = i;

		while (last + 1 < set->list.count &&
		       set->list.items[last + 1] == set->list.items[last] + 1)
			last++;
		prb_str_printf(s, "%s%ld", i ? "," : "", set->list.items[i]);
		if (last > i)
			prb_str_printf(s, "%c%ld", last > i + 1 ? '-' : ',', set->list.items[last]);
		i = last + 1;
	}
}
