// Package settings says what the prompts of a session are made of.
//
// [Prompt] is all of it: the layout, the system prompt, which tools and sources stand
// in a prompt, examples, skills, sections of the caller's, and caps. A session keeps
// one, a call may lay another over it ([Prompt.Over]), and the server has one below
// both. Zero fields mean "as below". It holds no rule about what a prompt does with it.
package settings
