/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/signal_text.h"

#include <signal.h>
#include <string.h>

#include "base/checked.h"

static const struct {
	int number; /* 0: of any signal */
	int code;
	const char *name, *text;
} codes[] = {
	{SIGSEGV, SEGV_MAPERR, "SEGV_MAPERR", "not mapped"},
	{SIGSEGV, SEGV_ACCERR, "SEGV_ACCERR", "mapped without the permission for it"},
	{SIGSEGV, SEGV_BNDERR, "SEGV_BNDERR", "outside of its bounds"},
	{SIGSEGV, SEGV_PKUERR, "SEGV_PKUERR", "refused by a protection key"},
	{SIGBUS, BUS_ADRALN, "BUS_ADRALN", "not aligned"},
	{SIGBUS, BUS_ADRERR, "BUS_ADRERR", "behind the end of the mapped file, or no space left"},
	{SIGBUS, BUS_OBJERR, "BUS_OBJERR", "an error of the hardware"},
	{SIGBUS, BUS_MCEERR_AR, "BUS_MCEERR_AR", "broken memory"},
	{SIGBUS, BUS_MCEERR_AO, "BUS_MCEERR_AO", "broken memory"},
	{SIGFPE, FPE_INTDIV, "FPE_INTDIV", "division by zero"},
	{SIGFPE, FPE_INTOVF, "FPE_INTOVF", "integer overflow"},
	{SIGFPE, FPE_FLTDIV, "FPE_FLTDIV", "floating-point division by zero"},
	{SIGFPE, FPE_FLTOVF, "FPE_FLTOVF", "floating-point overflow"},
	{SIGFPE, FPE_FLTUND, "FPE_FLTUND", "floating-point underflow"},
	{SIGFPE, FPE_FLTRES, "FPE_FLTRES", "inexact floating-point result"},
	{SIGFPE, FPE_FLTINV, "FPE_FLTINV", "invalid floating-point operation"},
	{SIGILL, ILL_ILLOPC, "ILL_ILLOPC", "illegal instruction"},
	{SIGILL, ILL_ILLOPN, "ILL_ILLOPN", "illegal operand"},
	{SIGILL, ILL_ILLADR, "ILL_ILLADR", "illegal addressing mode"},
	{SIGILL, ILL_ILLTRP, "ILL_ILLTRP", "illegal trap"},
	{SIGILL, ILL_PRVOPC, "ILL_PRVOPC", "privileged instruction"},
	{SIGILL, ILL_PRVREG, "ILL_PRVREG", "privileged register"},
	{0, SI_USER, "SI_USER", NULL},
	{0, SI_TKILL, "SI_TKILL", NULL},
	{0, SI_QUEUE, "SI_QUEUE", NULL},
	{0, SI_TIMER, "SI_TIMER", "a timer"},
	{0, SI_KERNEL, "SI_KERNEL", NULL},
};

void prb_put_signal(struct prb_str *s, int number)
{
	const char *name = sigabbrev_np(number);

	if (name)
		prb_str_printf(s, "SIG%s", name);
	else if (number == SIGRTMIN)
		prb_str_puts(s, "SIGRTMIN");
	else if (number > SIGRTMIN && number <= SIGRTMAX)
		prb_str_printf(s, "SIGRTMIN+%d", number - SIGRTMIN);
	else
		prb_str_printf(s, "SIG%d", number);
}

const char *prb_signal_code_name(int number, int code)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(codes); i++)
		if (codes[i].code == code && (!codes[i].number || codes[i].number == number))
			return codes[i].name;
	return NULL;
}

const char *prb_signal_code_text(int number, int code)
{
	for (size_t i = 0; i < PRB_ARRAY_SIZE(codes); i++)
		if (codes[i].code == code && (!codes[i].number || codes[i].number == number))
			return codes[i].text;
	return NULL;
}
