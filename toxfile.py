"""Lets several tox environments share one directory.

tox writes an environment's name into its directory, and rebuilds the directory for an environment of another name. That
would install pyspark (0.5 GB) again at every switch. Removing the name at the end of an environment lets the next one
use the directory. tox still compares interpreter and dependencies, and rebuilds when those differ.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tox.plugin import impl

if TYPE_CHECKING:
    from tox.tox_env.api import ToxEnv


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
