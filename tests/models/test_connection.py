"""How requests get to a provider: proxies, redirects, other files of the user's, and what is not carried over."""

from pathlib import Path
from typing import Any

import pytest
from tests.models.fake_openai import Answer, Request, fake_openai, text

from mcptrials.errors import ProviderError
from mcptrials.models.anthropic_messages import AnthropicMessages
from mcptrials.models.openai_chat import OpenAIChat
from mcptrials.protocols import User
from mcptrials.trial import TrialKey

pytestmark = pytest.mark.anyio

TRIAL = TrialKey(task_id="t", arm="a", number=1, attempt=1, seed=7)
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


async def asked(base_url: str, times: int = 1) -> None:
    model = OpenAIChat("fake", base_url=base_url, api_key="sk-mine", timeout_s=10)
    try:
        for _ in range(times):
            await model.request([User("hello")], [], {}, TRIAL)
    finally:
        await model.aclose()


def seen(request: Request) -> tuple[str, str | None]:
    return request.path, request.headers.get("authorization")


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_another_machine_is_reached_through_the_environments_proxy(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_openai(text("a")) as proxy:
        monkeypatch.setenv(variable, proxy.url.removesuffix("/v1"))
        await asked("http://models.invalid/v1")
    assert seen(proxy.requests[0]) == ("http://models.invalid/v1/chat/completions", "Bearer sk-mine")


async def test_a_machine_that_needs_no_proxy_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fake_openai(text("a")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1"))
        monkeypatch.setenv("NO_PROXY", "models.invalid")
        with pytest.raises(ProviderError, match=r"models\.invalid") as caught:
            await asked("http://models.invalid/v1")
    assert (caught.value.cause, proxy.requests) == ("connection", [])


async def test_credentials_of_a_proxy_are_for_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fake_openai(text("a")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.removesuffix("/v1").replace("//", "//me:word@"))
        await asked("http://models.invalid/v1")
    assert seen(proxy.requests[0])[1] == "Bearer sk-mine"
    assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6d29yZA=="


async def test_who_stands_in_the_address_is_who_asks() -> None:
    async with fake_openai(text("a")) as fake:
        await asked(fake.url.replace("//", "//me:word@"))
    assert seen(fake.requests[0])[1] == "Basic bWU6d29yZA=="


async def test_passwords_of_the_users_netrc_go_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("default login me password word\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    async with fake_openai(text("a")) as fake:
        await asked(fake.url)
    assert seen(fake.requests[0])[1] == "Bearer sk-mine"


async def anthropic(base_url: str) -> None:
    model = AnthropicMessages("fake", base_url=base_url, api_key="sk-mine", headers={"x-gate": "mine"}, timeout_s=10)
    try:
        await model.request([User("hello")], [], {}, TRIAL)
    finally:
        await model.aclose()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("ask", [asked, anthropic])
async def test_neither_keys_nor_conversations_follow_a_redirect_to_another_server(ask: Any, status: int) -> None:
    async with fake_openai(text("a")) as other:
        moved = Answer(b"", status, {"location": f"{other.url}/moved"})
        async with fake_openai(moved) as fake:
            with pytest.raises(ProviderError, match=f"a redirect to {other.url}/moved, .* set 'base_url'") as caught:
                await ask(fake.url)
    assert (caught.value.cause, caught.value.retryable, caught.value.status) == ("http", False, status)
    assert other.requests == []


@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_same_server_is_followed_with_key_and_body(status: int) -> None:
    async with fake_openai(Answer(b"", status, {"location": "/moved?to=1"}), text("a")) as fake:
        await asked(fake.url)
    assert [seen(each) for each in fake.requests] == [
        ("/v1/chat/completions", "Bearer sk-mine"),
        ("/moved?to=1", "Bearer sk-mine"),
    ]
    assert fake.requests[1].body == fake.requests[0].body


@pytest.mark.parametrize(
    "location",
    ["", "file:///etc/passwd", "//[::1", "http://a:99999999/", "mailto:x", "//me:word@127.0.0.1/v1", "a" * 9_000],
)
async def test_a_redirect_that_leads_nowhere_is_the_providers_failure(location: str) -> None:
    async with fake_openai(*[Answer(b"", 307, {"location": location})] * 50) as fake:
        with pytest.raises(ProviderError) as caught:
            await asked(fake.url)
    assert (caught.value.cause, caught.value.retryable) == ("http", False)
    assert len(str(caught.value)) < 1_000
    assert len(fake.requests) <= 3


async def test_redirects_without_end_are_the_providers_failure() -> None:
    round_and_round = Answer(b"", 307, {"location": "/v1/chat/completions"})
    async with fake_openai(*[round_and_round] * 50) as fake:
        with pytest.raises(ProviderError, match="HTTP 307") as caught:
            await asked(fake.url)
    assert (caught.value.cause, caught.value.retryable, len(fake.requests)) == ("http", False, 3)


async def test_cookies_of_one_answer_do_not_come_with_the_next_request() -> None:
    sticky = Answer(text("a").body, 200, {"set-cookie": "node=7; Path=/"})
    async with fake_openai(sticky, sticky) as fake:
        await asked(fake.url, times=2)
    assert "cookie" not in fake.requests[1].headers


@pytest.mark.parametrize("length", [1_000, 60_000])
async def test_long_headers_of_an_answer_are_read(length: int) -> None:
    async with fake_openai(Answer(text("a").body, 200, {"x-long": "x" * length})) as fake:
        await asked(fake.url)
    assert len(fake.requests) == 1


async def test_an_answer_that_is_no_http_is_the_providers_failure() -> None:
    async with fake_openai(Answer(b"", 99_999)) as fake:
        with pytest.raises(ProviderError) as caught:
            await asked(fake.url)
    assert (caught.value.cause, caught.value.retryable) == ("connection", True)
