"""Two hosts of one's own, and what joins them: to try things without hardware, and without touching any."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._agent import Agent, Program
from .errors import NetdynoError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Lab", "LabInterface", "lab"]


class LabInterface(str):
    """An interface of a lab: its name. A job that is given one is carried out in that lab."""

    lab: Lab

    def __new__(cls, name: str, of: Lab) -> LabInterface:
        made = super().__new__(cls, name)
        made.lab = of
        return made

    def __reduce__(self) -> Any:
        return (str, (str(self),))


class Lab:
    """A lab that stands until the ``with`` block is left, or until ``close()``.

    ``tx`` is the sender's interface, ``rx`` the receiver's; both are names that `send` and its like take. With ``addresses`` the hosts
    have ``tx_address`` and ``rx_address``.
    """

    def __init__(self, options: list[str], program: Program | None, addresses: bool, router: bool) -> None:
        grants = ["--allow-interface", "*", "--allow-interface", "*@*", "--folder", "/", "--allow-address", "*", "--allow-listen", "*"]
        self._agent = Agent(program or Program(), grants, privileged=True, around=["lab", *options, "--"])
        self.tx = LabInterface("tx0", self)
        """The sender's interface."""
        self.rx = LabInterface("rx0", self)
        """The receiver's interface."""
        self.tx_address = LabInterface("198.18.0.1", self) if addresses else None
        """The sender's address, if it has one."""
        self.rx_address = LabInterface("198.19.0.2" if router else "198.18.0.2", self) if addresses else None
        """The receiver's address, if it has one."""

    def interface(self, name: str) -> LabInterface:
        """Another interface of it: ``port2``, ``dut0``."""
        return LabInterface(name, self)

    def close(self) -> None:
        """Takes it apart; runs in it are stopped."""
        self._agent.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<netdyno.Lab: {'standing' if self._agent.alive else 'gone'}>"


def lab(
    *,
    dut: str | None = None,
    bottleneck: str | None = None,
    queue: str | int | None = None,
    burst: str | int | None = None,
    loss: str | None = None,
    impair: str | None = None,
    ports: int | None = None,
    mtu: int | None = None,
    queues: int | None = None,
    cables: int | None = None,
    addresses: bool = False,
    server: str | None = None,
    program: Program | None = None,
) -> Lab:
    """Makes a lab: ``with nd.lab() as lab: nd.send("ipv4/udp", on=lab.tx, measure=lab.rx, count=1000)``.

    The arguments are the options of ``netdyno lab`` (docs/lab.md): ``dut="router"``, ``bottleneck="200mbps"``, ``loss="1%"``,
    ``impair="delay 500us"``, ``server="netdyno endpoint serve --quiet"``. Needs root, or ``sudo -n``.
    """
    given = {
        "dut": dut,
        "bottleneck": bottleneck,
        "queue": queue,
        "burst": burst,
        "loss": loss,
        "impair": impair,
        "ports": ports,
        "mtu": mtu,
        "queues": queues,
        "cables": cables,
        "server": server,
    }
    options = [f"--{name}={value}" for name, value in given.items() if value is not None]
    if addresses:
        options.append("--addresses")
    return Lab(options, program, addresses or server is not None, dut == "router")


def agent_of(given: Iterable[Any]) -> Agent | None:
    """The child in the lab that a job's arguments name an interface of."""
    labs: list[Lab] = []
    for value in given:
        for one in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(one, LabInterface) and one.lab not in labs:
                labs.append(one.lab)
    if not labs:
        return None
    if len(labs) > 1:
        raise NetdynoError("these interfaces are of several labs, which nothing joins")
    if not labs[0]._agent.alive:
        raise NetdynoError("this lab is gone: start the job within its `with` block")
    return labs[0]._agent
