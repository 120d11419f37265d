"""A job for CI: fails when throughput fell by 5 % or more against an earlier result.

    python3 ci_throughput.py baseline       a folder of an earlier result; without one, it is written
"""

import os
import sys

import netdyno as nd


def main() -> int:
    baseline = sys.argv[1] if len(sys.argv) > 1 else "baseline"
    now = nd.search("throughput", lab={"bottleneck": "200mbps"}, size=512)
    if not os.path.exists(baseline):
        now.save(baseline)
        print(f"{baseline} is what later runs are compared with")
        return 0
    comparison = nd.compare(baseline, now, least="5%")
    print(comparison)
    return 0 if comparison.ok else 1


if __name__ == "__main__":
    raise SystemExit(main())
