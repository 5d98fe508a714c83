"""What was tested, put together from the run's record and from what each scenario saw of its clients.

Versions live in three places: the record's `versions` and `digests`, and the `versions` of every scenario.json. There,
the entry `<client>` is the library as it named itself and `<client> protocol` the transaction protocol that it really
spoke; `digest <name>` is a digest. Controls have deliberately strange subjects and therefore say nothing here. Scripts
of protocol cases name the release, the generations whose requests they sent, and the feature levels that they met.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reports.model.report import NOT_RECORDED, Client, Pairs, Subject
from reports.model.run_record import RunRecord
from verification.scripts.script import Script
from verification.vocabulary.experiment import FEATURE, Experiment

#: Who sends the requests of a script.
WIRE, WIRE_LIBRARY = "wire", "the suite's own protocol client"
DIGEST = "digest "
PROTOCOL = " protocol"
#: Stands between the values that one name had in several scenarios or runs.
JOINED = " / "


def protocol_of(experiment: Experiment) -> str:
    """The transaction protocol that the scenario's client really spoke."""
    return experiment.versions.get(experiment.client + PROTOCOL, NOT_RECORDED)


def of(record: RunRecord | None, experiments: Sequence[Experiment], scripts: Sequence[Script] = ()) -> Subject:
    """The subject of a run; where scenarios or cases differ, every value is named."""
    subjects = [each for each in experiments if not each.is_control]
    seen = _merged([*(each.versions for each in subjects), *map(_levels, scripts)])
    clients = _names(record.clients if record else (), (each.client for each in subjects))
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
            Client(
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
    )


def _wire(scripts: Sequence[Script]) -> tuple[Client, ...]:
    """The client that sent the requests of scripts."""
    if not scripts:
        return ()
    spoken = sorted({each.generation for each in scripts if each.generation and each.exchanges})
    return (Client(name=WIRE, library=WIRE_LIBRARY, protocol=", ".join(spoken) or NOT_RECORDED),)


def _levels(script: Script) -> dict[str, str]:
    return {f"{FEATURE}{name}": str(level) for name, level in script.features.items()}


def downloads(record: RunRecord | None) -> Pairs:
    """What was fetched for the run, with size, time and digest."""
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
