"""The ReAct loop, plain and as a stream."""

from collections.abc import AsyncIterator
from typing import Any

from loomv1.cognitive.context import StepCompactor
from loomv1.cognitive.executor import ToolExecutor
from loomv1.cognitive.loop import build_react_prompt, parse_react_response
from loomv1.cognitive.types import CognitiveResult, ThoughtStep, ToolCall


class StrategyExecutor:
    def __init__(
        self,
        llm: Any,
        tool_executor: ToolExecutor,
        step_compactor: StepCompactor,
        system_prompt: str,
        max_iterations: int,
    ) -> None:
        self.llm = llm
        self.tool_executor = tool_executor
        self.step_compactor = step_compactor
        self.system_prompt = system_prompt
        self.max_iterations = max_iterations

    async def run_react(self, goal: str) -> CognitiveResult:
        result = CognitiveResult(answer="")
        for iteration in range(self.max_iterations):
            result.iterations = iteration + 1
            prompt = build_react_prompt(goal, result.steps, compactor=self.step_compactor)
            response = await self.llm.generate(
                prompt=prompt, system=self.system_prompt, temperature=0.7
            )
            if await self._take(result, response) is None:
                break
        return result

    async def run_react_stream(
        self, goal: str
    ) -> AsyncIterator[str | ThoughtStep | CognitiveResult]:
        result = CognitiveResult(answer="")
        for iteration in range(self.max_iterations):
            result.iterations = iteration + 1
            prompt = build_react_prompt(goal, result.steps, compactor=self.step_compactor)
            response = ""
            async for chunk in self.llm.generate_stream(
                prompt=prompt, system=self.system_prompt, temperature=0.7
            ):
                response += chunk
                yield chunk
            step = await self._take(result, response)
            if step is None:
                break
            yield step
        yield result

    async def _take(self, result: CognitiveResult, response: str) -> ThoughtStep | None:
        parsed = parse_react_response(response)
        if parsed["type"] == "final_answer":
            result.answer = parsed["content"]
            return None
        if parsed["type"] == "reasoning":
            step = ThoughtStep(result.iterations, parsed["content"])
        else:
            call = ToolCall(parsed["tool"], parsed["args"])
            step = ThoughtStep(result.iterations, parsed["thought"], call)
            step.observation = await self.tool_executor.execute_tool(call)
            step.reduced_step = step.observation.reduced_step
        result.steps.append(step)
        return step
