package server

import (
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
)

// minRun is how many refs that follow one another are written as one.
const minRun = 3

// RefRuns writes three or more refs in a row whose numbers follow one another as
// one, so that what is said of a long history stays short: `step_001..step_040`.
// It leaves refs as they are.
func RefRuns(refs []string) []string {
	var out []string
	for len(refs) > 0 {
		n := runLength(refs)
		if n >= minRun {
			out = append(out, refs[0]+".."+refs[n-1])
		} else {
			out = append(out, refs[:n]...)
		}
		refs = refs[n:]
	}
	return out
}

// runLength is how many refs at the beginning are of one sort, each one more
// than that before it.
func runLength(refs []string) int {
	number, isStep := step.ParseID(refs[0])
	next := step.ID
	if !isStep {
		var isMessage bool
		if number, isMessage = session.ParseMessageID(refs[0]); !isMessage {
			return 1
		}
		next = session.MessageID
	}
	n := 1
	for n < len(refs) && refs[n] == next(number+uint64(n)) {
		n++
	}
	return n
}
