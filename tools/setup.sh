#!/bin/sh
# Installs what building and testing need on Debian 12 (as root), and no more.
# docs/dependencies.md has the reason for each.
set -eu

packages="gcc g++ libc6-dev cmake ninja-build flex bison
	llvm-14-dev libclang-14-dev libclang-cpp14 liblld-14-dev
	libdnnl-dev libsleef-dev zlib1g-dev libjansson-dev
	clang-14 python3 python3-numpy dataset-fashion-mnist"

missing=
for package in $packages; do
	dpkg -s "$package" >/dev/null 2>&1 || missing="$missing $package"
done
[ -n "$missing" ] || exit 0
export DEBIAN_FRONTEND=noninteractive
apt-get update -q
# shellcheck disable=SC2086
apt-get install -q -y --no-install-recommends $missing
