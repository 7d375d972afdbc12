"""Programs that can change an address alone: what they send and get, by the proxy."""

from pathlib import Path
from typing import Any
from urllib.error import HTTPError

import pytest

from proxying import (
    CHAT,
    EVENTS,
    FUNCTIONS,
    KEY,
    PATHS,
    Script,
    asks,
    post,
    proxied,
)

anthropic: Any = pytest.importorskip("anthropic")
openai: Any = pytest.importorskip("openai")


# N14
async def test_a_stream_of_openai_is_the_providers_own(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        script.answers = [(200, EVENTS, CHAT), (200, EVENTS, CHAT)]
        gpt: Any = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY)
        request: Any = {
            "model": "m",
            "messages": [{"role": "user", "content": "Hi"}],
            "tools": FUNCTIONS,
        }
        async with gpt:
            stream = await gpt.chat.completions.create(**request, stream=True)
            chunks = [each async for each in stream]
            assert "".join(c.choices[0].delta.content or "" for c in chunks[:2]) == "Let me look."
            assert chunks[-1].usage.prompt_tokens == 100
            async with gpt.chat.completions.with_streaming_response.create(
                **request, stream=True
            ) as raw:
                assert b"".join([each async for each in raw.iter_bytes()]) == b"".join(CHAT)
                assert raw.headers["x-request-id"] == "req_7"
        for headers, _ in script.requests:
            assert headers["Authorization"] == f"Bearer {KEY}"


# N14
async def test_errors_and_retries_are_the_programs_own(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        limited = {"Retry-After": "0", "Content-Type": "application/json", "X-Limit": "3"}
        error = b'{"error":{"message":"slow down","type":"rate_limit_error","code":null}}'
        script.answers = [(429, limited, [error]), (500, limited, [error])]
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=1) as gpt:
            with pytest.raises(openai.InternalServerError) as failed:
                await gpt.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "Hi"}]
                )
        assert failed.value.response.headers["x-limit"] == "3"
        assert failed.value.body["message"] == "slow down"
        assert len(script.requests) == 2
        error = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
        script.answers = [(529, limited, [error])]
        async with anthropic.AsyncAnthropic(base_url=url, api_key=KEY, max_retries=0) as claude:
            with pytest.raises(anthropic.APIStatusError) as busy:
                await claude.messages.create(
                    model="m", max_tokens=9, messages=[{"role": "user", "content": "Hi"}]
                )
        assert busy.value.status_code == 529
        assert script.requests[-1][0]["Authorization"] == f"Bearer {KEY}"


async def test_a_program_that_goes_ends_its_request(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        script.answers = [(200, EVENTS, [*CHAT[:1], b""])]
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as gpt:
            stream = await gpt.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
            )
            async for _ in stream:
                break
            await stream.close()
            assert script.gone.wait(20)


# N14
async def test_a_killed_server_breaks_an_answer(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (srv, url):
        script.answers = [(200, EVENTS, [*CHAT[:1], b""])]
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=KEY) as gpt:
            stream = await gpt.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hi"}], stream=True
            )
            parts = aiter(stream)
            await anext(parts)
            await srv.kill9()
            with pytest.raises(Exception, match=r"peer|closed|incomplete|Connection"):
                await anext(parts)
        assert len(script.requests) == 1
        await srv.start()


# N15
async def test_a_part_that_is_mistyped_is_refused(binary: Path, script: Script) -> None:
    async with proxied(binary, script.url) as (_, url):
        with pytest.raises(HTTPError) as refused:
            await post(url + PATHS[0], asks(PATHS[0], "A?"), **{"Loom-Off": "memory, recrod"})
        assert refused.value.code == 400
        assert "Loom-Off" in refused.value.read().decode()
        assert not script.requests
