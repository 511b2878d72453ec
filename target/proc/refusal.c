/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Why a process may not be read. The kernel answers "not permitted" for a dozen reasons; the cause
 * is found by going through its rules (ptrace(2), "Ptrace access mode checking") in its own order,
 * with /proc's data about both processes.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/text.h"
#include "base/cleanup.h"
#include "target/proc/process_private.h"
#include "target/proc/text.h"

static const uint64_t sys_ptrace = UINT64_C(1) << CAP_SYS_PTRACE;

/* Reads the page at 0, which is never mapped: the kernel checks permission first. */
static int try_to_read(pid_t pid)
{
	char byte;
	struct iovec local = {&byte, 1}, remote = {NULL, 1};

	return process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 ? errno : 0;
}

bool prb_process_readable(pid_t pid)
{
	int os_errno = try_to_read(pid);

	if (!os_errno || os_errno == EFAULT)
		return true;
	prb_auto_close int fd = prb_proc_open(pid, "mem");
	return fd >= 0;
}

/* How to get CAP_SYS_PTRACE, which overrules nearly all the rules. */
static struct prb_error *hint_capability(struct prb_error *err,
					 const struct prb_refusal_facts *facts)
{
	/* Root in this container would have the capability. */
	if (facts->container && facts->ours.uid[1] && facts->ours.bounding & sys_ptrace)
		return prb_error_hint(err, "run as root in this container: sudo probing ..., or "
					   "enter it as user 0 (docker exec -u 0)");
	if (facts->container)
		return prb_error_hint(err, "start the container with --cap-add SYS_PTRACE (in "
					   "Kubernetes: securityContext.capabilities.add: "
					   "[SYS_PTRACE]), or run probing on the host as root");
	if (facts->ours.uid[1] == 0)
		return prb_error_hint(err, "we are root without CAP_SYS_PTRACE: run probing with "
					   "that capability");
	return prb_error_hint(err, "run as root: sudo probing ...");
}

static bool same_user(const struct prb_credentials *theirs, const struct prb_credentials *ours)
{
	for (int i = 0; i < 3; i++) {
		if (theirs->uid[i] != ours->uid[0] || theirs->gid[i] != ours->gid[0])
			return false;
	}
	return true;
}

#define REFUSED(facts, format, ...)                                                       \
	prb_error_create(PRB_ERROR_PERMISSION, "process %d (%s) cannot be read: " format, \
			 (facts)->pid, (facts)->comm, ##__VA_ARGS__)

static struct prb_error *explain_user(const struct prb_refusal_facts *facts)
{
	const struct prb_credentials *theirs = &facts->theirs, *ours = &facts->ours;

	if (theirs->uid[1] != ours->uid[0] || theirs->uid[0] != ours->uid[0] ||
	    theirs->uid[2] != ours->uid[0])
		return REFUSED(facts, "it runs as user %u and we are user %u", theirs->uid[1],
			       ours->uid[0]);
	return REFUSED(facts, "it runs in group %u and we are in group %u", theirs->gid[1],
		       ours->gid[0]);
}

static struct prb_error *explain_yama(const struct prb_refusal_facts *facts)
{
	static const char *const rules[] = {
		[1] = "only its ancestors may read a process",
		[2] = "only processes with CAP_SYS_PTRACE may read others",
		[3] = "no process may read another",
	};
	struct prb_error *err = REFUSED(facts, "kernel.yama.ptrace_scope is %d: %s",
					facts->ptrace_scope, rules[facts->ptrace_scope]);

	if (facts->ptrace_scope == 3)
		return prb_error_hint(err, "this setting holds until the machine is booted again: "
					   "remove it from /etc/sysctl.d and reboot");
	if (facts->container)
		return hint_capability(err, facts);
	return prb_error_hint(err, "run as root (sudo probing ...), or let users read their own "
				   "processes: echo 0 | sudo tee "
				   "/proc/sys/kernel/yama/ptrace_scope");
}

struct prb_error *prb_refusal_explain(const struct prb_refusal_facts *facts)
{
	const struct prb_credentials *theirs = &facts->theirs, *ours = &facts->ours;
	bool capable = ours->effective & sys_ptrace;

	if (facts->unmapped || (capable && facts->user_namespace))
		return prb_error_hint(
			REFUSED(facts, "it belongs to a user namespace outside of ours"),
			"run probing outside of this container or namespace, as root");
	if (!capable && !same_user(theirs, ours))
		return hint_capability(explain_user(facts), facts);
	if (!capable && !facts->dumpable)
		return hint_capability(REFUSED(facts, "it is not dumpable: it changed its user, "
						      "has capabilities of its file, or asked "
						      "for it by prctl()"),
				       facts);
	if (!capable && theirs->permitted & ~ours->permitted)
		return hint_capability(REFUSED(facts, "it has capabilities that we lack"), facts);
	if (facts->ptrace_scope == 3 || (!capable && facts->ptrace_scope == 2) ||
	    (!capable && facts->ptrace_scope == 1 && !facts->ancestor))
		return explain_yama(facts);
	if (facts->confined)
		return prb_error_hint(REFUSED(facts,
					      "the security module's profile \"%s\" that we "
					      "run under forbids it",
					      facts->confined),
				      "%s",
				      facts->container ? "start the container with --security-opt "
							 "apparmor=unconfined, or run probing on "
							 "the host as root"
						       : "run probing unconfined");
	if (facts->seccomp)
		return prb_error_hint(REFUSED(facts, "a seccomp filter that we run under forbids "
						     "reading the memory of processes"),
				      "start the container with --security-opt seccomp=unconfined "
				      "or --cap-add SYS_PTRACE");
	return hint_capability(REFUSED(facts, "a security module of the kernel forbids it"), facts);
}

static void read_ids(const char *status, const char *name, unsigned ids[3])
{
	const char *field = prb_text_field(status, name);

	if (field)
		sscanf(field, "%u %u %u", &ids[0], &ids[1], &ids[2]);
}

static uint64_t read_capabilities(const char *status, const char *name)
{
	const char *field = prb_text_field(status, name);

	return field ? strtoull(field, NULL, 16) : 0;
}

static void read_credentials(pid_t pid, struct prb_credentials *ret)
{
	prb_auto_str struct prb_str text = {};

	if (!prb_proc_read(pid, "status", &text))
		return;

	const char *status = prb_str_text(&text);
	read_ids(status, "Uid", ret->uid);
	read_ids(status, "Gid", ret->gid);
	ret->permitted = read_capabilities(status, "CapPrm");
	ret->effective = read_capabilities(status, "CapEff");
	ret->bounding = read_capabilities(status, "CapBnd");
}

int prb_process_ptrace_scope(void)
{
	prb_auto_fclose FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "re");
	int scope;

	return file && fscanf(file, "%d", &scope) == 1 && scope >= 0 && scope <= 3 ? scope : -1;
}

/* All 2^32 - 1 users mapped onto themselves is the first namespace. */
bool prb_process_in_user_namespace(void)
{
	prb_auto_fclose FILE *file = fopen("/proc/self/uid_map", "re");
	unsigned inside, outside, count;

	return file && (fscanf(file, "%u %u %u", &inside, &outside, &count) != 3 || inside ||
			outside || count != UINT32_MAX);
}

static bool in_container(const struct prb_credentials *ours)
{
	return !access("/.dockerenv", F_OK) || !access("/run/.containerenv", F_OK) ||
	       getenv("KUBERNETES_SERVICE_HOST") ||
	       (!ours->uid[1] && !(ours->bounding & sys_ptrace));
}

bool prb_process_in_container(void)
{
	struct prb_credentials ours = {};

	read_credentials(getpid(), &ours);
	return in_container(&ours);
}

/* Files of a process that is not dumpable belong to root; its folder itself always to its user. */
static bool is_dumpable(pid_t pid, const struct prb_credentials *theirs)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	return stat(path, &st) || st.st_uid == theirs->uid[1];
}

static struct prb_error *refused(const struct prb_process *process, const char *comm)
{
	enum { OVERFLOW_ID = 65534 };
	prb_auto_str struct prb_str profile = {};
	struct prb_refusal_facts facts = {
		.pid = process->pid,
		.comm = comm,
		.ptrace_scope = prb_process_ptrace_scope(),
		.user_namespace = prb_process_in_user_namespace(),
		.ancestor = prb_proc_is_ancestor(getpid(), process->pid),
	};
	int os_errno = try_to_read(getpid());

	read_credentials(process->pid, &facts.theirs);
	read_credentials(getpid(), &facts.ours);
	facts.dumpable = is_dumpable(process->pid, &facts.theirs);
	facts.unmapped = facts.user_namespace && facts.theirs.uid[1] == OVERFLOW_ID;
	facts.container = in_container(&facts.ours);
	facts.seccomp = os_errno == EPERM || os_errno == ENOSYS;
	if (prb_proc_read(getpid(), "attr/current", &profile)) {
		prb_str_truncate(&profile, strcspn(prb_str_text(&profile), "\n"));
		if (profile.length && strncmp(prb_str_text(&profile), "unconfined", 10))
			facts.confined = prb_str_text(&profile);
	}
	return prb_refusal_explain(&facts);
}

struct prb_error *prb_process_check(const struct prb_process *process)
{
	prb_auto_str struct prb_str text = {};

	prb_text_escape_bytes(&text, process->comm, strlen(process->comm));
	const char *comm = prb_str_text(&text);
	if (process->kind == PRB_PROCESS_ZOMBIE)
		return prb_error_hint(prb_error_create(PRB_ERROR_UNSUPPORTED,
						       "process %d (%s) has ended: it is a zombie "
						       "without memory",
						       process->pid, comm),
				      "its parent, process %d, has not collected it yet",
				      process->ppid);
	if (process->kind == PRB_PROCESS_KERNEL)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"process %d (%s) is a thread of the kernel", process->pid,
					comm);
	if (process->elf_class == 32)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"process %d (%s) is a 32-bit program; only 64-bit ones can "
					"be read",
					process->pid, comm);
	if (prb_process_readable(process->pid))
		return NULL;
	if (try_to_read(process->pid) == ESRCH)
		return prb_error_create(PRB_ERROR_UNSUPPORTED,
					"process %d (%s) has ended: it has no memory any more",
					process->pid, comm);
	return refused(process, comm);
}

void prb_process_refusal(pid_t pid, struct prb_error **ret)
{
	struct prb_process process;

	*ret = prb_process_describe(pid, &process);
	if (*ret) {
		*ret = prb_error_hint(*ret, "'probing list' shows the Python processes");
		return;
	}
	*ret = prb_process_check(&process);
	/* It may have ended while we looked. */
	if (*ret && (*ret)->code == PRB_ERROR_PERMISSION && kill(pid, 0) && errno == ESRCH) {
		prb_error_destroy(*ret);
		*ret = prb_error_os(ESRCH, "process %d", pid);
	}
	prb_process_deinit(&process);
}
