"""Watches a run while it lasts, and changes its rate. In a notebook, `run.live()` does the same in one place."""

import netdyno as nd


def main() -> None:
    with nd.lab() as lab, nd.start(nd.send, "ipv4/udp", on=lab.tx, measure=lab.rx, rate="10kpps", duration="5s", engine="packet") as run:
        for number, now in enumerate(run.snapshots(every=0.5)):
            if now.tx is not None and now.rx is not None:
                print(f"{now.elapsed:5.1f} s: sent {now.tx.frames}, received {now.rx.frames}, lost {now.rx.lost}")
            if number == 4:
                run.set_rate("20kpps")
        report = run.wait()
    print(report)


if __name__ == "__main__":
    main()
