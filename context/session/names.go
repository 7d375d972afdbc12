package session

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// The folders that the steps, messages and tasks of an agent can be read in, by
// names such as workspace/history/step_012.json and task/t1. A task's name is also
// the key of its record in memory.
const (
	HistoryFolder = "workspace/history/"
	TaskFolder    = "task/"
)

// messagePrefix begins every message id.
const messagePrefix = "message_"

// MessageID returns the id of the message at a position of its session:
// "message_017", "message_1000".
func MessageID(position uint64) string { return fmt.Sprintf(messagePrefix+"%03d", position) }

// ParseMessageID returns the position of a message id, and false for anything
// that MessageID would not write. There is no message 0.
func ParseMessageID(id string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, messagePrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil && n > 0 && MessageID(n) == id
}

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
	_, isStep := step.ParseID(refs[0])
	if _, isMessage := ParseMessageID(refs[0]); !isStep && !isMessage {
		return 1
	}
	next := []byte(refs[0])
	n := 1
	for ; n < len(refs); n++ {
		if next = increment(next); refs[n] != string(next) {
			break
		}
	}
	return n
}

// increment makes a ref that of the next number, where it stands: an answer may
// name thousands.
func increment(ref []byte) []byte {
	at := len(ref) - 1
	for ; ref[at] == '9'; at-- {
		ref[at] = '0'
	}
	if ref[at] < '0' || ref[at] > '9' { // they were all nines
		return slices.Insert(ref, at+1, '1')
	}
	ref[at]++
	return ref
}
