// Package record accounts for the prompts that were made, and keeps them.
//
//   - A [Recorder] turns a [Made] prompt into a [Prompt] with its [Receipt].
//   - [Known] is its in-memory cache of prompts: where they end, to find what the next one
//     shares with them, and their predicted tokens, for usage reports.
//   - Past, Diff and ForkPoint read prompts that were sent from their records.
//
// A prompt is sent although its record can't be written; it can't be made again then.
package record
