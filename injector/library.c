/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The library's file: checks it, finds it in the target, and passes it there. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/clock.h"
#include "dwarf/elf/elf.h"
#include "injector/arch/arch.h"
#include "injector/inject_private.h"
#include "injector/target_copy.h"

enum {
	FLAG_CLOEXEC = 1,
	FLAG_EXEC = 0x10,   /* MFD_EXEC, Linux 6.3 */
	NOW = 2,	    /* RTLD_NOW */
	INTERNAL = 1 << 31, /* __RTLD_DLOPEN: what the dlopen() inside of libc wants */

	MESSAGE_MAX = 4096,
	PATH_SIZE = 13 + 2 * 64 + 16,
};

static struct prb_error *check_header(int fd, const char *path, uint16_t machine)
{
	Elf64_Ehdr header = {};

	if (pread(fd, &header, sizeof(header), 0) == (ssize_t)sizeof(header) &&
	    !memcmp(header.e_ident, ELFMAG, SELFMAG) && header.e_ident[EI_CLASS] == ELFCLASS64 &&
	    header.e_type == ET_DYN && header.e_machine == machine)
		return NULL;
	return prb_error_hint(prb_error_create(PRB_ERROR_USAGE,
					       "%s is not a shared library for the target's "
					       "processor",
					       path),
			      "'file %s' identifies it", path);
}

static bool exports(struct prb_elf *elf, const char *symbol)
{
	struct prb_elf_symbol found;
	prb_auto_error struct prb_error *err = prb_elf_symbol(elf, symbol, &found);

	return !err && found.function && !found.local;
}

struct prb_error *prb_library_open(const char *path, const char *symbol, uint16_t machine,
				   struct prb_library *ret)
{
	struct stat st;

	/* Anything but a regular file could block in open(), or have side effects. */
	ret->path = realpath(path, NULL);
	if (ret->path && !stat(ret->path, &st) && !S_ISREG(st.st_mode))
		return prb_error_create(PRB_ERROR_USAGE, "%s is not a regular file", path);
	if (ret->path)
		ret->fd = open(ret->path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (ret->fd < 0) {
		int os_errno = errno;

		return prb_error_create(PRB_ERROR_USAGE, "cannot open %s: %s", path,
					strerror(os_errno));
	}
	ret->name = strrchr(ret->path, '/') + 1;
	PRB_TRY(check_header(ret->fd, ret->path, machine));

	int copy = fcntl(ret->fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return prb_error_os(errno, "cannot read %s", ret->path);
	PRB_TRY(prb_elf_open(copy, ret->path, &ret->elf));
	ret->build_id = prb_elf_build_id(ret->elf);
	ret->agent = exports(ret->elf, "probing_agent_start");
	if (!symbol || exports(ret->elf, symbol))
		return NULL;
	return prb_error_create(PRB_ERROR_USAGE, "%s exports no function '%s'", ret->path, symbol);
}

void prb_library_deinit(struct prb_library *library)
{
	prb_elf_close(library->elf);
	if (library->fd >= 0)
		close(library->fd);
	free(library->path);
}

/* Whether the target sees the very same file under its path. */
static bool sees(const struct prb_library *library, struct prb_target *t)
{
	struct stat ours, theirs;
	prb_auto_close int fd = -1;
	prb_auto_error struct prb_error *err = prb_target_open_file(t, library->path, &fd);

	return !err && !fstat(library->fd, &ours) && !fstat(fd, &theirs) &&
	       ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

const struct prb_module *prb_library_loaded(const struct prb_library *library,
					    struct prb_modules *modules)
{
	for (size_t i = 0; i < modules->list.count; i++) {
		struct prb_module *module = modules->list.items[i];
		const char *slash = strrchr(module->path, '/');
		const char *name = slash ? slash + 1 : module->path;

		if (strncmp(name, "memfd:", 6) && strcmp(name, library->name) &&
		    strncmp(name, "probing-", 8))
			continue;
		if (*library->build_id ? !strcmp(prb_module_build_id(module), library->build_id)
				       : !strcmp(module->path, library->path) && !module->deleted)
			return module;
	}
	return NULL;
}

static bool has_path(const struct prb_library *library, const struct prb_modules *modules)
{
	for (size_t i = 0; i < modules->list.count; i++)
		if (!strcmp(modules->list.items[i]->path, library->path))
			return true;
	return false;
}

/* By now: another command may be loading it. */
static bool is_mapped_by_now(const struct prb_library *library, struct prb_target *t)
{
	__attribute__((cleanup(prb_maps_deinit))) struct prb_maps maps = {};
	prb_auto_error struct prb_error *err = prb_target_read_maps(t, &maps);
	const struct prb_map *map;
	struct stat file;

	if (err || fstat(library->fd, &file))
		return false;
	prb_vec_each (map, &maps.list)
		if (!map->deleted && map->inode == file.st_ino && !strcmp(map->path, library->path))
			return true;
	return false;
}

struct prb_error *prb_library_check_path(const struct prb_library *library,
					 struct prb_modules *modules, const struct prb_libc *libc)
{
	struct prb_target *t = modules->target;

	if (prb_library_loaded(library, modules) || !sees(library, t) ||
	    (!has_path(library, modules) && !prb_handle_has_name(modules, libc, library->path)) ||
	    is_mapped_by_now(library, t))
		return NULL;
	return prb_error_hint(
		prb_error_create(PRB_ERROR_UNSUPPORTED,
				 "process %d has loaded another file as %s, which was replaced "
				 "since: its loader would go on with the old one",
				 t->pid, library->path),
		"copy it to another name, and load that; or start the process again");
}

struct loading {
	const struct prb_library *library;
	struct prb_target *t;
	const struct prb_libc *libc;
	struct prb_mail *mail;
	const struct prb_inject_request *request;
	struct prb_inject_result *result;
	double deadline;
	uint64_t handle;
	bool uses; /* the symbol was found, and is called */
	bool done; /* all that is to be done with it */
	char *why; /* what the loader said first */
};

/* The calls that make up a request, which the target makes in one go. */
struct plan {
	struct prb_mail_call calls[PRB_MAIL_CALLS];
	size_t count;
	size_t text;				 /* used of the mailbox's */
	struct prb_mail_call *open, *find, *use; /* NULL: not planned */
};

#define ARGUMENTS(...) ((const uint64_t[PRB_MAIL_ARGUMENTS]){__VA_ARGS__})

static struct prb_error *call(struct loading *l, uint64_t function, const uint64_t *arguments,
			      uint64_t *ret)
{
	return prb_mail_call(l->mail, function, arguments, l->deadline, ret);
}

/* Notes the loader's error message. */
static struct prb_error *note_error(struct loading *l)
{
	prb_auto_str struct prb_str text = {};
	uint64_t message = 0;

	if (l->libc->dlerror)
		PRB_TRY(call(l, l->libc->dlerror, ARGUMENTS(0), &message));
	if (message)
		PRB_TRY(prb_mem_read_cstr(l->t->mem, message, MESSAGE_MAX, &text));
	else
		prb_str_puts(&text, "the loader of the C library refuses it");
	if (!l->why)
		l->why = prb_str_take(&text);
	return NULL;
}

static struct prb_error *put_text(struct loading *l, struct plan *p, const char *text,
				  uint64_t *ret)
{
	PRB_TRY(prb_mail_text(l->mail, p->text, text, ret));
	p->text += strlen(text) + 1;
	return NULL;
}

static struct prb_mail_call *add_call(struct plan *p, uint64_t function)
{
	struct prb_mail_call *c = &p->calls[p->count++];

	c->function = function;
	return c;
}

/* The first argument is the handle: what is known of it, or what is opened first. */
static struct prb_mail_call *add_user(struct loading *l, struct plan *p, uint64_t function)
{
	struct prb_mail_call *c = add_call(p, function);

	c->arguments[0] = l->handle;
	if (p->open)
		p->open->also[!!p->open->also[0]] = PRB_MAIL_ARGUMENT(c - p->calls, 0);
	return c;
}

static struct prb_error *plan_open(struct loading *l, struct plan *p, const char *path)
{
	p->open = add_call(p, l->libc->dlopen);
	p->open->arguments[1] = l->libc->internal_dlopen ? NOW | (uint32_t)INTERNAL : NOW;
	return put_text(l, p, path, &p->open->arguments[0]);
}

static struct prb_error *plan_use(struct loading *l, struct plan *p)
{
	const struct prb_inject_request *r = l->request;

	if (r->symbol) {
		p->find = add_user(l, p, l->libc->dlsym);
		PRB_TRY(put_text(l, p, r->symbol, &p->find->arguments[1]));
		p->find->also[0] = PRB_MAIL_FUNCTION(p->count);
		p->use = add_call(p, 0);
		p->use->always = true;
		PRB_TRY(put_text(l, p, r->argument ? r->argument : "", &p->use->arguments[0]));
	}
	if ((r->again || l->result->already) && !r->unload && l->libc->dlclose)
		add_user(l, p, l->libc->dlclose);
	return NULL;
}

/* Reads what came of it. */
static struct prb_error *note_results(struct loading *l, const struct plan *p)
{
	if (p->open)
		l->handle = p->open->result;
	if (!l->handle)
		return note_error(l);
	if (p->find && !p->find->result)
		return prb_error_create(PRB_ERROR_NOT_FOUND, "the loaded %s has no '%s'",
					l->library->path, l->request->symbol);
	if (p->use) {
		l->result->called = true;
		l->result->value = (int64_t)p->use->result;
	}
	return NULL;
}

static struct prb_error *carry_out(struct loading *l, struct plan *p)
{
	struct prb_error *err =
		p->count ? prb_mail_run(l->mail, p->calls, p->count, l->deadline) : NULL;

	l->uses = p->find && p->find->result;
	return err ? err : note_results(l, p);
}

/* Uses what is open, as the request says. */
static struct prb_error *use(struct loading *l)
{
	struct plan p = {};

	PRB_TRY(plan_use(l, &p));
	return carry_out(l, &p);
}

static struct prb_error *load_path(struct loading *l, const char *path, bool use)
{
	struct plan p = {};

	PRB_TRY(plan_open(l, &p, path));
	if (use)
		PRB_TRY(plan_use(l, &p));
	l->done = use;
	PRB_TRY(carry_out(l, &p));
	prb_log("inject", 2, "dlopen(%s) = %#llx", path, (unsigned long long)l->handle);
	return NULL;
}

/* By its own name, where the target sees the very same file under it. */
static struct prb_error *by_path(struct loading *l)
{
	return sees(l->library, l->t) ? load_path(l, l->library->path, true) : NULL;
}

static struct prb_error *create_memfd(struct loading *l, int64_t *fd)
{
	static const uint64_t flags[] = {FLAG_CLOEXEC | FLAG_EXEC, FLAG_CLOEXEC};
	const struct prb_inject_arch *arch = prb_inject_arch();
	char name[128];
	uint64_t address, result = 0;

	snprintf(name, sizeof(name), "%.100s", l->library->name);
	PRB_TRY(prb_mail_text(l->mail, 0, name, &address));
	*fd = -1;
	for (size_t i = 0; i < PRB_ARRAY_SIZE(flags) && *fd < 0; i++) {
		PRB_TRY(call(l, l->mail->raw_syscall,
			     ARGUMENTS((uint64_t)arch->sys_memfd_create, address, flags[i]),
			     &result));
		*fd = (int64_t)result;
	}
	return *fd < 0 ? NULL : prb_mail_close_at_end(l->mail, *fd);
}

/*
 * Makes the target write the library into its own descriptor @p fd. We never open that descriptor
 * ourselves: its number is only what the target says, and through /proc we would open whatever file
 * the target has put there, with our rights. *ret: all of it is written.
 */
static struct prb_error *fill(struct loading *l, int64_t fd, bool *ret)
{
	const uint64_t number = (uint64_t)prb_inject_arch()->sys_write;
	uint8_t chunk[PRB_SCRATCH_TEXT];
	uint64_t address, written;
	off_t at = 0;
	ssize_t n;

	while ((n = pread(l->library->fd, chunk, sizeof(chunk), at)) > 0) {
		PRB_TRY(prb_mail_bytes(l->mail, 0, chunk, (size_t)n, &address));
		PRB_TRY(call(l, l->mail->raw_syscall,
			     ARGUMENTS(number, (uint64_t)fd, address, (uint64_t)n), &written));
		if (written - 1 >= (uint64_t)n) {
			prb_log("inject", 1, "write() in the target: %s", strerror((int)-written));
			return NULL;
		}
		at += (off_t)written;
	}
	*ret = n == 0;
	return NULL;
}

/* A loader takes an equal name for the same library: so each gets another name. */
static void spell(int64_t fd, char ret[PATH_SIZE])
{
	struct timespec now = {};
	size_t length = strlen(strcpy(ret, "/proc/self/fd"));

	clock_gettime(CLOCK_MONOTONIC, &now);
	for (uint64_t bits = (uint64_t)now.tv_sec << 30 | (uint64_t)now.tv_nsec; bits; bits >>= 1)
		length += strlen(strcpy(ret + length, bits & 1 ? "/." : "/"));
	snprintf(ret + length, PATH_SIZE - length, "/%d", (int)fd);
}

/* In memory of the target, whatever its file systems, users and namespaces are. */
static struct prb_error *by_memfd(struct loading *l)
{
	bool filled = false;
	char path[PATH_SIZE];
	int64_t remote;

	PRB_TRY(create_memfd(l, &remote));
	if (remote < 0) {
		prb_log("inject", 1, "memfd_create() in the target: %s", strerror((int)-remote));
		return NULL;
	}
	PRB_TRY(fill(l, remote, &filled));
	if (!filled)
		return NULL;
	spell(remote, path);
	return load_path(l, path, true);
}

static bool copy_file(int from, int to)
{
	char chunk[65536];
	off_t at = 0;
	ssize_t n;

	while ((n = pread(from, chunk, sizeof(chunk), at)) > 0) {
		for (ssize_t done = 0; done < n;) {
			ssize_t written = write(to, chunk + done, (size_t)(n - done));

			if (written < 0)
				return false;
			done += written;
		}
		at += n;
	}
	return n == 0;
}

/* Loads a copy in that folder, if one can be made there. */
static struct prb_error *by_copy_in(struct loading *l, const char *folder)
{
	prb_auto_target_copy struct prb_target_copy copy = PRB_NO_TARGET_COPY;
	prb_auto_error struct prb_error *err = prb_target_copy_create(l->t, folder, &copy);

	if (err) {
		prb_log("inject", 1, "%s", err->message);
		return NULL;
	}
	if (!copy_file(l->library->fd, copy.fd)) {
		prb_log("inject", 1, "cannot write %s: %s", copy.path, strerror(errno));
		return NULL;
	}
	close(prb_steal_fd(&copy.fd));
	return load_path(l, copy.path, false);
}

/* A copy in a folder of the target's own root. */
static struct prb_error *by_copy(struct loading *l)
{
	static const char *const folders[] = {"/tmp", "/dev/shm", "/var/tmp", "/run"};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(folders) && !l->handle; i++)
		PRB_TRY(by_copy_in(l, folders[i]));
	return NULL;
}

static struct prb_error *load(struct loading *l, const char **way)
{
	static const struct {
		struct prb_error *(*load)(struct loading *l);
		const char *name;
	} ways[] = {{by_path, "by its path"}, {by_memfd, "from memory"}, {by_copy, "from a copy"}};

	for (size_t i = 0; i < PRB_ARRAY_SIZE(ways); i++) {
		*way = ways[i].name;
		PRB_TRY(ways[i].load(l));
		if (l->handle)
			return NULL;
	}
	return prb_error_create(PRB_ERROR_FAILED, "process %d cannot load %s: %s", l->t->pid,
				l->library->path,
				l->why ? l->why : "the file cannot be passed to it");
}

static struct prb_error *is_mapped(struct prb_target *t, const struct prb_module *module, bool *ret)
{
	struct prb_maps maps = {};
	const struct prb_map *map;

	PRB_TRY(prb_target_read_maps(t, &maps));
	map = prb_maps_find(&maps, module->header);
	*ret = map && !strcmp(map->path, module->path);
	prb_maps_deinit(&maps);
	return NULL;
}

/* Closes the library's own handle and ours; then it is unmapped unless the program has it open. */
static struct prb_error *unload(struct loading *l, struct prb_modules *modules,
				struct prb_inject_result *ret)
{
	bool mapped;

	if (ret->value > 0)
		PRB_TRY(prb_handle_close(l->libc, l->mail, l->deadline, (uint64_t)ret->value));
	PRB_TRY(prb_handle_close(l->libc, l->mail, l->deadline, l->handle));
	PRB_TRY(is_mapped(l->t, prb_library_loaded(l->library, modules), &mapped));
	ret->unloaded = !mapped;
	return NULL;
}

/* Opens it, again or for the first time. */
static struct prb_error *open_library(struct loading *l, struct prb_modules *modules)
{
	const struct prb_inject_request *r = l->request;

	l->result->way = "once more";
	if (r->again || r->unload || l->result->already)
		PRB_TRY(prb_handle_open(l->library, modules, l->libc, l->mail, l->deadline,
					&l->handle));
	if (l->result->already && !l->handle)
		return prb_error_create(
			PRB_ERROR_UNSUPPORTED,
			"process %d has loaded %s already, and its C library cannot "
			"open it once more for %s()",
			l->t->pid, l->library->path, r->symbol);
	return l->handle || r->unload ? NULL : load(l, &l->result->way);
}

static struct prb_error *late(struct loading *l, struct prb_error *err)
{
	if (l->uses)
		return prb_error_prefix(err, "%s() is still running in process %d",
					l->request->symbol, l->t->pid);
	return prb_error_prefix(err, "process %d is still loading %s", l->t->pid, l->library->path);
}

struct prb_error *prb_library_load(const struct prb_library *library, struct prb_modules *modules,
				   const struct prb_libc *libc, struct prb_mail *mail,
				   const struct prb_inject_request *request,
				   struct prb_inject_result *ret)
{
	enum {
		TIMEOUT = 10,
		PATIENCE = 20
	}; /* seconds; a busy disk takes seconds to make a file */
	struct loading l = {
		.library = library,
		.t = modules->target,
		.libc = libc,
		.mail = mail,
		.request = request,
		.result = ret,
		.deadline =
			prb_clock_seconds() + (request->timeout > 0 ? request->timeout : TIMEOUT),
	};
	mail->patience = request->timeout > 0 ? 0 : PATIENCE;
	struct prb_error *err = open_library(&l, modules);

	ret->handle = l.handle;
	if (!err && l.handle && !l.done)
		err = use(&l);
	if (err && err->code == PRB_ERROR_TIMEOUT)
		err = late(&l, err);
	if (!err && request->unload && l.handle)
		err = unload(&l, modules, ret);
	free(l.why);
	return err;
}

struct prb_error *prb_inject_check_other_way(struct prb_target *t, const char *path)
{
	struct prb_library library = {.fd = -1};

	PRB_TRY(prb_inject_preflight(t));
	PRB_TRY(prb_inject_check_alone(t));
	PRB_TRY(prb_inject_allowed(t, PRB_CALL_LOADS | PRB_CALL_SERVES));

	struct prb_error *err = prb_library_open(path, NULL, t->machine, &library);
	if (!err && !sees(&library, t))
		err = prb_error_create(PRB_ERROR_UNSUPPORTED,
				       "process %d does not see %s: its file system is another",
				       t->pid, library.path);
	prb_library_deinit(&library);
	return err;
}
