/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "agent/inside/config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/inside/environment.h"
#include "agent/inside/python.h"

enum { TEXTS = 2 /* the current text, and the next one while it is written */ };

static struct {
	_Atomic double number;
	char texts[TEXTS][PRB_CONFIG_TEXT_SIZE];
	_Atomic unsigned text;
} values[PRB_CONFIG_KEYS];
static _Atomic unsigned changes;
static atomic_bool ready;
_Atomic(void (*)(void)) prba_config_changed;
static atomic_flag changing = ATOMIC_FLAG_INIT; /* held by a writer; a concurrent one gets EAGAIN */

static bool put(unsigned index, const char *value)
{
	const struct prb_config_key *key = &prb_config_keys[index];
	unsigned next = (atomic_load(&values[index].text) + 1) % TEXTS;
	double number;

	if (key->type == PRB_CONFIG_TEXT) {
		snprintf(values[index].texts[next], PRB_CONFIG_TEXT_SIZE, "%s", value);
		atomic_store(&values[index].text, next);
		return true;
	}
	if (!prb_config_parse(key, value, &number))
		return false;
	atomic_store(&values[index].number, number);
	return true;
}

/** A variable with a bad value is ignored, which 'probing PID config' shows. */
void prba_config_read(void)
{
	if (atomic_load_explicit(&ready, memory_order_acquire))
		return;
	prba_python_find(); /* it may ignore the environment */
	for (unsigned i = 0; i < PRB_CONFIG_KEYS; i++) {
		const struct prb_config_key *key = &prb_config_keys[i];
		const char *value = prba_environment(key->environment);

		if (!value && key->environment_also)
			value = prba_environment(key->environment_also);
		if (!value || strlen(value) >= PRB_CONFIG_TEXT_SIZE || !put(i, value))
			atomic_store(&values[i].number, key->initial);
	}
	atomic_store_explicit(&ready, true, memory_order_release);
}

double prba_config_number(enum prb_config_index index)
{
	prba_config_read();
	return atomic_load_explicit(&values[index].number, memory_order_relaxed);
}

PRBA_EXPORT int probing_config_set(const char *text)
{
	const char *equals = strchr(text, '=');
	unsigned index = equals ? prb_config_find(text, (size_t)(equals - text)) : PRB_CONFIG_KEYS;
	void (*told)(void);
	bool good;

	if (index == PRB_CONFIG_KEYS)
		return -ENOENT;
	if (strlen(equals + 1) >= PRB_CONFIG_TEXT_SIZE)
		return -ENAMETOOLONG;
	prba_config_read();
	if (atomic_flag_test_and_set(&changing))
		return -EAGAIN;
	good = put(index, equals + 1);
	atomic_fetch_add(&changes, 1);
	atomic_flag_clear(&changing);
	told = atomic_load(&prba_config_changed);
	if (told)
		told();
	return good ? 0 : -EINVAL;
}

PRBA_EXPORT int probing_config_get(const char *key, char *ret, size_t size)
{
	unsigned index = prb_config_find(key, strlen(key));
	int length;

	if (index == PRB_CONFIG_KEYS)
		return -ENOENT;
	prba_config_read();
	if (prb_config_keys[index].type == PRB_CONFIG_TEXT)
		length = snprintf(ret, size, "%s",
				  values[index].texts[atomic_load(&values[index].text)]);
	else
		length = snprintf(ret, size, "%.15g", atomic_load(&values[index].number));
	return length < 0 || (size_t)length >= size ? -ERANGE : length;
}

PRBA_EXPORT double probing_config_number(const char *key)
{
	unsigned index = prb_config_find(key, strlen(key));

	return index == PRB_CONFIG_KEYS ? -1 : prba_config_number(index);
}

PRBA_EXPORT unsigned probing_config_changes(void)
{
	return atomic_load_explicit(&changes, memory_order_relaxed);
}
