/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Addresses, interfaces and networks of ipaddress: a number, and how many bits of it are the
 * network's. */
#include <string.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "python/repr/core/handlers.h"

static void put_v4(struct prb_repr *r, uint32_t ip)
{
	prb_str_printf(r->out, "%u.%u.%u.%u", ip >> 24, ip >> 16 & 0xff, ip >> 8 & 0xff, ip & 0xff);
}

/* Groups of 16 bits; the longest run of at least two zeros, the first of equal ones, is "::". */
static void put_v6(struct prb_repr *r, unsigned __int128 ip)
{
	enum { GROUPS = 8 };
	int best = -1, longest = 1;

	for (int i = 0; i < GROUPS; i++) {
		int length = 0;

		while (i + length < GROUPS && !(uint16_t)(ip >> (112 - 16 * (i + length))))
			length++;
		if (length > longest) {
			best = i;
			longest = length;
		}
		i += length;
	}
	for (int i = 0; i < GROUPS; i++) {
		if (i == best) {
			prb_str_puts(r->out, "::");
			i += longest - 1;
			continue;
		}
		prb_str_printf(r->out, "%s%x", i && i != best + longest ? ":" : "",
			       (unsigned)(uint16_t)(ip >> (112 - 16 * i)));
	}
}

static struct prb_error *find(struct prb_repr *r, uint64_t object, const char *name, uint64_t *ret)
{
	struct prb_error *err = prb_repr_attribute(r, object, name, ret);

	if (prb_error_catch(&err, PRB_ERROR_NOT_FOUND))
		*ret = 0;
	return err;
}

/* Of an interface, its network has the bits. */
static struct prb_error *put_prefix(struct prb_repr *r, uint64_t object)
{
	uint64_t prefix, network;
	int64_t bits;

	PRB_TRY(find(r, object, "_prefixlen", &prefix));
	if (!prefix) {
		PRB_TRY(find(r, object, "network", &network));
		if (network)
			PRB_TRY(find(r, network, "_prefixlen", &prefix));
	}
	if (!prefix)
		return NULL;
	PRB_TRY(prb_repr_int(r, prefix, &bits));
	prb_str_printf(r->out, "/%lld", (long long)bits);
	return NULL;
}

static struct prb_error *put_address(struct prb_repr *r, uint64_t object, struct prb_type *type)
{
	uint64_t address = object, number, scope;
	unsigned __int128 ip;

	PRB_TRY(find(r, object, "_ip", &number));
	if (!number) {
		PRB_TRY(prb_repr_attribute(r, object, "network_address", &address));
		PRB_TRY(prb_repr_attribute(r, address, "_ip", &number));
	}
	PRB_TRY(prb_repr_uint128(r, number, &ip));
	PRB_TRY(prb_repr_put_name(r, type));
	prb_str_puts(r->out, "('");
	if (strstr(type->name, "v4"))
		put_v4(r, (uint32_t)ip);
	else
		put_v6(r, ip);
	PRB_TRY(find(r, address, "_scope_id", &scope));
	if (scope && !prb_repr_is_none(r, scope)) {
		prb_str_putc(r->out, '%');
		PRB_TRY(prb_repr_put_text(r, scope));
	}
	PRB_TRY(put_prefix(r, object));
	prb_str_puts(r->out, "')");
	return NULL;
}

struct prb_error *prb_repr_handle_ip_address(struct prb_repr *r, uint64_t object,
					     struct prb_type *type)
{
	return prb_repr_put_or_default(r, object, type, put_address);
}
