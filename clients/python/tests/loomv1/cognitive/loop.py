"""What the loop asks of a model, and how it reads the answer."""

import json
from typing import Any

from loomv1.cognitive.context import StepCompactor
from loomv1.cognitive.types import ThoughtStep


def build_react_prompt(goal: str, steps: list[ThoughtStep], compactor: StepCompactor) -> str:
    parts = [f"Goal: {goal}"]
    shown = steps
    reduced = [each.reduced_step for each in steps if each.reduced_step]
    if len(steps) > 5 and reduced:
        parts += [str(each) for each in compactor.compact(reduced).compact_steps]
        shown = steps[-3:]
    for step in shown:
        parts.append(f"Thought {step.step}: {step.reasoning}")
        if step.observation:
            seen = step.observation
            parts.append(f"Observation: {seen.output if seen.success else seen.error}")
    return "\n".join([*parts, "What now?"])


def parse_react_response(response: str) -> dict[str, Any]:
    _, final, answer = response.partition("FINAL ANSWER:")
    if final:
        return {"type": "final_answer", "content": answer.strip()}
    start = response.find("{")
    if start < 0:
        return {"type": "reasoning", "content": response}
    call = json.loads(response[start : response.rindex("}") + 1])
    thought = response[:start].removeprefix("Thought:").strip().removesuffix("Action:").strip()
    return {"type": "tool_call", "thought": thought, "tool": call["tool"], "args": call["args"]}
