#!/usr/bin/env bash
# Sees to a Chromium and a Korean font for the browser tests; without them those tests are skipped.
set -euo pipefail

missing=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    command -v google-chrome >/dev/null || missing+=(chromium)
if ! command -v fc-list >/dev/null; then
    missing+=(fontconfig fonts-nanum)
elif [ -z "$(fc-list :lang=ko)" ]; then
    missing+=(fonts-nanum)
fi
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]} for the browser tests" >&2
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; then
        exit 0
    fi
fi
echo "Not found and not installed: ${missing[*]}. The browser tests that need them are skipped;" \
    "on Debian and Ubuntu run: sudo apt-get install ${missing[*]}" >&2
