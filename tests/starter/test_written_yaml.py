"""What is written as YAML is read back as it was, and what is added changes nothing else."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials.errors import UsageError
from mcptrials.source import yaml_source
from mcptrials.starter.insertion import with_servers
from mcptrials.starter.yaml_lines import comment, mapping, scalar, sequence, value

PATH = Path("x.yaml")
TEXTS = st.text(max_size=30) | st.sampled_from(["yes", "1.10", "~", "- a", "a: b", "#", "0o7", "2026-01-01", "=", "<<"])


@settings(deadline=None)
@given(TEXTS, TEXTS)
def test_any_text_is_read_back_in_every_position(name: str, text: str) -> None:
    for written, meant in (
        (scalar(text), text),
        (value({name: [text, {"k": text}]}), {name: [text, {"k": text}]}),
        ("\n".join(sequence("k", [text] * 9)), {"k": [text] * 9}),
        ("\n".join(mapping("k", {name: text})), {"k": {name: text}}),
        (f"k: 1 {comment(text)}\n", {"k": 1}),
    ):
        assert yaml_source(PATH, written).value == meant


@pytest.mark.parametrize(
    "text",
    [
        "servers:\n  a: {command: x}\nmodels: []\n",
        "servers:\n  a:\n    args:\n    - x   # last\n# about models\nmodels: []\n",
        "servers:\n  a: {command: x}",
        "servers: {a: {command: x}}\n",
        "servers: {\n  a: {command: x}, # why\n}\nx: 1\n",
        "servers: {a: {b: [1, 2]}, }\n",
        "\ufeffservers:\n    a:\n        command: |\n            x\n\n\n\nx: 1\n",
        "servers:\n  a:\n    command: >-\n      x\n      y\n...\n",
        "x: &x {command: y}\nservers:\n  a: *x\n  b: *x  # again\ny: 1\n",
        "servers:\n  a:\n    env: &e {A: b}\n    args: [\n      1]\n  b:\n    env:\n      B: *e\n",
        "servers:\n  a:\n",
        '"servers":\n  a: "x #"\n',
        "{version: 1, servers: {a: {command: x}}, models: []}",
        "---\nservers:\n  a:\n    command: x\n--- # end\n"[:-10],
    ],
)
def test_servers_are_added_behind_the_last_and_nothing_else_changes(text: str) -> None:
    new = with_servers(PATH, text, {"n": ["# found", "n:", "  command: z"]}, {"n": {"command": "z"}})
    before, after = yaml_source(PATH, text.removeprefix("\ufeff")), yaml_source(PATH, new.removeprefix("\ufeff"))
    assert after.value == before.value | {"servers": before.value["servers"] | {"n": {"command": "z"}}}
    start = next((i for i, (old, now) in enumerate(zip(text, new, strict=False)) if old != now), len(text))
    assert new[:start] + new[len(new) - (len(text) - start) :] == text


@pytest.mark.parametrize(
    "text",
    [
        "servers:\n? a\n: {command: x}\n",
        "x: &s\n  a: {command: x}\nservers: *s\n",
        "servers: {}\n",
        "servers: [a]\n",
        "- 1\n",
    ],
)
def test_what_cannot_be_added_to_safely_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="nothing can be added to safely"):
        with_servers(PATH, text, {"n": ["n: {command: z}"]}, {"n": {"command": "z"}})


@pytest.mark.parametrize(
    "comments",
    [
        "    # of a\n",
        "    # of a\r\n\r\n      # args: [y]\r\n",
        "\n   # of a\n\n    # and this\n",
        "         # of a",
    ],
)
@pytest.mark.parametrize("after", ["", "  # of nobody\n", "\n# of b\nb: 1\n"])
def test_a_servers_comments_stay_with_it(comments: str, after: str) -> None:
    text = f"servers:\n  a:\n    command: x  # y\n{comments}"
    if after and not text.endswith("\n"):
        text += "\n"
    new = with_servers(PATH, text + after, {"n": ["# found", "n: {command: z}"]}, {"n": {"command": "z"}})
    assert new.startswith(text)
    assert new[len(text) :].lstrip("\r\n").startswith("  # found")
    assert new.endswith(after)
