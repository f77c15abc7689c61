#!/bin/sh
# Installs the system packages that only tests and benchmarks need, where this may be done:
# as root, with apt, and only what is missing. Elsewhere the tests that need them are skipped and say so.
set -u
missing=""
command -v nginx >/dev/null 2>&1 || missing="$missing nginx-light"
command -v ip >/dev/null 2>&1 || missing="$missing iproute2"
command -v wget >/dev/null 2>&1 || missing="$missing wget"
command -v rapper >/dev/null 2>&1 || missing="$missing raptor2-utils"
command -v wrk >/dev/null 2>&1 || missing="$missing wrk"
command -v chromium >/dev/null 2>&1 || missing="$missing chromium fonts-dejavu-core"
[ -n "$missing" ] || exit 0
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
    echo "not installed, tests that need them are skipped:$missing"
    exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update >/dev/null 2>&1
# shellcheck disable=SC2086
apt-get -qq install --no-install-recommends $missing >/dev/null 2>&1 || echo "could not be installed:$missing"
