"""The runtime of a run: containers where they are available, else local processes, and a line that says so."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from fixtures import fetch
from fixtures.clusters.docker.engine import Engine
from fixtures.clusters.docker.runtime import DockerRuntime
from fixtures.clusters.errors import EngineUnavailableError, ImageError
from fixtures.downloads.progress import Downloads
from fixtures.errors import EnvironmentProblemError, ToolUnavailableError, UsageError, WheelError
from fixtures.pipelines.java_library import JavaLibrary
from fixtures.pipelines.manifest import LIBRARIES
from runner import environment
from runner.config import Runtime

UNBUILDABLE = [
    ImageError("The image is not on the engine."),
    WheelError("The Java runtime could not be fetched by pip."),
    ToolUnavailableError("The fetched Java runtime does not start on this machine."),
]


def containers(runtime: Runtime, error: Exception, monkeypatch: pytest.MonkeyPatch) -> str:
    """The lines that are printed when an engine answers and an image cannot be built; then there are no containers."""

    def refuse(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(DockerRuntime, "prepare", refuse)
    stream = io.StringIO()
    anything: Any = object()
    assert environment._containers(runtime, anything, anything, Downloads(stream=stream)) is None
    return stream.getvalue()


@pytest.mark.parametrize("error", UNBUILDABLE, ids=lambda error: type(error).__name__)
def test_processes_are_run_where_images_cannot_be_had(
    error: EnvironmentProblemError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without `--runtime docker`, a problem with containers is one printed sentence and does not end the run."""
    assert containers(Runtime.AUTO, error, monkeypatch).splitlines() == [f"no containers: {error.sentence}"]


@pytest.mark.parametrize("error", UNBUILDABLE, ids=lambda error: type(error).__name__)
def test_containers_that_are_demanded_are_had_or_the_run_ends(
    error: EnvironmentProblemError, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `--runtime docker` a run never uses another runtime."""
    with pytest.raises(type(error)):
        containers(Runtime.DOCKER, error, monkeypatch)


def test_a_request_that_cannot_be_is_not_taken_for_a_missing_image(monkeypatch: pytest.MonkeyPatch) -> None:
    """A usage error ends the run, whatever the runtime."""
    with pytest.raises(UsageError):
        containers(Runtime.AUTO, UsageError("No such release."), monkeypatch)


class SomeEngine:
    """An engine that answers."""

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.parametrize("answers", [True, False])
def test_the_cache_is_filled_for_images_where_they_can_be_built(
    answers: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images need the self-contained Java, which a machine with a Java of its own otherwise never downloads."""
    fetched: list[str] = []

    def connect() -> SomeEngine:
        if not answers:
            raise EngineUnavailableError("there is none")
        return SomeEngine()

    def remember(name: str) -> Any:
        return lambda *_, **__: fetched.append(name)

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Engine, "connect", connect)
    monkeypatch.setattr(fetch, "machine_report", lambda *_, **__: [])
    fetches = ("fetch_release", "definition_jars", "fetch_toxiproxy", "fetch_java", "built", "connector_jars")
    for name in ("check_machine", "find_java", *fetches):
        monkeypatch.setattr(fetch, name, remember(name))
    programs: list[tuple[str, str, str]] = []
    monkeypatch.setattr(JavaLibrary, "fetch", lambda library, *asked: programs.append((library.name, *asked[:2])))
    assert fetch.main([]) == 0
    assert fetched.count("find_java") == 1
    assert fetched.count("fetch_java") == answers
    assert programs == []
    assert not {"built", "connector_jars"} & set(fetched)
    assert fetch.main(["--pipelines"]) == 0
    assert {name for name, *_ in programs} == {each.name for each in LIBRARIES.values()}
    assert ("Kafka Streams", "3.9.2", "OrderCopy") in programs
    assert fetched.count("built") == 1, "the Go program"
    assert fetched.count("connector_jars") == 1, "both Spark pipelines load Spark's Kafka connector"
