package session

import (
	"context"
	"encoding/binary"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// ofSession are the tags of the log whose keys begin with the session.
var ofSession = string([]byte{
	tagEntry, tagHead, tagJournal, tagFolds, tagConfig, tagAnchor, tagWorking, tagSprint, tagSnapshot, tagTask, tagTally,
})

// Erasure is what becomes of sessions and intents when a subject is erased. It learns the
// numbers of a session's steps.
func Erasure() erase.Owner {
	const others = "what agents said, did and planned themselves"
	sort := func(tags, counted string, phase int) erase.Sort {
		return erase.Sort{Keyspace: kv.Log, Kinds: "a", Tags: tags, Counted: counted, Phase: phase, Texts: others}
	}
	return erase.Owner{
		Name: "context/session",
		Sorts: []erase.Sort{
			sort(string(rune(tagEntry)), "log_entries", 0),
			sort(string(rune(tagHead)), "sessions", 0),
			sort(string(rune(tagTask)), "tasks", 0),
			sort(string(rune(tagJournal)), "folds", 0),
			sort(string(rune(tagStep)), "steps", 2),
			sort(string([]byte{tagCounter, tagWritten, tagFolds, tagConfig, tagAnchor, tagWorking, tagSprint, tagSnapshot, tagTaskID, tagTally, 'q'}), "", 0),
			{Keyspace: kv.System, Kinds: "y", Lists: []string{string(intents)}, Tags: string(rune(tagIntent)), Texts: "arguments of calls that run"},
		},
		Begin: func(ctx context.Context, r *erase.Run) (erase.Change, error) {
			x := &erasing{Run: r}
			return x.change, x.learn(ctx)
		},
	}
}

// erasing is one run.
type erasing struct {
	*erase.Run
	// values are the entries of the log that change without a step.
	values map[string][]byte
}

// learn notes the steps of the session, or what becomes of the log without the step.
func (x *erasing) learn(ctx context.Context) error {
	if x.Subject.Step != 0 {
		return x.learnStep(ctx)
	}
	if x.Subject.Session == "" {
		return nil
	}
	return erase.Each(ctx, x.From, kv.Log, x.Scope.Key(tagStep), func(tail, value []byte) error {
		session, err := x.placed(value)
		if err == nil && session && len(tail) == 8 {
			x.Steps[binary.BigEndian.Uint64(tail)] = true
		}
		return err
	})
}

func (x *erasing) learnStep(ctx context.Context) error {
	s := &erasedStep{from: x.From, scope: x.Scope, number: x.Subject.Step}
	found, err := s.read(ctx, x.Within)
	if err != nil || !found && (!x.Looks || s.place.Position > 0) { // it is there, of another session
		return err
	}
	x.Steps[x.Subject.Step] = true
	if found {
		x.values, x.Place, x.Tasks, x.Words = s.values, s.place, s.tasks, s.words()
	}
	return nil
}

// placed reports whether a place is in the session. One without a session is that of a step
// that was erased.
func (x *erasing) placed(value []byte) (bool, error) {
	sessions, err := erase.Text(value, 1)
	return len(sessions) == 1 && sessions[0] == x.Subject.Session, err
}

func (x *erasing) change(_ context.Context, e erase.Entry) ([]byte, bool, error) {
	switch {
	case e.Keyspace == kv.System:
		return x.intent(e)
	case x.Subject.Step != 0:
		value, changes := x.values[string(e.Key)]
		if !changes {
			return e.Stays()
		}
		return value, value != nil, nil
	case x.Subject.Session != "" && x.Own(e):
		return x.ofLog(e)
	case e.Tag == tagTask && x.Subject.Kind == erase.Agent && !x.Subject.Narrowed():
		return x.task(e)
	}
	return e.Stays()
}

// ofLog is change for the log of the agent whose session goes.
func (x *erasing) ofLog(e erase.Entry) ([]byte, bool, error) {
	switch {
	case strings.IndexByte(ofSession, e.Tag) >= 0:
		session, _, err := kv.CutEscaped(e.Tail)
		return e.Goes(session == x.Subject.Session, err)
	case e.Tag == tagStep:
		ours, err := x.placed(e.Value)
		if err == nil && ours { // numbers of steps have no gap
			return nil, true, nil
		}
		return e.Goes(false, err)
	case e.Tag == tagTaskID:
		return e.Goes(x.placed(e.Value))
	case e.Tag == 'q', e.Tag == tagWritten: // which sessions these are of nothing says
		return e.Goes(!x.Looks, nil)
	}
	return e.Stays()
}

// task takes the agent's name off a task of somebody else.
func (x *erasing) task(e erase.Entry) ([]byte, bool, error) {
	t, written, err := decodeTask(e.Value)
	if err != nil || t.SourceAgent != x.Subject.ID && t.TargetAgent != x.Subject.ID {
		return e.Goes(false, err)
	}
	for _, name := range []*string{&t.SourceAgent, &t.TargetAgent} {
		if *name == x.Subject.ID {
			*name = ""
		}
	}
	return encodeTask(t, written), true, nil
}

// intent is change for intents.
func (x *erasing) intent(e erase.Entry) ([]byte, bool, error) {
	in, err := readIntent(e.Pair)
	if err != nil {
		return nil, false, err
	}
	return e.Goes(in.Scope == x.Scope && x.Subject.Of(in.Scope.Owner, in.SessionID), nil)
}
