#!/usr/bin/env bash
# Stands for the GPU tests where CUDA's headers cannot be had: one skipped test, in gtest's words.
cat <<'END'
[ RUN      ] GpuTest.NeedsCudasHeaders
skipped.sh: Skipped
no CUDA headers for the GPU tests: neither a toolkit (CUDA_HOME) nor NVIDIA's Python packages
[  SKIPPED ] GpuTest.NeedsCudasHeaders (0 ms)
END
