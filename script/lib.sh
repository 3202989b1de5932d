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

# Installs the packages that are missing, and nothing when none is. The lists are fetched once.
updated=
packages() {
	local missing=() name
	command -v apt-get >/dev/null || die "this needs Debian's apt-get to install its packages; on another system install by hand: $*"
	for name in "$@"; do
		dpkg-query -W -f='${Status}' "$name" 2>/dev/null | grep -q 'ok installed' || missing+=("$name")
	done
	[ ${#missing[@]} = 0 ] && return 0
	say "Installing ${missing[*]}"
	[ -n "$updated" ] || as_root apt-get update -qq || die "apt-get update failed: is there a network, and is /etc/apt/sources.list right?"
	updated=1
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null ||
		die "apt-get could not install: ${missing[*]}"
}

# How the program is built to be run; and for tests of timing, where the time to link counts too.
release=(--buildtype=release -Db_lto=true -Db_lto_threads=2 -Dc_link_args=-flto=auto -Dtests=false)
fast=(--buildtype=release -Dtests=false)

# configure NAME [meson options]: configures build/NAME once.
configure() {
	local name=$1
	shift
	[ -f "build/$name/build.ninja" ] || {
		say "Configuring build/$name"
		meson setup "build/$name" "$@" >"build-$name.log" 2>&1 || { cat "build-$name.log" >&2; die "meson could not configure build/$name"; }
		mv "build-$name.log" "build/$name/setup.log"
	}
}

# build NAME [meson options]: configures build/NAME once and builds it.
build() {
	local name=$1
	configure "$@"
	say "Building build/$name"
	ninja -C "build/$name" --quiet || die "the build of build/$name failed; see above"
}
