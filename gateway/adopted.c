/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/adopted.h"

#include <stdio.h>

#include "base/cleanup.h"
#include "gateway/gateway.h"

void prb_gateway_adopted(int from, pid_t pid, const char *address, const struct prb_token *token)
{
	struct prb_gateway *gateway = NULL;
	char target[16];

	snprintf(target, sizeof(target), "%d", (int)pid);
	const struct prb_texts targets = {.items = {target}, .count = 1};

	prb_auto_error struct prb_error *err =
		prb_gateway_create(&(struct prb_gateway_options){.token = token,
								 .targets = &targets,
								 .adopted = from,
								 .adopted_at = address},
				   &gateway);
	if (!err)
		err = prb_gateway_run(gateway);
	prb_gateway_destroy(gateway);
}
