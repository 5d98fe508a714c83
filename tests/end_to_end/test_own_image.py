"""Images as subjects, whole: jars of a release are that release, others a build of your own, and bad images end early."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from fixtures.clusters.docker import images
from fixtures.clusters.docker.engine import Engine, Role
from fixtures.clusters.docker.image_recipe import JARS, Recipe, kafka_recipe, toxiproxy_recipe
from fixtures.clusters.docker.own_image import read_image
from fixtures.clusters.docker.root_filesystem import C_LIBRARY_DIRECTORY, c_library, packed
from fixtures.clusters.locks.releases import Release, fetch_release
from fixtures.downloads.progress import Downloads
from fixtures.tools.toxiproxy_build import fetch_toxiproxy
from tests.end_to_end.test_own_build import CASE, FORGETFUL, FORGETFUL_CLASS, RELEASE, copied, run, with_class
from tests.support.engines import answering
from tests.support.whole_commands import Ended

QUIET = Downloads(quiet=True)


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    found = answering()
    yield found
    found.close()


def made(engine: Engine, recipe: Recipe) -> str:
    """The name of an image that is built here."""
    return images._build(engine, recipe, QUIET).reference


@pytest.fixture(scope="module")
def plain(engine: Engine) -> Iterator[str]:
    """An image with the jars of a release, under a name of the user."""
    name = "localhost:1/mine/kafka:plain"
    built = made(engine, kafka_recipe(fetch_release(Release.parse(RELEASE)), QUIET))
    assert engine.client.images.get(built).tag(*name.rsplit(":", 1))
    yield name
    engine.client.images.remove(name)


@pytest.fixture(scope="module")
def forgetful(engine: Engine, plain: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same image with one class of the broker replaced."""
    build = with_class(copied(RELEASE, tmp_path_factory.mktemp("jars") / "forgetful"), FORGETFUL_CLASS, FORGETFUL)
    (jar,) = build.glob("kafka-storage-[0-9]*.jar")
    changed = engine.client.containers.create(plain, entrypoint=["java"], labels=engine.labels("x", Role.FORMAT, 0))
    changed.put_archive(JARS, packed(jar))
    yield str(changed.commit(repository="localhost:1/mine/kafka", tag="forgetful").tags[0])
    changed.remove(force=True, v=True)
    engine.client.images.remove("localhost:1/mine/kafka:forgetful")


def tried(place: Path, reference: str, *options: str) -> Ended:
    """One protocol case on an image; the run is `run` below the place."""
    chosen = ("--image", reference, "-k", "last_five", "--run-dir", str(place / "run"))
    return run(place, "pytest", "suites/protocol", "-p", "no:hypothesispytest", *chosen, *options)


@pytest.mark.docker
def test_jars_of_a_release_are_that_release_under_any_name(plain: str) -> None:
    """A second look reads the jars from the cache and finds the same."""
    for _ in range(2):
        found = read_image(plain, downloads=QUIET)
        assert (str(found.release), found.build) == (RELEASE, None)


@pytest.mark.docker
def test_an_image_with_one_class_replaced_is_detected_by_name(forgetful: str, tmp_path: Path) -> None:
    """It is a build of your own, and its brokers run its class: the case fails without the name of a known bug."""
    ended = tried(tmp_path, forgetful)
    assert ended.code == 1, ended.output
    body = json.loads((tmp_path / "run" / "results.json").read_text(encoding="utf-8"))
    record = json.loads((tmp_path / "run" / "run.json").read_text(encoding="utf-8"))
    (case,) = body["cases"]
    assert (case["id"], case["verdict"], body["decision"]) == (CASE, "FAIL", "NO-GO")
    assert body["subject"]["release"].startswith(f"{RELEASE}+own.")
    assert body["subject"]["own_build"]["version"] == RELEASE
    assert f"tox -e protocol -- --image {forgetful} " in record["command"]
    assert forgetful in record["digests"]


def without_java(engine: Engine) -> str:
    return made(engine, toxiproxy_recipe(fetch_toxiproxy(downloads=QUIET)))


def without_jars(engine: Engine) -> str:
    """An image whose `java` is another program, which starts."""
    return made(
        engine,
        Recipe(
            repository="onceproof/nothing",
            tag="test",
            key="0" * 12,
            files=lambda _: {**c_library(), "bin/java": fetch_toxiproxy(downloads=QUIET)},
            settings=("ENV PATH=/bin", f"ENV LD_LIBRARY_PATH={C_LIBRARY_DIRECTORY}"),
        ),
    )


def absent(_: Engine) -> str:
    return "localhost:1/no/such:image"


@pytest.mark.docker
@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (absent, r"Exit: The image localhost:1/no/such:image is not on the engine\. .* --image names the image"),
        (without_java, r"Exit: The image \S+ cannot run java: .*executable file not found"),
        (without_jars, rf"Exit: The image \S+ has no {JARS}\. "),
    ],
)
def test_an_image_that_cannot_be_tried_is_named_in_a_sentence(
    make: Callable[[Engine], str], sentence: str, engine: Engine, tmp_path: Path
) -> None:
    """Exit code 5, before anything starts, and no run directory."""
    tried(tmp_path, make(engine)).refused(sentence, code=5)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--kafka", RELEASE), r"ERROR: --image and --kafka both name the subject"),
        (("--kafka-libs", "."), r"ERROR: --image and --kafka-libs both name the subject"),
        (("--bootstrap", "127.0.0.1:9"), r"ERROR: --image and --bootstrap both name the subject"),
        (("--runtime", "local"), r"ERROR: --image needs --runtime docker"),
    ],
)
def test_options_that_contradict_an_image_are_refused(options: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    """Exit code 4 and one sentence; no engine is asked."""
    tried(tmp_path, "any/image", *options).refused(sentence, code=4)
