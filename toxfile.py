"""Lets several tox environments share one directory, and ends them on SIGTERM as on Ctrl-C.

tox writes an environment's name into its directory, and rebuilds the directory for an environment of another name. That
would install pyspark (0.5 GB) again at every switch. Removing the name at the end of an environment lets the next one
use the directory. tox still compares interpreter and dependencies, and rebuilds when those differ.

CI systems and `timeout` send SIGTERM, which ends tox at once and leaves its command running. Here tox is interrupted, as
by Ctrl-C, and waits for its command as long as `tox.ini` says. Ctrl-C at a terminal reaches the command as well; SIGTERM
may have reached tox alone, so it is passed on. A further SIGTERM changes nothing. Limit: it is passed on where the system
has /proc; elsewhere tox sends SIGINT after `suicide_timeout`.
"""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tox.plugin import impl

if TYPE_CHECKING:
    from tox.config.sets import ConfigSet
    from tox.session.state import State
    from tox.tox_env.api import ToxEnv

# Ctrl-C at a terminal reaches its command as well, which then ends normally. tox, interrupted too, would report a failure.
_ENDS_BY_CTRL_C = "watch"
# A shell starts background jobs with SIGINT ignored.
_IGNORED = signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def _terminate(*_: object) -> None:
    """Pass SIGTERM on to the children of tox, and interrupt tox unless Ctrl-C did: it then ignores SIGINT."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    # Each thread has a file of its children.
    children = [int(pid) for each in Path("/proc/self/task").glob("*/children") for pid in each.read_text().split()]
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
    if _IGNORED or signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        raise KeyboardInterrupt


@impl
def tox_add_core_config(core_conf: ConfigSet, state: State) -> None:
    """Handle SIGTERM from now on; tox calls this once, in its main thread."""
    del core_conf
    signal.signal(signal.SIGTERM, _terminate)
    if list(getattr(state.conf.options, "env", None) or ()) == [_ENDS_BY_CTRL_C]:
        # Not SIG_IGN, which commands would inherit.
        signal.signal(signal.SIGINT, lambda *_: None)


@impl
def tox_env_teardown(tox_env: ToxEnv) -> None:
    """Forget which environment the directory belonged to."""
    info = tox_env.env_dir / ".tox-info.json"
    try:
        content = json.loads(info.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    if isinstance(content, dict) and content.pop("ToxEnv", None) is not None:
        info.write_text(json.dumps(content, indent=2), encoding="utf-8")
