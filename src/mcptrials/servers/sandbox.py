"""Sandbox: what a project says about the rights and limits of a server's process."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from mcptrials.frozen import Items, UserData

MIB = 1 << 20


class Sandbox(UserData):
    """What a server's process may read, write and use up; a limit of null is none."""

    mode: Literal["auto", "off", "landlock", "container"] = "auto"
    """auto: Landlock where the kernel has it, and the limits everywhere; off: neither."""
    read: Items[str] = ()
    """Paths that it may read besides its program's, the system's and those that its command names."""
    write: Items[str] = ()
    """Paths that it may write besides its trial's directory."""
    cpu_seconds: int | None = Field(default=600, ge=1)
    """Of one process."""
    memory_mb: int | None = Field(default=4096, ge=16)
    """Of data of one process; of a container as a whole."""
    file_mb: int | None = Field(default=1024, ge=1)
    """Of one file."""
    processes: int | None = Field(default=512, ge=1)
    """Processes of one server with all that it started; in a container its threads too."""
    open_files: int | None = Field(default=4096, ge=16)
    """Of one process."""
    image: str | None = Field(default=None, min_length=1)
    """Of a container."""
    program: Literal["docker", "podman"] = "docker"
    """What runs containers."""
    network: bool = True
    """Whether a container has one."""

    @model_validator(mode="after")
    def _is_of_one_mode(self) -> "Sandbox":
        if self.mode == "container" and self.image is None:
            raise ValueError("a container needs an 'image', in which the server's command can run")
        only = {"image": self.image, "program": self.program != "docker", "network": not self.network}
        for key, given in only.items():
            if given and self.mode != "container":
                raise ValueError(f"'{key}' goes with 'mode: container', not with '{self.mode}'")
        return self


def _mode(value: Any) -> Any:
    """The mode alone may stand for the whole; YAML 1.1 reads `off` as false."""
    value = "off" if value is False else value
    return {"mode": value} if isinstance(value, str) else value


SandboxKey = Annotated[Sandbox, BeforeValidator(_mode)]
