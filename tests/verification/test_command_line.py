"""Interruptions of commands: none gets lost, none breaks an import of another thread, and the exit code says so."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from verification.command_line import end_with, interruptions_held
from verification.vocabulary.verdict import ExitCode

BOTH = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    """Commands replace the handlers of the process."""
    before = {number: signal.getsignal(number) for number in BOTH}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def ended(capsys: pytest.CaptureFixture[str], *numbers: signal.Signals, held: bool = False) -> tuple[object, str, bool]:
    """Exit code, output, and whether the work went on, of a command that gets these signals in a finalizer or held."""
    went_on = False

    class Finalized:
        def __del__(self) -> None:
            for number in numbers:
                signal.raise_signal(number)

    def main() -> int:
        nonlocal went_on
        if held:
            with interruptions_held():
                for number in numbers:
                    signal.raise_signal(number)
                went_on = True
        else:
            Finalized()
            went_on = True
        return 0

    with pytest.raises(SystemExit) as end:
        end_with(main, program="it", kept="all is kept")
    return end.value.code, capsys.readouterr().err, went_on


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("number", BOTH)
def test_an_interruption_that_python_drops_is_no_success(
    capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    """An exception in a finalizer does not reach the command, which goes on."""
    code, said, went_on = ended(capsys, number)
    assert went_on
    assert code == ExitCode.ENVIRONMENT
    assert said.endswith("it: interrupted; all is kept.\n")


@pytest.mark.parametrize("numbers", [BOTH[:1], BOTH[1:], BOTH])
def test_a_held_interruption_comes_at_the_end_of_the_block(
    capsys: pytest.CaptureFixture[str], numbers: tuple[signal.Signals, ...]
) -> None:
    """The block ends first, and the command is interrupted once."""
    code, said, went_on = ended(capsys, *numbers, held=True)
    assert went_on
    assert code == ExitCode.ENVIRONMENT
    assert said == "it: interrupted; all is kept.\n"


def test_without_an_interruption_the_code_is_that_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    """Held or not."""
    assert ended(capsys) == (0, "", True)
    assert ended(capsys, held=True) == (0, "", True)
