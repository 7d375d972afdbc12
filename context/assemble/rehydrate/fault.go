package rehydrate

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/history"
)

// reference is how a step or a message is read back.
var reference = regexp.MustCompile(`\b(?:step|message)_[0-9]{3,}\b`)

// maxNamed bounds the names of results that are looked for in one call.
const maxNamed = 8

// minRefDigits is the least number of hash digits that is searched for.
const minRefDigits = 12

// Named returns what the arguments of a call may name of stored results, in order:
// paths and hashes, each once, at most eight.
func Named(args string) []string {
	var names []string
	excerpt.EachIdentifier(args, func(id string) {
		isHash := len(id) >= minRefDigits && strings.Trim(id, "0123456789abcdef") == ""
		if len(names) < maxNamed && (isHash || strings.IndexByte(id, '/') > 0) && !slices.Contains(names, id) {
			names = append(names, id)
		}
	})
	return names
}

// Fault reports whether a call asks again for folded content: it names a folded step or
// message, or the result of one, or it repeats a folded call word for word. Denser folds
// keep only the newest calls. results are the references whose stored results the call
// names.
func (f *Finder) Fault(folds []history.Fold, call history.Call, results []string) bool {
	if len(folds) == 0 {
		return false
	}
	made := history.CallText(call)
	refs := slices.Concat(reference.FindAllString(call.Args, -1), results)
	for i := range folds {
		inside := f.read(folds[i].Text)
		if inside.calls[made] || slices.ContainsFunc(refs, func(ref string) bool {
			return slices.Contains(folds[i].Refs, ref) || inside.holds(ref)
		}) {
			return true
		}
	}
	return false
}

// reach is a run of steps, or of messages, that a denser fold names together.
type reach struct {
	kind        string
	first, last uint64
}

// digestLine begins the line of a denser fold for many steps, such as
// "001–009: ", or of messages, such as "m1–m9: ".
var digestLine = regexp.MustCompile(`^(m?)([0-9]+)–(m?)([0-9]+): `)

// readReach reads the beginning of such a line.
func readReach(line string) (r reach, ok bool) {
	parts := digestLine.FindStringSubmatch(line)
	if parts == nil || parts[1] != parts[3] {
		return reach{}, false
	}
	first, err := strconv.ParseUint(parts[2], 10, 64)
	last, err2 := strconv.ParseUint(parts[4], 10, 64)
	return reach{map[string]string{"": "step", "m": "message"}[parts[1]], first, last}, err == nil && err2 == nil
}

// holds reports whether a reference is in the summary line of a denser fold.
func (c *contents) holds(ref string) bool {
	kind, digits, _ := strings.Cut(ref, "_")
	number, err := strconv.ParseUint(digits, 10, 64)
	return err == nil && slices.ContainsFunc(c.reaches, func(r reach) bool {
		return r.kind == kind && r.first <= number && number <= r.last
	})
}

// maxAsides bounds the places of a line where the text with a call may begin.
const maxAsides = 16

// addCall notes the call of a line: what stands before a mark of its result, and before
// the names of what was said next to it. A call may hold such marks itself, so that each
// could be it.
func addCall(calls map[string]bool, line string) {
	line = strings.TrimRight(line, "\n")
	for at := 0; ; {
		next := strings.Index(line[at:], history.ResultMark)
		if next < 0 {
			return
		}
		call := line[:at+next]
		calls[call] = true
		for range maxAsides {
			aside := strings.LastIndex(call, " (")
			if aside < 0 || !strings.HasSuffix(line[:at+next], ")") {
				break
			}
			call = call[:aside]
			calls[call] = true
		}
		at += next + len(history.ResultMark)
	}
}
