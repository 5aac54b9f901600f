"""Throughput of the readers: samples and bytes a second, the first time and from the prepared columns.

    python tests/bench/bench_readers.py [--shared FOLDER] [SET ...]

Reads the real archives of `shared/data` beside the checkout (or PADDLECLI_TEST_SHARED, or --shared);
sets whose archive is not there are passed over, and said so. Each set is read in a fresh process with
a cache of its own. Times are of one thread; `cpu` is what counts on a machine that does other work.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ARCHIVES = {
    "mnist": "mnist",
    "imikolov": "imikolov/simple-examples.tgz",
    "movielens": "movielens/ml-1m.zip",
    "imdb": "imdb/aclImdb_v1.labelled.tar.xz",
    "conll05": "conll05st",
    "wmt16": "wmt16/wmt16.tar.gz",
    "wmt14": "wmt14/multi30k-fr-en.wmt14-layout.tgz",
    "cifar10": "cifar10/cifar10-jpeg.tar.bz2",
}

TURN = """
import json, resource, sys, time
from pathlib import Path
import numpy
from paddlecli.data.fetching import imports
from paddlecli.data.cards import shipped
from paddlecli.data.opening import open_dataset

def timed(what):
    wall, cpu = time.perf_counter(), time.process_time()
    made = what()
    return made, time.perf_counter() - wall, time.process_time() - cpu

name, path = sys.argv[1:]
_, *judged = timed(lambda: imports.bring_in(shipped(name), Path(path), unofficial=True))
data, *first = timed(lambda: open_dataset(name))
_, *again = timed(lambda: open_dataset(name))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps({
    "samples": sum(len(s) for s in data.splits.values()),
    "bytes": sum(s.nbytes for s in data.splits.values()),
    "import": judged, "first": first, "again": again, "peak_kb": peak}))
"""


def main() -> int:
    """Prints one line a set; exit code 1 if one misses what is asked of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sets", nargs="*", default=[*ARCHIVES])
    beside = Path(__file__).resolve().parents[3] / "shared"
    parser.add_argument(
        "--shared", type=Path, default=os.environ.get("PADDLECLI_TEST_SHARED", beside)
    )
    arguments = parser.parse_args()
    missed = 0
    head = f"{'set':10} {'samples':>9} {'import':>8} {'first':>8} {'cpu':>8} {'samples/s':>10} {'MB/s':>7}"
    print(f"{head} {'again':>8} {'peak MB':>8}")
    for name in arguments.sets:
        path = Path(arguments.shared) / "data" / ARCHIVES[name]
        if not path.exists():
            print(f"{name:10} no archive at {path}")
            continue
        found = turn(name, path)
        wall, cpu = found["first"]
        print(
            f"{name:10} {found['samples']:9,} {found['import'][0]:7.2f}s {wall:7.2f}s {cpu:7.2f}s "
            f"{found['samples'] / cpu:10,.0f} {found['bytes'] / cpu / 1e6:7.1f} "
            f"{found['again'][1]:7.3f}s {found['peak_kb'] / 1024:8.0f}"
        )
        missed += name == "imdb" and (cpu > 20 or found["again"][1] > 0.2)
    return int(missed > 0)


def turn(name: str, path: Path) -> dict[str, list[float]]:
    """One set in a process of its own."""
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "PADDLECLI_CACHE_DIR": cache, "PADDLECLI_OFFLINE": "1"}
        command = [sys.executable, "-c", TURN, name, str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name}: {done.stderr}")
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.exit(main())
