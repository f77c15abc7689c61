#!/bin/sh
# Installs the readers and servers of other projects that `make nightly` compares with (docs/harvesters.md).
# hdt builds from source for minutes. What cannot be installed is named, and its tests are skipped and say so.
set -u
python=${PYTHON:-python3}
try() {
    name=$1
    shift
    "$@" >/dev/null 2>&1 || echo "not run, cannot be installed: $name"
}
environment() {
    folder=.venv/$1
    shift
    "$python" -m venv "$folder" && "$folder/bin/pip" install --quiet "$@"
}
debian() {
    command -v "$1" >/dev/null || apt-get -qq install --no-install-recommends "$2"
}
try hdt .venv/bin/pip install --quiet wheel "setuptools<81" pybind11
try hdt .venv/bin/pip install --quiet --no-build-isolation --no-deps hdt==2.3
for package in wacz==0.6.0 bagit==1.9.0 datacite==1.4.1 aiosmtpd==1.4.6; do
    try "$package" .venv/bin/pip install --quiet "$package"
done
try rocrate environment crates rocrate==0.16.0 roc-validator==0.13.0
try csvw environment csvw csvw==4.1.1
try mlcroissant environment croissant mlcroissant==1.1.1
try pywb environment pywb pywb==2.9.1 "setuptools<81"
try prometheus debian promtool prometheus
try microsocks debian microsocks microsocks
try tinyproxy debian tinyproxy tinyproxy
try raptor2-utils debian rapper raptor2-utils
try postgresql-15 debian /usr/lib/postgresql/15/bin/postgres postgresql-15
[ -n "${TAMIAS_CITUS:-}" ] || echo "not run: Citus (TAMIAS_CITUS names no folder with PostgreSQL and the extension)"
[ -n "${TAMIAS_URLFRONTIER_JAR:-}" ] || echo "not run: the Java frontier (TAMIAS_URLFRONTIER_JAR names no jar)"
