#!/usr/bin/env bash
# A Docker engine for the tests, apart from any other on the machine: data, socket, containerd, bridge and cgroup of its
# own, all named by one folder. Installs nothing; opens no TCP port, touches no firewall rule.
#
# Usage: tests/docker/engine.sh start FOLDER     start dockerd there; exit status 3 says why it cannot run here
#        tests/docker/engine.sh images FOLDER    make the Debian base image and tritonchaos/tritonserver-cpu:2.51
#        tests/docker/engine.sh env FOLDER       print what the tests want to know, as shell
#        tests/docker/engine.sh stop FOLDER      end that engine and its containers; the folder itself is kept
#
# Environment: PIP, as in docker/build.sh.
set -euo pipefail

readonly CANNOT_RUN=3
readonly SUITE=bookworm
readonly BASE_IMAGE="tritonchaos/debian:$SUITE"
readonly CPU_IMAGE=tritonchaos/tritonserver-cpu:2.51
# What both Dockerfiles would fetch, so that building them needs no network.
readonly PACKAGES=python3,libpython3.11,python3-numpy,gcc,g++,libc6-dev,libjemalloc2,libgoogle-perftools4
readonly START_DEADLINE_S=60 START_ATTEMPTS=3 STOP_DEADLINE_S=60
# A path of a socket has 107 characters at most, containerd's 104, and it adds up to 38.
readonly LONGEST_FOLDER=64
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
readonly root

say() { echo "engine: $*" >&2; }

cannot_run() {
    say "cannot run here: $*"
    exit "$CANNOT_RUN"
}

usage() {
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2
    exit 2
}

# A network device's name has 15 characters at most.
bridge_name() { echo "tc$(printf '%s' "$folder" | cksum | cut -d' ' -f1)"; }

answers() { docker version --format '{{.Server.Version}}' 2>/dev/null; }

# One that has ended, but was not waited for yet, does not live.
lives() { grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null; }

is_running() { [ -s "$folder/dockerd.pid" ] && lives "$(cat "$folder/dockerd.pid")"; }

# --- start -----------------------------------------------------------------------------------------------------------

check_machine() {
    [ "$(id -u)" = 0 ] || cannot_run "an engine needs root"
    local program
    for program in dockerd docker containerd runc docker-init docker-proxy ip; do
        command -v "$program" >/dev/null || cannot_run "no program $program (Debian: apt-get install docker.io iproute2)"
    done
    [ "${#folder}" -le "$LONGEST_FOLDER" ] || cannot_run "$folder has more than $LONGEST_FOLDER characters, too long for sockets"
    grep -q cgroup /proc/mounts || cannot_run "no cgroup file system is mounted"
}

# overlay on the disk of the data folder, or plain copies where the kernel or the disk cannot do that.
storage_driver() {
    local try="$folder/try-overlay"
    mkdir -p "$try"/{lower,upper,work,merged}
    if mount -t overlay overlay -o "lowerdir=$try/lower,upperdir=$try/upper,workdir=$try/work" "$try/merged" 2>/dev/null; then
        umount "$try/merged"
        echo overlay2
    else
        echo vfs
    fi
    rm -rf "$try"
}

make_bridge() {
    local bridge number
    bridge="$(bridge_name)"
    ip link show "$bridge" >/dev/null 2>&1 && return
    ip link add "$bridge" type bridge || cannot_run "this kernel makes no bridge"
    # A subnet that no device here has.
    for number in $(seq 100 199); do
        ip -4 addr show | grep -q "inet 10\.213\.$number\." && continue
        ip addr add "10.213.$number.1/24" dev "$bridge"
        ip link set "$bridge" up
        return
    done
    cannot_run "no free subnet for its bridge"
}

start() {
    is_running && return
    check_machine
    mkdir -p "$folder"
    # A user of the group docker must reach the socket in it.
    chmod 711 "$folder"
    make_bridge
    local attempt
    for attempt in $(seq "$START_ATTEMPTS"); do
        # dockerd gives up when a busy machine starts its containerd slowly.
        start_once && return
        say "attempt $attempt of $START_ATTEMPTS to start dockerd failed"
    done
    delete_bridge
    cannot_run "dockerd does not come up; the last lines of $folder/dockerd.log are above"
}

# Docker 25 and later give devices by CDI, where that is switched on; an older one refuses to start with these words.
configuration() {
    local file="$folder/daemon.json" version
    version="$(dockerd --version | sed -n 's/^[^0-9]*\([0-9]*\).*/\1/p')"
    if [ "${version:-0}" -ge 25 ]; then
        printf '{"features": {"cdi": true}, "cdi-spec-dirs": ["%s/cdi"]}\n' "$folder" >"$file"
    else
        echo '{}' >"$file"
    fi
    echo "$file"
}

start_once() {
    local group=root
    getent group docker >/dev/null && group=docker
    mkdir -p "$folder/cdi"
    # Published ports of 127.0.0.1 go through docker-proxy, and nothing else is wanted: no rule of iptables is needed.
    setsid dockerd --config-file "$(configuration)" \
        --host "unix://$folder/docker.sock" --group "$group" --pidfile "$folder/dockerd.pid" \
        --data-root "$folder/data" --exec-root "$folder/exec" --storage-driver "$(storage_driver)" \
        --containerd-namespace "$(bridge_name)" --containerd-plugins-namespace "$(bridge_name)-plugins" \
        --bridge "$(bridge_name)" --default-address-pool base=10.214.0.0/16,size=24 \
        --iptables=false --ip6tables=false --ip-forward=false --ip-masq=false \
        --exec-opt native.cgroupdriver=cgroupfs --cgroup-parent "/$(bridge_name)" \
        >"$folder/dockerd.log" 2>&1 </dev/null &
    wait_until_it_answers $!
}

wait_until_it_answers() {
    local pid="$1" waited
    for waited in $(seq $((START_DEADLINE_S * 5))); do
        if answers >/dev/null; then
            say "Docker $(answers), $(docker info --format '{{.Driver}}, cgroup version {{.CgroupVersion}}' 2>/dev/null), $DOCKER_HOST"
            return
        fi
        lives "$pid" || break
        sleep 0.2
    done
    tail -n 5 "$folder/dockerd.log" >&2
    ! lives "$pid" || kill -KILL "$pid"
    return 1
}

# --- images ----------------------------------------------------------------------------------------------------------

# The mirror that this machine's own apt uses: as its sources name it, which needs no lists to be there, or as those do.
mirror() {
    {
        apt-get indextargets --no-release-info --format '$(SITE) $(RELEASE)' 'Created-By: Packages'
        apt-get indextargets --format '$(SITE) $(CODENAME)' 'Created-By: Packages'
    } 2>/dev/null | awk -v suite="$SUITE" '$2 == suite && !found {print $1; found = 1}'
}

make_base_image() {
    if docker image inspect "$BASE_IMAGE" >/dev/null 2>&1; then return; fi
    command -v debootstrap >/dev/null || cannot_run "no program debootstrap (Debian: apt-get install debootstrap)"
    local from system="$folder/debian"
    from="$(mirror)"
    [ -n "$from" ] || cannot_run "apt is not set up for Debian $SUITE here, from whose mirror the base image is made"
    say "making $BASE_IMAGE with debootstrap"
    rm -rf "$system"
    debootstrap --variant=minbase --include="$PACKAGES" "$SUITE" "$system" "$from" >"$folder/debootstrap.log" 2>&1 || {
        tail -n 5 "$folder/debootstrap.log" >&2
        cannot_run "debootstrap failed; its last lines are above, all of them in $folder/debootstrap.log"
    }
    rm -rf "$system"/var/cache/apt/archives/*.deb "$system"/var/lib/apt/lists/* "$system"/usr/share/{doc,locale,man}
    # Names of the machine that it was made on.
    : >"$system/etc/resolv.conf"
    : >"$system/etc/apt/sources.list"
    tar -C "$system" -c . | docker import --change 'CMD ["bash"]' - "$BASE_IMAGE" >/dev/null
    rm -rf "$system"
}

images() {
    is_running || cannot_run "it was not started"
    make_base_image
    if docker image inspect "$CPU_IMAGE" >/dev/null 2>&1; then return; fi
    say "building $CPU_IMAGE"
    "$root/docker/build.sh" tritonserver-cpu --base "$BASE_IMAGE" >/dev/null
}

# --- stop ------------------------------------------------------------------------------------------------------------

delete_bridge() {
    ip link delete "$(bridge_name)" 2>/dev/null || true
}

stop() {
    local pid waited
    if is_running; then
        pid="$(cat "$folder/dockerd.pid")"
        kill -TERM "$pid"
        for waited in $(seq $((STOP_DEADLINE_S * 5))); do
            lives "$pid" || break
            sleep 0.2
        done
        if lives "$pid"; then
            say "dockerd did not end in $STOP_DEADLINE_S s and is killed"
            kill -KILL "$pid"
        fi
    fi
    delete_bridge
    remove_mounts_and_cgroups
}

remove_mounts_and_cgroups() {
    local mounted
    awk -v below="$folder/" 'index($2, below) == 1 {print $2}' /proc/mounts | sort -r | while read -r mounted; do
        umount "$mounted" 2>/dev/null || true
    done
    find /sys/fs/cgroup -depth -type d -path "*/$(bridge_name)*" -exec rmdir {} + 2>/dev/null || true
}

[ $# = 2 ] || usage
case "$2" in /*) folder="$2" ;; *) folder="$PWD/$2" ;; esac
readonly folder
export DOCKER_HOST="unix://$folder/docker.sock"
case "$1" in
    start) start ;;
    images) images ;;
    env) printf 'export TRITONCHAOS_TEST_ENGINE=%q\n' "$DOCKER_HOST" ;;
    stop) stop ;;
    *) usage ;;
esac
