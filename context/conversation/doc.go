// Package conversation reads back what was said and done: the sessions of an
// agent, and what is in one of them.
//
// A [Reader] yields [Entry]s, oldest or newest first: messages as they came, steps
// and tasks, each with the batch of folds by which prompts show it. A task stands
// behind the entry that was the session's last when it was added, so that both
// orders are the same one, read from its two ends.
//
// A [Cursor] says where to go on. What is added meanwhile is met by a reading in
// order of age; what was met is never met again. Nothing here changes anything.
package conversation
