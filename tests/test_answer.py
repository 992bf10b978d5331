"""The answer is taken from the frame that was asked for, and from nowhere outside the final message."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcptrials.answer import REQUEST, SHORT, ask, extract


@pytest.mark.parametrize(
    ("message", "answer", "framing"),
    [
        ("<answer>BILL-482</answer>", "BILL-482", "tagged"),
        ("I looked.\n<answer>\n BILL-482 \n</answer>\n", "BILL-482", "tagged"),
        ("<ANSWER>x</Answer>", "x", "tagged"),
        ("<answer>x", "x", "tagged"),
        ("<answer>line one\nline two</answer>", "line one\nline two", "tagged"),
        ("<answer>x</answer> and again <answer>x</answer>", "x", "tagged"),
        ("<answer>Bill</answer> or <answer> bill </answer>", "bill", "tagged"),
        ("<answer>\uff11\uff12</answer><answer>12</answer>", "12", "tagged"),
        ("<answer>a</answer> no, <answer>b</answer>", "b", "hedged"),
        ("<answer>4<answer>2</answer>", "2", "hedged"),
        ("<answer><answer>x</answer></answer>", "x", "tagged"),
        ("<answer>x</answer>\n<answer>", "x", "tagged"),
        ("<answer>x</answer><answer> </answer>", "x", "tagged"),
        ("<answer></answer>", None, "missing"),
        ("The answer: <answer>", None, "missing"),
        ("BILL-482", "BILL-482", "untagged"),
        ("  BILL-482\n", "BILL-482", "untagged"),
        ("BILL-482</answer>", "BILL-482", "untagged"),
        ("a < b > c", "a < b > c", "untagged"),
        ("x" * SHORT, "x" * SHORT, "untagged"),
        ("x" * (SHORT + 1), None, "missing"),
        ("", None, "missing"),
        (" \n ", None, "missing"),
        (None, None, "missing"),
    ],
)
def test_an_answer_is_found_where_it_stands(message: str | None, answer: str | None, framing: str) -> None:
    assert extract(message) == (answer, framing)


def test_the_request_for_the_frame_stands_after_the_prompt() -> None:
    assert ask("Find it.\n\n") == f"Find it.\n\n{REQUEST}"
    assert "<answer>" in REQUEST


PIECES = st.sampled_from(["<answer>", "</answer>", "<ANSWER>", "<answer", "a", "B ", "\n", " ", "\ud800", "\uff11"])


@given(message=st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join))
def test_an_answer_is_always_a_part_of_the_message_without_a_tag(message: str) -> None:
    answer, framing = extract(message)
    assert framing in ("tagged", "untagged", "hedged", "missing")
    assert (answer is None) == (framing == "missing")
    if answer is not None:
        assert answer in message
        assert answer == answer.strip() != ""
        assert "<answer>" not in answer.lower()
        assert "</answer>" not in answer.lower()


@given(answer=st.text(min_size=1).filter(lambda text: text.strip() and "answer>" not in text.lower()))
def test_what_is_framed_comes_out_as_it_was(answer: str) -> None:
    assert extract(f"So: <answer>{answer}</answer> That is it.") == (answer.strip(), "tagged")


@pytest.mark.parametrize("piece", ["<answer>", "</answer>", "<answer>x", "<answer", "<", "<answer></answer>"])
def test_a_hostile_message_of_megabytes_is_read_in_no_time(piece: str) -> None:
    began = time.process_time()
    extract(piece * (2_000_000 // len(piece)))
    assert time.process_time() - began < 3
