# SPDX-License-Identifier: GPL-3.0-or-later
# What we need from the system: headers and libraries, checked once per build folder. When one is
# missing, config.stamp prints which and the command that brings it.

DEPENDENCIES := libelf-dev libdwarf-dev binutils-dev libjansson-dev libpcre2-dev libzstd-dev \
	zlib1g-dev liblzma-dev

# libbfd's soname is tied to the exact binutils version, so it is linked statically. libdwarf too:
# it loads in half the time.
LIBS := -Wl,-Bstatic -lbfd -liberty -lsframe -ldwarf -lelf -Wl,-Bdynamic -ljansson -lpcre2-8 \
	-lzstd -llzma -lz -ldl -lm

$(O)/config.stamp: config.mk
	@mkdir -p $(O)
	@touch $@
