// Package content reads the content blocks of messages, as the providers of models
// have them.
//
// The nouns:
//
//   - A [Dialect] is the format of blocks: OpenAI's of Chat and of Responses, Anthropic's,
//     Gemini's parts, and MCP's.
//   - A [Block] is one block, in words that all dialects share: a text, an image, a
//     file, a call, the result of one, a thought. It keeps the block as it came.
//
// Reading never fails: an unknown block is a part of the kind Other, which has only
// the block itself. Gemini's calls need no id. Those without one are called by the
// name of the function and how many calls of it came before in the same message, and
// so are their results, which stand in the same order.
package content
