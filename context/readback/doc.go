// Package readback gives back everything that a prompt left out, by the name that
// the prompt shows: offloaded results, and the steps, messages and tasks of the log
// with their forms.
//
// A [Reader] finds what a name leads to and reads it. What comes from the log, or is
// made of a blob, is a [blob.Entry] without a ref, whose path says what it is.
//
// A log only grows, so that a name reads the same whenever it is read; only a task
// may still get a result. Caveat: a form of a result other than the stored one is made in
// memory, of at most 8 MiB.
package readback
