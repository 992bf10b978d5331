"""The ids under which calls and their results find each other: the provider's, or ours where it gave none."""

from collections.abc import Callable, Sequence
from typing import Any

from mcptrials.protocols import Assistant, Message, Reply


class CallIds:
    """Gives ids to the calls of one reply; an id that was used before in the conversation is not used again."""

    def __init__(self, messages: Sequence[Message]) -> None:
        replies = [item.reply for item in messages if isinstance(item, Assistant)]
        self._used = {call.id for reply in replies for call in reply.calls}
        self._turn = len(replies)

    def take(self, given: Any, index: int) -> str:
        """The id of the call at `index`, of which the provider says that it is `given`."""
        good = isinstance(given, str) and given and given not in self._used
        call_id = given if good else f"call_{self._turn}_{index}"
        self._used.add(call_id)
        return call_id


def with_ids(items: Sequence[Any], reply: Reply, key: str, is_call: Callable[[Any], bool]) -> list[Any]:
    """The provider's own items, whose calls stand under the ids that their results will name."""
    natives = [item for item in items if is_call(item)]
    if len(natives) != len(reply.calls):
        return list(items)
    ids = iter([call.id for call in reply.calls])
    return [_under(item, key, next(ids)) if is_call(item) else item for item in items]


def _under(call: Any, key: str, call_id: str) -> Any:
    return call if call.get(key) == call_id else {**call, key: call_id}
