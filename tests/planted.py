"""Bugs planted one at a time in a copy of the product: do the tests of its lane find each of them?

    python -m tests.planted             all of them, some minutes
    python -m tests.planted query       those of a room

Each is found if the named tests fail with it in its lane, which is the short one unless the bug
says otherwise; exits 1 where one is not. Those of the core are found by its own tests. Bugs of the
worker are those of ``tests/simulation/bugs.py``; which lane looks for them is said beside them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("streamer", "tests", "core", "grafana", "docs", "pyproject.toml", "README.md")


@dataclass(frozen=True)
class Bug:
    """``old`` in a file of the product becomes ``new``; ``tests`` have to fail then: paths, or of
    the core the name of a module. ``lane``: "short", or "long" where only that one finds it."""

    file: str
    old: str
    new: str
    tests: str
    lane: str = "short"

    @property
    def room(self) -> str:
        return self.file.partition("/")[0]

    @property
    def path(self) -> str:
        return self.file if self.room == "core" else f"streamer/{self.file}"

    def command(self, copy: Path) -> list[str]:
        """What runs the tests in a copy of the project."""
        if self.room == "core":
            manifest = ["--manifest-path", str(copy / "core" / "Cargo.toml")]
            options = ["--quiet", "--locked", "--no-default-features", "--profile", "fast"]
            return ["cargo", "test", *options, *manifest, "--", self.tests]
        options = ["-q", "-x", "-p", "no:cacheprovider"]
        return [sys.executable, "-m", "pytest", *options, *self.tests.split()]


BUGS = (
    Bug(
        "cli/history.py",
        "self._write_of(replay, ms - reach_ms)",
        "self._write_of(replay, ms)",
        "tests/cli/test_history.py",
        lane="long",
    ),
    Bug(
        "query/past_windows.py",
        "end_ms - 1) * pane_ms",
        "end_ms) * pane_ms",
        "tests/cli/test_history.py",
    ),
    Bug(
        "kafka/registry.py",
        'retries={"mode": "standard"}',
        'retries={"total_max_attempts": 1}',
        "tests/kafka/test_glue.py",
    ),
    Bug("core/src/formats.rs", "is_zlib: compression == ZLIB", "is_zlib: false", "formats"),
    Bug(
        "actions/leader.py",
        "return self.is_leading and _now() < self._held_until",
        "return True",
        "tests/actions",
    ),
    Bug(
        "actions/leader.py",
        "if self._commits == self._seen or",
        "if False or",
        "tests/actions",
    ),
    Bug(
        "actions/leader.py",
        "if is_due and key not in self._sending and",
        "if key not in self._sending and",
        "tests/actions",
    ),
    Bug(
        "actions/leader.py",
        '"allow_redirects": False',
        '"allow_redirects": True',
        "tests/actions",
    ),
    Bug(
        "actions/leader.py",
        "if self._age_ms > self._max_age_ms:",
        "if False:",
        "tests/actions",
    ),
    Bug(
        "actions/occasions.py",
        "if kind in _DECISIONS and (kind, arm) not in still:",
        "if False:",
        "tests/actions",
    ),
    Bug(
        "actions/occasions.py",
        "return look.stream_ms - ended_ms > look.max_age_ms",
        "return False",
        "tests/actions",
    ),
    Bug(
        "actions/bodies.py",
        'f"{at_s}.".encode() + body',
        "body",
        "tests/actions",
    ),
    Bug(
        "actions/leader.py",
        "self.acted.next_ms(exporter.now_ms)",
        "exporter.now_ms",
        "tests/actions/test_clocks.py",
    ),
    Bug(
        "actions/leader.py",
        "self._exporter.lag_age.doubt()",
        "pass",
        "tests/actions/test_clocks.py",
    ),
    Bug(
        "actions/leader.py",
        "or self._exporter.reader.damaged",
        "",
        "tests/actions/test_leader.py",
    ),
    Bug(
        "state/redis/lua/lead.lua",
        "redis.call('PTTL', KEYS[1]) > lease",
        "false",
        "tests/state/test_redis_store.py -k lease",
    ),
    Bug(
        "state/redis/lua/lead.lua",
        "if leader ~= ARGV[1] and (leader or (lease > 0 and #ARGV > 2)) then",
        "if false then",
        "tests/state/test_redis_store.py -k lease",
    ),
    Bug(
        "stats/experiments/loss.py",
        "if observed < q else 1.0",
        "if True else 1.0",
        "tests/stats/experiments/test_loss.py",
    ),
    Bug(
        "core/src/panes/dimensions.rs",
        "if !is_used && *epoch != FREE",
        "if *epoch != FREE",
        "panes::dimensions",
    ),
    Bug(
        "core/src/attribution/pair_log.rs",
        "if steps <= CHAIN_STEPS {",
        "if steps > 0 {",
        "attribution::pair_log",
    ),
    Bug(
        "core/src/attribution/pair_log.rs",
        "for _ in 0..PASSED_ROWS {",
        "for _ in 0..usize::MAX {",
        "attribution::pair_log",
    ),
    Bug(
        "core/src/experiments/found.rs",
        "(u64::BITS - self.by.leading_zeros(), hash_of(&self.text))",
        "(0, hash_of(&self.text))",
        "experiments::found",
    ),
    Bug(
        "core/src/formats/protobuf.rs",
        "let left = of.defaults.get().checked_sub(1);",
        "let left = Some(1);",
        "formats::tests",
    ),
    Bug(
        "worker/schemas.py",
        "now + max(patience, limits.IMPATIENT_SECONDS)",
        "now + patience",
        "tests/worker/test_schemas.py",
    ),
    Bug(
        "core/src/attribution/pending.rs",
        "(of_pair.len() > most).then_some(*first)",
        "(of_pair.len() > usize::MAX - 1).then_some(*first)",
        "attribution::pending",
    ),
    Bug(
        "formatting.py",
        "shown = _CONTROL.sub(lambda found: ascii(found[0])[1:-1], head)",
        "shown = head",
        "streamer/formatting.py",
    ),
    Bug(
        "worker/partition_task.py",
        "ended, wall_ms, left_ms)",
        "ended, wall_ms)",
        "tests/system/faults/test_hostile.py",
        lane="long",
    ),
    Bug(
        "worker/memory_bound.py",
        "int(min(own, level / table.row_bytes))",
        "int(own)",
        "tests/worker/test_memory_bound.py",
    ),
    Bug(
        "state/log_identity.py",
        "if was != name or",
        "if was == name and",
        "tests/state/test_log_identity.py tests/cli/test_check_faults.py",
    ),
    Bug(
        "state/annotations.py",
        "self.at_ms > now_ms + DAY_MS",
        "self.at_ms > now_ms + 1000 * DAY_MS",
        "tests/server/test_annotations.py streamer/state/annotations.py",
    ),
    Bug("core/src/panes/order.rs", "std::cmp::Reverse(keepers", "(keepers", "panes::order"),
    Bug("core/src/panes/cells.rs", "old.filled >> place & 1 == 1", "true", "panes::cells"),
    Bug(
        "core/src/panes/segments.rs",
        "if !of.is_full() && !is_full",
        "if !is_full",
        "panes::segments",
    ),
    Bug(
        "core/src/panes/labels.rs",
        "if of.count >= self.limit",
        "if self.known.len() >= self.limit",
        "panes::labels",
    ),
    Bug(
        "metrics/rollups.py",
        "codes.update(code for each in statistics for code in each.codes(layout))",
        "codes.update(each.codes(layout)[0] for each in statistics)",
        "tests/oracle/test_many_dimensions.py",
    ),
    Bug(
        *("query/since.py", "added_ms + wait_ms if wait_ms else 0", "added_ms if wait_ms else 0"),
        "tests/state/test_added_settings.py",
        lane="long",
    ),
    Bug(
        *("query/segment_index.py", "s[i] == OTHER", "s[i] == ALL"),
        "tests/oracle/test_users.py",
    ),
    Bug(
        "state/counted_since.py",
        "since.get(n, 0) if n in kept else now_ms",
        "since.get(n, 0)",
        "tests/state/test_changed_settings.py",
    ),
    Bug("encoding/arrays.py", "keys[1:] != keys[:-1]", "keys[1:] > keys[:-1]", "streamer/encoding"),
    Bug(
        "encoding/limbs.py",
        "(h << bits) + x",
        "(h << bits) | x & 0x7FFFFFFF",
        "tests/core tests/metrics",
    ),
    Bug("settings/durations.py", "or int(match[1]) == 0", "", "tests/settings/test_load.py"),
    Bug("settings/load.py", "    validate(settings)\n", "", "tests/settings/test_load.py"),
    Bug(
        "stats/experiments/estimate.py",
        "alpha / (m - j)",
        "alpha / m",
        "streamer/stats/experiments",
    ),
    Bug(
        "stats/random_groups.py",
        "((k - 1) * n**4)",
        "(k * n**4)",
        "tests/stats/test_random_groups.py",
    ),
    Bug(
        "metrics/coverage.py",
        "table.distinct(place) / size",
        "table.distinct(place)",
        "streamer/metrics",
    ),
    Bug("metrics/diversity.py", "(2 * ranks - n - 1)", "(2 * ranks - n)", "streamer/metrics"),
    Bug(
        "metrics/diversity.py",
        "cosines = float(parts @ parts)",
        "cosines = float(parts.sum())",
        "tests/conformance",
    ),
    Bug(
        "query/item_sums.py",
        "item >> (of - bits) == 0",
        "item >= 0",
        "tests/core/test_items.py",
    ),
    Bug("metrics/rings.py", "self.panes + 1", "self.panes", "streamer/metrics"),
    Bug("metrics/calibration.py", "pairs.won + pairs.tied / 2", "pairs.won", "streamer/metrics"),
    Bug("metrics/scores.py", "score - UNIT * clicked", "score - clicked", "streamer/metrics"),
    Bug(
        "metrics/layout.py",
        "slice(i * USER_GROUPS, ",
        "slice(i, ",
        "tests/metrics",
    ),
    Bug("metrics/own_ratios.py", "low * 101 // 99", "low * 11 // 9", "tests/metrics"),
    Bug(
        *(
            "metrics/own_ratios.py",
            "divisor.is_large), divisor",
            "False), divisor",
            "tests/metrics",
        ),
    ),
    Bug(
        "settings/model.py",
        "kept[dimension].update(dict.fromkeys(values))",
        "pass",
        "tests/metrics/test_own_ratios.py tests/oracle/test_engine.py",
    ),
    Bug(
        "metrics/composites.py",
        "k / (k - 1) * (moved",
        "1 / k * (moved",
        "tests/oracle/test_composites.py",
        lane="long",
    ),
    Bug(
        "metrics/day_before.py",
        "return DAY_MS // ring.pane_ms",
        "return DAY_MS // ring.pane_ms - 1",
        "tests/oracle/test_composites.py",
    ),
    Bug(
        "metrics/score_drift.py",
        "2 * below + then",
        "2 * below",
        "tests/oracle/test_composites.py",
        lane="long",
    ),
    Bug("metrics/definition.py", "present = below != 0", "present = below >= 0", "tests/metrics"),
    Bug(
        "metrics/ratios.py",
        "CLICKS, IMPRESSIONS),",
        "IMPRESSIONS, CLICKS),",
        "streamer/metrics/traffic.py",
    ),
    Bug(
        "kafka/fingerprints.py",
        "if offset < start:",
        "if offset <= start:",
        "tests/worker/test_recovery.py tests/kafka/test_fingerprints.py",
    ),
    Bug("kafka/assignor.py", "least + (larger > 0)", "least", "streamer/kafka"),
    Bug(
        "ingest/keying.py",
        '"murmur2": partition_of',
        '"murmur2": lambda key, partitions: 0',
        "tests/ingest/test_keying.py",
    ),
    Bug(
        "ingest/rejections.py", "<= limits.MAX_SECONDS", "<= limits.MIN_SECONDS", "streamer/ingest"
    ),
    Bug("state/codec.py", "if at != len(body)", "if at > len(body)", "tests/state/test_codec.py"),
    Bug("state/topics.py", '"lost", "gaps"', '"gaps"', "tests/state/test_partition.py"),
    Bug("state/counters.py", 'row.over == "max"', "False", "streamer/state/counters.py"),
    Bug(
        "state/journal.py",
        "ref.latest_event_ms < horizon_ms",
        "ref.latest_event_ms > horizon_ms",
        "tests/core/test_leaving_early.py",
    ),
    Bug(
        "query/experiments.py",
        'Outside(none["early"], none["unexposed"])',
        'Outside(sums["unexposed"], sums["early"])',
        "tests/oracle/test_engine.py",
    ),
    Bug(
        "stats/experiments/trials.py",
        "days=self.covariates, covariates",
        "days=self.days, covariates",
        "tests/state/test_user_days.py",
    ),
    Bug(
        "cli/plan.py",
        "if stored.last_day is not None:",
        "if not stored.trial.covariates:",
        "tests/cli/test_plan.py",
    ),
    Bug(
        "query/alert_history.py",
        "windows = ended if check.is_of_present_pane else later",
        "windows = ended",
        "tests/query/test_alert_history.py",
    ),
    Bug(
        "query/alert_history.py",
        "-(-(last - self._newest) // a_day)",
        "(last - self._newest) // a_day",
        "tests/query/test_alert_history.py",
        lane="long",
    ),
    Bug(
        "query/panes.py",
        "or not are_same(old[p], x)}",
        "}",
        "tests/query/test_panes.py tests/query/test_pane_sums.py",
    ),
    Bug(
        "query/alert_panes.py",
        "segment in (of, (ALL,) * len(of))",
        "segment == of",
        "tests/query/test_alert_history.py",
    ),
    Bug(
        "query/composite_panes.py",
        "its_x * n - total * its_y",
        "its_x * n",
        "tests/oracle/test_alert_readings.py streamer/query",
    ),
    Bug(
        "query/windows.py",
        "first * self._window.pane_ms < self._since_ms",
        "first < 0",
        "tests/state/test_day_before.py",
    ),
    Bug(
        "query/readings.py",
        "max(now_ms, stream_ms)",
        "stream_ms",
        "tests/query tests/server",
    ),
    Bug(
        "server/health.py",
        "max(0, bounds.stable - read)",
        "max(0, bounds.stable - read + 1)",
        "tests/server",
    ),
    Bug(
        *("server/host_names.py", '[0].lower().rstrip(".")', "[0]", "streamer/server"),
    ),
    Bug(
        "server/prometheus_text.py",
        "sorted(labels.items())",
        "labels.items()",
        "tests/server/test_prometheus_text.py streamer/server",
    ),
    Bug(
        "stats/experiments/composite.py",
        "a.factor * b.factor",
        "a.factor * a.factor",
        "tests/stats/experiments/test_composite.py",
    ),
    Bug("stats/experiments/srm.py", "p_value <= alpha or", "False or", "tests/stats/experiments"),
    Bug(
        "stats/experiments/periods.py",
        "weight / total for weight in weights",
        "Fraction(1, len(weights)) for weight in weights",
        "streamer/stats/experiments",
    ),
    Bug(
        "stats/experiments/recommendation.py",
        "if is_harm and decision.unseen:",
        "if False:",
        "tests/query/test_dirty_logs.py",
    ),
    Bug(
        "stats/experiments/discoveries.py",
        "enumerate(others, 2)",
        "enumerate(others, 1)",
        "tests/stats/experiments/test_discoveries.py",
    ),
    Bug(
        "stats/experiments/discoveries.py",
        "return weight * _of",
        "return _of",
        "tests/stats/experiments/test_discoveries.py",
    ),
    Bug(
        "stats/experiments/anytime.py",
        "erfc(-t *",
        "erfc(t *",
        "tests/stats/experiments/test_anytime.py",
    ),
    Bug(
        "cli/check_topics.py",
        "in_sync > letters.replicas",
        "in_sync < letters.replicas",
        "tests/cli/test_check.py tests/cli/test_check_faults.py",
    ),
    Bug(
        "cli/rejection_report.py",
        "group.count <= _LOOKED_AT",
        "group.count > _LOOKED_AT",
        "tests/cli",
    ),
    Bug(
        "sources/replay.py",
        "at_end=list(partition.logs)",
        "at_end=()",
        "tests/sources/test_replay.py",
    ),
    Bug(
        "worker/partition_task.py",
        "self.queues[chunk.log].appendleft(chunk)",
        "self.queues[chunk.log].append(chunk)",
        "tests/worker/test_schemas.py",
    ),
    Bug(
        "state/partition.py",
        "applied.left = len(fed) - i",
        "applied.left = len(fed) - i - 1",
        "tests/worker/test_schemas.py",
    ),
    Bug(
        "core/src/users.rs",
        "let moving = rows\n            .chain(held)",
        "let moving = rows\n            .chain(held.take(0))",
        "users::tests",
    ),
    Bug("core/src/users.rs", "self.held.shift(shift);", "", "users::tests"),
    Bug(
        "core/src/users/stored.rs",
        "        self.is_stale = true;\n",
        "",
        "users::tests",
    ),
    Bug(
        "core/src/experiments/history.rs",
        "self.pending.remove_before(final_ms);",
        "",
        "experiments::tests",
    ),
    Bug(
        "core/src/experiments/stored.rs",
        "(-MAX_SUM..=MAX_SUM).contains(sum)",
        "(i64::MIN..=MAX_SUM).contains(sum)",
        "experiments::tests",
    ),
    Bug(
        "core/src/slates/pairs.rs",
        "self.pair(members, index, is_now_relevant, 1);",
        "self.pair(members, index, !is_now_relevant, 1);",
        "slates::pairs",
    ),
    Bug(
        "kafka/damaged_batches.py",
        ">= limits.DAMAGED_FETCHES and",
        ">= 1 and",
        "tests/kafka/test_damaged_batches.py",
    ),
    Bug(
        "kafka/patterns.py",
        "if count not in (None, n):",
        "if False:",
        "tests/system/faults/test_unread_topics.py",
        lane="long",
    ),
    Bug(
        "kafka/patterns.py",
        "if count in (None, n))",
        "if n)",
        "tests/kafka/test_patterns.py",
    ),
    Bug(
        "settings/redis_url.py",
        '.rpartition("@")[2]',
        "",
        "streamer/settings/redis_url.py tests/state",
    ),
    Bug(
        "server/web/format.js",
        "Math.abs(value) >= 999.5",
        "Math.abs(value) >= 9995",
        "tests/server/web/test_pictures.py",
    ),
    Bug(
        "server/web/axis.js",
        "format.tick(ms, step, until - from > DAY)",
        "format.tick(ms, DAY, until - from > DAY)",
        "tests/server/web/test_pictures.py",
    ),
    Bug(
        "server/web/health.js",
        "age(health) > OLD_SECONDS",
        "age(health) > 1000 * OLD_SECONDS",
        "tests/server/web/test_documents.py",
    ),
    Bug(
        "library/table.py",
        "at = key + self._length if key < 0 else key",
        "at = abs(key)",
        "tests/library/test_table.py streamer/library",
    ),
    Bug(
        "monitoring/operational_rules.yml",
        "for: 5m",
        "for: 500m",
        "tests/monitoring",
    ),
)


def is_found(bug: Bug, built: Path) -> bool:
    """Whether the tests fail with it; a ValueError where the product has no such text. ``built``:
    where the core is compiled."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for name in COPIED:
            source = ROOT / name
            ignored = shutil.ignore_patterns("__pycache__", "target")
            if source.is_dir():
                shutil.copytree(source, copy / name, ignore=ignored)
            else:
                shutil.copy(source, copy / name)
        path = copy / bug.path
        text = path.read_text(encoding="utf-8")
        if bug.old not in text:
            raise ValueError(f"{bug.file} has no {bug.old!r}")
        path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        lane = {"STREAMER_TESTS": "all" if bug.lane == "long" else ""}
        places = {"CARGO_TARGET_DIR": str(built), "PYTHONPATH": str(copy)}
        done = subprocess.run(
            bug.command(copy),
            cwd=copy,
            env=os.environ | lane | places,
            capture_output=True,
            text=True,
            check=False,
        )
        if bug.room == "core":
            return done.returncode == 101 and "test result: FAILED" in done.stdout
        return done.returncode == 1


def main() -> int:
    """Plant them; print which were found."""
    rooms = sys.argv[1:]
    missed = 0
    with tempfile.TemporaryDirectory() as built:
        for bug in BUGS:
            if not rooms or bug.room in rooms:
                found = is_found(bug, Path(built))
                missed += not found
                how = "found " if found else "MISSED"
                print(f"{how} {bug.lane} {bug.file}: {bug.old!r}", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
