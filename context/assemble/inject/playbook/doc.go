// Package playbook knows what a playbook is: a strategy that worked for tasks of a kind,
// kept as a record of memory.
//
// An [Entry] is one, read from the metadata of its record by [Parse]. [Match] finds the
// one that fits a task, and [Hint] is what a prompt says of it.
//
// Everything here is pure. Who reads the records, and counts that one was used, is the
// caller.
package playbook
