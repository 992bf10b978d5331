"""What servers ask of their client: answered by the project's policy in both generations, told, and never a hang."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import anyio
import pytest
from mcp.server import MCPServer
from mcp.server.mcpserver.resolve import Elicit, ListRoots, Resolve, Sample
from mcp_types import CreateMessageResult, ListRootsResult, SamplingMessage, TextContent
from pydantic import BaseModel
from tests.projects import DONE, misbehave, play
from tests.projects import faulty as faulty_config
from tests.servers.serving import serving
from tests.servers.talking import Talk, faulty, python, talking

from mcptrials.errors import UsageError
from mcptrials.events import ServerAsked, ServerStarted
from mcptrials.project import Project
from mcptrials.servers.asking import MAX_ANSWERS, Answer, Client, ClientPolicy
from mcptrials.servers.http import HttpServer
from mcptrials.servers.in_process import in_process_server
from mcptrials.servers.session import Era

pytestmark = pytest.mark.anyio

ERAS: tuple[Era, ...] = ("modern", "legacy")


def wanting(folder: Path, **policy: Any) -> Client:
    return Client(ClientPolicy(**policy), folder)


async def got(talk: Talk, question: str) -> Any:
    """What the server got for its question, as it says itself; or the call's status, if it got nothing."""
    answer = await talk.session.call("misbehave", {"fault": question, "value": ""}, 10)
    if answer.status != "ok":
        return answer.status
    return json.loads(answer.result["content"][0]["text"])[0]


DECLINED = {"result": {"action": "decline"}}
SCRIPT = (
    Answer(to="who", content={"name": "Ada"}),
    Answer(to="log in", action="accept"),
    Answer(to="which", action="cancel"),
    Answer(to="yes", text="yes, yes"),
)
YES = {"role": "assistant", "content": {"type": "text", "text": "yes, yes"}, "model": "scripted"}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("policy", "answers"),
    [
        ({}, {"elicit": DECLINED, "elicit_form": DECLINED, "elicit_url": DECLINED, "ask_nonsense": DECLINED}),
        ({"elicitation": "decline"}, {"elicit": DECLINED, "elicit_url": DECLINED}),
        ({"elicitation": "cancel"}, {"elicit": {"result": {"action": "cancel"}}}),
        (
            {"elicitation": "accept-defaults"},
            {
                "elicit": {"result": {"action": "accept", "content": {"size": 3}}},
                "elicit_form": DECLINED,  # a name is required, and nothing gives one
                "elicit_url": DECLINED,  # nobody is there to visit it
                "ask_nonsense": DECLINED,
            },
        ),
        (
            {"elicitation": "scripted", "sampling": "scripted", "answers": SCRIPT},
            {
                "elicit": {"result": {"action": "cancel"}},
                "elicit_form": {"result": {"action": "accept", "content": {"size": 3, "name": "Ada"}}},
                "elicit_url": {"result": {"action": "accept"}},
                "ask_nonsense": DECLINED,
                "sample": {"result": {**YES, "stopReason": "endTurn"}},
            },
        ),
    ],
)
async def test_each_policy_answers_in_both_generations(
    era: Era, policy: dict[str, Any], answers: dict[str, Any], tmp_path: Path
) -> None:  # C44
    with anyio.fail_after(20):
        async with talking(faulty(era=era), tmp_path, client=wanting(tmp_path, **policy)) as talk:
            assert {question: await got(talk, question) for question in answers} == answers
            assert [each.method for each in talk.asked][:1] == ["elicitation/create"]
            undeclared = "undeclared_capability" in talk.breaches
            assert undeclared == (not policy)


@pytest.mark.parametrize("era", ERAS)
async def test_roots_are_the_trials_directory_or_none(era: Era, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(era=era), tmp_path, client=wanting(tmp_path, roots="trial_dir")) as talk:
            roots = [{"uri": tmp_path.as_uri(), "name": "trial"}]
            assert await got(talk, "roots") == {"result": {"roots": roots}}
            assert talk.violations == []


async def test_what_is_refused_is_an_error_to_a_legacy_server_and_ends_the_call_of_a_modern_one(tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(era="legacy"), tmp_path) as talk:
            rejected = {"error": {"code": -1, "message": "User rejected sampling request"}}
            assert await got(talk, "sample") == rejected
            assert (await got(talk, "roots"))["error"]["code"] == -32601
            assert talk.asked[0].answer == rejected
        async with talking(faulty(era="modern"), tmp_path) as talk:
            for question in ("sample", "roots", "ask_all"):
                assert await got(talk, question) == "input_required"
            assert await got(talk, "elicit") == DECLINED


@pytest.mark.parametrize("era", ERAS)
async def test_several_questions_of_one_call_are_all_answered(era: Era, tmp_path: Path) -> None:
    policy = {"elicitation": "scripted", "sampling": "scripted", "roots": "trial_dir", "answers": SCRIPT}
    with anyio.fail_after(20):
        async with talking(faulty(era=era), tmp_path, client=wanting(tmp_path, **policy)) as talk:
            assert (await talk.session.call("misbehave", {"fault": "ask_all"}, 10)).status == "ok"
            assert len(talk.asked) == 5


@pytest.mark.parametrize("era", ERAS)
async def test_a_capability_is_declared_only_with_a_policy(era: Era, tmp_path: Path) -> None:
    policy = {"elicitation": "decline", "sampling": "decline", "roots": "trial_dir"}
    with anyio.fail_after(20):
        for client, names in ((wanting(tmp_path), []), (wanting(tmp_path, **policy), sorted(policy))):
            async with talking(faulty(era=era), tmp_path, era=era, client=client) as talk:
                await talk.session.call("recall", {}, 10)
                (first,) = talk.wire.sent("initialize" if era == "legacy" else "tools/call")
                key = "io.modelcontextprotocol/clientCapabilities"
                declared = first["capabilities"] if era == "legacy" else first["_meta"][key]
                assert sorted(declared) == sorted(talk.session.capabilities) == names


async def test_a_state_is_given_back_just_as_it_came(tmp_path: Path) -> None:
    state = "\u2028 a\\ud800 \u0000 ' 日本"
    program = f"""
import json, sys
def say(number, **outcome): print(json.dumps({{"jsonrpc": "2.0", "id": number, **outcome}}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    p = m.get("params", {{}})
    if m["method"] == "server/discover":
        say(m["id"], result={{"supportedVersions": ["2026-07-28"], "capabilities": {{}}}})
    elif m["method"] == "tools/list":
        say(m["id"], result={{"tools": []}})
    elif "requestState" not in p:
        say(m["id"], result={{"resultType": "input_required", "requestState": {state!r}}})
    else:
        same = p["requestState"] == {state!r} and "inputResponses" not in p
        say(m["id"], result={{"content": [{{"type": "text", "text": str(same)}}]}})
"""
    with anyio.fail_after(20):
        async with talking(python(program), tmp_path) as talk:
            answer = await talk.session.call("ask", {"x": 1}, 10)
            assert answer.result["content"][0]["text"] == "True"
            first, second = talk.wire.sent("tools/call")
            assert second["arguments"] == first["arguments"] == {"x": 1}
            assert talk.violations == []


@pytest.mark.parametrize(("count", "floods"), [(MAX_ANSWERS + 20, 1), (3000, 2)])
async def test_a_flood_of_questions_is_bounded_and_costs_no_call(count: int, floods: int, tmp_path: Path) -> None:
    with anyio.fail_after(20):
        async with talking(faulty(), tmp_path, client=wanting(tmp_path, elicitation="decline")) as talk:
            answer = await talk.session.call("misbehave", {"fault": "ask_flood", "value": str(count)}, 10)
            assert answer.status == "ok"
            assert (await talk.session.call("echo", {"text": "hi"}, 10)).status == "ok"
            assert len(talk.asked) == MAX_ANSWERS
            assert talk.breaches == ["flood"] * floods


async def test_a_server_that_asks_without_end_and_never_reads_ends_with_its_call(tmp_path: Path) -> None:
    program = """
import json, sys, time
for line in sys.stdin:
    m = json.loads(line)
    r = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "tools": []}
    if m["method"] == "tools/call":
        for n in range(20_000):
            print(json.dumps({"jsonrpc": "2.0", "id": n, "method": "roots/list", "params": {"x": "y" * 100}}))
        sys.stdout.flush()
        time.sleep(1.2)
        sys.exit()
    print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": r}), flush=True)
"""
    with anyio.fail_after(20):
        async with talking(python(program), tmp_path) as talk:
            assert (await talk.session.call("ask", {}, 0.5)).status == "timeout"


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_asks_before_it_says_who_it_is_gets_its_answer_too(era: Era, tmp_path: Path) -> None:
    program = """
import json, sys
print(json.dumps({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": "?"}}), flush=True)
known = {}
for line in sys.stdin:
    m = json.loads(line)
    known[m.get("id")] = m
    if "q" not in known:
        continue
    for each in [each for each in known.values() if "method" in each and "id" in each]:
        r = {"supportedVersions": ["2026-07-28"], "protocolVersion": "2025-11-25", "capabilities": {}, "tools": []}
        r |= {"serverInfo": {"name": "s", "version": "1"}, "content": [{"type": "text", "text": str(known["q"])}]}
        print(json.dumps({"jsonrpc": "2.0", "id": each["id"], "result": r}), flush=True)
        del known[each["id"]]
"""
    with anyio.fail_after(20):
        async with talking(python(program), tmp_path, era=era, connect_s=5) as talk:
            answer = await talk.session.call("go", {}, 5)
            assert "'action': 'decline'" in answer.result["content"][0]["text"]
            assert talk.breaches == ["undeclared_capability"]


@pytest.mark.parametrize(
    "asks", ['"x"', '{"a": 1}', '{"a": {"method": ["m"]}}', '{"a": {"method": "tools/list"}}', "[]"]
)
async def test_a_question_that_is_none_ends_the_call_and_not_the_session(asks: str, tmp_path: Path) -> None:
    program = f"""
import json, sys
for line in sys.stdin:
    m = json.loads(line)
    r = {{"supportedVersions": ["2026-07-28"], "capabilities": {{}}, "tools": [], "content": []}}
    if m["method"] == "tools/call" and m["params"]["name"] == "ask":
        r |= {{"resultType": "input_required", "inputRequests": {asks}}}
    print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "result": r}}), flush=True)
"""
    with anyio.fail_after(20):
        async with talking(python(program), tmp_path) as talk:
            assert (await talk.session.call("ask", {}, 5)).status in ("input_required", "contract_violation")
            assert (await talk.session.call("other", {}, 5)).status == "ok"


class Size(BaseModel):
    size: int = 3


async def _size() -> Elicit[Size]:
    return Elicit("which size?", Size)


async def _word() -> Sample:
    return Sample([SamplingMessage(role="user", content=TextContent(type="text", text="say yes"))], max_tokens=9)


async def _roots() -> ListRoots:
    return ListRoots()


def asking() -> MCPServer:
    """A server of the SDK that asks for all three, each generation in its way."""
    server = MCPServer("asking")

    @server.tool()
    async def everything(
        size: Annotated[Size, Resolve(_size)],
        word: Annotated[CreateMessageResult, Resolve(_word)],
        roots: Annotated[ListRootsResult, Resolve(_roots)],
    ) -> str:
        assert isinstance(word.content, TextContent)
        return f"{size.size} {word.content.text} {roots.roots[0].uri}"

    return server


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("transport", ["object", "url"])
async def test_a_server_of_the_sdk_gets_what_it_asks_for(transport: str, era: Era, tmp_path: Path) -> None:
    answers = (Answer(to="yes", text="yes"),)
    policy = {"elicitation": "accept-defaults", "sampling": "scripted", "roots": "trial_dir", "answers": answers}
    with anyio.fail_after(20), serving(asking().streamable_http_app()) as served:
        by_url = HttpServer("asking", served.url)
        server = by_url if transport == "url" else in_process_server("asking", "tests:asking", asking)
        async with talking(server, tmp_path, era=era, client=wanting(tmp_path, **policy)) as talk:
            answer = await talk.session.call("everything", {}, 5)
            assert answer.result["content"][0]["text"] == f"3 yes {tmp_path.as_uri()}"
            assert sorted(each.method for each in talk.asked) == [
                "elicitation/create",
                "roots/list",
                "sampling/createMessage",
            ]
            assert talk.violations == []


def events(played: Any, kind: type) -> Iterator[Any]:
    return (each for each in played.transcript.events if isinstance(each, kind))


async def test_a_trial_whose_server_asks_goes_on_and_tells_of_it(tmp_path: Path) -> None:  # C44
    answers = [{"to": "who", "content": {"name": "Ada"}}]
    server = faulty_config(elicitation="scripted", answers=answers, roots="trial_dir")
    steps = [misbehave("elicit_form"), misbehave("elicit"), misbehave("sample"), DONE]
    played = await play(tmp_path, *steps, servers={"faulty": server})
    assert played.verdict == ("passed", "none", None)
    assert played.statuses == ["ok", "ok", "input_required"]
    assert "sampling/createMessage: User rejected sampling request" in played.shown[2]
    asked = list(events(played, ServerAsked))
    assert [(each.server, each.policy, each.answer.get("action")) for each in asked] == [
        ("faulty", "scripted", "accept"),
        ("faulty", "scripted", "decline"),
        ("faulty", "decline", None),
    ]
    (started,) = events(played, ServerStarted)
    assert sorted(started.capabilities) == ["elicitation", "roots"]
    assert played.record.server_faults == ("undeclared_capability",)


@pytest.mark.parametrize(
    ("keys", "what"),
    [
        ({"elicitation": "accept"}, "elicitation"),
        ({"sampling": "cancel"}, "sampling"),
        ({"roots": "home"}, "roots"),
        ({"answers": [{"text": "hi"}]}, "'answers' goes with"),
        ({"sampling": "scripted", "answers": [{"txt": "hi"}]}, "unknown key 'txt'"),
        ({"sampling": "scripted", "answers": [{"text": ""}]}, "text"),
        ({"list_changed": "follow"}, "list_changed"),
        ({"tools": {"inject": {"echo": ["x"]}}}, "inject"),
    ],
)
def test_a_policy_that_there_is_not_is_refused_in_one_line(keys: dict[str, Any], what: str, tmp_path: Path) -> None:
    config = {"version": 1, "servers": {"s": faulty_config(**keys)}, "models": ["scripted:s.json"], "tasks": ["t.json"]}
    (tmp_path / "mcptrials.yaml").write_text(json.dumps(config), "utf-8")
    with pytest.raises(UsageError) as caught:
        Project.load(tmp_path)
    assert what in str(caught.value)
    assert "\n" not in caught.value.what
