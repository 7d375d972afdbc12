"""The cognitive agent: it makes the loop from an agent's context."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from loomv1.agent.event import EventContext
from loomv1.cognitive.context import DataOffloader, StepCompactor, StepReducer
from loomv1.cognitive.executor import ToolExecutor
from loomv1.cognitive.strategies import StrategyExecutor
from loomv1.cognitive.types import CognitiveResult, ThoughtStep


class CognitiveAgent:
    def __init__(
        self,
        ctx: EventContext,
        llm: Any,
        permission_callback: Callable[..., Any] | None = None,
        workspace_path: Path | None = None,
        max_iterations: int = 10,
    ) -> None:
        self.step_reducer = StepReducer()
        self.step_compactor = StepCompactor()
        self.data_offloader = DataOffloader(workspace_path or Path.cwd())
        self.tool_executor = ToolExecutor(
            ctx, self.step_reducer, self.data_offloader, permission_callback
        )
        self.strategy_executor = StrategyExecutor(
            llm, self.tool_executor, self.step_compactor, "You act.", max_iterations
        )

    async def run(self, goal: str) -> CognitiveResult:
        try:
            return await self.strategy_executor.run_react(goal)
        except Exception as err:
            return CognitiveResult("", success=False, error=str(err))

    async def run_stream(self, goal: str) -> AsyncIterator[str | ThoughtStep | CognitiveResult]:
        async for item in self.strategy_executor.run_react_stream(goal):
            yield item
