# GPU code: compiled by nvcc where it is there, and executed on the CPU everywhere.
#
# The tests of tests/gpu are one program for each MODE: release and debug run the kernels plainly,
# asan under the address sanitizer, tsan under the emulator's own race check.

CUDA_HOME ?= /usr/local/cuda#  where the CUDA toolkit is, if anywhere
ARCH      ?= 80 90 100#        GPU architectures of `make nvcc`, with PTX of the last

emulator := tests/support/cuda_on_cpu
net.asan := asan
net.tsan := race
net      := $(or $(net.$(strip $(MODE))),plain)
GPU_OUT  := $(OUT)/gpu

# Probed once, and only for goals that ask: whether nvcc compiles and links, and where CUDA's headers
# are (nothing: they cannot be had).
ifneq ($(filter test gpu-tests gpu-check nvcc,$(MAKECMDGOALS)),)
-include build/have.mk
endif
NVCC ?= $(or $(wildcard $(CUDA_HOME)/bin/nvcc),nvcc)
build/have.mk: $(emulator)/probe.sh
	@mkdir -p build; bash $< '$(strip $(CUDA_HOME))' '$(NVCC)' >$@
use_cuda = $(filter 1,$(if $(filter auto,$(strip $(CUDA))),$(HAVE_CUDA),$(strip $(CUDA))))

cu_src := $(wildcard runtime/base/gpu/*.cu kernels/*.cu)
cc_src := runtime/base/status.cc

# The emulated build.  Only kernels are instrumented by the race check, which brings the callbacks.
flags.plain := -O2
flags.asan  := -O1 -fno-var-tracking -fsanitize=address,undefined -fno-sanitize-recover=undefined \
  -fsanitize-recover=address -DROWTIDE_DEBUG
flags.race  := -O2
cu_flags.race := -fsanitize=thread
plain_flags := $(filter-out $(mode.$(strip $(MODE))),$(CXXFLAGS))
GPU_FLAGS := $(plain_flags) $(flags.$(net)) \
  -I$(emulator)/include -isystem $(CUDA_INCLUDE) -DCUDA_ON_CPU_NET='"$(net)"'
absent_net := $(if $(filter race,$(net)),%/race_absent.cc,%/race.cc %/race_callbacks.cc)
emulator_src := $(filter-out $(absent_net),$(wildcard $(emulator)/*.cc))
# Kernels come last: of a std:: function in several objects the linker takes the first, and the
# emulator must not run one that is instrumented.
gpu_test_src := $(cc_src) tests/main.cc $(emulator_src) \
  $(filter-out tests/gpu/gpu_check.cc,$(wildcard tests/gpu/*.cc)) $(cu_src) $(wildcard tests/gpu/*.cu)
GPU_OBJ := $(gpu_test_src:%=$(GPU_OUT)/%.o)

# A CUDA thread has a stack of 64 KiB here, above a guard page.
$(GPU_OUT)/%.cu.o: %.cu
	@echo "  CXX  $< (on CPU, $(net))"; mkdir -p $(@D)
	$Q$(CXX) $(GPU_FLAGS) $(cu_flags.$(net)) -Wno-unknown-pragmas -Wframe-larger-than=16384 -fstack-clash-protection -MMD -MP -x c++ -c $< -o $@
$(GPU_OUT)/%.cc.o: %.cc
	@echo "  CXX  $< (on CPU, $(net))"; mkdir -p $(@D)
	$Q$(CXX) $(GPU_FLAGS) -MMD -MP -c $< -o $@
$(OUT)/gpu-tests-$(net): $(GPU_OBJ)
	@echo "  LINK $@"
	$Q$(CXX) -pthread $(filter -fsanitize=%,$(flags.$(net))) $^ -lgtest -o $@
GPU_TESTS := $(if $(CUDA_INCLUDE),$(OUT)/gpu-tests-$(net),$(emulator)/skipped.sh)

# The real build.  No contraction, as everywhere (kernels/README.md).
last_arch := $(lastword $(ARCH))
NVCCFLAGS := -std=c++20 -O2 -I. -fmad=false --expt-relaxed-constexpr -Werror all-warnings \
  -Xcompiler -Wall,-Wextra,-ffp-contract=off -lineinfo \
  $(foreach a,$(filter-out $(last_arch),$(ARCH)),-gencode arch=compute_$a,code=sm_$a) \
  -gencode arch=compute_$(last_arch),code=[sm_$(last_arch),compute_$(last_arch)]
build/nvcc/%.cu.o: %.cu
	@echo "  NVCC $<"; mkdir -p $(@D)
	$Q$(NVCC) $(NVCCFLAGS) -MMD -MP -c $< -o $@
build/nvcc/%.cc.o: %.cc
	@echo "  CXX  $< (for the GPU)"; mkdir -p $(@D)
	$Q$(CXX) $(plain_flags) -O2 -MMD -MP -c $< -o $@
check_src := $(cc_src) $(cu_src) $(filter-out %_test.cc,$(wildcard tests/gpu/*.cc))
build/nvcc/gpu-check: $(check_src:%=build/nvcc/%.o)
	@echo "  LINK $@"
	$Q$(NVCC) $(NVCCFLAGS) $^ -o $@

# Without nvcc the first has nothing to build; the second cannot do what it is for.
nvcc: $(if $(use_cuda),$(patsubst %,build/nvcc/%.o,$(cu_src) $(wildcard tests/gpu/*.cu)) build/nvcc/gpu-check) ## Compile every .cu with nvcc, where it is
	@$(if $(use_cuda),,echo "nvcc: not here (CUDA_HOME=$(strip $(CUDA_HOME))), so only g++ has read the .cu files")
gpu-check: $(if $(use_cuda),build/nvcc/gpu-check) ## Test and measure the kernels on this machine's GPU
	@$(if $(use_cuda),build/nvcc/gpu-check || [ $$? = 77 ],echo "gpu-check: needs nvcc (CUDA_HOME=$(strip $(CUDA_HOME)))"; exit 1)
.PHONY: nvcc gpu-check
-include $(shell find build/nvcc -name '*.d' 2>/dev/null)
