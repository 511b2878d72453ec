/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/ptrace/seccomp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/ptrace/seccomp_filter.h"

enum {
	GET_FILTER = 0x420c, /* PTRACE_SECCOMP_GET_FILTER */
	FILTERS_MAX = 1000,
};

static const struct {
	const char *name;
	int number;
	unsigned maker;
	enum prb_call_failure failure;
	struct prb_call_range args[6];
} calls[] = {
#define CALL(name, maker, failure, ...) \
	{#name, SYS_##name, PRB_CALL_##maker, PRB_CALL_##failure, {__VA_ARGS__}},
	PRB_CALLS(CALL)};

static bool is_allowed(uint32_t action)
{
	return action == SECCOMP_RET_ALLOW || action == SECCOMP_RET_LOG;
}

/* True if the caller copes with the result. Error 0 would report a call as done that was not made.
 */
static bool is_borne(void *context, uint32_t low, uint32_t high)
{
	const enum prb_call_failure *failure = context;
	const uint32_t action = low & SECCOMP_RET_ACTION_FULL, error = low & SECCOMP_RET_DATA;

	if (action != (high & SECCOMP_RET_ACTION_FULL))
		return false;
	if (is_allowed(action))
		return true;
	if (action != SECCOMP_RET_ERRNO || !error)
		return false;
	return *failure == PRB_CALL_MAY_FAIL ||
	       (*failure == PRB_CALL_MAY_LACK && low == high && error == ENOSYS);
}

static void set_args(struct prb_seccomp_call *call, const struct prb_call_range args[6])
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(call->args); i++) {
		call->args[i].low = args[i].bounded ? args[i].low : 0;
		call->args[i].high = args[i].bounded ? args[i].high : UINT64_MAX;
	}
}

/* True for negative ints: their upper half in a register may be all zeros or all ones. */
static bool is_negative(const struct prb_call_range *range)
{
	const uint64_t above = range->low >> 32;

	return range->bounded && range->low >> 31 & 1 && (!above || above == UINT32_MAX) &&
	       range->high >> 32 == above;
}

/* Evaluates the filter for one row, with all possible upper halves of its negative ints. */
static struct prb_error *judge(const struct sock_filter *code, size_t count, size_t row, bool *ret)
{
	struct prb_seccomp_call call = {.number = calls[row].number};
	enum prb_call_failure failure = calls[row].failure;
	unsigned negative = 0, extended = 0;

	for (size_t i = 0; i < PRB_ARRAY_SIZE(call.args); i++)
		negative |= (unsigned)is_negative(&calls[row].args[i]) << i;
	do {
		set_args(&call, calls[row].args);
		for (size_t i = 0; i < PRB_ARRAY_SIZE(call.args); i++)
			if (negative >> i & 1) {
				const uint64_t above =
					extended >> i & 1 ? (uint64_t)UINT32_MAX << 32 : 0;

				call.args[i].low = above | (uint32_t)call.args[i].low;
				call.args[i].high = above | (uint32_t)call.args[i].high;
			}
		PRB_TRY(prb_seccomp_results(code, count, &call, is_borne, &failure, ret));
		extended = (extended - negative) & negative; /* the next subset */
	} while (*ret && extended);
	return NULL;
}

static const char *what_needs(unsigned maker)
{
	if (maker & PRB_CALL_CRASHES)
		return "which a crash record needs";
	return maker & PRB_CALL_SERVES ? "which the agent needs" : "which loading needs";
}

struct prb_error *prb_seccomp_judge(const struct sock_filter *code, size_t count, unsigned makers)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(calls); i++) {
		bool borne = true;

		if (calls[i].maker & makers)
			PRB_TRY(judge(code, count, i, &borne));
		if (!borne)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_UNSUPPORTED,
						 "its seccomp filter does not allow %s(), %s",
						 calls[i].name, what_needs(calls[i].maker)),
				"start it without this filter (docker run --security-opt "
				"seccomp=unconfined)");
	}
	return NULL;
}

/* One filter of the stopped thread: how many instructions *ret gets, < 0 with errno: none. */
static long get_filter(pid_t tid, long n, struct sock_filter **ret)
{
	long count = ptrace((enum __ptrace_request)GET_FILTER, tid, n, NULL);

	*ret = NULL;
	if (count < 0)
		return count;
	*ret = calloc((size_t)count + 1, sizeof(**ret));
	if (*ret)
		return ptrace((enum __ptrace_request)GET_FILTER, tid, n, *ret);
	errno = ENOMEM;
	return -1;
}

struct prb_error *prb_seccomp_check(pid_t tid, unsigned makers)
{
	for (long n = 0; n < FILTERS_MAX; n++) {
		prb_auto_free struct sock_filter *code = NULL;
		long count = get_filter(tid, n, &code);

		if (count < 0 && errno == ENOENT)
			return NULL;
		if (count < 0)
			return prb_error_hint(
				prb_error_create(PRB_ERROR_PERMISSION,
						 "its seccomp filter cannot be read: %s",
						 strerror(errno)),
				"only root (CAP_SYS_ADMIN) can find out whether loading is allowed "
				"there: run probing as root on the host");
		PRB_TRY(prb_seccomp_judge(code, (size_t)count, makers));
	}
	return prb_error_create(PRB_ERROR_UNSUPPORTED, "it has over %d seccomp filters",
				FILTERS_MAX);
}

bool prb_seccomp_forbids(pid_t tid, int number)
{
	const struct prb_call_range anything[6] = {};
	struct prb_seccomp_call call = {.number = number};
	enum prb_call_failure failure = PRB_CALL_NEEDED;

	set_args(&call, anything);
	for (long n = 0; n < FILTERS_MAX; n++) {
		prb_auto_free struct sock_filter *code = NULL;
		long count = get_filter(tid, n, &code);
		bool borne = true;

		if (count < 0)
			return false;
		prb_auto_error struct prb_error *err =
			prb_seccomp_results(code, (size_t)count, &call, is_borne, &failure, &borne);
		if (err || !borne)
			return true;
	}
	return false;
}
