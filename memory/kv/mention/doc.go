// Package mention finds the names of blobs in stored texts and keeps them as keys,
// mentions, so that a collection of blobs asks for names instead of reading texts.
//
// A [Name] is how a text calls a blob: digits of its ref, the step that made it, or
// the end of a path. [In] finds the names in a stored message, and [Stage] and [Drop]
// write and delete their keys in the commit that writes or deletes the message.
// [Reader] answers who names something. [Backfill] writes the mentions of values that
// were stored before there were any.
//
// It rather finds a name too many than one too few: what has no name is deleted.
// memory/FORMAT.md describes the keys and says when a mention counts.
package mention
