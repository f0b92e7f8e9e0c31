#!/usr/bin/env bash
# Says, as makefile lines, whether nvcc compiles and links here and where CUDA's headers are.
#
#   probe.sh CUDA_HOME NVCC
#
# Headers: those of the toolkit, or, where none is installed, of NVIDIA's Python packages in a
# virtual environment under build/ (2 MB).
set -u
home=$1 nvcc=$2
packages="nvidia-cuda-runtime==13.0.* nvidia-cuda-crt==13.0.*"
environment=build/cuda-headers

trial=$(mktemp -d)
trap 'rm -rf "$trial"' EXIT
printf '#include <cuda_runtime.h>\n__global__ void k() {}\nint main() { k<<<1, 1>>>(); }\n' >"$trial/a.cu"
"$nvcc" "$trial/a.cu" -o "$trial/a" >>build/have.log 2>&1 && have=1 || have=0
echo "HAVE_CUDA := $have"

headers_in() { find "$1" -name cuda_runtime.h -path '*include/*' -printf '%h\n' 2>/dev/null | head -n 1; }
include=
[ -e "$home/include/cuda_runtime.h" ] && include=$home/include
if [ -z "$include" ]; then
  include=$(headers_in $environment)
  if [ -z "$include" ]; then
    { python3 -m venv $environment && $environment/bin/pip install -q --retries 1 --timeout 15 $packages; } >>build/have.log 2>&1
    include=$(headers_in $environment)
  fi
fi
echo "CUDA_INCLUDE := $include"
