package read

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/text"
)

const (
	// maxLooked entries at the end of a session's log are looked at for the newest message
	// of the user and for failures.
	maxLooked = 512
	// maxEnds bounds the sessions whose ends are remembered.
	maxEnds = 1 << 11
	// maxAskedBytes of the newest message are kept: as much as a search can use.
	maxAskedBytes = 8 << 10
	// maxReferredBytes of what was said before it are.
	maxReferredBytes = 256
	// maxBetween is how many entries before the newest message of the user are looked at for
	// that: what lies further back is not what a short message refers to.
	maxBetween = 32
)

// End is what the end of a session's log says. It is never changed.
type End struct {
	// Through is the place of the last entry, At its time: another log of that name, which
	// may be as long, has another.
	Through uint64
	At      time.Time
	// Newest is the beginning of the newest message of the user; empty for none among those
	// that were looked at.
	Newest string
	asked  uint64 // its place
	// Before is the end of the message of the user before that, and Answer the end of the
	// answer to it: what the newest message may refer to.
	Before, Answer string
	// said is the end of the newest answer, at the place answered.
	said             string
	before, answered uint64 // their places
	// failed are the last calls that failed, oldest first.
	failed []failure
	// lately says of the last steps whether each failed, oldest first.
	lately []bool
}

// failure is a call that failed, and its place.
type failure struct {
	inject.Failure
	position uint64
	args     []byte
}

// Failures are the last calls that failed, oldest first.
func (e *End) Failures() []inject.Failure {
	out := make([]inject.Failure, len(e.failed))
	for i := range e.failed {
		out[i] = e.failed[i].Failure
	}
	return out
}

// Errors is how many of the last steps failed.
func (e *End) Errors() int {
	n := 0
	for _, failed := range e.lately {
		if failed {
			n++
		}
	}
	return n
}

// Turn names the turn of the model: the place of the message that it answers.
func (e *End) Turn() string { return strconv.FormatUint(e.asked, 10) }

// loadEnd reads the end of the session's log, as far as no earlier prompt did.
func (m *Moment) loadEnd(ctx context.Context) error {
	key := sessionKey{m.Scope, m.SessionID}
	before, _ := m.source.ends.Get(key)
	m.End = before
	var found []session.Entry
	for e, err := range m.log.Before(ctx, m.Scope, m.SessionID, 0) {
		if err != nil {
			return fmt.Errorf("assemble: read the end of the log: %w", err)
		}
		if len(found) == 0 {
			m.End.At = e.Time
		}
		if e.Position <= before.Through || len(found) > 0 && e.Position+maxLooked <= found[0].Position {
			break
		}
		found = append(found, e)
	}
	if len(found) == 0 {
		return nil
	}
	m.End.failed, m.End.lately = slices.Clone(before.failed), slices.Clone(before.lately)
	m.End.Through = found[0].Position
	for _, e := range slices.Backward(found) {
		if e.Step != nil {
			m.End.addStep(e.Step, e.Position)
		}
	}
	m.End.listen(found)
	m.End.forget()
	m.source.ends.Put(key, m.End, 1)
	return nil
}

// listen notes what the user said last, and what was said before it, of entries from the newest
// on. Of assistants it reads no more than the message right before one of the user's, and the
// newest.
func (e *End) listen(found []session.Entry) {
	known, users, heard, answered := *e, 0, false, false
	for i, last := 0, len(found); i < last && users < 2; i++ {
		switch m, position := found[i].Message, found[i].Position; {
		case m == nil:
		case m.Role == session.Assistant && !answered:
			said := text.Tail(pairing.Words(m), maxReferredBytes)
			if answered = true; users == 1 {
				e.Answer = said
			}
			if !heard {
				e.said, e.answered, heard = said, position, true
			}
		case m.Role != session.User || m.Observation || pairing.OnlyResults(m):
		case users == 0:
			said := pairing.Words(m)
			e.Newest, e.asked = text.Head(cmp.Or(inject.Strip(said), said), maxAskedBytes), position
			e.Before, e.before, e.Answer, users, answered = text.Tail(known.Newest, maxReferredBytes), known.asked, "", 1, false
			last = min(last, i+maxBetween)
		default:
			said := pairing.Words(m)
			e.Before, e.before, users = text.Tail(cmp.Or(inject.Strip(said), said), maxReferredBytes), position, 2
		}
	}
	if users == 1 && !answered && known.answered > known.asked {
		e.Answer = known.said
	}
}

// forget lets go of what is too far back, so that a server that has just started knows as
// much as one that made the prompts before.
func (e *End) forget() {
	old := func(position uint64) bool { return position+maxLooked <= e.Through }
	e.failed = slices.DeleteFunc(e.failed, func(f failure) bool { return old(f.position) })
	if old(e.asked) {
		e.Newest, e.asked = "", 0
	}
	if old(e.before) {
		e.Before, e.Answer = "", ""
	}
}

// addStep notes a failure, or what a call that did not fail says of an earlier failure.
func (e *End) addStep(s *step.Step, position uint64) {
	e.lately = append(e.lately, s.Outcome == step.Failed)
	e.lately = e.lately[max(len(e.lately)-inject.ErrorWindow, 0):]
	switch s.Outcome {
	case step.Succeeded:
		e.recovered(s)
	case step.Failed:
		said := inject.Failure{Tool: s.ToolName, Message: cmp.Or(s.Error, s.Observation)}
		e.failed = append(e.failed, failure{said, position, s.MinimalArgs})
		e.failed = e.failed[max(len(e.failed)-inject.ErrorWindow, 0):]
	}
}

// recovered says of the last failure of a tool by which call it worked, if a call asks for
// the same thing: that another command of a shell works says nothing of the one that failed.
func (e *End) recovered(s *step.Step) {
	for i := len(e.failed) - 1; i >= 0; i-- {
		f := &e.failed[i]
		if f.Tool != s.ToolName || !sameAim(f.args, s.MinimalArgs) {
			continue
		}
		if f.Recovery == "" {
			f.Recovery = "worked with " + string(s.MinimalArgs)
		}
		return
	}
}

// sameAim reports whether two calls of a tool ask for the same thing: a text that both have
// begins with the same word, as two commands of one program do, or names a file of the same
// name.
func sameAim(failed, worked []byte) bool {
	var a, b map[string]any
	if json.Unmarshal(failed, &a) != nil || json.Unmarshal(worked, &b) != nil {
		return false
	}
	for key, value := range a {
		one, _ := value.(string)
		other, _ := b[key].(string)
		first, second := strings.Fields(one), strings.Fields(other)
		if len(first) > 0 && len(second) > 0 && path.Base(first[0]) == path.Base(second[0]) {
			return true
		}
	}
	return false
}
