"""Run seeds and say which failed; a seed alone prints its story.

python -m tests.simulation --seeds 2000 [--from N] [--bug NAME]
python -m tests.simulation --seed 27
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.bugs import BUGS
from tests.simulation.world import Outcome, World, simulate


def run_one(bug: str | None, seed: int) -> Outcome:
    return simulate(seed, BUGS[bug] if bug else World)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds")
    parser.add_argument("--from", type=int, default=0, dest="first", help="the first seed")
    parser.add_argument("--seed", type=int, help="this one only: print what happens in it")
    parser.add_argument("--bug", choices=sorted(BUGS), help="with this bug planted")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    args = parser.parse_args()
    if args.seed is not None:
        return _report(run_one(args.bug, args.seed))
    seeds = range(args.first, args.first + args.seeds)
    faults: Counter[str] = Counter()
    failed = 0
    started = time.monotonic()
    with ProcessPoolExecutor(args.jobs) as pool:
        for outcome in pool.map(partial(run_one, args.bug), seeds, chunksize=10):
            faults.update(outcome.faults)
            if outcome.wrong:
                failed += 1
                print(f"seed {outcome.seed}: {outcome.wrong[0]}", flush=True)
    seconds = time.monotonic() - started
    counts = ", ".join(f"{name} {n}" for name, n in sorted(faults.items()))
    print(f"{len(seeds)} seeds in {seconds:.0f} s, {failed} failed; faults: {counts}")
    return int(failed > 0)


def _report(outcome: Outcome) -> int:
    print(*outcome.story, *outcome.wrong, f"trace {outcome.trace}", sep="\n")
    return int(bool(outcome.wrong))


if __name__ == "__main__":
    sys.exit(main())
