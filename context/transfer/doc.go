// Package transfer moves sessions between stores as lines of JSON.
//
// A session is, in order: a line that names it; its parts, each as it is stored (package
// session); its offloaded results, each an entry with its bytes in lines behind it; and a
// line that ends it and says how many there were. An [Importer] takes the lines into
// another agent, whose export of the session is then the same, byte for byte.
//
// A session has at most session.MaxPartsBytes without its results. Its lines are checked as
// a whole when the last one has come: a line that is missing, doubled or elsewhere changes
// nothing. What it stores is one commit, so that the session comes whole or not at all.
//
// Caveats: recorded prompts, answers of repeated requests, children, events and memories
// are not of it. Numbers of steps stay, so an agent can take a session only where it does
// not have the steps.
package transfer
