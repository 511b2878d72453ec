/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "target/proc/rights.h"

#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/log.h"
#include "base/vec.h"
#include "target/proc/text.h"

enum { MAX_GROUPS = 65536 /* the kernel's limit */ };

void prb_rights_deinit(struct prb_rights *rights)
{
	free(rights->groups);
	*rights = (struct prb_rights){};
}

/** The fourth number of "Uid:" and "Gid:" is the one for file systems. */
static bool parse_id(const char *status, const char *name, unsigned *ret)
{
	const char *field = prb_text_field(status, name);

	return field && sscanf(field, "%*u %*u %*u %u", ret) == 1;
}

static struct prb_error *parse_groups(const char *status, struct prb_rights *ret)
{
	const char *field = prb_text_field(status, "Groups");
	PRB_VEC(gid_t) groups = {};
	unsigned group;
	int used;

	for (; field && *field != '\n' && groups.count < MAX_GROUPS &&
	       sscanf(field, "%u%n", &group, &used) == 1;
	     field += used + strspn(field + used, " \t")) {
		gid_t *next = prb_vec_push(&groups);

		if (!next) {
			prb_vec_free(&groups);
			return prb_error_nomem();
		}
		*next = group;
	}
	ret->groups = groups.items;
	ret->group_count = groups.count;
	return NULL;
}

struct prb_error *prb_rights_parse(const char *status, struct prb_rights *ret)
{
	*ret = (struct prb_rights){};
	if (!parse_id(status, "Uid", &ret->uid) || !parse_id(status, "Gid", &ret->gid))
		return prb_error_create(PRB_ERROR_BAD_DATA,
					"the kernel does not report the owner of the process");
	return parse_groups(status, ret);
}

/** The effective capabilities of this thread; @p wanted replaces them if it is not NULL. */
static bool capabilities(uint32_t effective[2], const uint32_t *wanted)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {};

	if (syscall(SYS_capget, &header, data))
		return false;
	for (int i = 0; i < 2; i++) {
		if (effective)
			effective[i] = data[i].effective;
		if (wanted)
			data[i].effective = wanted[i];
	}
	return !wanted || !syscall(SYS_capset, &header, data);
}

bool prb_rights_are_special(void)
{
	uint32_t effective[2];

	return !geteuid() || !capabilities(effective, NULL) || effective[0] || effective[1];
}

static struct prb_error *save(struct prb_rights_saved *saved)
{
	int count = getgroups(0, NULL);

	saved->rights.groups = calloc((size_t)PRB_MAX(count, 1), sizeof(gid_t));
	if (!saved->rights.groups)
		return prb_error_nomem();
	count = getgroups(count, saved->rights.groups);
	if (count < 0 || !capabilities(saved->effective, NULL)) {
		prb_rights_deinit(&saved->rights);
		return prb_error_create(PRB_ERROR_FAILED, "cannot find out our own rights");
	}
	saved->rights.group_count = (size_t)count;
	saved->rights.uid = (uid_t)syscall(SYS_setfsuid, -1);
	saved->rights.gid = (gid_t)syscall(SYS_setfsgid, -1);
	/* The kernel resets both when a thread changes its user. */
	saved->dumpable = prctl(PR_GET_DUMPABLE);
	if (prctl(PR_GET_PDEATHSIG, &saved->death_signal))
		saved->death_signal = 0;
	saved->parent = getppid();
	return NULL;
}

/** True if this thread has those users and groups now. */
static bool change(const struct prb_rights *rights)
{
	bool groups = !syscall(SYS_setgroups, rights->group_count, rights->groups);

	syscall(SYS_setfsgid, rights->gid);
	syscall(SYS_setfsuid, rights->uid);
	return groups && (gid_t)syscall(SYS_setfsgid, -1) == rights->gid &&
	       (uid_t)syscall(SYS_setfsuid, -1) == rights->uid;
}

struct prb_error *prb_rights_take(const struct prb_rights *rights, struct prb_rights_saved *saved)
{
	static const uint32_t none[2];

	*saved = (struct prb_rights_saved){};
	PRB_TRY(save(saved));
	saved->changed = true;
	saved->complete = change(rights);
	if (capabilities(NULL, none))
		return NULL;
	prb_rights_restore(saved);
	return prb_error_create(PRB_ERROR_FAILED, "cannot give up our own rights for a moment");
}

void prb_rights_restore(struct prb_rights_saved *saved)
{
	if (!saved->changed)
		return;
	saved->changed = false;

	bool ok = capabilities(NULL, saved->effective);
	ok = (change(&saved->rights) || !saved->complete) && ok;
	ok = capabilities(NULL, saved->effective) && ok;
	if (!ok)
		prb_log("process", 1, "cannot restore our own rights");
	if (saved->dumpable == 1)
		prctl(PR_SET_DUMPABLE, 1);
	if (saved->death_signal) {
		prctl(PR_SET_PDEATHSIG, saved->death_signal);
		if (getppid() != saved->parent)
			raise(saved->death_signal);
	}
	prb_rights_deinit(&saved->rights);
}

/** Could that user have opened this file, which was opened with the rights that we have? */
static struct prb_error *check_owner(const struct prb_rights *rights, int fd, const char *path)
{
	struct stat st;

	if (!fstat(fd, &st) &&
	    (st.st_uid == rights->uid || (geteuid() && !st.st_uid && st.st_mode & S_IROTH)))
		return NULL;
	return prb_error_hint(prb_error_os(EACCES, "cannot open %s", path),
			      "run as root, with CAP_SETUID and CAP_SETGID");
}

static struct prb_error *open_with(const struct prb_rights *rights, int root, const char *path,
				   int *ret_fd)
{
	prb_auto_rights struct prb_rights_saved saved = {};
	prb_auto_close int fd = -1;

	PRB_TRY(prb_rights_take(rights, &saved));
	PRB_TRY(prb_file_open(root, path, &fd));
	if (!saved.complete)
		PRB_TRY(check_owner(rights, fd, path));
	*ret_fd = prb_steal_fd(&fd);
	return NULL;
}

struct prb_error *prb_rights_open(const struct prb_rights *rights, int root, const char *path,
				  int *ret_fd)
{
	struct prb_error *err;

	if (rights->uid == geteuid() || !prb_rights_are_special())
		return prb_file_open(root, path, ret_fd);
	err = open_with(rights, root, path, ret_fd);
	if (err && err->code == PRB_ERROR_PERMISSION)
		return prb_error_prefix(err, "with the rights of user %u", rights->uid);
	return err;
}
