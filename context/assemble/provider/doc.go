// Package provider writes prompts as the providers of models take them.
//
// The nouns:
//
//   - A [Format] is the request of one provider: OpenAI's Chat and Responses,
//     Anthropic's Messages, Gemini's generateContent, and a neutral one.
//   - A [Content] is messages in the neutral form, tools, and the places of cache
//     marks. [Encode] makes it a [Body].
//   - A [Writer] writes messages one by one, for the formats that need no more than
//     one at a time.
//   - [Plan] chooses the cache marks of a prompt: see plan.go.
//
// What a provider wrote itself comes back to it as it came; what another one wrote is
// said in the blocks of the format. Reasoning that is signed goes to its own provider
// whole, and to no other. Each call has its result right behind it, ids are made
// distinct, and no text is blank where a provider refuses that. Bytes depend only on the
// prompt, and the bytes of a message only on it and what precedes it, so a longer prompt
// begins with the shorter one. A provider that takes all results of a message first is the
// exception: one that was recorded late moves forward.
package provider
