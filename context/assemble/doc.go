// Package assemble builds the prompt of a session.
//
// The nouns:
//
//   - A [Request] says whose session, for which model, with which system
//     prompt, tools and goal, and how many tokens the whole may take.
//   - A [Prompt] is the answer: system, tools, the history, and the goal last,
//     in one [Format].
//   - A [Part] is one of these four with its tokens.
//   - An [OverflowError] refuses a prompt over its budget and names the largest
//     part. Nothing is ever shortened or left out to make it fit.
//
// The history is the session's log in order: messages as they were recorded,
// system messages included, and each step as a tool call with its result. A
// provider wants each call answered directly behind the message that asks for
// it, so calls and results are brought together:
//
//   - An assistant message with calls, and steps that share a turn id, begin a
//     turn. The results that follow it in the log join it, in the order of its
//     calls. Anything else ends the turn.
//   - A call that has no result when its turn ends gets one that says so. A
//     step that comes later stands for itself, as a call of its own; a tool
//     message that comes later becomes a user message that names its call.
//   - A tool message without any call, or for a call that has its result, is
//     left out: a provider would refuse the prompt. The log keeps it.
//   - Steps that were recorded directly before the assistant message that asks
//     for them are moved behind it.
//
// Prompts grow at the end only: everything before the goal, up to a turn that
// is still open, is a byte prefix of every later prompt of the session with
// the same system prompt and tools. Nothing depends on the clock, on chance or
// on the order of a map.
package assemble
