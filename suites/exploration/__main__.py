"""`tox -e explore`: seeded walks of rival producers against one broker of a release, judged by a model.

Walks the seeds of a range that are not done yet, until the time is over; the next call goes on from there. With `--seed`
or `--replay` one walk is performed and shown.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from fixtures.clusters.locks.own_build import read_build
from fixtures.clusters.locks.releases import Release, default_release, definition_jars, parse_release
from fixtures.errors import OnceproofError
from runner.config import OUT, ROOT, Runtime, unreported
from runner.console import Console
from runner.environment import prepare
from runner.errors import ENVIRONMENT_ERRORS
from runner.explorer.describe import lines
from runner.explorer.exit_codes import doubtful, is_conclusive, of_exploration, of_walk, too_few_walks
from runner.explorer.explorer import Explorer
from runner.explorer.known_findings import NAMED, name_of
from runner.explorer.moves import WalkPlan
from runner.explorer.parallel import explore
from runner.explorer.shared_state import SharedState
from runner.explorer.store import Store, opened, read_plan
from runner.explorer.testbed import BrokerTestbed, spec
from verification.command_line import Parser, end_with
from verification.vocabulary.releases import within
from verification.vocabulary.verdict import ExitCode
from wire.messages import Definitions

PAGE = ROOT / "docs" / "generated" / "findings.md"
#: The model covers brokers that verify batches and answer TRANSACTION_ABORTABLE.
OLDEST = "3.8.0"
SEEDS = 1_000_000
#: Measured: see `runner.explorer.parallel`.
WALKERS, WALKERS_MOST = 4, 16
_RANGE = re.compile(r"([0-9]+)\.\.([0-9]+)")


def _seeds(text: str) -> range:
    match = _RANGE.fullmatch(text)
    if match is None or int(match[1]) > int(match[2]):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of seeds; write FIRST..LAST, for instance 1..5000")
    return range(int(match[1]), int(match[2]) + 1)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = Parser(prog="python -m suites.exploration", description=(__doc__ or "").splitlines()[0])
    subject = parser.add_mutually_exclusive_group()
    subject.add_argument("--kafka", metavar="VERSION", default=default_release().version, help="Kafka release")
    subject.add_argument("--kafka-libs", type=Path, metavar="DIR", help="a build of your own, in place of a release")
    parser.add_argument("--runtime", choices=[each.value for each in Runtime], default="auto", help="how brokers run")
    parser.add_argument("--minutes", type=float, default=5.0, metavar="N", help="how long to explore (default 5)")
    parser.add_argument(
        "--walkers", type=int, default=WALKERS, metavar="N", help=f"walks at the same time (default {WALKERS})"
    )
    parser.add_argument(
        "--seeds", type=_seeds, metavar="A..B", help="the seeds to walk (default: from a random one on)"
    )
    parser.add_argument("--seed", type=int, help="perform the walk of this seed and show it")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="perform the moves of this file and show them")
    parser.add_argument("--run-dir", type=Path, metavar="PATH", help="directory for state, evidence and findings")
    parser.add_argument(
        "--findings", type=Path, metavar="FILE", help="the page of findings (default docs/generated/findings.md)"
    )
    options = parser.parse_args(arguments)
    if options.minutes <= 0:
        parser.error(f"--minutes {options.minutes:g} leaves no time")
    if not 1 <= options.walkers <= WALKERS_MOST:
        parser.error(f"--walkers {options.walkers} is not in 1..{WALKERS_MOST}")
    if options.seed is not None and options.replay is not None:
        parser.error("--seed and --replay both name one walk; give one of them")
    if options.kafka_libs is not None:
        if options.runtime == Runtime.DOCKER:
            parser.error("--kafka-libs needs --runtime local: its brokers are processes of this machine")
        options.runtime = Runtime.LOCAL
    return options


def _release(options: argparse.Namespace) -> Release:
    """The release or the build. Raises UsageError."""
    return parse_release(options.kafka) if options.kafka_libs is None else read_build(options.kafka_libs).release


@contextmanager
def _testbeds(
    options: argparse.Namespace, directory: Path, console: Console, *, walkers: int
) -> Iterator[list[BrokerTestbed]]:
    """Start a broker of the release with a testbed per walker, and stop it at the end."""
    config = unreported(_release(options), directory, runtime=Runtime(options.runtime))
    environment = prepare(config, console)
    cluster = environment.launch(spec(config.release.version))
    try:
        definitions = Definitions.load(*definition_jars(environment.files))
        with ExitStack() as stack:
            testbeds = [
                stack.enter_context(BrokerTestbed(cluster, definitions, config.release.version)) for _ in range(walkers)
            ]
            offered = ", ".join(testbeds[0].generations)
            console.say(f"Kafka {testbeds[0].release}, transaction.version {testbeds[0].level}, requests of {offered}")
            yield testbeds
    finally:
        cluster.close()


def _one(explorer: Explorer, planned: WalkPlan, console: Console) -> ExitCode:
    walk, broker = explorer.perform(planned)
    for number, line in enumerate(lines(walk), 1):
        console.say(f"{number:3}. {line}")
    if not is_conclusive(planned, walk, broker):
        console.say("The walk was too slow for its transaction timeout: it is not conclusive.")
    return of_walk(planned, walk, broker, explorer.store.release)


def _summary(store: Store, console: Console, *, walks: int) -> ExitCode:
    rate = store.walks / store.seconds if store.seconds else 0.0
    console.say(
        f"{store.walks} walks with {store.requests} requests in {store.seconds:.0f} s ({rate:.1f} walks/s), "
        f"{store.slow} too slow to be conclusive"
    )
    doubts = doubtful(store)
    for signature, count in store.seen.most_common():
        found = store.found.get(signature)
        name = name_of(signature, store.release) or "NEW"
        followed = f" (replays {found.shown}/{found.tries})" if found else ""
        if signature in store.flaky:
            seeds = ", ".join(map(str, store.flaky[signature].seeds))
            followed = f" (flaky{', and doubtful' if signature in doubts else ''}; followed up at seed {seeds})"
        console.say(f"  {count:5} × {name}: {NAMED.get(signature, signature)}{followed}")
    if not walks:
        console.say("No walk was conclusive.")
    if too_few := too_few_walks(store):
        console.say(f"{too_few}.")
    return of_exploration(store, walks=walks)


def run(options: argparse.Namespace, console: Console) -> ExitCode:
    """Explore, or perform one walk; raises the errors of `prepare`."""
    release = _release(options).version
    if not within(release, OLDEST, None):
        console.say(f"The model covers Kafka {OLDEST} and later; Kafka {release} has other rules.")
        return ExitCode.USAGE
    directory = (options.run_dir or OUT / "explore").resolve() / release
    directory.mkdir(parents=True, exist_ok=True)
    store = opened(directory, release, say=console.say)
    planned = read_plan(options.replay) if options.replay is not None else None
    seeds = options.seeds
    if seeds is None:
        first = random.SystemRandom().randrange(SEEDS)
        seeds = range(first, first + SEEDS)
    alone = options.seed is not None or planned is not None
    with _testbeds(options, directory, console, walkers=1 if alone else options.walkers) as testbeds:
        shared = SharedState()
        explorers = [Explorer(each, store, shared=shared, page_at=_page(options), say=console.say) for each in testbeds]
        if alone:
            return _one(explorers[0], planned or explorers[0].plan(options.seed), console)
        how = f"{options.minutes:g} minutes, {len(explorers)} walks at a time"
        console.say(f"seeds {seeds.start}..{seeds.stop - 1}, {how}; state: {store.file}")
        try:
            explore(explorers, seeds, seconds=options.minutes * 60)
        finally:
            code = _summary(store, console, walks=sum(each.walks for each in explorers))
    return code


def _page(options: argparse.Namespace) -> Path:
    """The page of findings: with `--run-dir` one in that directory, because the page belongs to a state."""
    default = options.run_dir.resolve() / PAGE.name if options.run_dir else PAGE
    return Path(options.findings.resolve()) if options.findings else default


def main(arguments: list[str] | None = None) -> int:
    """Explore: 0 when every answer is allowed or known, 1 for a new finding, 4 for bad options, 5 when cut short.

    2 without a conclusive walk in this call, with too few in all calls, and with a doubtful flaky signature. A new
    finding of an earlier call is 1 in every case.
    """
    options = _options(arguments)
    console = Console(out=sys.stdout, live=False, width=shutil.get_terminal_size().columns)
    OUT.mkdir(parents=True, exist_ok=True)
    try:
        return int(run(options, console))
    except OnceproofError as error:
        console.say(str(error))
        return int(error.exit_code)
    except ENVIRONMENT_ERRORS as error:
        console.say(f"{type(error).__name__}: {error}")
        return int(ExitCode.ENVIRONMENT)


if __name__ == "__main__":
    end_with(
        main,
        program="python -m suites.exploration",
        kept="the broker is stopped, and the seeds that are done stay done",
    )
