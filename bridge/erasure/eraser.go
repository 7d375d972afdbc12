package erasure

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/events/store"
	"github.com/loom-bridge/loom-bridge/bridge/messages"
	"github.com/loom-bridge/loom-bridge/memory/kv"
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
}

func (s Subject) String() string {
	if s.Kind == Tenant {
		return "tenant " + s.Tenant
	}
	return fmt.Sprintf("%s %s of tenant %s", s.Kind, s.ID, s.Tenant)
}

// Check tells whether there can be such a subject.
func (s Subject) Check() error {
	_, err := s.scope()
	return err
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
}

// Eraser says what becomes of each entry of a store, in the order of keyspaces and keys.
type Eraser struct {
	subject  Subject
	scope    kv.Scope
	events   store.Erasing
	messages messages.Erasing
	tallies  [6]Tally
}

// New makes an eraser of what from holds.
func New(subject Subject, from store.Scanner) (*Eraser, error) {
	scope, err := subject.scope()
	if err != nil {
		return nil, err
	}
	return &Eraser{
		subject: subject, scope: scope,
		events:   store.Erasing{From: from, Source: subject.ID},
		messages: messages.Erasing{Source: subject.ID},
	}, nil
}

// Change says which value an entry gets, and whether it stays.
func (e *Eraser) Change(ctx context.Context, ks kv.Keyspace, p kv.Pair) (value []byte, keep bool, err error) {
	value, keep, err = e.change(ctx, ks, p)
	if err != nil {
		return nil, false, fmt.Errorf("erasure: %s: key %q: %w", ks, p.Key, err)
	}
	tally := &e.tallies[ks]
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
	case e.subject.Kind == Tenant || scope == e.scope:
		return nil, false, nil
	case len(rest) == 0 || rest[0] == 0: // a sequence
		return p.Value, true, nil
	case ks == kv.System && scope.Kind == kv.OwnerSystem:
		gone, err := e.listed(scope.Owner, rest[0], rest[1:], p.Value)
		return p.Value, !gone, err
	case e.subject.Kind != Agent:
		return p.Value, true, nil
	case ks == kv.Events && scope.Kind == kv.OwnerTopic:
		return e.events.Change(ctx, scope, p)
	case ks == kv.System && scope.Kind == kv.OwnerAgent:
		if rest[0] == 'u' { // what this agent may read of the subject's blobs
			whose, err := text(p.Value, 1)
			return p.Value, !slices.Contains(whose, e.subject.ID), err
		}
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
	case name == "expiry" && tag == 'e':
		return len(rest) > 4 && is(rest[4:]), nil
	case name == "embeddings" && tag == 'e':
		return is(rest), nil
	case name == "children" && tag == 'c':
		return agent && string(rest) == e.subject.ID, nil
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
