"""The decorator that makes a function a tool of an agent."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass
class Tool:
    name: str
    description: str
    func: Callable[..., Any]
    input_model: Any = None
    parameters_schema: str = "{}"


def tool(name: str, description: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(func: Callable[..., Any]) -> Callable[..., Any]:
        declared: Any = func
        declared.__loom_tool__ = Tool(name, description or func.__doc__ or "", func)
        return func

    return declare
