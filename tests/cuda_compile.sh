#!/bin/sh
# The mlp2d, two and matmul2d samples on cuda placements: emitted, compiled and
# linked by nvcc for sm_80 and sm_90. SBPC_BIN has sbpc, SBPC_SOURCE is the
# source tree; NVCC may name the compiler.
set -eu

bin=${SBPC_BIN:?} source=${SBPC_SOURCE:?} nvcc=${NVCC:-nvcc}
cuda=$(dirname "$(dirname "$(readlink -f "$(command -v "$nvcc")")")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

archs="-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"
flags="-I $source -I $source/runtime -I $source/runtime/cuda"
warn="-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror"

mkdir runtime
for file in "$source"/runtime/*.c "$source"/runtime/cuda/*.c; do
	object=runtime/$(echo "${file#"$source"/runtime/}" | tr / _).o
	cc -c $warn $flags -isystem "$cuda/include" "$file" -o "$object"
done
"$nvcc" -c $flags $archs "$source/runtime/cuda/kernels.cu" -o runtime/cuda.o
ar rcs libsbp_cuda.a runtime/*.o

for name in mlp2d two matmul2d; do
	mkdir "$name"
	sed 's/= cpu\[/= cuda[/' "$source/samples/$name.sbp" >"$name/$name.sbp"
	(
		cd "$name"
		"$bin/sbpc" --emit=cuda "$name.sbp" -o "$name.cu"
		cc -c $warn $flags "${name}_tables.c" "${name}_main.c"
		"$nvcc" -c -std=c++17 $flags $archs "$name.cu" -o "$name.o"
		"$nvcc" $archs ./*.o -o "$name" -L .. -lsbp_cuda -lcublas \
			-lnccl -lz -ljansson
		./"$name" --help | grep -q -- --input
	)
	echo "$name: compiled and linked for sm_80 and sm_90"
done
