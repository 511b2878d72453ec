/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Runs a function of a relocatable file as a compiler at run time would: copies its code to new
 * memory, and registers the file by GDB's JIT interface, with the address of its code put in. With
 * a second argument the list that it registers is a circle of nonsense. */
#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct entry {
	struct entry *next, *previous;
	const void *image;
	uint64_t size;
};
struct descriptor {
	uint32_t version, action;
	struct entry *relevant, *first;
};
struct descriptor __jit_debug_descriptor = {.version = 1};

static struct entry entry, circle[2];

static unsigned char *read_file(const char *path, size_t *size)
{
	FILE *file = fopen(path, "rb");
	unsigned char *bytes = malloc(1 << 20);

	*size = fread(bytes, 1, 1 << 20, file);
	fclose(file);
	return bytes;
}

static void register_nonsense(void)
{
	circle[0] = (struct entry){&circle[1], &circle[1], (void *)1, UINT64_MAX};
	circle[1] = (struct entry){&circle[0], &circle[0], &circle, sizeof(circle)};
	__jit_debug_descriptor.first = &circle[0];
}

int main(int argc, char **argv)
{
	size_t size;
	unsigned char *image = read_file(argv[1], &size);
	Elf64_Ehdr *header = (Elf64_Ehdr *)image;
	Elf64_Shdr *sections = (Elf64_Shdr *)(image + header->e_shoff);
	unsigned char *code =
		mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int i = 0; i < header->e_shnum; i++)
		if (sections[i].sh_flags & SHF_EXECINSTR && sections[i].sh_size) {
			memcpy(code, image + sections[i].sh_offset, sections[i].sh_size);
			sections[i].sh_addr = (uint64_t)code;
		}
	mprotect(code, 65536, PROT_READ | PROT_EXEC);
	entry = (struct entry){.image = image, .size = size};
	if (argc > 2)
		register_nonsense();
	else
		__jit_debug_descriptor.first = &entry;
	puts("ready");
	fflush(stdout);
	for (;;)
		((void (*)(void))code)();
}
