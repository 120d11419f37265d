"""An ordinary user: one who may start the program as root by sudo, and nothing else, runs the tests of real jobs; one who may nothing is told what
to grant. With the real sudo, whose rules are this test's own: they stand in a mount namespace, and this host's are not touched. Run as root.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import netdyno as nd
import pytest

HERE = Path(__file__).parent
USER = "nobody"

# All that the user needs, in a place that he can reach: the interpreter, what it imports, the program; and sudo's rules.
SANDBOX = """
set -e
here=$1 rule=$2 interpreter=$3 program=$4 package=$5 tests=$6
shift 6
mount -t tmpfs -o mode=0755 netdyno-user "$here"
mkdir "$here/interpreter" "$here/tests" "$here/home" "$here/package"
mount --bind "$interpreter" "$here/interpreter"
touch "$here/netdyno" "$here/sudoers"
mount --bind "$program" "$here/netdyno"
cp -RL "$package" "$here/package/netdyno"
cp "$tests"/*.py "$tests/../pyproject.toml" "$here/tests"
paths="$here/package" number=0
for folder in $SITE; do
    number=$((number + 1))
    mkdir "$here/site$number"
    mount --bind "$folder" "$here/site$number"
    paths="$paths:$here/site$number"
done
printf 'Defaults !lecture\\nroot ALL=(ALL:ALL) ALL\\n%s\\n' "$rule" >"$here/sudoers"
chmod 0440 "$here/sudoers"
mount --bind "$here/sudoers" /etc/sudoers
ip link set lo up
ip link add name pa type veth peer name pb
ip link add name pc type veth peer name pd
for one in pa pb pc pd; do ip link set dev "$one" up; done
ip addr add 192.0.2.1/24 dev pa
chown -R "$OWNER" "$here/home"
cd "$here/home"
exec setpriv --reuid="$OWNER" --regid="$(id -g "$OWNER")" --clear-groups env -i PATH="$PATH" HOME="$here/home" TMPDIR="$here/home" USER="$OWNER" \
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH="$paths" NETDYNO_BINARY="$here/netdyno" "$here/interpreter/$PYTHON" "$@"
"""


@pytest.fixture
def place():
    if os.geteuid() != 0:
        pytest.fail("run these as root: they make a place where an ordinary user has his own rules of sudo's")
    for tool in ("sudo", "setpriv", "unshare"):
        assert shutil.which(tool), f"{tool} is missing: scripts/setup test"
    folder = tempfile.mkdtemp(prefix="netdyno-user-")
    yield folder
    # Of all that was started there nothing goes on.
    mine = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                words = (process / "cmdline").read_bytes()
            except OSError:
                continue
            mine += [words] if folder.encode() in words else []
    os.rmdir(folder)
    assert not mine


def as_user(place: str, rule: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Runs Python as the user, in a network namespace of his own."""
    interpreter = Path(os.path.realpath(sys.executable))
    assert nd.__file__
    site = [folder for folder in sys.path if folder.endswith(("site-packages", "dist-packages")) and os.path.isdir(folder)]
    environment = {**os.environ, "SITE": " ".join(site), "OWNER": USER, "PYTHON": str(interpreter.relative_to(interpreter.parents[1]))}
    command = ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", SANDBOX, "sandbox", place, rule, str(interpreter.parents[1])]
    command += [nd.Program().find(), str(Path(nd.__file__).parent), str(HERE), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)


def test_who_may_start_the_program_by_sudo_can_do_all_jobs(place):
    # (One test has somebody kill the program, which this user cannot.)
    rule = f"{USER} ALL=(root) NOPASSWD: {place}/netdyno, /bin/kill, /usr/bin/kill"
    tests = f"{place}/tests"
    done = as_user(place, rule, "-m", "pytest", "-c", f"{tests}/pyproject.toml", "--rootdir", tests, f"{tests}/test_real.py")
    assert done.returncode == 0 and "skipped" not in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["without", "refused"])
def test_who_may_nothing_is_told_what_to_grant_for_each_kind_of_job(place, how):
    done = as_user(place, "", f"{place}/tests/without_rights.py", how)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    wrong = {name: [kinds[:1], said] for name, (kinds, said) in told.items() if kinds[:1] != ["PermissionDenied"]}
    assert not wrong, json.dumps(wrong, indent=1)
    for name, (_, said) in told.items():
        if how == "without":
            assert f"leave out sudo=False, so that `sudo -n` starts it; or run Python as root, or give the program what it needs: sudo setcap cap_net_raw" in said, (name, said)
        else:
            assert "sudo refused: sudo: a password is required; run Python as root, allow it (visudo: `nobody ALL=(root) NOPASSWD: /" in said, (name, said)
        assert said.count("\n") == 0, (name, said)
