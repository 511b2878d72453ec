/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The list of Python processes. Reading what a process has mapped costs a hundred microseconds and
 * more, so most are decided without: kernel threads have no executable, one that is called python
 * is Python, a small process has no room for an interpreter, and a statically linked one can have
 * no libpython. An executable is read once for all processes that run it.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/checked.h"
#include "base/cleanup.h"
#include "target/proc/process_private.h"
#include "target/proc/text.h"
#include "target/proc/pids.h"

enum {
	MAX_SECTIONS = 4096,
	MAX_STRINGS = 16 << 20, /* of an executable's dynamic symbols */
	MAX_MAPS = 32 << 20,
	MAX_EXECUTABLES = 4096, /* that are remembered */
	/* A libpython, a libc and the heap of a started interpreter need more address space. */
	MIN_SIZE = 8 << 20,
};

enum verdict {
	NOT_PYTHON, /* and cannot become it by loading a library */
	IS_PYTHON,
	MAYBE_LOADED, /* a dynamically linked program */
};

struct prb_python_executable {
	dev_t device;
	ino_t inode;
	struct timespec changed;
	enum verdict verdict;
};

struct lister {
	struct prb_python_processes *result;
	struct prb_python_judge *judge;
};

/* "python", "python3", "python3.12", "python3.13t", "python3.11d" at the end of a path. */
static bool is_python_name(const char *path, size_t length)
{
	static const char python[] = "python";
	const char *name = memrchr(path, '/', length);
	size_t prefix = sizeof(python) - 1;

	name = name ? name + 1 : path;
	length -= (size_t)(name - path);
	if (length < prefix || memcmp(name, python, prefix))
		return false;
	name += prefix;
	length -= prefix;
	while (length && strchr("0123456789.", *name)) {
		name++;
		length--;
	}
	while (length && strchr("tdmu", *name)) {
		name++;
		length--;
	}
	return !length || *name == '-'; /* "python3.11-dbg" */
}

/* The "3.12" behind "python" at @p text; NULL if there is no version. */
static char *version_behind(const char *text, size_t length)
{
	size_t end = 0;

	while (end < length &&
	       (strchr("0123456789", text[end]) || (text[end] == '.' && end + 1 < length &&
						    text[end + 1] >= '0' && text[end + 1] <= '9')))
		end++;
	/* A major version alone says too little. */
	return memchr(text, '.', end) ? strndup(text, end) : NULL;
}

static char *version_in(const char *text, size_t length, const char *word)
{
	const char *found = memmem(text, length, word, strlen(word));

	if (!found)
		return NULL;
	found += strlen(word);
	return version_behind(found, length - (size_t)(found - text));
}

static bool read_at(int fd, void *buffer, size_t size, uint64_t offset)
{
	return offset <= INT64_MAX && pread(fd, buffer, size, (off_t)offset) == (ssize_t)size;
}

/* Whether the strings of the dynamic symbols name what only an interpreter exports. */
static bool has_python_symbols(int fd, const Elf64_Shdr *strings)
{
	static const char mark[] = "\0Py_BytesMain";
	prb_auto_free char *text = NULL;

	if (strings->sh_size > MAX_STRINGS)
		return false;
	text = malloc(strings->sh_size + 1);
	return text && read_at(fd, text, strings->sh_size, strings->sh_offset) &&
	       memmem(text, strings->sh_size, mark, sizeof(mark));
}

static bool has_python_marks(int fd, const Elf64_Ehdr *header)
{
	prb_auto_free Elf64_Shdr *sections = NULL;
	size_t count = header->e_shnum;

	if (!count || count > MAX_SECTIONS || header->e_shentsize != sizeof(*sections))
		return false;
	sections = malloc(count * sizeof(*sections));
	if (!sections || !read_at(fd, sections, count * sizeof(*sections), header->e_shoff))
		return false;
	for (size_t i = 0; i < count; i++) {
		if (sections[i].sh_type == SHT_DYNSYM && sections[i].sh_link < count)
			return has_python_symbols(fd, &sections[sections[i].sh_link]);
	}
	return false;
}

static bool has_interpreter(int fd, const Elf64_Ehdr *header)
{
	Elf64_Phdr segment;

	for (size_t i = 0; i < header->e_phnum && header->e_phentsize == sizeof(segment); i++) {
		if (!read_at(fd, &segment, sizeof(segment), header->e_phoff + i * sizeof(segment)))
			return false;
		if (segment.p_type == PT_INTERP)
			return true;
	}
	return false;
}

static enum verdict judge_file(int fd)
{
	Elf64_Ehdr header;

	if (!read_at(fd, &header, sizeof(header), 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) ||
	    header.e_ident[EI_CLASS] != ELFCLASS64)
		return NOT_PYTHON;
	if (has_python_marks(fd, &header))
		return IS_PYTHON;
	return has_interpreter(fd, &header) ? MAYBE_LOADED : NOT_PYTHON;
}

static bool is_large_enough(pid_t pid)
{
	prb_auto_str struct prb_str statm = {};

	return prb_proc_read(pid, "statm", &statm) &&
	       strtoull(prb_str_text(&statm), NULL, 10) >= MIN_SIZE / (size_t)sysconf(_SC_PAGESIZE);
}

static enum verdict judge_executable(struct lister *l, pid_t pid)
{
	prb_auto_close int fd = prb_proc_open(pid, "exe");
	struct prb_python_executable *known;
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return NOT_PYTHON;
	prb_vec_each (known, &l->judge->executables) {
		if (known->device == st.st_dev && known->inode == st.st_ino &&
		    known->changed.tv_sec == st.st_ctim.tv_sec &&
		    known->changed.tv_nsec == st.st_ctim.tv_nsec)
			return known->verdict;
	}

	enum verdict verdict = judge_file(fd);
	if (l->judge->executables.count >= MAX_EXECUTABLES)
		l->judge->executables.count = 0;
	known = prb_vec_push(&l->judge->executables);
	if (known)
		*known = (struct prb_python_executable){st.st_dev, st.st_ino, st.st_ctim, verdict};
	return verdict;
}

/*
 * The path of a libpython in @p text, lines of maps, whose mapping may be executed: others have
 * the file mapped to read its symbols, as we do. NULL if there is none.
 */
static const char *find_loaded(const char *text, size_t length)
{
	static const char library[] = "/libpython";
	const char *end = text + length, *at = text, *found;

	while ((found = memmem(at, (size_t)(end - at), library, sizeof(library) - 1))) {
		const char *line = memrchr(text, '\n', (size_t)(found - text));
		const char *mode;

		line = line ? line + 1 : text;
		mode = memchr(line, ' ', (size_t)(found - line));
		if (mode && found - mode > 4 && mode[3] == 'x')
			return found;
		at = found + 1;
	}
	return NULL;
}

/* Looks for a libpython among the loaded files; gives its version, if its name has one. */
static bool maps_libpython(pid_t pid, char **ret_version)
{
	enum { CHUNK = 1 << 16, OVERLAP = 4096 + 128 /* a line */ };
	prb_auto_close int fd = prb_proc_open(pid, "maps");
	char text[OVERLAP + CHUNK];
	size_t kept = 0, total = 0;

	while (fd >= 0 && total < MAX_MAPS) {
		ssize_t n = read(fd, text + kept, CHUNK);

		if (n <= 0)
			return false;
		size_t length = kept + (size_t)n;
		const char *found = find_loaded(text, length);
		if (found) {
			*ret_version =
				version_in(found, length - (size_t)(found - text), "/libpython");
			return true;
		}
		total += (size_t)n;
		kept = length < OVERLAP ? length : OVERLAP;
		memmove(text, text + length - kept, kept);
	}
	return false;
}

/* The number of the first variable of the environment that is set; -1 if none is. */
static long number_in(const struct prb_str *environment, const char *const names[])
{
	for (; *names; names++) {
		size_t name = strlen(*names);

		for (size_t at = 0; at < environment->length;) {
			const char *variable = environment->data + at;
			char *end;

			at += strlen(variable) + 1;
			if (strncmp(variable, *names, name) || variable[name] != '=')
				continue;
			errno = 0;
			long value = strtol(variable + name + 1, &end, 10);
			if (!errno && !*end && end != variable + name + 1 && value >= 0)
				return value;
		}
	}
	return -1;
}

struct prb_process_job prb_process_job(const struct prb_str *environment)
{
	static const char *const world[] = {"RANK",	 "SLURM_PROCID", "OMPI_COMM_WORLD_RANK",
					    "PMIX_RANK", "PMI_RANK",	 NULL};
	static const char *const local[] = {"LOCAL_RANK", "SLURM_LOCALID",
					    "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", NULL};
	static const char *const size[] = {"WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE",
					   "PMI_SIZE", NULL};

	return (struct prb_process_job){
		.rank = number_in(environment, world),
		.local_rank = number_in(environment, local),
		.world_size = number_in(environment, size),
	};
}

static void read_ranks(struct prb_python_process *p)
{
	prb_auto_str struct prb_str environment = {};

	/* Without one there are no variables, so no ranks. */
	if (!prb_proc_read(p->process.pid, "environ", &environment))
		prb_str_truncate(&environment, 0);
	struct prb_process_job job = prb_process_job(&environment);
	p->rank = job.rank;
	p->local_rank = job.local_rank;
}

void prb_python_process_deinit(struct prb_python_process *p)
{
	prb_process_deinit(&p->process);
	free(p->version);
	free(p->refusal);
}

/* Takes over @version. */
static struct prb_error *add(struct lister *l, pid_t pid, char *version)
{
	__attribute__((cleanup(prb_python_process_deinit))) struct prb_python_process found = {
		.version = version, .rank = -1, .local_rank = -1};
	struct prb_error *err = prb_process_describe(pid, &found.process);

	if (prb_error_catch(&err, PRB_ERROR_NO_PROCESS))
		return NULL;
	PRB_TRY(err);
	if (found.process.kind != PRB_PROCESS_PROGRAM)
		return NULL;

	prb_auto_error struct prb_error *refusal = prb_process_check(&found.process);
	if (refusal)
		found.refusal = strdup(refusal->message);
	else
		read_ranks(&found);

	struct prb_python_process *item = prb_vec_push(&l->result->list);
	if (!item || (refusal && !found.refusal))
		return prb_error_nomem();
	*item = found;
	found = (struct prb_python_process){};
	return NULL;
}

/* Its executable may not be seen: then the name it was started by has to do. */
static bool is_called_python(pid_t pid)
{
	prb_auto_str struct prb_str argv = {}, stat_line = {};
	struct prb_stat stat;

	if (prb_proc_read(pid, "cmdline", &argv) && argv.length &&
	    is_python_name(argv.data, strlen(argv.data)))
		return true;
	return prb_proc_read(pid, "stat", &stat_line) &&
	       prb_stat_parse(prb_str_text(&stat_line), &stat) &&
	       is_python_name(stat.comm, stat.comm_length);
}

static struct prb_error *look_at(struct lister *l, pid_t pid)
{
	static const char deleted[] = " (deleted)";
	prb_auto_str struct prb_str exe = {};
	char *version = NULL;

	if (!prb_proc_link(pid, "exe", &exe)) {
		/* ENOENT: a thread of the kernel, a zombie. */
		if (errno == EACCES && is_called_python(pid))
			return add(l, pid, NULL);
		return NULL;
	}

	size_t length = exe.length;
	if (length >= sizeof(deleted) &&
	    !strcmp(exe.data + length - (sizeof(deleted) - 1), deleted))
		length -= sizeof(deleted) - 1;
	if (is_python_name(exe.data, length)) {
		const char *name = memrchr(exe.data, '/', length);

		name = name ? name : exe.data;
		version = version_in(name, length - (size_t)(name - exe.data), "python");
		return add(l, pid, version);
	}
	if (!is_large_enough(pid))
		return NULL;
	switch (judge_executable(l, pid)) {
	case IS_PYTHON:
		return add(l, pid, NULL);
	case MAYBE_LOADED:
		return maps_libpython(pid, &version) ? add(l, pid, version) : NULL;
	case NOT_PYTHON:
		break;
	}
	return NULL;
}

static int compare_pids(const void *a, const void *b)
{
	const struct prb_python_process *x = a, *y = b;

	return x->process.pid < y->process.pid ? -1 : x->process.pid > y->process.pid;
}

void prb_python_judge_deinit(struct prb_python_judge *judge)
{
	prb_vec_free(&judge->executables);
}

struct prb_error *prb_process_judge(struct prb_python_judge *judge, pid_t pid,
				    struct prb_python_processes *ret)
{
	return look_at(&(struct lister){ret, judge}, pid);
}

struct prb_error *prb_process_list(struct prb_python_processes *ret)
{
	struct prb_python_judge judge = {};
	struct lister l = {ret, &judge};
	prb_auto_pids struct prb_pids pids = {};
	struct prb_error *err;

	*ret = (struct prb_python_processes){};
	err = prb_pids_of_all(&pids);
	for (size_t i = 0; !err && i < pids.list.count; i++)
		err = look_at(&l, pids.list.items[i]);
	prb_python_judge_deinit(&judge);
	if (err)
		prb_python_processes_deinit(ret);
	else if (ret->list.count)
		qsort(ret->list.items, ret->list.count, sizeof(*ret->list.items), compare_pids);
	return err;
}

void prb_python_processes_deinit(struct prb_python_processes *processes)
{
	struct prb_python_process *p;

	prb_vec_each (p, &processes->list)
		prb_python_process_deinit(p);
	prb_vec_free(&processes->list);
}
