// Package recall finds the content of a prompt other than its history: in memory, in the
// tiers of tasks, among events and in the workspace. Each of its types is a source of
// package context/assemble/gather:
//
//   - [UserMemory]: records about the user.
//   - [Knowledge]: records of the kind `knowledge`, or a base outside.
//   - [Playbooks]: the record of the kind `playbook` that fits best.
//   - [Notes]: AGENTS.md, and records of the kind `note`.
//   - [Tasks]: recent tasks and events, as messages.
//   - [Skills]: records of the kind `skill`.
//
// What is searched for is asked twice, by the newest message of the user and by the goal,
// so that a long goal does not drown a short message.
//
// How well a record fits: the score of the best hit says, from 0 to 1, how sure the
// search is that it found anything of the question, and the scores of the others are in
// proportion to it. So a least score decides whether anything is shown at all, and
// in addition to the best what has at least minShare of its score.
//
// Caveat: all that is found was written by agents, users and tools. It is put on lines of
// its own, or guarded, so that it can't leave its place in the prompt.
package recall
