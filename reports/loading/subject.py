"""Describe the subject of a run, from its record, its scenarios and its scripts.

Versions are in three places: `versions` and `digests` of the record, and `versions` of every scenario.json. There the
entry `<client>` is the library with its version, `<client> protocol` the transaction version that it used, and
`digest <name>` a digest. Controls do not count, because their subjects are defective on purpose. Scripts of protocol
cases name the release, the transaction versions of their requests, and the feature levels of the brokers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reports.model.conditions import NOT_RECORDED
from reports.model.report import ClientUnderTest, Pairs, Subject
from reports.model.run_record import RunRecord
from verification.scripts.script import Script
from verification.vocabulary.experiment import AT_LEAST_ONCE, FEATURE, Experiment

#: The client that sends the requests of a script.
WIRE, WIRE_LIBRARY = "wire", "the suite's own protocol client"
DIGEST = "digest "
PROTOCOL = " protocol"
#: Separates the values of one name in several scenarios or runs.
JOINED = " / "


def protocol_of(experiment: Experiment) -> str:
    """The transaction version that the client of the scenario used."""
    return experiment.versions.get(experiment.client + PROTOCOL, NOT_RECORDED)


def of(record: RunRecord | None, experiments: Sequence[Experiment], scripts: Sequence[Script] = ()) -> Subject:
    """The subject of a run; where scenarios or cases differ, it has every value."""
    subjects = [each for each in experiments if not each.is_control]
    seen = _merged([*(each.versions for each in subjects), *map(_levels, scripts)])
    spoke = (name.removesuffix(PROTOCOL) for name in seen if name.endswith(PROTOCOL))
    clients = _names(record.clients if record else (), (each.client for each in subjects), spoke)
    spoken = {name for client in clients for name in (client, client + PROTOCOL)}
    versions = {name: value for name, value in seen.items() if name not in spoken and not name.startswith(DIGEST)}
    digests = {name.removeprefix(DIGEST): value for name, value in seen.items() if name.startswith(DIGEST)}
    return Subject(
        release=", ".join(
            _names(
                (each.release for each in subjects),
                (each.release for each in scripts),
                (record.release,) if record else (),
            )
        ),
        runtime=", ".join(_names((each.runtime for each in subjects), (record.runtime,) if record else ())),
        clients=tuple(
            ClientUnderTest(
                name=client,
                library=seen.get(client, NOT_RECORDED),
                protocol=seen.get(client + PROTOCOL, NOT_RECORDED),
            )
            for client in clients
        )
        + _wire(scripts),
        versions=_pairs({**versions, **(record.versions if record else {})}),
        digests=_pairs({**digests, **(record.digests if record else {})}),
        host=_pairs(record.machine if record else {}),
        upgraded_from=", ".join(_names(*(each.nodes.values() for each in subjects))),
        pipelines=_pipelines(experiments, scripts),
        at_least_once=_pipelines([each for each in experiments if each.semantics == AT_LEAST_ONCE], scripts),
    )


def _pipelines(experiments: Sequence[Experiment], scripts: Sequence[Script]) -> int:
    """How many pipelines were tried, controls left out; 0 where something else was tried as well."""
    if scripts or any(each.pipeline is None for each in experiments):
        return 0
    return len({each.workload for each in experiments if not each.is_control})


def _wire(scripts: Sequence[Script]) -> tuple[ClientUnderTest, ...]:
    """The client that sent the requests of scripts."""
    if not scripts:
        return ()
    spoken = sorted({each.generation for each in scripts if each.generation and each.exchanges})
    return (ClientUnderTest(name=WIRE, library=WIRE_LIBRARY, protocol=", ".join(spoken) or NOT_RECORDED),)


def _levels(script: Script) -> dict[str, str]:
    return {f"{FEATURE}{name}": str(level) for name, level in script.features.items()}


def downloads(record: RunRecord | None) -> Pairs:
    """The downloads of the run, with size, time and digest."""
    if record is None:
        return ()
    return tuple(
        (each.name, f"{each.size_bytes / 1e6:.1f} MB in {each.seconds:.1f} s {each.digest}".strip())
        for each in record.downloads
    )


def _names(*groups: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group if name))


def _merged(mappings: Iterable[dict[str, str]]) -> dict[str, str]:
    values: dict[str, dict[str, None]] = {}
    for mapping in mappings:
        for name, value in mapping.items():
            values.setdefault(name, {})[str(value)] = None
    return {name: JOINED.join(each) for name, each in values.items()}


def _pairs(mapping: dict[str, str]) -> Pairs:
    return tuple(sorted((name, str(value)) for name, value in mapping.items()))
