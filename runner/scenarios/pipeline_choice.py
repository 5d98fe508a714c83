"""Chooses pipelines: `--pipeline NAME`, or `--pipeline NAME@VERSION` for another version of their library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fixtures.errors import OnceproofError
from fixtures.pipelines.manifest import LIBRARIES, ON_LIBRARY, Pipeline
from fixtures.workloads.pipeline import PipelineWorkload


def on_version(values: Mapping[str, Any], asked: str) -> dict[str, Any]:
    """The description of a scenario, its pipeline on the version that is asked for; unchanged without one."""
    workload, (_, _, version) = values.get("workload"), asked.partition("@")
    if not version or not isinstance(workload, PipelineWorkload):
        return dict(values)
    return {**values, "workload": replace(workload, pipeline=_on_version(workload.pipeline, version))}


def _on_version(pipeline: Pipeline, version: str) -> Pipeline:
    found = ON_LIBRARY.fullmatch(pipeline.command[0])
    if found is None:
        return pipeline
    library, usual, program = found.groups()
    words = " ".join(each for each in (library, version, program) if each)
    command = (f"{{{words}}}", *pipeline.command[1:])
    return replace(pipeline, name=pipeline.name.replace(usual, version), command=command)


def selected(workloads: Mapping[pytest.Item, object], asked: str) -> list[pytest.Item]:
    """The tests whose pipeline has this name, or one that begins so; with a version only right ways, on a library.

    A known mistake is one of its own version. Raises pytest.UsageError where no test is left, and for an unknown version.
    """
    name, _, version = asked.partition("@")
    pipelines = {item: each.pipeline for item, each in workloads.items() if isinstance(each, PipelineWorkload)}
    found = [item for item, pipeline in pipelines.items() if pipeline.name.startswith(name)]
    if not found:
        known = ", ".join(sorted({each.name for each in pipelines.values()}))
        raise pytest.UsageError(f"--pipeline {asked}: no pipeline has this name; there are {known}")
    if not version:
        return found
    right = [item for item in found if item.get_closest_marker("convict") is None]
    libraries = {item: on[1] for item in right if (on := ON_LIBRARY.fullmatch(pipelines[item].command[0]))}
    if not libraries:
        raise pytest.UsageError(f"--pipeline {asked}: {name} has no versions here; leave {version} out")
    try:
        for library in set(libraries.values()):
            LIBRARIES[library].locked(version)
    except OnceproofError as error:
        raise pytest.UsageError(f"--pipeline {asked}: {error}") from None
    return list(libraries)
