// Package assemble builds the prompt of a session.
//
// The nouns:
//
//   - A [Request] says whose session, for which model, with which system
//     prompt, tools and goal, and how many tokens the whole may take.
//   - A [Prompt] is the answer: system, tools, the history, and the goal last,
//     in one [Format].
//   - A [Part] is one of these four with its tokens.
//   - A [Receipt] is the account of it: the folds and their reasons, the part unchanged
//     since the previous prompt, and the expected cost.
//   - An [OverflowError] refuses a prompt over its budget and names what takes
//     most. Nothing is ever left out without a reference to make it fit.
//   - A [UsageReport] says what a provider counted, from which the next prompt
//     is predicted.
//
// The history is the session's log in order: messages as they were recorded,
// system messages included, and each step as a tool call with its result. A
// provider wants each call answered directly behind the message that asks for
// it, so package pairing brings calls and results together:
//
//   - An assistant message with calls, and steps that share a turn id, begin a
//     turn. The results that follow it in the log join it, in the order of its
//     calls. Anything else ends the turn.
//   - Assistant messages side by side are one turn, if none of their calls was
//     answered in between. A result that comes behind other words takes its place
//     with its call, until the model answers somebody else.
//   - A call that has no result when its turn ends gets one that says so. A
//     step that comes later stands for itself, as its own call; a tool
//     message that no call waits for becomes a user message. Calls and results
//     without an id are paired by their order and names.
//   - A second result of a call is left out while its turn lasts, unless it is
//     pinned: callers record what the server recorded, too. The log keeps it.
//   - Steps that were recorded directly before the assistant message that asks
//     for them are moved behind it. The last few steps with ids of calls are not
//     folded while that message may still come, unless they have to be; then it
//     names them.
//   - A turn of steps alone has at most as many calls as a message, and so do
//     content blocks: what is more begins another turn.
//   - Content blocks of a provider stay as they came; calls and results within
//     them are paired like others.
//
// A group is folded as a whole or not at all. The policy of the session, or of the call,
// decides what to fold:
//
//   - The ledger, the default, shows each result whole up to a limit, but lines that the
//     prompt shows already only by reference. It folds old turns in batches, when that pays
//     or the budget forces it (see package history). A fold stands as one user message
//     where they stood. It is stored before a prompt shows it, and can be undone.
//   - Append_only shows everything, including repeats.
//   - A preset has fixed rules. Messages and recent calls stand where they stood, and
//     each run of older calls between them is one user message with a line for each.
//     Calls of messages stay messages, without what they wrote; results are what was
//     observed of them where the preset hides them; steps that no message asked for
//     are text. Its boundary moves in batches, too, unless it is to be literal.
//
// All of them are made of the one log, so that a policy may change with any
// call. User and system messages and pinned entries are never folded, cut or deduplicated,
// except as the last resort before a prompt is refused: under the ledger a talk that is
// longer than the budget begins in its middle, and says how to read what was before; a
// goal, or a newest message of the user, that is too long is cut in its middle. The newest
// results, which the model has not seen, are never folded where a part of each fits: they
// are shortened together, each to a fair share.
//
// Prompts grow at the end only, until a receipt reports a batch: everything
// before the goal, up to a turn that is still open, is a byte prefix of the next
// prompt with the same settings. Nothing depends on the clock, on chance or on
// the order of a map. What is learned from usage decides only how much is said
// to fit. A report that can't be true is not believed, and none makes a prompt be
// refused that fits without it.
//
// A prompt reads the folds and the unfolded entries, so it takes about as long in a session
// of ten thousand steps as in one of a thousand. Entries beyond the memory limit are folded
// while they are read. Only few prompts may hold much text at a time; the others wait.
//
// Caveats: the last prompts of each session are remembered in memory, for
// StableTokens and for usage reports; a restart forgets them. A preset shows what
// the model says without a call word for word, however old it is, and reads the
// whole log with every call.
package assemble
