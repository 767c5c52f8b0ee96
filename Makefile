# heddle -- the one build file. GNU Make; sources are found by wildcard, so a new file needs no
# entry here. `make help` lists what there is to ask for.
#
#   VARIANT=debug|release|asan|tsan|coverage|fuzz   how to compile      (default debug)
#   BUILD=dir                                       where to            (default build/$(VARIANT))
#   CC=gcc|clang                                    with what           (default gcc)
#
# Each build directory remembers the compiler and the flags it was made with and is made anew when
# they change, so variants and compilers can be mixed freely.

MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

VERSION := $(shell sed -n 's/^.define HD_VERSION "\(.*\)"/\1/p' include/heddle/base.h)
# Until 1.0 a minor version may change the binary interface: the soname has both numbers.
ABI     := $(shell echo $(VERSION) | sed 's/^\(0\.[0-9]*\).*/\1/; s/^\([1-9][0-9]*\)\..*/\1/')

VARIANT ?= debug
PREFIX  ?= /usr/local
LIBDIR  ?= $(PREFIX)/lib
JOBS    ?= $(shell nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || echo 2)

# How shared libraries are named, and what the linkers are told. macOS has one namespace for each library, so that
# functions of an embedder replace none of ours, and no objcopy that would be needed for the same in a static library.
ifeq ($(shell uname -s),Darwin)
SO        := libheddle.dylib
SONAME    := libheddle.$(ABI).dylib
SO_FULL   := libheddle.$(VERSION).dylib
SO_FLAGS   = -dynamiclib -install_name $(LIBDIR)/$(SONAME)
NEEDED    := -Wl,-dead_strip_dylibs
EXT_FLAGS := -bundle -undefined dynamic_lookup
LOCALIZE  := true
SYSTEM_LIBS :=
else
SO        := libheddle.so
SONAME    := libheddle.so.$(ABI)
SO_FULL   := libheddle.so.$(VERSION)
SO_FLAGS   = -shared -Wl,-soname,$(SONAME) -Wl,-Bsymbolic-functions \
             $(if $(filter release,$(VARIANT)),-Wl$(COMMA)-z$(COMMA)defs)
NEEDED    := -Wl,--as-needed
EXT_FLAGS := -shared
LOCALIZE  := objcopy --localize-hidden
SYSTEM_LIBS := -lm
endif

# Targets that build several variants put them side by side below ROOT.
ifeq ($(origin BUILD),undefined)
BUILD := build/$(VARIANT)
ROOT  := build
else
ROOT  := $(BUILD)
endif

ifeq ($(origin CC),default)
CC := $(if $(filter fuzz,$(VARIANT)),clang,gcc)
endif

# Commands are shown short; V=1 shows them whole.
Q   := $(if $(V),,@)
say  = $(if $(V),,@printf '  %-6s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$@)')

# ---- Flags ---------------------------------------------------------------------------------------

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror

# Position-independent for both libraries: with hidden visibility it costs nothing measurable, and
# the public functions may call each other directly (no interposition).
COMMON := -std=c17 $(WARNINGS) -fPIC -fvisibility=hidden -fno-semantic-interposition -pthread \
          -Iinclude -Isrc

SANITIZE_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
SANITIZE_tsan := -fsanitize=thread
SANITIZE_fuzz := -fsanitize=address,undefined -fno-sanitize-recover=all

# Reports of the sanitizers need lines and functions (-g1), not the types of everything: their programs
# are a hundred, and each has the whole library in it.
MODE_release  := -O2 -g -DNDEBUG
MODE_debug    := -O1 -g
MODE_asan     := -O1 -g1 -fno-omit-frame-pointer $(SANITIZE_asan)
MODE_tsan     := -O1 -g1 -fno-omit-frame-pointer $(SANITIZE_tsan)
MODE_coverage := -O0 -g --coverage
MODE_fuzz     := -O1 -g -fno-omit-frame-pointer -fsanitize=fuzzer-no-link $(SANITIZE_fuzz)

ifndef MODE_$(VARIANT)
$(error VARIANT=$(VARIANT) is none of release, debug, asan, tsan, coverage, fuzz)
endif

LIB_PACKAGES := libsodium libxxhash sqlite3
PKG_CFLAGS   := $(shell pkg-config --cflags $(LIB_PACKAGES) libpq 2>/dev/null)
PKG_LIBS     := $(shell pkg-config --libs $(LIB_PACKAGES) 2>/dev/null)

ALL_CFLAGS  := $(COMMON) $(MODE_$(VARIANT)) $(PKG_CFLAGS) $(CFLAGS)
TEST_CFLAGS := -Itests/lab -Itests -Wno-unused-parameter
ALL_LDFLAGS := $(MODE_$(VARIANT)) -pthread $(NEEDED) $(LDFLAGS)
LIBS        := $(PKG_LIBS) $(SYSTEM_LIBS)

# ---- What there is -------------------------------------------------------------------------------

sources = $(sort $(shell find $(1) -name '$(2)' 2>/dev/null))
objects = $(patsubst %.c,$(BUILD)/obj/%.o,$(1))

ALL_SRC   := $(call sources,src,*.c)
# The command and the lab use the library; they are not in it.
CLI_SRC   := $(filter src/cli/%,$(ALL_SRC))
LAB_SRC   := $(filter src/lab/%,$(ALL_SRC))
LIB_SRC   := $(filter-out $(CLI_SRC) $(LAB_SRC),$(ALL_SRC))
# Around the installed lab, our own tests have parts that reach inside the library.
OUR_LAB_SRC := $(call sources,tests/lab,*.c)
UNIT_SRC  := $(call sources,tests/unit,test_*.c)
SPEC_SRC  := $(call sources,tests/spec,test_*.c)
MODEL_SRC := $(call sources,tests/model,test_*.c)
CRASH_SRC := $(call sources,tests/crash,test_*.c)
SIM_SRC   := $(call sources,tests/sim,test_*.c)
FUZZ_SRC  := $(call sources,tests/fuzz,fuzz_*.c)
BENCH_SRC := $(call sources,bench,*.c) tests/lab/vfs_count.c
E2E_SRC   := $(call sources,tests/e2e,*.c)
EXAMPLE_SRC := $(sort $(wildcard examples/*.c))
# The tea shop is an example, and what `heddle demo` shows.
SHOP_SRC  := $(call sources,examples/shop,*.c)
HEADERS   := $(call sources,include,*.h)
C_FILES   := $(call sources,include src tests bench examples bindings,*.[ch])

COMMA     := ,
INTERNAL  := $(BUILD)/libheddle-internal.a
STATIC    := $(BUILD)/libheddle.a
LAB       := $(BUILD)/libheddle-lab.a
SHARED    := $(BUILD)/$(SO_FULL)
COMMAND   := $(if $(CLI_SRC),$(BUILD)/heddle)
BENCH     := $(if $(BENCH_SRC),$(BUILD)/heddle-bench)
UNIT      := $(UNIT_SRC:%.c=$(BUILD)/%)
SPEC      := $(SPEC_SRC:%.c=$(BUILD)/%)
MODEL     := $(MODEL_SRC:%.c=$(BUILD)/%)
CRASH     := $(CRASH_SRC:%.c=$(BUILD)/%)
SIM       := $(SIM_SRC:%.c=$(BUILD)/%)
FUZZ      := $(FUZZ_SRC:%.c=$(BUILD)/%)
E2E       := $(E2E_SRC:%.c=$(BUILD)/%)
EXAMPLES  := $(EXAMPLE_SRC:%.c=$(BUILD)/%)
TESTS     := $(UNIT) $(SPEC) $(MODEL) $(CRASH) $(SIM)

# ---- Building ------------------------------------------------------------------------------------

.PHONY: all lib command tests examples fuzzers bench-program e2e-programs
all: lib $(COMMAND) examples
lib: $(STATIC) $(SHARED) $(LAB) $(INTERNAL)
command: $(COMMAND)
tests: $(TESTS)
examples: $(EXAMPLES)
fuzzers: $(FUZZ)
bench-program: $(BENCH)
e2e-programs: $(E2E)

# `remember` writes text to a file only when it differs, so that what depends on the file is made
# anew exactly when the text changes.
define remember
@mkdir -p $(@D)
@printf '%s\n' '$(1)' | cmp -s - $@ || printf '%s\n' '$(1)' > $@
endef

.PHONY: FORCE
$(BUILD)/flags: FORCE
	$(call remember,$(shell $(CC) --version 2>/dev/null | head -n 1) $(CC) $(ALL_CFLAGS) $(TEST_CFLAGS))
$(BUILD)/members: FORCE
	$(call remember,$(LIB_SRC))
$(BUILD)/lab-members: FORCE
	$(call remember,$(LAB_SRC) $(OUR_LAB_SRC))
$(BUILD)/bench-members: FORCE
	$(call remember,$(BENCH_SRC))

$(BUILD)/obj/src/%.o: src/%.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/obj/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) $(ALL_CFLAGS) $(TEST_CFLAGS) -MMD -MP -c $< -o $@

# For our own programs: every symbol of the library can be reached, also the internal ones.
$(INTERNAL): $(call objects,$(LIB_SRC)) $(BUILD)/members
	$(call say,AR)
	@rm -f $@
	$(Q)ar rcs $@ $(filter %.o,$^)

# For embedders: one object in which everything hidden has become local, so that a function of
# theirs that is named like one of ours replaces nothing.
$(BUILD)/heddle.o: $(call objects,$(LIB_SRC)) $(BUILD)/members
$(BUILD)/heddle-lab.o: $(call objects,$(LAB_SRC)) $(BUILD)/lab-members
$(BUILD)/heddle.o $(BUILD)/heddle-lab.o:
	$(call say,LD)
	$(Q)ld -r -o $@ $(filter %.o,$^)
	$(Q)$(LOCALIZE) $@
$(STATIC) $(LAB): $(BUILD)/lib%.a: $(BUILD)/%.o
	$(call say,AR)
	@rm -f $@
	$(Q)ar rcs $@ $<
$(SHARED): $(call objects,$(LIB_SRC)) $(BUILD)/members
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) $(SO_FLAGS) -o $@ $(filter %.o,$^) $(LIBS)
	$(Q)ln -sf $(@F) $(BUILD)/$(SONAME)
	$(Q)ln -sf $(SONAME) $(BUILD)/$(SO)

LAB_OBJ := $(call objects,$(LAB_SRC) $(OUR_LAB_SRC))
$(TESTS): $(BUILD)/%: $(BUILD)/obj/%.o $(LAB_OBJ) $(INTERNAL) $(BUILD)/lab-members
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS) -lcmocka -ljansson

# The benchmark's graphs check what they compute: they are a test as well.
$(BUILD)/tests/spec/test_graphs: $(call objects,bench/graphs.c bench/graphs_heddle.c bench/clock.c)

# Only the fuzz variant (clang) can link these.
$(FUZZ): $(BUILD)/%: $(BUILD)/obj/%.o $(INTERNAL)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -fsanitize=fuzzer -o $@ $(filter %.o %.a,$^) $(LIBS)

$(BUILD)/heddle-bench: $(call objects,$(BENCH_SRC)) $(INTERNAL) $(BUILD)/bench-members
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS) -ljansson

$(EXAMPLES) $(E2E): $(BUILD)/%: $(BUILD)/obj/%.o $(LAB) $(STATIC)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

$(call objects,$(CLI_SRC) $(SHOP_SRC) examples/14_shop.c): private ALL_CFLAGS += -Iexamples
$(BUILD)/examples/14_shop: $(call objects,$(SHOP_SRC))
$(BUILD)/heddle: $(call objects,$(CLI_SRC) $(SHOP_SRC)) $(INTERNAL)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

# The extension of the Python package: one file for CPython 3.11 and all later versions. Debian's own Python has the
# headers; another one may come first in PATH.
PYTHON3   ?= $(firstword $(wildcard /usr/bin/python3) python3)
PY_SRC    := $(call sources,bindings/python/src,*.c)
PY_FLAGS   = -DPy_LIMITED_API=0x030b0000 -Wno-pedantic \
             $(addprefix -isystem ,$(shell $(PYTHON3) -c 'import sysconfig; print(sysconfig.get_path("include"))'))
EXTENSION := $(BUILD)/python/_heddle.abi3.so

$(call objects,$(PY_SRC)): private ALL_CFLAGS += $(PY_FLAGS)
$(EXTENSION): $(call objects,$(PY_SRC)) $(STATIC)
	@mkdir -p $(@D)
	$(call say,LINK)
	$(Q)$(CC) $(ALL_LDFLAGS) $(EXT_FLAGS) -o $@ $(filter %.o %.a,$^) $(LIBS)

.PHONY: python python-extension python-wheel python-test
python-extension: $(EXTENSION)

# In place: PYTHONPATH=bindings/python is all it takes.
python:
	@tools/install-deps python
	+@$(in_release) python-extension
	@cp $(ROOT)/release/python/_heddle.abi3.so bindings/python/heddle/_heddle.new && strip -S bindings/python/heddle/_heddle.new
	@mv bindings/python/heddle/_heddle.new bindings/python/heddle/_heddle.abi3.so # at once: programs that run keep the old one
# The tests of the package; T=test_store: one file of them.
python-test: $(EXTENSION)
	@tools/python-tests $(BUILD) $(if $(T),tests/$(T).py)
python-wheel: python
	@$(PYTHON3) bindings/python/build_wheel.py $(ROOT)/wheel

# Objects are kept: make would delete them as intermediate files of the programs.
.SECONDARY:

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)

# ---- Running tests -------------------------------------------------------------------------------

.PHONY: unit spec model crash sim e2e test-unit test nightly check-layers check-format check-citations \
    check-symbols check-docs lines
unit: $(UNIT)
	@tools/run-tests $(UNIT)
spec: $(SPEC)
	@tools/run-tests $(SPEC)
model: $(MODEL)
	@tools/run-tests $(MODEL)
crash: $(CRASH)
	@tools/run-tests $(CRASH)
sim: $(SIM)
	@tools/run-tests $(SIM)
# The command, from outside.
e2e: $(COMMAND) $(E2E)
	@tests/e2e/run $(BUILD)

# One program, its output unfiltered: make test-unit T=test_json
test-unit: $(filter %/$(T),$(TESTS))
	@$(or $(firstword $^),echo "no test program is named '$(T)' (say T=test_<noun>)"; false)

# MAKEFLAGS is emptied because the suite starts makes of its own, each with its own variant.
test:
	@tools/install-deps test
	@MAKEFLAGS= tools/suite $(ROOT)

# The seeded tests for hours; what there is and how long is a list in the tool.
nightly:
	@tools/install-deps test
	@MAKEFLAGS= tools/nightly $(ROOT)

check-layers:
	@tools/check_layers
lines:
	@tools/lines
check-format:
	@tools/check-format
# Every number that is cited (C121, I4, 7.4, 0017) is in docs/; which lines no test cites.
check-citations:
	@tools/check-citations
check-symbols check-docs: release
check-symbols:
	@tools/exported-symbols $(ROOT)/release
check-docs:
	@tools/doc-blocks $(ROOT)/release

.PHONY: coverage
coverage:
	@$(MAKE) VARIANT=coverage BUILD=$(ROOT)/coverage unit spec model
	@tools/coverage $(ROOT)/coverage

# ---- Using ---------------------------------------------------------------------------------------

# Variants other than the one asked for are made by a make of their own: packages that
# install-deps has just brought are then seen by it.
in_release = $(MAKE) VARIANT=release BUILD=$(ROOT)/release $(parallel)
# On all cores, unless whoever called said how many.
parallel = $(if $(findstring jobserver,$(MAKEFLAGS)),,-j$(JOBS))

# Goals with a make of their own in the release folder. In one call, with -j, they wait for the other goals and for each
# other: two makes would write the same files at once.
OWN_MAKE := release python run bench bench-quick install
GOALS    := $(patsubst python-wheel,python,$(patsubst check-symbols,release,$(MAKECMDGOALS:check-docs=release)))
EARLIER  := $(filter-out $(OWN_MAKE),$(GOALS))
$(foreach goal,$(filter $(OWN_MAKE),$(GOALS)),\
    $(eval $(goal): | $(filter-out $(goal),$(EARLIER)))$(eval EARLIER += $(goal)))

.PHONY: release run bench bench-quick bench-readme format clean man dist help amalgamation
release:
	+@$(in_release) all

run:
	@tools/install-deps build
	+@$(in_release) command
	@$(ROOT)/release/heddle demo

bench bench-quick:
	@tools/install-deps bench
	+@$(in_release) bench-program
	+@$(if $(filter python,$(or $(GROUP),python)),$(MAKE) python)
	@$(if $(BENCH_SRC),$(ROOT)/release/heddle-bench $(if $(filter bench-quick,$@),--quick) \
	    --json $(ROOT)/bench.json $(GROUP),echo "there are no benchmarks yet")

bench-readme:
	@tools/bench-readme $(ROOT)/bench.json

format:
	@clang-format -i $(C_FILES)

clean:
	rm -rf $(ROOT)

# The manual, to look at without installing it: man -M build/man hd_tx_get
man: $(COMMAND)
	@mkdir -p $(ROOT)/man/man1
	@$(COMMAND) help --man-pages $(ROOT)/man/man1
	@tools/man-pages $(ROOT)/man/man3

# The library as heddle.h and heddle.c, for programs that take sources in.
amalgamation:
	@tools/amalgamation $(ROOT)/amalgamation
	@echo "$(ROOT)/amalgamation: heddle.h, heddle.c; link with $(LIBS) -pthread"

# What is committed, as one file that builds and tests itself; the same bytes from the same commit.
dist:
	@tools/dist $(ROOT)/heddle-$(VERSION).tar.gz heddle-$(VERSION)

define HELP
  make run                  build what is missing and show what heddle does
  make test                 everything that has to hold; ends with "N passed, N failed"
  make                      the libraries, the command and the examples, in build/debug
  make unit|spec|model|crash|sim|e2e  one kind of test
  make test-unit T=test_x   one test program, its output unfiltered
  make nightly              the seeded tests at full length, for hours: tools/nightly
  make bench [GROUP=x]      measure; writes build/bench.json  (bench-quick: fewer repetitions)
  make coverage             which lines the tests reach
  make format               let clang-format write the C files
  make check-layers         includes and calls keep to the architecture
  make check-citations      numbers that are cited are in docs/spec and docs/DECISIONS
  make lines                how many lines each layer has
  make bench-readme         tables of README and docs/FIGURES.md, from what make bench wrote
  make python               the Python package, in place: PYTHONPATH=bindings/python
  make python-wheel         the same as a wheel, in build/wheel
  make python-test [T=x]    the tests of the Python package
  make man                  the manual pages, in build/man
  make install|uninstall    PREFIX=/usr/local DESTDIR=
  make amalgamation         the library as heddle.h and heddle.c, in build/amalgamation
  make dist                 a tarball of what is committed
  make clean                remove build/

  VARIANT=debug|release|asan|tsan|coverage|fuzz   BUILD=dir   CC=gcc|clang   V=1
endef
export HELP
help:
	@echo "$$HELP"

# ---- Installing ----------------------------------------------------------------------------------

.PHONY: install uninstall install-files
install:
	@tools/install-deps build
	+@$(in_release) all
	+@$(in_release) install-files
	@[ -n "$(DESTDIR)" ] || tools/tell-loader $(LIBDIR) $(PREFIX)/bin

# The .pc file names the libraries we link with, not their packages: asked for static linking,
# pkg-config would add what those need to be linked statically themselves (zlib, for SQLite).
TO := $(DESTDIR)$(PREFIX)
TO_LIB := $(DESTDIR)$(LIBDIR)

TO_MAN := $(TO)/share/man
PC_NAMES := heddle heddle-lab
CMAKE_NAMES := heddle-config heddle-config-version
# Where bash, zsh and fish look for them.
COMPLETIONS := $(TO)/share/bash-completion/completions/heddle $(TO)/share/zsh/site-functions/_heddle \
               $(TO)/share/fish/vendor_completions.d/heddle.fish
PYTHON := $(shell command -v python3 2>/dev/null)

# The headers as seen from the libraries; realpath of macOS does not know --relative-to.
INCLUDE_FROM_LIB = $(shell realpath -m --relative-to='$(LIBDIR)' '$(PREFIX)/include' 2>/dev/null || \
    $(PYTHON3) -c 'import os, sys; print(os.path.relpath(sys.argv[1], sys.argv[2]))' '$(PREFIX)/include' '$(LIBDIR)')

install-files: $(STATIC) $(SHARED) $(LAB) $(COMMAND)
	install -d $(TO)/include/heddle $(TO_LIB)/pkgconfig
	install -m 644 include/heddle.h $(TO)/include
	install -m 644 $(filter include/heddle/%,$(HEADERS)) $(TO)/include/heddle
	install -m 644 $(STATIC) $(LAB) $(TO_LIB)
	install -m 755 $(SHARED) $(TO_LIB)
	ln -sf $(notdir $(SHARED)) $(TO_LIB)/$(SONAME)
	ln -sf $(SONAME) $(TO_LIB)/$(SO)
	for name in $(PC_NAMES); do \
	    sed -e 's|@PREFIX@|$(PREFIX)|' -e 's|@LIBDIR@|$(LIBDIR)|' -e 's|@VERSION@|$(VERSION)|' \
	        -e 's|@LIBS@|$(LIBS)|' $$name.pc.in > $(TO_LIB)/pkgconfig/$$name.pc || exit 1; done
	install -d $(TO_LIB)/cmake/heddle
	for name in $(CMAKE_NAMES); do \
	    sed -e 's|@INCLUDE@|$(INCLUDE_FROM_LIB)|' \
	        -e 's|@VERSION@|$(VERSION)|' -e 's|@LIBS@|$(LIBS)|' \
	        $$name.cmake.in > $(TO_LIB)/cmake/heddle/$$name.cmake || exit 1; done
	$(if $(COMMAND),install -d $(TO)/bin $(TO_MAN)/man1 && \
	    install -m 755 $(COMMAND) $(TO)/bin && $(COMMAND) help --man-pages $(TO_MAN)/man1)
	$(if $(COMMAND),install -d $(dir $(COMPLETIONS)))
	$(if $(COMMAND),$(COMMAND) help --completion bash > $(word 1,$(COMPLETIONS)))
	$(if $(COMMAND),$(COMMAND) help --completion zsh > $(word 2,$(COMPLETIONS)))
	$(if $(COMMAND),$(COMMAND) help --completion fish > $(word 3,$(COMPLETIONS)))
	$(if $(PYTHON),tools/man-pages $(TO_MAN)/man3,@echo "no pages of section 3: they need python3")

uninstall:
	rm -f $(TO)/include/heddle.h $(addprefix $(TO)/,$(filter include/heddle/%,$(HEADERS)))
	rm -f $(addprefix $(TO_LIB)/,$(notdir $(STATIC) $(LAB) $(SHARED)) $(SONAME) $(SO))
	rm -f $(CMAKE_NAMES:%=$(TO_LIB)/cmake/heddle/%.cmake)
	rm -f $(PC_NAMES:%=$(TO_LIB)/pkgconfig/%.pc) $(TO)/bin/heddle
	rm -f $(TO_MAN)/man1/heddle.1 $(TO_MAN)/man1/heddle-*.1 $(COMPLETIONS)
	$(if $(PYTHON),@tools/man-pages --names | sed 's|^|$(TO_MAN)/man3/|' | xargs rm -f)
	-rmdir $(TO)/include/heddle 2>/dev/null
