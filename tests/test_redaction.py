"""A secret is found and removed however it is spelled, and nothing else is touched."""

import base64
import html
import json
import re
import time
from collections.abc import Callable
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcptrials import excerpt
from mcptrials.redaction import Redactor, Shape, looks_secret

KEY = "sk-Ab3/xY+9_zQ"
AWKWARD = 'p"a\\ss/wö rd\n\U0001f600\t&<x>'
SECRETS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=6, max_size=24).filter(
    lambda text: len(text.strip()) >= 6
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def nested(text: str, times: int, *, ascii_only: bool = True) -> str:
    """The text as JSON in JSON in JSON."""
    for _ in range(times):
        text = json.dumps({"text": text}, ensure_ascii=ascii_only)
    return text


SPELLINGS: dict[str, Callable[[str], str]] = {
    "raw": lambda secret: secret,
    "JSON": lambda secret: nested(secret, 1),
    "JSON in Unicode": lambda secret: nested(secret, 1, ascii_only=False),
    "JSON in JSON": lambda secret: nested(secret, 2),
    "JSON three deep": lambda secret: nested(secret, 3),
    "JSON of a writer that escapes slashes": lambda secret: json.dumps(secret).replace("/", "\\/"),
    "JSON of a writer that escapes for HTML": lambda secret: (
        json.dumps(secret).replace("&", "\\u0026").replace("<", "\\u003C").replace(">", "\\u003E")
    ),
    "URL": quote,
    "URL with slashes": lambda secret: quote(secret, safe=""),
    "form": quote_plus,
    "URL in lower case": lambda secret: "".join(
        part if len(part) == 1 else part.lower() for part in [quote(char, safe="") for char in secret]
    ),
    "URL in a URL": lambda secret: quote(quote(secret, safe="")),
    "HTML": html.escape,
    "hex": lambda secret: secret.encode().hex(),
    "HEX": lambda secret: secret.encode().hex().upper(),
    "hex with spaces": lambda secret: secret.encode().hex(" "),
    "HEX with colons": lambda secret: secret.encode().hex(":").upper(),
    "hex of a dump": lambda secret: "\\x" + secret.encode().hex("x").replace("x", "\\x"),
    "hex of C": lambda secret: ", ".join(f"0x{byte:02x}" for byte in secret.encode()),
    "hex in lines": lambda secret: json.dumps("\n".join(re.findall(".{1,8}", secret.encode().hex()))),
    "every letter for JSON": lambda secret: "".join(
        f"\\u{unit.hex()}" for unit in re.findall(b"(?s)..", secret.encode("utf-16-be"))
    ),
    "every letter for JSON in JSON": lambda secret: json.dumps(
        "".join(f"\\u{unit.hex().upper()}" for unit in re.findall(b"(?s)..", secret.encode("utf-16-be")))
    ),
    "every letter for URLs": lambda secret: "".join(f"%{byte:02x}" for byte in secret.encode()),
    "every letter for URLs in URLs": lambda secret: "".join(f"%25{byte:02X}" for byte in secret.encode()),
    "every letter for HTML": lambda secret: "".join(f"&#{ord(char)};" for char in secret),
    "every letter for HTML in hex": lambda secret: "".join(f"&#x{ord(char):X};" for char in secret),
    "HTML in HTML": lambda secret: "".join(f"&amp;#{ord(char):04};" for char in secret),
    "lines of base64": lambda secret: base64.encodebytes(b"x" * 50 + secret.encode() + b"y" * 50).decode(),
    "lines of base64 in JSON": lambda secret: json.dumps(
        {"env": json.dumps(base64.encodebytes(b"x" * 50 + secret.encode()).decode().replace("\n", "\r\n  "))}
    ),
    "base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "base64 for URLs": lambda secret: base64.urlsafe_b64encode(secret.encode()).decode(),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("secret", [KEY, AWKWARD, "plain0secret", "日本語の秘密です", '"quoted"', "-----"])
def test_a_secret_is_found_in_every_spelling(secret: str, spelling: str) -> None:
    redactor = Redactor({"KEY": secret})
    text = f"before {SPELLINGS[spelling](secret)} after"
    assert redactor.find(text) == "KEY"
    clean = redactor.text(text)
    assert redactor.find(clean) is None
    assert clean.startswith("before ")
    assert clean.endswith(" after")
    assert "[secret KEY]" in clean


@settings(deadline=None, max_examples=50)
@given(secret=SECRETS, before=st.binary(max_size=5), after=st.binary(max_size=5))
def test_a_secret_is_found_at_any_offset_inside_base64(secret: str, before: bytes, after: bytes) -> None:
    redactor = Redactor({"KEY": secret.strip()})
    raw = before + secret.strip().encode() + after
    for encoded in (base64.b64encode(raw), base64.urlsafe_b64encode(raw)):
        assert redactor.find(encoded.decode()) == "KEY"
        assert "[secret KEY]" in redactor.text(encoded.decode())


@settings(deadline=None, max_examples=50)
@given(secret=SECRETS, around=JSON, depth=st.integers(0, 2), ascii_only=st.booleans())
def test_a_line_of_json_stays_valid_and_holds_no_secret(
    secret: str, around: object, depth: int, ascii_only: bool
) -> None:
    secret = secret.strip()
    redactor = Redactor({"NAME": secret})
    value = {"a": around, "key " + secret: [f"x{nested(secret, depth, ascii_only=ascii_only)}y"]}
    clean = json.loads(redactor.line(json.dumps(value, ensure_ascii=ascii_only).encode()))
    assert redactor.find(json.dumps(clean["a"])) is None or secret in "[secret NAME]"
    assert clean["key [secret NAME]"] == [redactor.text(f"x{nested(secret, depth, ascii_only=ascii_only)}y")]


@settings(deadline=None, max_examples=50)
@given(text=st.text())
def test_text_without_a_secret_is_untouched(text: str) -> None:
    redactor = Redactor({"KEY": "a secret that no text holds"})
    assert redactor.text(text) == text
    assert redactor.value({text: [text, 1, None]}) == {text: [text, 1, None]}
    line = json.dumps(text).encode()
    assert redactor.line(line) is line


def test_without_secrets_nothing_changes() -> None:
    redactor = Redactor({})
    assert redactor.text("x") == "x"
    assert redactor.line(b"\xff no JSON") == b"\xff no JSON"
    assert redactor.find("x") is None


def test_values_that_are_too_short_are_left_alone() -> None:
    redactor = Redactor({"A": "abc", "B": "", "C": "  x  "})
    assert redactor.text("abc x abcdef") == "abc x abcdef"


CUTS: dict[str, Callable[[str], str]] = {
    "beginning": lambda text: excerpt.beginning(text, 60),
    "of bytes": lambda text: excerpt.beginning_of_bytes(text.encode(), 60),
    "cut again": lambda text: excerpt.beginning(excerpt.beginning(text, 60) + "x" * 9, 63),
    "in JSON": lambda text: json.dumps(json.dumps({"line": excerpt.beginning(text, 60)})),
    "JSON is cut": lambda text: excerpt.beginning(json.dumps(text), 61),
    "middle": lambda text: excerpt.without_middle(text.encode()[:60], text.encode()[-60:], 7),
    "only the end": lambda text: excerpt.end(text.encode()[-60:]),
    "end of lines": lambda text: excerpt.without_middle(b"a\nb", text.encode()[-60:], 7).splitlines()[-1],
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(
    "secret", ["sk-Ab3dEf6hIj9lMn2pQr5tUv8xYz1", 'p"a\\ss/wörd&<x>7f3a9Kq', "日本語の秘密です0123456789"]
)
def test_of_a_secret_across_a_cut_no_half_is_left(secret: str, cut: str) -> None:
    redactor = Redactor({"KEY": secret})
    for inside in range(8, len(secret)):
        text = "x" * (60 - inside) + secret + "y" * (60 - (len(secret) - inside))
        clean = redactor.text(CUTS[cut](text))
        assert secret[:8] not in clean
        assert secret[-8:] not in clean
        line = json.loads(redactor.line(json.dumps({"text": CUTS[cut](text)}).encode()))
        assert line == {"text": clean}


def test_what_is_no_cut_hides_no_word_that_a_secret_begins_with() -> None:
    redactor = Redactor({"KEY": "customer-x8Kd91mN"})
    assert redactor.text("the customer [...] of customer-") == "the customer [...] of customer-"
    assert redactor.text("the customer-x[...] left") == "the [secret KEY][...] left"


def test_structure_is_kept_and_all_else_is_scrubbed() -> None:
    shape: Shape = {"id": "keep", "inner": {"*": {"n": "keep"}}, "keys": {}}
    value = {"id": KEY, "inner": {KEY: {"n": KEY, "text": {KEY: KEY}}}, "keys": {KEY: [KEY]}, "other": {KEY: KEY}}
    hidden = "[secret KEY]"
    assert Redactor({"KEY": KEY}).value(value, shape) == {
        "id": KEY,
        "inner": {KEY: {"n": KEY, "text": {hidden: hidden}}},
        "keys": {KEY: [hidden]},
        "other": {hidden: hidden},
    }


def test_of_overlapping_secrets_no_rest_is_left() -> None:
    redactor = Redactor({"LEFT": "abcdefgh", "RIGHT": "efghijklmnop", "INNER": "cdef"})
    assert redactor.text("<abcdefghijklmnop>") == "<[secret LEFT]>"
    assert redactor.text("<efghijklmnop>") == "<[secret RIGHT]>"
    assert redactor.text("<abcdefgh> <cdef>") == "<[secret LEFT]> <[secret INNER]>"
    assert Redactor({"A": "abab1"}).text("abab1abab1 abab1") == "[secret A][secret A] [secret A]"


def test_a_secret_that_repeats_itself_leaves_no_rest() -> None:
    assert Redactor({"A": "zzzz"}).text("<zzzzzz>") == "<[secret A]>"
    assert Redactor({"A": "-ab-ab-"}).text("xab-ab-ab-") == "xab[secret A]"


def test_one_value_under_two_names_has_the_first_name() -> None:
    assert Redactor({"FIRST": KEY, "SECOND": KEY}).text(KEY) == "[secret FIRST]"


def test_a_short_line_of_a_secret_is_too_common_to_be_one_by_itself() -> None:
    redactor = Redactor({"NOTE": f"version: 2.0.1-b\n{KEY * 2}\nname: tracker-7\n"})
    assert redactor.text("name: tracker-7") == "name: tracker-7"
    assert redactor.text("version: 2.0.1-b") == "[secret NOTE]"
    assert redactor.text(KEY * 2) == "[secret NOTE]"


def test_white_space_around_a_secret_and_the_lines_of_a_long_one_count() -> None:
    pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0B\nAQEFAASCBKcwggSjAgEAAoIB\n-----END KEY-----\n"
    redactor = Redactor({"PEM": pem, "TOKEN": f"{KEY}\n"})
    assert redactor.text(f"<{KEY}>") == "<[secret TOKEN]>"
    assert redactor.text(pem) == "[secret PEM]\n"
    assert redactor.text("line MIIEvQIBADANBgkqhkiG9w0B of it") == "line [secret PEM] of it"
    assert redactor.find(pem.replace("\n", "\r\n")) == "PEM"


def test_a_number_is_hidden_when_it_is_the_secret_and_kept_when_it_only_holds_it() -> None:
    redactor = Redactor({"PIN": "48213377"})
    line = b'{"pin":48213377,"tokens":148213377,"ms":48213377.5,"text":"is 48213377."}'
    clean = json.loads(redactor.line(line))
    assert clean == {"pin": "[secret PIN]", "tokens": 148213377, "ms": 48213377.5, "text": "is [secret PIN]."}


def test_a_line_that_is_no_json_is_still_scrubbed() -> None:
    assert Redactor({"K": KEY}).line(f"{{broken {KEY}".encode() + b"\xff") == b"{broken [secret K]\xff"


@pytest.mark.parametrize(
    "text",
    [
        *("x" * (1 << 20), "\\" * (1 << 20), "%25" * (1 << 18), "é" * (1 << 20), "sk-Ab3" * (1 << 17)),
        *("7" * (1 << 20), "sk-Ab3/x[...]" * (1 << 15), "c2stQWI" + "\\\n" * (1 << 18), "&#115" * (1 << 17)),
    ],
)
def test_a_line_of_a_megabyte_takes_well_under_a_second(text: str) -> None:
    secrets = {f"{sign}{i}": f"{sign}k{i}-Ab3/xY{sign}9_zQ{i}" for i in range(5) for sign in ['"', "é", "s"]}
    redactor = Redactor(secrets | {"K": KEY})
    line = json.dumps({"text": text, "found": KEY}, ensure_ascii=False).encode()
    began = time.process_time()
    clean = redactor.line(line)
    assert time.process_time() - began < 2
    assert json.loads(clean) == {"text": text.replace("sk-Ab3/x[", "[secret K]["), "found": "[secret K]"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "sk-THIS"),
        ("MY_CREDENTIAL", "sk-THIS"),
        ("DIFY_K", "app-x8Kd91mN"),
        ("DB_PASSWORD", "swordfish"),
        ("PASSPHRASE", "correct horse battery staple"),
        ("PASSWORD", "12345678"),
        ("DATABASE", "postgres://me:pw@host/db"),
        ("ENDPOINT", "https://host/?apiKey=abc"),
        ("TOKEN", "/wJalrXUtnFEMI/K7MDENG"),
        ("AUTHORIZATION", "swordfish"),
        ("SOME", "ghp_16C7e42F292c6912E7"),
        ("SOME", "AB12-CD34-EF56-GH78"),
        ("SOME", "xoxb-1234-abcDEF99x"),
        ("SOME", "3f2a9c1e-77aa-4b1c-9e2d-0a1b2c3d4e5f"),
        ("SOME", "qzxkvjwpbnhgfdsaqzxkvjwpbnhgfdsa"),
    ],
)
def test_what_looks_secret(name: str, value: str) -> None:
    assert looks_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "none"),
        ("OPENAI_API_KEY", "EMPTY"),
        ("API_KEY", "ollama"),
        ("AUTH", "true"),
        ("MAX_TOKENS", "200000"),
        ("SESSION", "off"),
        ("KEY", "abc"),
        ("PROJECT", "Billing"),
        ("OWNER", "Ada Lovelace"),
        ("LANG", "en_US.UTF-8"),
        ("SINCE", "2026-03-01"),
        ("REGION", "us-east-1"),
        ("LEVEL", "DEBUG"),
        ("ENDPOINT", "https://host/v1"),
        ("HOME", "/home/someone"),
        ("PORT", "8080"),
        ("MODE", "read-only"),
        ("TENANT", "customers"),
        ("AUTHOR", "customers"),
        ("KEYWORDS", "customers"),
        ("SOME", "x8Kd91m"),
        ("SOME", "transcript"),
        ("SOME", "qwen2.5-coder-1.5b"),
        ("SOME", "meta-llama/Llama-3.3-70B-Instruct"),
        ("SOME", "deepseek-r1:14b-qwen-distill-q4_K_M"),
        ("SOME", "claude-sonnet-4-5-20250929"),
        ("SOME", "gpt-4o-mini"),
        ("SOME", "myTenantName"),
        ("SOME", "2026-03-01T10:00:00Z"),
        ("MODEL", "ft:gpt-4o-mini:acme::9aBcDeFg"),
    ],
)
def test_what_is_an_ordinary_setting(name: str, value: str) -> None:
    assert not looks_secret(name, value)


@settings(deadline=None, max_examples=60)
@given(word=st.text("abAB1- _", max_size=60))
def test_any_value_is_judged_at_once(word: str) -> None:
    assert looks_secret("NAME", word * 20) in (True, False)


def test_a_secret_that_comes_up_later_is_removed_from_then_on() -> None:
    redactor = Redactor({"A": "first-secret"})
    assert redactor.text("second-secret") == "second-secret"
    redactor.add("B", "second-secret")
    redactor.add("C", "second-secret")
    assert redactor.text("first-secret second-secret") == "[secret A] [secret B]"
