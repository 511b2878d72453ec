# SPDX-License-Identifier: GPL-3.0-or-later
# The Python package, and the wheel with the program and the libraries in it.
WHEEL_O := $(O)/wheel
PACKAGE_FILES := $(wildcard package/*.p* package/probing/*.py package/probing/*/*.py)

# Copies whose `stdout` and `stderr` package/link/shared.c defines: they were compiled for programs.
WHEEL_ARCHIVES := $(patsubst %,$(WHEEL_O)/lib%.a, \
	$(filter-out $(NO_ARCHIVE),bfd iberty sframe dwarf elf sqlite3 pcre2-8 zstd lzma z))

$(WHEEL_O)/lib%.a:
	@mkdir -p $(@D)
	$(Q)f=$$($(CC) -print-file-name=lib$*.a); [ ! -f $$f ] || \
		$(OBJCOPY) --redefine-sym stdout=prb_stdout --redefine-sym stderr=prb_stderr $$f $@

# Functions of the build machine's glibc are bound to those of 2.28, which was in several libraries.
OLD_LIBS := -Wl,--no-as-needed -l:libpthread.so.0 -l:libdl.so.2 -Wl,--as-needed

$(WHEEL_O)/old_glibc.%.o: package/link/old_glibc.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) -fno-builtin $(if $(filter-out shared,$*),-DPRB_FOR_$*) -c -o $@ $<

# Links the objects of a target with the library's archive; what the C library gives comes behind it.
LINK_SHARED = $(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,-Bsymbolic \
	-Wl,--version-script=lib/probing.map -o $@ $(filter %.o,$^) -Wl,--whole-archive $(O)/libprobing.a \
	-Wl,--no-whole-archive -L$(WHEEL_O) $(LIBS)
SHARED_PARTS := $(O)/libprobing.a $(O)/package/link/shared.o lib/probing.map $(WHEEL_ARCHIVES)

$(WHEEL_O)/libprobing.so: $(SHARED_PARTS) $(WHEEL_O)/old_glibc.shared.o
	$(LINK_SHARED) -Wl,--no-undefined $(OLD_LIBS)

$(WHEEL_O)/probing: $(CLI_OBJECTS) $(O)/libprobing.a $(WHEEL_O)/old_glibc.program.o $(READLINE:%=$(O)/libreadline.a)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(CLI_OBJECTS) $(WHEEL_O)/old_glibc.program.o \
		$(O)/libprobing.a $(CLI_LIBS) $(LIBS) $(OLD_LIBS)

# A program that runs here: of a cross build, `make wheel O=build/aarch64 NATIVE=build/probing CC=…`.
NATIVE ?= $(O)/probing
OBJCOPY ?= objcopy
STRIP ?= strip

$(O)/completion.%: $(NATIVE)
	$(Q)$(NATIVE) completion $* > $@

# The name that the wheel has on an index: the import and the command are `probing` whatever it is.
DISTRIBUTION ?= probing
# Where the sources are, for the links of the wheel's description.
HOMEPAGE ?=

# In the folder where people look for it, too, unless it is one of several builds.
IN_TREE := $(filter build,$(O))

WHEEL_NAMES = DISTRIBUTION='$(DISTRIBUTION)' HOMEPAGE='$(HOMEPAGE)' OBJDUMP='$(OBJCOPY:%copy=%dump)'
# WHEEL_OF PROGRAM,PLATFORM,FOLDER: a wheel with the library in that folder.
WHEEL_OF = $(Q)STRIP='$(STRIP)' PLATFORM=$(2) $(WHEEL_NAMES) build-aux/make-wheel $(VERSION) $(1) $(3)/libprobing.so $(AGENT) $(3)
WHEEL_PARTS := $(AGENT) $(PACKAGE_FILES) $(PLUGIN_FILES)

.PHONY: wheel
wheel: $(WHEEL_O)/probing $(WHEEL_O)/libprobing.so $(WHEEL_PARTS) ## the Python package with the program in it: pip install dist/probing-*.whl
	$(call WHEEL_OF,$(WHEEL_O)/probing,,$(WHEEL_O))
	$(if $(IN_TREE),$(Q)mkdir -p dist && rm -f dist/*.whl && cp $(WHEEL_O)/*.whl dist/)

# The same for musl: the library with what musl lacks, and without glibc's loader; the static program.
MUSL_O := $(O)/musl-wheel

$(MUSL_O)/musl.o: package/link/musl.c $(O)/flags
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) -fno-builtin -c -o $@ $<

$(MUSL_O)/libprobing.so: $(SHARED_PARTS) $(WHEEL_O)/old_glibc.musl.o $(MUSL_O)/musl.o
	$(LINK_SHARED) -nodefaultlibs -lgcc -l:libc.so.6 -l:libm.so.6

.PHONY: musl-wheel
musl-wheel: $(MUSL_O)/libprobing.so $(O)/probing-static $(WHEEL_PARTS) ## the Python package for Alpine and others with musl
	$(call WHEEL_OF,$(O)/probing-static,musllinux_1_2,$(MUSL_O))

SDIST := $(O)/probing-$(VERSION).tar.gz
# With the page that `make web` has built: who builds from the archive has no npm.
SDIST_PAGE = $(addprefix --add-file=,$(wildcard gateway/web/dist/*))

.PHONY: sdist
sdist: ## the sources as one archive, to be built with make, or by pip
	$(Q)mkdir -p $(O) && $(WHEEL_NAMES) build-aux/make-wheel --metadata $(VERSION) > $(O)/PKG-INFO
	$(Q)git archive $(if $(SDIST_PAGE),--prefix=probing-$(VERSION)/gateway/web/dist/ $(SDIST_PAGE)) --prefix=probing-$(VERSION)/ \
		--add-file=$(O)/PKG-INFO --add-file=build-aux/setup.py -o $(SDIST) HEAD
	$(if $(IN_TREE),$(Q)mkdir -p dist && cp $(SDIST) dist/)
	@echo $(SDIST)

# What conda-forge takes. Without an address of the sources: for the archive that lies beside it.
CONDA_SOURCE = $(if $(HOMEPAGE),url: $(HOMEPAGE)/releases/download/v$(VERSION),path: .)/$(notdir $(SDIST))
.PHONY: conda
conda: sdist ## the recipe of the conda package, in dist/ beside the sources
	$(Q)sum=$$(sha256sum $(SDIST)) && sed -e 's|@VERSION@|$(VERSION)|; s|@SOURCE@|$(CONDA_SOURCE)|; s|@SHA256@|'"$${sum%% *}|" \
		-e '$(if $(HOMEPAGE),s|@HOMEPAGE@|$(HOMEPAGE)|,/@HOMEPAGE@/d)' package/conda/recipe.yaml.in > $(O)/recipe.yaml
	$(if $(IN_TREE),$(Q)mkdir -p dist && cp $(O)/recipe.yaml dist/)

$(WHEEL_O)/probing-inject: $(INJECT_OBJECTS) $(O)/libprobing.a $(WHEEL_O)/old_glibc.program.o
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(INJECT_OBJECTS) $(WHEEL_O)/old_glibc.program.o \
		$(O)/libprobing.a $(INJECT_LIBS) $(OLD_LIBS)

# A Debian package: what `install` puts below /usr, with a control file. It needs the C library alone.

.PHONY: deb
deb: $(WHEEL_O)/probing $(WHEEL_O)/probing-inject $(WHEEL_O)/libprobing.so ## the Debian package
	$(Q)rm -rf $(O)/deb && $(MAKE) -s install prefix=/usr DESTDIR=$(O)/deb O=$(O)
	$(Q)build-aux/make-deb $(VERSION) $(O)/deb $(WHEEL_O) $(O)

# One file for any Linux of this processor: no loader and no library is needed.
.PHONY: static
static: all-archives $(O)/probing-static ## probing as one file that needs no libraries

.PHONY: all-archives
all-archives:
	@[ -z '$(NO_ARCHIVE)' ] || { echo 'probing: no program without shared libraries can be built here: the static' \
		'archive of $(strip $(NO_ARCHIVE)) is missing or does not link (see `make`)' >&2; exit 1; }

$(O)/static_agent.o: package/link/static_agent.S $(AGENT)
	$(call say,CC,$<)$(CC) -DAGENT='"$(AGENT)"' -c -o $@ $<

$(O)/probing-static: $(CLI_OBJECTS) $(O)/static_agent.o $(O)/libprobing.a $(READLINE:%=$(O)/libreadline.a)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) -static -o $@ $(CLI_OBJECTS) $(O)/static_agent.o $(O)/libprobing.a \
		$(filter-out -Wl$(comma)-B%,$(CLI_LIBS) $(LIBS))

# All that a release has, with sums, in one folder.
DIST_FILES = $(O)/wheel/*.whl $(MUSL_O)/*.whl $(SDIST) $(O)/recipe.yaml $(O)/probing_$(VERSION)_*.deb $(O)/probing-static
DIST_SUMS = cd dist && rm -f SHA256SUMS && set -- * && sha256sum "$$@" > SHA256SUMS && cat SHA256SUMS

# A release has the page of `probing serve`. NO_PAGE=1 allows one without, if it was not built.
.PHONY: page-is-built
page-is-built:
	@[ -n '$(NO_PAGE)$(wildcard gateway/web/dist/*)' ] || { echo 'probing: the page of `probing serve` is not built: run `make web`' \
		'first (node and npm), or `make dist NO_PAGE=1`' >&2; exit 1; }

.PHONY: dist
dist: page-is-built wheel musl-wheel conda deb static ## all files of a release, with their sums and what is in them, in dist/
	$(Q)rm -rf dist && mkdir dist && cp $(DIST_FILES) dist/
	$(Q)$(STRIP) -o dist/probing-$(VERSION)-$$(uname -m)-static dist/probing-static && rm dist/probing-static
	$(Q)build-aux/make-sbom $(if $(wildcard gateway/web/dist/*),--page) $(VERSION) '$(CC)' $(LIBS) $(CLI_LIBS) $(READLINE:%=-lreadline) > dist/probing-$(VERSION).cdx.json
	$(Q)$(DIST_SUMS)
