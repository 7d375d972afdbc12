// Package record accounts for the prompts that were made, and keeps them.
//
//   - A [Recorder] finishes what was [Made]: a [Prompt] with its [Receipt].
//   - [Known] is what it remembers of prompts, in memory only: where they end, for what the
//     next one shares with them, and what was predicted, for usage reports.
//   - Past, Diff and ForkPoint read prompts that were sent from their records.
//
// A prompt is sent although its record can't be written; it can't be made again then.
package record
