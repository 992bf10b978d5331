"""`changes`: which files and rows of SQLite tables differ from the pristine state."""

from typing import Any

from anyio import to_thread
from pydantic import Field

from mcptrials.environment.look import Look
from mcptrials.environment.remains import ReadError
from mcptrials.environment.snapshot import take_snapshot
from mcptrials.frozen import UserData


class ChangesReader(UserData):
    """A list of `{in, change, row or content}`; a changed row is one that was removed and one that was added."""

    changes: str = Field(min_length=1)
    """Which places: a glob of files (`notes/*`) and tables (`shop.db/orders`)."""
    before_close: bool = False

    def names(self) -> set[str]:
        return set()

    async def read(self, look: Look) -> Any:
        if look.pristine is None:
            raise ReadError("what has changed is known of a trial only")
        after = await to_thread.run_sync(take_snapshot, look.place.trial_dir)
        return await to_thread.run_sync(look.pristine.changes_to, after, self.changes)
