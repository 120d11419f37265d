"""Finds the highest rate that a device passes without loss: here a lab's device of 200 Mbit/s; yours between two interfaces.

    python3 no_drop_rate.py                 in a lab
    python3 no_drop_rate.py eth1 eth2       your device stands between these
"""

import sys

import netdyno as nd


def main() -> None:
    if len(sys.argv) == 3:
        report = nd.search("throughput", on=sys.argv[1], measure=sys.argv[2], size="64,512,1518")
    else:
        report = nd.search("throughput", lab={"bottleneck": "200mbps"}, size=512)
    print(f"{report.throughput.frames_per_second:,.0f} frames/s, {report.throughput.bits_per_second / 1e6:.1f} Mbit/s")
    for trial in report.trials:
        print(f"  {trial.load:>12,.0f} offered: {trial.lost_frames} of {trial.sent_frames} lost ({trial.verdict})")
    # The page has the plots.
    report.save("no-drop-rate")


if __name__ == "__main__":
    main()
