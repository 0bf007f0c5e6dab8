"""Offline evaluation beside libraries: seconds and memory for the same data frames.

    python -m benchmarks.evaluate --rows 10000000 --rectools /elsewhere/bin/python

Lists of ten, a user each, in frames of pandas with texts as ids. Each library runs in a process of
its own, its clock from the frames to the means, after a small log: of NDCG, MAP, recall and MRR, or
the four that Jurity has, cut at 10. The values of a library must be those of streamer under its
conventions. What takes long gets ``--slow-rows`` only, and its ratio is that to streamer on as
many. Memory is what is added to that of the frames. RecTools needs NumPy below 2: ``--rectools`` is
the Python of an environment that has it (pip install rectools).
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import importlib
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import streamer
from benchmarks.measure import peak_rss_mb

LIST, ITEMS, K = 10, 50_000, 10
STEP = 4_999
"""Between the items of a list, which so are distinct."""
COMMON = {"ndcg": f"ndcg@{K}", "map": f"map@{K}", "recall": f"recall@{K}", "mrr": f"mrr@{K}"}
OF_JURITY = {"ndcg": f"ndcg@{K}.jurity", "map": f"map@{K}.jurity", "recall": f"recall@{K}",
             "precision": f"precision@{K}.shown"}  # fmt: skip
TOLERANCE = 1e-6
Values = dict[str, float]


def frames(rows: int) -> tuple[Any, Any]:
    """What is shown, and what is relevant: one in twenty of it, and for one user in five an item
    that is not shown."""
    np: Any = importlib.import_module("numpy")
    pd: Any = importlib.import_module("pandas")
    users = rows // LIST
    dice = np.random.default_rng(7)
    names = np.array([f"u{user}" for user in range(users)], object)
    items = np.array([f"i{item}" for item in range(ITEMS)], object)
    user = np.repeat(np.arange(users), LIST)
    first = np.repeat(dice.integers(0, ITEMS, users), LIST)
    item = (first + STEP * np.tile(np.arange(LIST), users)) % ITEMS
    score = np.tile(np.arange(LIST, 0, -1.0), users)
    order = dice.permutation(users * LIST)
    shown = pd.DataFrame(
        {"user_id": names[user[order]], "item_id": items[item[order]], "score": score[order]}
    )
    is_clicked = dice.random(users * LIST) < 0.05
    others = np.flatnonzero(dice.random(users) < 0.2)
    clicked = pd.DataFrame(
        {
            "user_id": np.concatenate((names[user[is_clicked]], names[others])),
            "item_id": np.concatenate((items[item[is_clicked]], ["other"] * len(others))),
        }
    )
    return shown, clicked


# Libraries ------------------------------------------------------------------------------------


def by_streamer(shown: Any, clicked: Any) -> Values:
    """The values of COMMON and OF_JURITY by their names there."""
    names = sorted({*COMMON.values(), *OF_JURITY.values()})
    found = streamer.evaluate(shown, clicked, names)
    return {name: found.value(name) for name in names}


def by_ranx(shown: Any, clicked: Any) -> Values:
    ranx: Any = importlib.import_module("ranx")
    columns = {"q_id_col": "user_id", "doc_id_col": "item_id"}
    judged = ranx.Qrels.from_df(clicked.assign(score=1), score_col="score", **columns)
    ranked = ranx.Run.from_df(shown, score_col="score", **columns)
    names = list(COMMON.values())
    found = ranx.evaluate(judged, ranked, names, make_comparable=True)
    return {name: float(found[name]) for name in names}


def by_rectools(shown: Any, clicked: Any) -> Values:
    metrics: Any = importlib.import_module("rectools.metrics")
    lists = shown.assign(rank=shown.groupby("user_id")["score"].rank(ascending=False).astype(int))
    asked = {
        COMMON["ndcg"]: metrics.NDCG(K, divide_by_achievable=True),
        COMMON["map"]: metrics.MAP(K),
        COMMON["recall"]: metrics.Recall(K),
        COMMON["mrr"]: metrics.MRR(K),
    }
    found = metrics.calc_metrics(asked, lists, clicked.assign(weight=1))
    return {name: float(value) for name, value in found.items()}


def by_jurity(shown: Any, clicked: Any) -> Values:
    of: Any = importlib.import_module("jurity.recommenders")
    actual, predicted = clicked.assign(click=1), shown.rename(columns={"score": "click"})
    kinds = {"ndcg": of.NDCG, "map": of.MAP, "recall": of.Recall, "precision": of.Precision}
    return {
        OF_JURITY[name]: float(kind("click", k=K).get_score(actual, predicted))
        for name, kind in kinds.items()
    }


LIBRARIES: dict[str, Callable[[Any, Any], Values]] = {
    "streamer": by_streamer,
    "streamer, pyarrow": by_streamer,
    "ranx": by_ranx,
    "RecTools": by_rectools,
    "Jurity": by_jurity,
}


def measure(library: str, rows: int) -> None:
    """Print what one library takes, and its values."""
    shown, clicked = frames(rows)
    if library.endswith("pyarrow"):
        pa: Any = importlib.import_module("pyarrow")
        shown, clicked = (pa.Table.from_pandas(x, preserve_index=False) for x in (shown, clicked))
        pa.default_memory_pool().release_unused()
    LIBRARIES[library](*frames(LIST * 100))  # imports, and compiles
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # memory that is free already would hide what is taken
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before = peak_rss_mb()
    begun = time.perf_counter()
    values = LIBRARIES[library](shown, clicked)
    seconds = time.perf_counter() - begun
    memory = peak_rss_mb() - before
    print(json.dumps({"seconds": seconds, "memory_mb": memory, "values": values}), flush=True)


# Side by side ---------------------------------------------------------------------------------


def run(python: str, library: str, rows: int) -> dict[str, Any]:
    """What a process of a library says."""
    command = [python, "-W", "ignore", "-m", "benchmarks.evaluate", "--of", library]
    done = subprocess.run(
        [*command, "--rows", str(rows)], check=True, stdout=subprocess.PIPE, text=True
    )
    result: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return result


def main(flags: argparse.Namespace) -> int:
    """Print a line a library, and whether its values are ours."""
    wholes = {rows: run(sys.executable, "streamer", rows) for rows in (flags.rows, flags.slow_rows)}
    is_right = True
    for library in LIBRARIES:
        python = flags.rectools if library == "RecTools" else sys.executable
        if not python:
            print("RecTools: left out, for --rectools is missing")
            continue
        rows = flags.slow_rows if library in flags.slow else flags.rows
        ours = wholes[rows]
        found = ours if library == "streamer" else run(python, library, rows)
        apart = max(abs(x - ours["values"][name]) for name, x in found["values"].items())
        is_right = is_right and apart < TOLERANCE
        times = found["seconds"] / ours["seconds"]
        print(
            f"{library}: {rows:,} rows, {found['seconds']:.2f} s, {found['memory_mb']:,.0f} MB; "
            f"{times:.1f} times the seconds of streamer, values apart by {apart:.1e}",
            flush=True,
        )
    print(f"results {'right' if is_right else 'WRONG'}")
    return 0 if is_right else 1


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--rows", type=int, default=10_000_000, help="of impressions")
    options.add_argument("--slow-rows", type=int, default=1_000_000, help="for those of --slow")
    options.add_argument("--slow", nargs="*", default=["Jurity"], help="libraries that take long")
    options.add_argument("--rectools", default="", help="a Python that has RecTools")
    options.add_argument("--of", choices=list(LIBRARIES), help="one library, in this process")
    given = options.parse_args()
    if given.of:
        measure(given.of, given.rows)
    else:
        sys.exit(main(given))
