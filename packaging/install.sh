#!/bin/sh
# Installs netdyno @VERSION@ (the program, man pages, completions) below PREFIX, which is /usr/local: fetches the archive for this
# machine, and installs nothing of it unless its checksum is the release's and, where there is ssh-keygen, the release's signature
# is right. NETDYNO_URL is another folder with the same files. The last line runs it: what was cut short does nothing.
set -eu
url=${NETDYNO_URL:-@URL@}
signer='@SIGNER@'

fail() { echo "install: $*" >&2; exit 1; }
fetch() {
    if command -v curl >/dev/null; then curl -fsSLO --retry 2 "$url/$1"; else wget -q "$url/$1"; fi ||
        fail "$url/$1 could not be fetched: nothing was installed"
}
install_netdyno() {
    name=netdyno-@VERSION@-$(uname -m)-linux.tar.gz
    mkdir -p "${PREFIX:=/usr/local}/bin" "$PREFIX/share" 2>/dev/null || :
    for folder in bin share; do
        [ -w "$PREFIX/$folder" ] || fail "$PREFIX may not be written to: run this as root, or with another PREFIX (PREFIX=\$HOME/.local)"
    done
    prefix=$(cd "$PREFIX" && pwd)
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    cd "$work"

    fetch SHA256SUMS
    grep " $name\$" SHA256SUMS >wanted || fail "$url has no $name: there is none for this machine"
    if [ -z "$signer" ]; then
        echo "install: this release has no signature; its checksum is checked" >&2
    elif ! command -v ssh-keygen >/dev/null; then
        echo "install: the signature is NOT checked, only the checksum: there is no ssh-keygen (package openssh-client)" >&2
    else
        fetch SHA256SUMS.sig
        echo "release $signer" >signers
        ssh-keygen -Y verify -f signers -I release -n netdyno -s SHA256SUMS.sig <SHA256SUMS >/dev/null ||
            fail "the signature of $url/SHA256SUMS is WRONG: nothing was installed"
    fi
    fetch "$name"
    sha256sum -c wanted >/dev/null 2>&1 || fail "$url/$name has another checksum than the release: nothing was installed"

    tar -xzf "$name" --strip-components 1
    cp bin/netdyno "$prefix/bin/.netdyno" && mv "$prefix/bin/.netdyno" "$prefix/bin/netdyno"
    cp -R share/. "$prefix/share/"
    echo "$("$prefix/bin/netdyno" --version) is $prefix/bin/netdyno. Try: sudo $prefix/bin/netdyno demo"
}
install_netdyno
