#!/usr/bin/env bash
# Sees to what tests need beside Python: a Chromium, a Korean font, text recognition, curl and a PostgreSQL
# server; the tests that need what is not there are skipped.
set -euo pipefail

missing=()
for browser in chromium-headless-shell chromium chromium-browser google-chrome none; do
    command -v "$browser" >/dev/null && break
done
# Where the package is called otherwise, see below.
[ "$browser" != none ] || missing+=(chromium-headless-shell)
if ! command -v fc-list >/dev/null; then
    missing+=(fontconfig fonts-nanum)
elif [ -z "$(fc-list :lang=ko)" ]; then
    missing+=(fonts-nanum)
fi
if ! command -v tesseract >/dev/null; then
    missing+=(tesseract-ocr tesseract-ocr-kor)
elif ! tesseract --list-langs | grep -q '^kor$'; then
    missing+=(tesseract-ocr-kor)
fi
# Debian keeps the server's programs out of PATH, in a folder for each version.
if ! command -v initdb >/dev/null && ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; then
    missing+=(postgresql)
fi
command -v curl >/dev/null || missing+=(curl)
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]} for the tests" >&2
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || true
    if ! apt-cache show chromium-headless-shell >/dev/null 2>&1; then
        missing=("${missing[@]/%chromium-headless-shell/chromium}")
    fi
    if apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; then
        exit 0
    fi
fi
echo "Not found and not installed: ${missing[*]}. The tests that need them are skipped;" \
    "on Debian and Ubuntu run: sudo apt-get install ${missing[*]}" >&2
