# SPDX-License-Identifier: GPL-3.0-or-later
LIB_SOURCES += $(filter-out %.bpf.c,$(call sources,profile))

# The BPF program is inside, where clang and libbpf are there (build-aux/probe).
ifdef EBPF
$(O)/profile/sampler/ebpf/ebpf.o: $(O)/profile/sampler/ebpf/walk.inc
$(O)/profile/sampler/ebpf/walk.inc: profile/sampler/ebpf/walk.bpf.c profile/sampler/ebpf/record.h build-aux/embed-bpf $(O)/config.mk
	$(call say,BPF,$<)mkdir -p $(@D) && build-aux/embed-bpf '$(EBPF)' $< $(@D)/walk.bpf.o > $@.new && mv $@.new $@
endif

# The page is one file, with its style sheet and modules inside.
$(O)/profile/formats/html.o: $(O)/profile/page.inc
$(O)/profile/page.inc: $(wildcard profile/page/*) build-aux/bundle-page
	$(Q)mkdir -p $(@D) && build-aux/bundle-page profile/page > $@.new && mv $@.new $@
