// Package working is what an agent is at: its goal, its plan, the skills that it uses,
// its notes and evidence, and the events that wait for its decision.
//
// [Working] is all of it, kept per session by package session and shown by prompts. A
// [Change] says what of it becomes otherwise; [Working.With] makes the change.
//
// Everything here is pure. Values are never changed once they are in use.
package working
