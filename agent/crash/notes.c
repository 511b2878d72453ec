/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The notes of a record: the notes of a core, and /proc files in notes of our own ("PROBING"), each
 * with its name, a NUL, and its content. docs/crashes.md has the list.
 */
#include <elf.h>

#include "agent/crash/private.h"

enum { ALIGN = 4, NAME = 8, FACT = 1, SMALL = 4096, STATUS_NAME = 16 };

struct notes {
	struct prba_crash *c;
	size_t used;
	Elf64_Nhdr *open;
};

static void put(struct notes *n, const void *data, size_t length)
{
	const char *from = data;

	if (length > PRBA_CRASH_NOTES - n->used)
		return;
	for (size_t i = 0; i < length; i++)
		n->c->notes[n->used + i] = from[i];
	n->used += length;
}

/** False if there is no room for one of @p room bytes. */
static bool begin(struct notes *n, const char *owner, uint32_t type, size_t room)
{
	char name[NAME] = "";
	size_t length = prba_text_length(owner) + 1;

	n->used = (n->used + ALIGN - 1) & ~(size_t)(ALIGN - 1);
	if (room + sizeof(Elf64_Nhdr) + 2 * NAME > PRBA_CRASH_NOTES - n->used)
		return false;
	n->open = (Elf64_Nhdr *)(n->c->notes + n->used);
	*n->open = (Elf64_Nhdr){.n_namesz = (uint32_t)length, .n_type = type};
	n->used += sizeof(Elf64_Nhdr);
	for (size_t i = 0; i < length; i++)
		name[i] = owner[i];
	put(n, name, NAME);
	if (length <= ALIGN)
		n->used -= NAME - ALIGN;
	return true;
}

static void end(struct notes *n)
{
	const Elf64_Nhdr *head = n->open;
	size_t names = (head->n_namesz + ALIGN - 1) & ~(size_t)(ALIGN - 1);

	n->open->n_descsz = (uint32_t)(n->used - ((size_t)((char *)n->open - n->c->notes) +
						  sizeof(*head) + names));
	while (n->used % ALIGN)
		n->c->notes[n->used++] = 0;
}

static void put_thread(struct notes *n, int32_t tid, const elf_gregset_t *regs, int signal)
{
	struct elf_prstatus status = {};
	const char *from = (const char *)regs;

	status.pr_info.si_signo = signal;
	status.pr_cursig = (short)signal;
	status.pr_pid = tid;
	for (size_t i = 0; i < sizeof(status.pr_reg); i++)
		((char *)&status.pr_reg)[i] = from[i];
	if (!begin(n, "CORE", NT_PRSTATUS, sizeof(status)))
		return;
	put(n, &status, sizeof(status));
	end(n);
}

static void put_process(struct notes *n)
{
	struct elf_prpsinfo info = {.pr_sname = 'R'};
	size_t length;
	char text[SMALL] = "";

	info.pr_pid = n->c->pid;
	length = prba_crash_read(n->c, "comm", text, sizeof(text));
	for (size_t i = 0; i < length && i < sizeof(info.pr_fname) - 1 && text[i] != '\n'; i++)
		info.pr_fname[i] = text[i];
	length = prba_crash_read(n->c, "cmdline", text, sizeof(text));
	for (size_t i = 0; i + 1 < length && i < sizeof(info.pr_psargs) - 1; i++)
		info.pr_psargs[i] = text[i] ? text[i] : ' ';
	if (!begin(n, "CORE", NT_PRPSINFO, sizeof(info)))
		return;
	put(n, &info, sizeof(info));
	end(n);
}

static void put_files(struct notes *n)
{
	uint64_t head[2] = {0, PRBA_CRASH_PAGE};
	const struct prba_crash *c = n->c;
	size_t room = sizeof(head);

	for (size_t i = 0; i < c->map_count; i++) {
		if (*c->maps[i].path != '/')
			continue;
		head[0]++;
		room += 3 * sizeof(uint64_t) + c->maps[i].path_length + 1;
	}
	if (!begin(n, "CORE", NT_FILE, room))
		return;
	put(n, head, sizeof(head));
	for (size_t i = 0; i < c->map_count; i++) {
		const struct prba_crash_map *map = &c->maps[i];
		uint64_t triple[3] = {map->start, map->end, map->offset / PRBA_CRASH_PAGE};

		if (*map->path == '/')
			put(n, triple, sizeof(triple));
	}
	for (size_t i = 0; i < c->map_count; i++) {
		if (*c->maps[i].path != '/')
			continue;
		put(n, c->maps[i].path, c->maps[i].path_length);
		put(n, "", 1);
	}
	end(n);
}

static void put_fact(struct notes *n, const char *name, const char *text, size_t length)
{
	if (!begin(n, "PROBING", FACT, prba_text_length(name) + 1 + length))
		return;
	put(n, name, prba_text_length(name) + 1);
	put(n, text, length);
	end(n);
}

/** A file of /proc/PID, as it is. */
static void copy_fact(struct notes *n, const char *name)
{
	char text[SMALL] = "";
	size_t length = prba_crash_read(n->c, name, text, sizeof(text));

	if (length)
		put_fact(n, name, text, length);
}

static void copy_link(struct notes *n, const char *name)
{
	char text[SMALL] = "";
	long length = prba_raw(SYS_readlinkat, n->c->proc, name, text, sizeof(text));

	if (length > 0)
		put_fact(n, name, text, (size_t)length);
}

static void put_names(struct notes *n, int32_t tid)
{
	char name[64];
	struct prba_text path = {name, 0, sizeof(name)};

	prba_text_puts(&path, "task/");
	prba_text_number(&path, (uint64_t)tid);
	prba_text_puts(&path, "/comm");
	copy_fact(n, name);
}

static void copy_descriptors(struct notes *n)
{
	for (uint64_t fd = 0; fd < PRBA_CRASH_LINKS; fd++) {
		char name[64];
		struct prba_text path = {name, 0, sizeof(name)};

		prba_text_puts(&path, "fd/");
		prba_text_number(&path, fd);
		copy_link(n, name);
	}
}

static void put_key(struct prba_text *t, const char *key, uint64_t number)
{
	prba_text_puts(t, key);
	prba_text_number(t, number);
	prba_text_puts(t, "\n");
}

/** With all digits that it may ever have, since it is corrected when the memory was written. */
static void put_left_out(struct prba_text *t, uint64_t number)
{
	uint64_t unit = 10000000000000000000u;

	prba_text_puts(t, "left_out=");
	for (; unit; unit /= 10)
		prba_text_number(t, number / unit % 10);
	prba_text_puts(t, "\n");
}

/** The cause of the record, a line for each fact; the text of an exception is last. */
static void put_crash(struct notes *n)
{
	const struct prba_crash *c = n->c;
	char text[SMALL] = "";
	struct prba_text t = {text, 0, sizeof(text)};
	uint64_t micro = (uint64_t)c->microseconds;

	put_key(&t, "version=", 1);
	put_key(&t, "pid=", (uint64_t)c->pid);
	put_key(&t, "tid=", (uint64_t)c->tid);
	put_key(&t, "signal=", (uint64_t)c->signal);
	put_key(&t, "seconds=", (uint64_t)c->seconds);
	put_key(&t, "microseconds=", micro);
	put_left_out(&t, c->left_out);
	put_key(&t, "without_registers=", c->unreached);
	put_fact(n, "crash", text, t.used);
	if (c->words)
		put_fact(n, "exception", c->words, c->words_length);
}

size_t prba_crash_make_notes(struct prba_crash *c)
{
	struct notes n = {.c = c};
	char auxv[SMALL] = "";
	size_t length;

	put_thread(&n, c->tid, (const elf_gregset_t *)&c->registers, c->signal);
	if (c->signal && begin(&n, "CORE", NT_SIGINFO, sizeof(c->info))) {
		put(&n, &c->info, sizeof(c->info));
		end(&n);
	}
	put_process(&n);
	length = prba_crash_read(c, "auxv", auxv, sizeof(auxv));
	if (length && begin(&n, "CORE", NT_AUXV, length)) {
		put(&n, auxv, length);
		end(&n);
	}
	for (size_t i = 0; i < c->thread_count; i++)
		put_thread(&n, c->threads[i].tid, (const elf_gregset_t *)&c->threads[i].regs, 0);
	put_crash(&n);
	copy_link(&n, "exe");
	copy_link(&n, "cwd");
	copy_fact(&n, "cmdline");
	copy_fact(&n, "status");
	copy_fact(&n, "limits");
	put_names(&n, c->tid);
	for (size_t i = 0; i < c->thread_count; i++)
		put_names(&n, c->threads[i].tid);
	copy_descriptors(&n);
	put_fact(&n, "maps", c->maps_text, c->maps_length);
	put_files(&n);
	return n.used;
}
