"""Two kinds of experiments make a run: scenarios and protocol cases. The pytest plugin handles both in the same way.

Experiments begin in the background (`lanes.py`). The plugin is called when a verdict is known, and asks for it then.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from reports.model.run_record import Planned
from runner.environment import Environment
from verification.vocabulary.verdict import Verdict


class Experiments(ABC):
    """The experiments of one kind."""

    @abstractmethod
    def parametrize(self, metafunc: pytest.Metafunc) -> None:
        """Repeat a test for everything with which it is performed."""

    @abstractmethod
    def chosen(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The items of the profile, in the order of the report."""

    def asked_for(self, items: Sequence[pytest.Item]) -> list[pytest.Item]:
        """The items that `-k` selects where it selects more than names; all, where pytest applies it."""
        return list(items)

    @abstractmethod
    def planned(self, item: pytest.Item) -> Planned:
        """The entry of a test in `run.json`."""

    @abstractmethod
    def check(self, items: Sequence[pytest.Item]) -> None:
        """Read every test. Raises pytest.UsageError for one that cannot be performed."""

    @abstractmethod
    def listed(self, items: Iterable[pytest.Item]) -> Iterator[str]:
        """Ids, requirements and claims; nothing is started."""

    def left_out(self, items: Iterable[pytest.Item]) -> Iterator[str]:
        """Lines about items that need a look at the cluster of the user; none where `listed` has all of them."""
        del items
        return iter(())

    def alone(self, item: pytest.Item) -> bool:
        """Whether an item runs while nothing else does, after all others; by default none does."""
        del item
        return False

    @abstractmethod
    def begin(
        self, items: Sequence[pytest.Item], environment: Environment, ended: Callable[[pytest.Item], None]
    ) -> None:
        """Perform the items in the background; `ended` is called in any thread when the verdict of one is known.

        It is called again with items that run alone, once all before have their verdicts.
        """

    @abstractmethod
    def conclude(self, item: pytest.Item) -> Verdict:
        """Record and print the verdict of an item that has ended. Raises the error of a mistake of ours."""

    @abstractmethod
    def unexplained(self, item: pytest.Item) -> bool:
        """Whether an item that was concluded proved a violation that no known bug explains."""

    @abstractmethod
    def begin_again(
        self, item: pytest.Item, number: int, environment: Environment, ended: Callable[[pytest.Item], None]
    ) -> None:
        """Perform an item once more in the background, alone on a cluster of its own. Evidence is in `repeats/NUMBER`."""

    @abstractmethod
    def conclude_again(self, item: pytest.Item) -> None:
        """Record and print the verdict of an item that was performed again and has ended."""

    def end_early(self) -> bool:
        """Bring what runs to its normal end, if that is possible; whether it is. Called by a signal handler."""
        return False

    def withdraw_rest(self) -> None:
        """After an early end, let nothing begin any more."""
        raise AssertionError("nothing of this kind ends early")

    def withdrawn(self, item: pytest.Item) -> bool:
        """Whether an item was not begun because of an early end: it has no verdict, and is no part of the run."""
        del item
        return False

    @abstractmethod
    def stop(self) -> None:
        """Let nothing begin any more, interrupt everything that runs, and wait until the rest has its verdict."""

    @abstractmethod
    def hurry(self) -> None:
        """Do not wait for work that can be repeated."""

    @abstractmethod
    def close(self, *, interrupted: bool) -> None:
        """End everything that was started."""
