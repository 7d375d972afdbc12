package erasure

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Kind is what a subject is.
type Kind string

// The kinds.
const (
	Agent  Kind = "agent"
	User   Kind = "user"
	Tenant Kind = "tenant"
)

// Subject is whose data goes.
type Subject struct {
	Tenant string `json:"tenant"`
	Kind   Kind   `json:"kind"`
	// ID is the agent's or the person's; empty for a tenant.
	ID string `json:"id,omitempty"`
	// Session narrows an agent to what stands in one session.
	Session string `json:"session,omitempty"`
	// Filter narrows a subject to the records that it lets through.
	Filter string `json:"filter,omitempty"`
}

func (s Subject) String() string {
	what := "tenant " + s.Tenant
	if s.Kind != Tenant {
		what = fmt.Sprintf("%s %s of tenant %s", s.Kind, s.ID, s.Tenant)
	}
	switch {
	case s.Session != "":
		return fmt.Sprintf("session %s of %s", s.Session, what)
	case s.Filter != "":
		return fmt.Sprintf("records of %s with %s", what, s.Filter)
	}
	return what
}

// Narrowed tells whether only a part of the agent's, the person's or the tenant's goes.
func (s Subject) Narrowed() bool { return s.Session != "" || s.Filter != "" }

// Erasures are what a running server is erasing (memory/FORMAT.md): an entry with ErasureTag
// in the part of the subject.
const (
	Erasures   = kv.List("erasures")
	ErasureTag = 'e'
)

var (
	// ErrInvalid: there can be no such subject.
	ErrInvalid = errors.New("erasure: invalid input")
	// ErrNothing: the store holds nothing of the subject.
	ErrNothing = errors.New("erasure: nothing was found")
)

// Check tells whether there can be such a subject. Its error is an *invalid.Error of the
// fields "subject", "session" and "filter".
func (s Subject) Check() error {
	if _, err := s.scope(); err != nil {
		return invalid.Field(ErrInvalid, "subject", "can't be: %v", err)
	}
	switch {
	case s.Session != "" && s.Filter != "":
		return invalid.Field(ErrInvalid, "session", "is given together with a filter; give one of them")
	case s.Session != "" && s.Kind != Agent:
		return invalid.Field(ErrInvalid, "session", "is an agent's; name the agent")
	case len(s.Session) > session.MaxSessionIDBytes || !utf8.ValidString(s.Session) || strings.IndexByte(s.Session, 0) >= 0:
		return invalid.Field(ErrInvalid, "session", "is longer than %d bytes, or no text", session.MaxSessionIDBytes)
	case s.Filter != "":
		if _, err := filter.Parse(s.Filter); err != nil {
			return invalid.Field(ErrInvalid, "filter", "can't be read: %v", err)
		}
	}
	return nil
}

// scope is that of the subject; of a tenant, one to check its name with.
func (s Subject) scope() (kv.Scope, error) {
	scope := kv.Scope{Tenant: s.Tenant, Kind: kv.OwnerAgent, Owner: s.ID}
	switch s.Kind {
	case Agent:
	case User:
		scope.Kind = kv.OwnerUser
	case Tenant:
		scope.Owner = "any"
	default:
		return kv.Scope{}, fmt.Errorf("erasure: unknown kind of subject %q", s.Kind)
	}
	return scope, scope.Validate()
}

// Tally counts entries of one keyspace.
type Tally struct {
	// Erased entries were left out, Changed ones lost what was the subject's.
	Erased  int64 `json:"erased"`
	Changed int64 `json:"changed"`
	// Bytes is what those held.
	Bytes int64 `json:"bytes"`
	// Kept entries are as they were.
	Kept int64 `json:"kept"`
	// Anew are those of memories that lost some of their records: what stays of them was
	// written anew.
	Anew int64 `json:"anew,omitempty"`
}

// Eraser says what becomes of each entry of a store, in the order of keyspaces and keys.
type Eraser struct {
	subject  Subject
	scope    kv.Scope
	events   store.Erasing
	messages messages.Erasing
	tallies  [6]Tally
	part     *part           // nil where the whole subject goes
	orphans  map[string]bool // children of what goes
	prompts  bool            // records of prompts go, which may show the person's memory
	done     map[string]bool // digests of records that must have gone; nil unless it looks for what is left
}

// New makes an eraser of what from holds. Of a narrowed subject picked are the records that
// go; of any other it is nil.
func New(ctx context.Context, subject Subject, from store.Scanner, picked Picked) (*Eraser, error) {
	scope, err := subject.scope()
	if err != nil {
		return nil, err
	}
	e := &Eraser{
		subject: subject, scope: scope, orphans: make(map[string]bool),
		events:   store.Erasing{From: from, Source: subject.ID, Session: subject.Session},
		messages: messages.Erasing{Source: subject.ID, Session: subject.Session},
	}
	switch {
	case subject.Narrowed():
		e.part = newPart(subject, scope, picked)
		err = e.part.learn(ctx, from, scope)
	case subject.Kind == User:
		for _, err = range from.Scan(ctx, kv.Records, kv.Prefix(scope.AppendPrefix(nil))) {
			e.prompts = err == nil
			break
		}
	}
	return e, err
}

// NewFinder makes an eraser that finds what from has of a subject that was erased, records
// with those digests among it.
func NewFinder(ctx context.Context, subject Subject, from store.Scanner, digests []string) (*Eraser, error) {
	e, err := New(ctx, subject, from, nil)
	if err == nil {
		e.done = make(map[string]bool, len(digests))
		for _, d := range digests {
			e.done[d] = true
		}
	}
	return e, err
}

// Change says which value an entry gets, and whether it stays.
func (e *Eraser) Change(ctx context.Context, ks kv.Keyspace, p kv.Pair) (value []byte, keep bool, err error) {
	value, keep, err = e.change(ctx, ks, p)
	tally := &e.tallies[ks]
	if errors.Is(err, errAnew) {
		tally.Anew++
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("erasure: %s: key %q: %w", ks, p.Key, err)
	}
	switch {
	case !keep:
		tally.Erased++
	case !bytes.Equal(value, p.Value):
		tally.Changed++
	default:
		tally.Kept++
		return value, true, nil
	}
	tally.Bytes += int64(len(p.Key) + len(p.Value))
	return value, keep, nil
}

// Tallies are the counts so far, by keyspace.
func (e *Eraser) Tallies() map[string]Tally {
	all := make(map[string]Tally, len(e.tallies))
	for _, ks := range kv.Keyspaces() {
		all[ks.String()] = e.tallies[ks]
	}
	return all
}

// Left is how many entries held something of the subject.
func (e *Eraser) Left() (n int64) {
	for _, t := range e.tallies {
		n += t.Erased + t.Changed
	}
	return n
}

func (e *Eraser) change(ctx context.Context, ks kv.Keyspace, p kv.Pair) ([]byte, bool, error) {
	scope, rest, err := kv.SplitKey(p.Key)
	switch {
	case err != nil:
		return nil, false, err
	case scope.Tenant != e.subject.Tenant:
		return p.Value, true, nil
	case e.done != nil && kv.IsReserved(p.Key):
		return p.Value, true, nil // an erasure on a running server leaves how often it was written to
	case e.part == nil && (e.subject.Kind == Tenant || scope == e.scope):
		return nil, false, nil
	case len(rest) == 0 || rest[0] == 0: // a sequence
		return p.Value, true, nil
	case e.part != nil:
		return e.narrowed(ctx, ks, scope, rest, p)
	case ks == kv.System && scope.Kind == kv.OwnerSystem:
		gone, err := e.listed(scope.Owner, rest[0], rest[1:], p.Value)
		return p.Value, !gone, err
	case e.subject.Kind != Agent:
		shown := e.prompts && e.done == nil && ks == kv.Log && scope.Kind == kv.OwnerAgent && strings.IndexByte(ofPrompts, rest[0]) >= 0
		return p.Value, !shown, nil
	case ks == kv.Events && scope.Kind == kv.OwnerTopic:
		return e.events.Change(ctx, scope, p)
	case ks == kv.System && scope.Kind == kv.OwnerAgent:
		if gone, err := e.child(scope, rest, p.Value); gone || err != nil {
			return nil, false, err
		}
		if rest[0] == 'u' { // what this agent may read of the subject's blobs
			whose, err := text(p.Value, 1)
			return p.Value, !slices.Contains(whose, e.subject.ID), err
		}
		return e.messages.Change(scope, p)
	}
	return p.Value, true, nil
}

// child tells whether an entry says that the agent of a scope is a child of the subject's:
// what its parent gave it goes, and it is an agent like others.
func (e *Eraser) child(scope kv.Scope, rest, value []byte) (bool, error) {
	switch {
	case rest[0] == 'v' && len(rest) == 1: // behind the child's entry
		return e.orphans[scope.Owner], nil
	case rest[0] == spawnedTag: // at the subject's parent
		return e.part == nil && string(value) == e.subject.ID, nil
	case rest[0] != childTag || len(rest) != 1:
		return false, nil
	}
	parent, err := text(value, 1)
	sessions, other := text(value, 6)
	if err == nil {
		err = other
	}
	ours := slices.Contains(parent, e.subject.ID) && (e.subject.Session == "" || slices.Contains(sessions, e.subject.Session))
	if ours {
		e.orphans[scope.Owner] = true
	}
	return ours, err
}

// errAnew says that an entry is left out and written anew.
var errAnew = errors.New("erasure: written anew")

// narrowed is change for a part of a subject.
func (e *Eraser) narrowed(ctx context.Context, ks kv.Keyspace, scope kv.Scope, rest []byte, p kv.Pair) ([]byte, bool, error) {
	if ks == kv.Events && scope.Kind == kv.OwnerTopic && e.part.session != "" {
		return e.events.Change(ctx, scope, p)
	}
	what, err := e.partOf(ks, scope, rest, p.Value)
	switch {
	case err != nil || what == goes:
		return nil, false, err
	case what == empties:
		return nil, true, nil
	case what == anew:
		return nil, false, errAnew
	case ks == kv.System && scope.Kind == kv.OwnerAgent && e.part.session != "":
		return e.messages.Change(scope, p)
	}
	return p.Value, true, nil
}

// listed tells whether an entry of the server's own lists is about the subject
// (memory/FORMAT.md, keyspace system).
func (e *Eraser) listed(list string, tag byte, rest, value []byte) (bool, error) {
	name, _, _ := strings.Cut(list, "#")
	owner := append([]byte{byte(e.scope.Kind)}, e.scope.Owner...)
	is := func(tail []byte) bool { return bytes.Equal(tail, owner) }
	agent := e.subject.Kind == Agent
	hash := sha256.Sum256([]byte(e.subject.ID))
	switch {
	case name == "intents" && tag == 'i':
		return bytes.HasPrefix(rest, append([]byte{byte(e.scope.Kind)}, kv.AppendEscaped(nil, e.scope.Owner)...)), nil
	case name == string(Erasures) && tag == ErasureTag:
		ids, err := text(value, 2)
		kinds, other := text(value, 1)
		return slices.Contains(ids, e.subject.ID) && slices.Contains(kinds, string(e.subject.Kind)), errors.Join(err, other)
	case name == "expiry" && tag == 'e':
		return len(rest) > 4 && is(rest[4:]), nil
	case name == "embeddings" && tag == 'e':
		return is(rest), nil
	case name == "children" && tag == 'c':
		return agent && e.part == nil && string(rest) == e.subject.ID || e.orphans[string(rest)], nil
	case name == "mentions" && tag == 'n':
		return is(behindName(rest)), nil
	case name == "gaps" && tag == 'g':
		return agent && bytes.Equal(rest, hash[:]), nil
	case name == "gaps" && tag == 'k':
		whose, err := text(value, 1)
		return agent && slices.Contains(whose, e.subject.ID), err
	case name == "audit" && tag == 'r': // none, once bridge/audit has erased them
		whose, err := text(value, 1)
		return agent && slices.Contains(whose, e.subject.ID), err
	case name == "approvals" && tag == 'g':
		whose, err := text(value, 4, 6, 8)
		return agent && slices.Contains(whose, e.subject.ID), err
	}
	return false, nil
}

// behindName is what follows the name of a mention.
func behindName(rest []byte) []byte {
	if len(rest) == 0 {
		return nil
	}
	size := 1
	switch rest[0] {
	case 'h':
		size += 6
	case 's':
		size += 8
	case 'p':
		size += bytes.IndexByte(rest[1:], 0) + 1
	}
	return rest[min(size, len(rest)):]
}

// text are the texts of some fields of a message.
func text(message []byte, numbers ...int) (texts []string, err error) {
	for f, err := range wire.Fields(message) {
		if err != nil {
			return nil, err
		}
		if slices.Contains(numbers, f.Number) {
			texts = append(texts, string(f.Bytes))
		}
	}
	return texts, nil
}
