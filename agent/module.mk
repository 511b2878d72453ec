# SPDX-License-Identifier: GPL-3.0-or-later
# What is loaded into the target: by itself, never with sanitizers, which a process that was not
# built with them cannot load.
AGENT_SOURCES += $(call sources,agent)
AGENT_OBJECTS := $(AGENT_SOURCES:%.c=$(O)/%.o)
AGENT := $(O)/libprobing-agent.so

all: $(AGENT)

# Columns of C would be a twentieth of the file, and stacks show lines.
$(AGENT_OBJECTS): $(O)/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$<)$(CC) $(CPPFLAGS) -U_FORTIFY_SOURCE $(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS)) \
		$(WERROR:1=-Werror) -fno-stack-protector -gno-column-info -Wa,-I$(O) -MMD -MP -c -o $@ $<

# Python code that it carries. Its comments and docstrings stay here: they would be 32 KB of the file. Nor does
# it need four spaces a level, which would be 22 KB.
AGENT_TEXTS := $(addprefix $(O)/texts/,$(wildcard agent/*/*.py) \
	$(addprefix package/probing/,_locals.py _variables.py _watched.py))
$(AGENT_TEXTS): $(O)/texts/%: % agent/module.mk
	@mkdir -p $(@D)
	$(call say,TEXT,$<)sed -e '/^ *#/d' -e "s/  # [^\"']*$$//" -e 's/^\( \{4,\}\)"""[^"]*"""$$/\10/' \
		-e '/^ \{4,\}"""[^"]*$$/,/"""$$/{/"""$$/!d; s/^\( *\).*/\10/;}' \
		-e :a -e 's/^\(~*\)    /\1~/' -e ta -e :b -e 's/^\( *\)~/\1 /' -e tb $< >$@

$(O)/agent/eval/bootstrap.o $(O)/agent/crash/python.o: $(AGENT_TEXTS)

$(AGENT): $(AGENT_OBJECTS) agent/agent.map
	$(call say,LINK,$@)$(CC) $(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS)) -shared \
		-Wl,-soname,libprobing-agent.so -Wl,--version-script=agent/agent.map \
		-Wl,--no-undefined -Wl,-z,now -Wl,-z,relro -Wl,--hash-style=both \
		-Wl,--compress-debug-sections=zlib -o $@ $(AGENT_OBJECTS)

-include $(AGENT_OBJECTS:.o=.d)
