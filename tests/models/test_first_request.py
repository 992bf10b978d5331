"""The request before a run: what a refusal is put down to."""

import anyio
import pytest
from tests.models.fake_openai import Answer, error, fake_openai

from mcptrials.errors import UsageError
from mcptrials.models.openai_chat import OpenAIChat
from mcptrials.project import ModelConfig
from mcptrials.runner.preflight import try_model


@pytest.mark.parametrize(
    ("scripted", "said"),
    [
        (error(529, "overloaded"), "HTTP 529: overloaded; wait and run again; the provider's status page may say more"),
        (error(404, "no such model"), "HTTP 404: no such model; check the model's name and 'settings'"),
        (Answer(b"<html>"), "the provider's reply is not JSON: '<html>'; check that 'base_url' is an API's address"),
        (Answer(b'{"a": 1e400}'), "the provider's reply holds a number that cannot be read (1e400 is too large for a"),
    ],
)
def test_a_refusal_says_what_to_do_about_it(scripted: Answer, said: str) -> None:
    async def main() -> str:
        async with fake_openai(*[scripted] * 3) as fake:
            model = OpenAIChat("fake", base_url=fake.url)
            config = ModelConfig(model="openai:fake", base_url=fake.url)
            try:
                with pytest.raises(UsageError) as caught, anyio.fail_after(20):
                    await try_model(config, model, 100)
            finally:
                await model.aclose()
            return str(caught.value)

    assert said in anyio.run(main)
