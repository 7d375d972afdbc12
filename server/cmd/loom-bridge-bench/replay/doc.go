// Package replay measures what a history policy would have cost on recorded
// runs, and what it would have kept.
//
// The nouns:
//
//   - A [Run] is one recorded run of an agent: its messages, read by [Read].
//   - A [Policy] decides what each request of a run would have sent. The
//     baseline is [AppendOnly], which sends everything.
//   - A [Bench] replays runs under policies and gives a [Measured] for each.
//
// A step is a request: an assistant message, whose prompt is the policy's view
// of the messages before it. What is measured:
//
//   - Tokens sent, and their cost: what is a prefix of the prompt before is
//     read from the provider's cache, the rest is written to it. Outputs are not
//     priced.
//   - Busts: steps whose prompt does not begin with the whole prompt before.
//   - Identifiers: of identifiers in the step's own calls that stood in an earlier message,
//     the share that the prompt still shows; separately, of identifiers that only results
//     had shown.
//   - Survival: at a run's last step, of what the folded messages held, the
//     share of paths, commands, numbers with units and error lines that the
//     prompt shows.
//
// Caveat: the recorded agent does not react to the policy. The numbers say what
// was there to be seen, not how the run would have ended.
package replay
