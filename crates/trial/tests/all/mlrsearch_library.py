"""Runs the library MLRsearch with its trials carried out by whoever reads and writes this process's pipes.

A line of JSON in is a search. For each trial a line `trial LOAD DURATION` goes out, and `INTENDED OFFERED FORWARDED` is
read. At its end `over`, and for each goal `goal LOWER UPPER CONDITIONAL`, a bound that there is not being `none`.
"""

import json
import sys

from MLRsearch import AbstractMeasurer, Config, MeasurementResult, MultipleLossRatioSearch, SearchGoal


class Piped(AbstractMeasurer):
    def measure(self, intended_duration, intended_load):
        print("trial", repr(intended_load), repr(intended_duration), flush=True)
        intended, offered, forwarded = map(int, sys.stdin.readline().split())
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            intended_count=intended,
            offered_count=offered,
            forwarding_count=forwarded,
            duration_with_overheads=intended_duration,
        )


for line in sys.stdin:
    plan = json.loads(line)
    config = Config()
    config.goals = [SearchGoal(fail_fast=False, **goal) for goal in plan["goals"]]
    config.min_load = plan["least"]
    config.max_load = plan["greatest"]
    config.search_duration_max = 1e9
    config.warmup_duration = plan["warm_up"] or None
    try:
        results = MultipleLossRatioSearch(config=config).search(measurer=Piped(), debug=lambda text: None)
    except Exception as error:
        print("error", type(error).__name__, str(error).replace("\n", " "), flush=True)
        continue
    print("over")
    for goal in config.goals:
        result = results[goal]
        bounds = (result.relevant_lower_bound, result.relevant_upper_bound)
        bounds = ["none" if bound is None else repr(float(bound)) for bound in bounds]
        conditional = result.conditional_throughput
        print("goal", *bounds, "none" if conditional is None else repr(float(conditional)))
    sys.stdout.flush()
