# Shared by the scripts here: say what is done, install what is missing, build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

say() { printf '== %s\n' "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null; then
		sudo "$@"
	else
		die "need root to install Debian packages ($*), and there is no sudo. Run script/bootstrap as root once."
	fi
}

# Those of the packages named that are not installed.
missing() {
	local there
	there=$(dpkg-query -W -f='${Package} ${Status}\n' "$@" 2>/dev/null | sed -n 's/ [a-z]* ok installed$//p') || true
	printf '%s\n' "$@" | grep -vxF -f <(echo "${there:- }") || true
}
installed() { [ -z "$(missing "$1")" ]; }

# What the compiler needs. gcc links with make on all cores.
compilers=(gcc make libc6-dev meson ninja-build pkg-config python3 ca-certificates curl passwd
	libssl-dev libnghttp2-dev libjansson-dev libsqlite3-dev libpcre2-dev libcurl4-openssl-dev zlib1g-dev libdeflate-dev
	libzstd-dev libpq-dev libhiredis-dev libldap-dev libp11-kit-dev node-llhttp)

# Installs the packages that are missing, and nothing when none is. The lists are fetched once, by a script for those that it starts too.
updated=${STEWARD_LISTS_FETCHED:-}
packages() {
	local missing
	command -v apt-get >/dev/null || die "this needs Debian's apt-get to install its packages; on another system install by hand: $*"
	mapfile -t missing < <(missing "$@")
	[ ${#missing[@]} = 0 ] && return 0
	say "Installing ${missing[*]}"
	[ -n "$updated" ] || as_root apt-get update -qq || die "apt-get update failed: is there a network, and is /etc/apt/sources.list right?"
	updated=1
	export STEWARD_LISTS_FETCHED=1
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
		die "apt-get could not install: ${missing[*]}"
}

# How the program is built to be run; and for tests of timing, where the time to compile and to link counts too.
release=(--buildtype=release -Db_lto=true -Db_lto_threads=2 -Dc_link_args=-flto=auto -Dtests=false)
fast=(-Doptimization=1 -Ddebug=false -Dc_args='-D_FORTIFY_SOURCE=2 -ftree-vrp -foptimize-strlen' -Dtests=false)

# How the program is built with sanitizers. Half the time to compile; a trace still names its lines, gcc still knows what it warns of, and
# the first finding is the end.
checked=(-Doptimization=1 -Dc_args='-g1 -ftree-vrp -foptimize-strlen -fno-sanitize-recover=all' -Db_lundef=false -Dengine_tests=false)

# configure NAME [meson options]: configures build/NAME once. Warnings are errors where STEWARD_WERROR says so, as it does where we
# develop: another compiler's opinion must not keep anybody from building.
configure() {
	local name=$1
	shift
	[ -z "${STEWARD_WERROR:-}" ] || set -- "$@" --werror
	[ -f "build/$name/build.ninja" ] || {
		say "Configuring build/$name"
		meson setup "build/$name" "$@" >"build-$name.log" 2>&1 || { cat "build-$name.log" >&2; die "meson could not configure build/$name"; }
		mv "build-$name.log" "build/$name/setup.log"
	}
}

# objects NAME: compiles what build/NAME is made of. Files of the web console wait for their libraries.
objects() {
	local wanted
	mapfile -t wanted < <(ninja -C "build/$1" -t targets all | sed -n 's/: c_COMPILER$//p' | grep -v console_files)
	[ ${#wanted[@]} -gt 0 ] || die "build/$1 compiles nothing: ask ninja -C build/$1 -t targets all"
	say "Compiling build/$1"
	ninja -C "build/$1" --quiet "${wanted[@]}" || die "build/$1 could not be compiled; see above"
}

# build NAME [meson options]: configures build/NAME once and builds it.
build() {
	local name=$1
	configure "$@"
	say "Building build/$name"
	ninja -C "build/$name" --quiet || die "the build of build/$name failed; see above"
}
