package rehydrate

import (
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/history"
)

// reference is how a step or a message is read back.
var reference = regexp.MustCompile(`\b(?:step|message)_[0-9]{3,}\b`)

// Fault tells whether a call asks again for what was folded away: it names a step or a
// message that stands in one of the folds, or it was made before, word for word, and its
// line stands there. Folds that are denser keep the newest of both.
func (f *Finder) Fault(folds []history.Fold, call history.Call) bool {
	if len(folds) == 0 {
		return false
	}
	made := history.CallText(call)
	refs := reference.FindAllString(call.Args, -1)
	for i := range folds {
		if f.read(folds[i].Text).calls[made] || slices.ContainsFunc(refs, func(ref string) bool { return slices.Contains(folds[i].Refs, ref) }) {
			return true
		}
	}
	return false
}

// addCall notes the call of a line: what stands before a mark of its result. A call may
// hold the mark itself, so that each could be it.
func addCall(calls map[string]bool, line string) {
	line = strings.TrimRight(line, "\n")
	for at := 0; ; {
		next := strings.Index(line[at:], history.ResultMark)
		if next < 0 {
			return
		}
		calls[line[:at+next]] = true
		at += next + len(history.ResultMark)
	}
}
