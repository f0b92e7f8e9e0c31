# Rowtide.  `make help` lists the targets and knobs; README.md says where to begin.
SHELL := /bin/bash
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules
.DEFAULT_GOAL := all

MODE ?= release#  release, debug, asan or tsan: one folder of objects each
CUDA ?= auto#     1, 0, or auto: nvcc compiles the .cu files if it is here
T    ?= *#        which tests, e.g. make test T='*Directory*'
SLOW ?= 0#        1: also the tests with Slow in their name
V    ?= 0#        1: print whole commands
DATA ?=#          a Criteo file of your own for make demo (DEMO_ROWS: rows of its own data set)

# The one list of Debian packages that building, testing and the demo need.
PACKAGES := g++ make clang-format libtbb-dev libnuma-dev libjemalloc-dev liburing-dev libhdf5-dev \
  libdnnl-dev libcli11-dev libtomlplusplus-dev libspdlog-dev libfmt-dev nlohmann-json3-dev \
  libxxhash-dev zlib1g-dev libisal-dev libgtest-dev libbenchmark-dev xz-utils

Q   := $(if $(filter 1,$V),,@)
OUT := build/$(strip $(MODE))
CXX := g++
VERSION := 0.1.0

# No contraction: embedding ops give the same bits from every compiler flag (kernels/README.md).
CXXFLAGS := -std=c++20 -I. -g1 -Wall -Wextra -Werror -Wno-missing-field-initializers \
  -ffp-contract=off -fno-math-errno -pthread -DROWTIDE_VERSION=$(VERSION)
mode.release := -O2
mode.debug   := -O0 -g -DROWTIDE_DEBUG
mode.asan    := -O1 -fno-var-tracking -fsanitize=address,undefined -fno-sanitize-recover=undefined -DROWTIDE_DEBUG
mode.tsan    := -O1 -fno-var-tracking -fsanitize=thread
CXXFLAGS += $(mode.$(strip $(MODE)))
LDFLAGS  := -pthread $(filter -fsanitize=%,$(mode.$(strip $(MODE))))
LIBS     := $(if $(filter tsan,$(strip $(MODE))),,-ltbb) -lnuma -luring -ldnnl -lgomp -lisal -lz -lxxhash -lfmt
# jemalloc is the programs' allocator; the sanitizers bring their own.
PROGRAM_LIBS := $(if $(filter asan tsan,$(strip $(MODE))),,-ljemalloc)

# Sources by wildcard, so that none is forgotten.  oneTBB is replaced by plain threads under tsan.
absent  := $(if $(filter tsan,$(strip $(MODE))),%/parallel_tbb.cc,%/parallel_threads.cc)
sources  = $(filter-out $(absent),$(wildcard $(addsuffix /*.cc,$1)))
FLOORS  := runtime/base runtime/base/gpu kernels kernels/policies storage runtime trainer
MAINS   := trainer/main.cc bench/main.cc
lib_src := $(filter-out $(MAINS),$(call sources,$(FLOORS)))
bench_src := $(call sources,bench bench/policies)
test_src := $(call sources,tests $(wildcard tests/*/ tests/*/*/))
test_src := $(filter-out tests/support/cuda_on_cpu/% tests/gpu/%,$(subst //,/,$(test_src)))

# X_lanes.cc is one plain source compiled once for each instruction set (see kernels/README.md).
x86 := $(if $(filter x86_64,$(shell uname -m)),1)
LANES := scalar $(if $(x86),avx2 avx512)
lanes.scalar := -O3
lanes.avx2   := -O3 -mavx2 -mf16c
lanes.avx512 := -O3 -mavx2 -mf16c -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
objects = $(foreach s,$1,$(if $(filter %_lanes.cc,$s),$(LANES:%=$(OUT)/$s.%.o),$(OUT)/$s.o))

LIB_OBJ   := $(call objects,$(lib_src))
MAIN_OBJ  := $(OUT)/trainer/main.cc.o
BENCH_OBJ := $(call objects,$(bench_src))
TEST_OBJ  := $(call objects,$(test_src))
LIB       := $(OUT)/librowtide.a

all: $(if $(wildcard trainer/main.cc),$(OUT)/rowtide) $(if $(wildcard bench/main.cc),$(OUT)/rowtide-bench) ## Build the programs (default)

$(LIB): $(LIB_OBJ)
	@echo "  AR   $@"; rm -f $@; ar rcs $@ $^
$(OUT)/rowtide: $(MAIN_OBJ) $(LIB)
	@echo "  LINK $@"
	$Q$(CXX) $(LDFLAGS) $^ $(LIBS) $(PROGRAM_LIBS) -o $@
$(OUT)/rowtide-bench: $(BENCH_OBJ) $(LIB)
	@echo "  LINK $@"
	$Q$(CXX) $(LDFLAGS) $^ $(LIBS) $(PROGRAM_LIBS) -o $@
$(OUT)/rowtide-tests: $(TEST_OBJ) $(filter-out $(OUT)/bench/main.cc.o,$(BENCH_OBJ)) $(LIB)
	@echo "  LINK $@"
	$Q$(CXX) $(LDFLAGS) $^ $(LIBS) -lgtest -o $@

define lanes_rule
$(OUT)/%_lanes.cc.$1.o: %_lanes.cc
	@echo "  CXX  $$< ($1)"; mkdir -p $$(@D)
	$$Q$$(CXX) $$(CXXFLAGS) $$(lanes.$1) -DROWTIDE_LANES=$1 -MMD -MP -c $$< -o $$@
	@! nm -C $$@ | grep ' [Wu] ' || { echo "$$<: the linker could take these for another machine"; exit 1; }
endef
$(foreach l,$(LANES),$(eval $(call lanes_rule,$l)))
$(OUT)/%.cc.o: %.cc
	@echo "  CXX  $<"; mkdir -p $(@D)
	$Q$(CXX) $(CXXFLAGS) -MMD -MP -c $< -o $@

-include $(wildcard tests/support/cuda_on_cpu/*.mk)

test: $(OUT)/rowtide-tests all gpu-tests ## Build and run the tests (fast ones; SLOW=1: all)
	@ROWTIDE_BIN=$(OUT) bash tests/run.sh '$(T)' '$(strip $(SLOW))' $(OUT)/rowtide-tests $(GPU_TESTS)
.PHONY: gpu-tests
gpu-tests: $(GPU_TESTS)

# Which folders a folder may include, besides itself.  Nothing looks up.
may.runtime/base     :=
may.runtime/base/gpu := runtime/base
may.kernels          := runtime/base
may.kernels/policies := runtime/base kernels
may.storage          := runtime/base
may.runtime          := runtime/base kernels storage
may.trainer          := runtime/base kernels runtime/rowtide.h
layers: ## Fail if a folder includes a folder above it
	@bad=0; $(foreach d,$(FLOORS),grep -HnoE '^#include "[^"]+' /dev/null $(wildcard $d/*.h $d/*.cc $d/*.cu) | \
	  grep -vE '"($(subst $() $(),|,$(strip $d $(may.$d))))(/|$$)' && bad=1;) \
	  [ $$bad = 0 ] || { echo "a folder includes a floor above it (see FLOORS in the Makefile)"; exit 1; }

FIND    := find runtime kernels storage trainer tests bench
HEADERS  = $(shell $(FIND) -name '*.h')
SOURCES  = $(FIND) '(' -name '*.h' -o -name '*.cc' -o -name '*.cu' ')'
NEEDS_CUDA := runtime/base/gpu/gpu.h tests/support/cuda_on_cpu/%
headers: ## Fail if a header does not compile alone
	@printf '%s\n' $(filter-out $(NEEDS_CUDA),$(HEADERS)) | xargs -P 2 -I{} sh -c \
	  'echo "#include \"{}\"" | $(CXX) $(CXXFLAGS) -fsyntax-only -x c++ - || { echo "{} does not compile alone"; exit 255; }'

format: ## Format the sources in place
	@$(SOURCES) | xargs clang-format -i
format-check:
	@$(SOURCES) | xargs clang-format --dry-run --Werror

check: layers headers format-check ## Floors, stand-alone headers, formatting
	@echo "check: floors, headers and formatting are in order"

deps: ## Install the missing Debian packages (root or sudo), or say which
	@missing=$$(for p in $(PACKAGES); do dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || echo $$p; done); \
	[ -z "$$missing" ] && exit 0; \
	line="apt-get install -y --no-install-recommends $$(echo $$missing)"; \
	if [ $$(id -u) = 0 ]; then run=; elif sudo -n true 2>/dev/null; then run=sudo; \
	else echo "Missing packages. As root, run:"; echo "  $$line"; exit 1; fi; \
	echo "installing $$(echo $$missing)"; \
	$$run apt-get update -qq && DEBIAN_FRONTEND=noninteractive $$run $$line -qq >/dev/null

TABLE := awk -F '|' '{ printf "  %-28s%s\n", $$1, $$2 }'
help: ## This page
	@echo "Targets:"; sed -nE 's/^([a-z][a-z-]*):.*## (.*)/make \1|\2/p' $(MAKEFILE_LIST) | $(TABLE)
	@echo "Knobs:"; sed -nE 's/^([A-Z_]+) *\?= *([^#]*)# *(.*)/\1=\2|\3/p' $(MAKEFILE_LIST) | $(TABLE)

demo: ## Train a model larger than its memory, and prove the result exact
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc)) $(OUT)/rowtide
	@bash trainer/demo.sh $(OUT)

clean: ## Remove all that was built
	rm -rf build

.PHONY: all test check layers headers format format-check deps demo help clean
-include $(shell find $(OUT) -name '*.d' 2>/dev/null)
