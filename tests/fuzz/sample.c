/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Source of the ELF files in the corpus: uses each kind of debug information. */

enum choice { CHOICE = 7, OTHER = -1 };

typedef struct outer alias;

struct node {
	struct node *next;
	const char *name;
};

struct outer {
	int first;
	unsigned bits : 3, more : 7;
	struct {
		int anonymous;
		union {
			long word;
			char bytes[8];
		};
	};
	struct {
		short middle[2][3];
		struct node last;
	} middle;
	enum choice choice;
	const volatile alias *self;
	long array[5];
};

union both {
	int number;
	float real;
};

union both second(const alias *outer, int count);
int first(const alias *outer, int count);

static inline __attribute__((always_inline)) int add(int a, int b)
{
	return a * 3 + b;
}

static inline __attribute__((always_inline)) int twice(int a)
{
	return add(a, add(a, 1));
}

int first(const alias *outer, int count)
{
	int sum = outer->first;

	for (int i = 0; i < count; i++)
		sum += twice(i) + (int)outer->array[i % 5];
	return sum;
}

__attribute__((noinline)) union both second(const alias *outer, int count)
{
	return (union both){.number = first(outer, count + outer->bits) + outer->choice};
}
