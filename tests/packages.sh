# packages.sh -- finds what is missing on a Debian system and installs it; read by run.sh and models/demo.sh.
#
# need PACKAGES TEST…   adds the packages to the list when the test fails
# install_needed        installs the list with apt-get; does nothing, and needs no network, when it is empty
# need_build            what building and running mt takes
# need_mpi              Open MPI and MPICH, each of which mtrun can run under

needed=

need() {
  packages=$1; shift
  "$@" > /dev/null 2>&1 || needed="$needed $packages"
}

compiles() { echo '#include <math.h>
  int main(void) { return 0; }' | "$1" -x c -o /dev/null -; }
has_header() { echo "#include <$1>" | "${CC:-cc}" -x c -E -o /dev/null -; }
openblas() { (ldconfig -p || /sbin/ldconfig -p) | grep -q 'libopenblas\.so\.0'; }

need_build() {
  need 'gcc libc6-dev' compiles "${CC:-cc}"
  need meson command -v meson
  need ninja-build command -v ninja
  need flex command -v flex
  need bison command -v bison
  need python3 command -v python3
  need pkg-config command -v pkg-config
  need libjansson-dev pkg-config --exists jansson
  need libxxhash-dev pkg-config --exists libxxhash
  need libcmocka-dev pkg-config --exists cmocka
  need libopenblas0-pthread openblas
  need libdnnl-dev has_header dnnl.h
}

# both, for ranks that an mpirun starts; without one its tests are skipped
need_mpi() {
  need 'libopenmpi-dev openmpi-bin' pkg-config --exists ompi-c
  need 'libmpich-dev mpich' pkg-config --exists mpich
}

install_needed() {
  [ -n "$needed" ] || return 0
  root=
  [ "$(id -u)" = 0 ] || root=sudo
  echo "installing:$needed"
  if ! command -v apt-get > /dev/null || { [ -n "$root" ] && ! command -v sudo > /dev/null; }; then
    echo "these are missing, and need root and apt-get:$needed" >&2
    return 1
  fi
  $root apt-get update -q || echo 'the package lists stay as they are'
  # shellcheck disable=SC2086  # a list of words
  $root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $needed < /dev/null || return 1
  needed=
}
