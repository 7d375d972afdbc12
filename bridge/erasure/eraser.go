package erasure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/memory/filter"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Subject is whose data goes.
type Subject = erase.Subject

// The kinds of subjects.
const (
	Agent  = erase.Agent
	User   = erase.User
	Tenant = erase.Tenant
)

// Picked are the ids of the records that go, by memory.
type Picked = erase.Picked

var (
	// ErrInvalid: there can be no such subject.
	ErrInvalid = errors.New("erasure: invalid input")
	// ErrNothing: the store holds nothing of the subject.
	ErrNothing = errors.New("erasure: nothing was found")
)

// Check reports whether there can be such a subject. Its error is an *invalid.Error of the
// fields "subject", "session", "step", "filter" and "shared".
func Check(s Subject) error {
	if _, err := scopeOf(s); err != nil {
		return invalid.Field(ErrInvalid, "subject", "can't be: %v", err)
	}
	switch {
	case s.Step != 0 && s.Kind != Agent:
		return invalid.Field(ErrInvalid, "step", "is an agent's; name the agent")
	case s.Step != 0 && s.Filter != "":
		return invalid.Field(ErrInvalid, "step", "is given together with a filter; give one of them")
	case s.Session != "" && s.Filter != "":
		return invalid.Field(ErrInvalid, "session", "is given together with a filter; give one of them")
	case s.Session != "" && s.Kind != Agent:
		return invalid.Field(ErrInvalid, "session", "is an agent's; name the agent")
	case len(s.Session) > session.MaxSessionIDBytes || !utf8.ValidString(s.Session) || strings.IndexByte(s.Session, 0) >= 0:
		return invalid.Field(ErrInvalid, "session", "is longer than %d bytes, or no text", session.MaxSessionIDBytes)
	case s.Shared != erase.Authorship && s.Shared != erase.Records:
		return invalid.Field(ErrInvalid, "shared", "is neither authorship nor records")
	case s.Shared != erase.Authorship && (s.Kind != Agent || s.Filter != "" || s.Step != 0):
		return invalid.Field(ErrInvalid, "shared", "is about an agent, or a session of one, that saved into the memory of others")
	case s.Filter != "":
		if _, err := filter.Parse(s.Filter); err != nil {
			return invalid.Field(ErrInvalid, "filter", "can't be read: %v", err)
		}
	}
	return nil
}

// Scope is a subject's own, or that of whose part it is. A tenant has none.
func Scope(s Subject) (kv.Scope, error) {
	if s.Kind == Tenant {
		return kv.Scope{}, fmt.Errorf("%w: a tenant has many scopes", ErrInvalid)
	}
	return scopeOf(s)
}

// scopeOf is that of the subject; of a tenant, one to check its name with.
func scopeOf(s Subject) (kv.Scope, error) {
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
	// Anew are the entries of memories that lost some of their records: the remaining
	// entries were rewritten.
	Anew int64 `json:"anew,omitempty"`
}

// Eraser says what becomes of each entry of a store, in the order of keyspaces and keys. What
// an entry holds it asks the package that owns it.
type Eraser struct {
	run      *erase.Run
	registry *sorts
	changes  []erase.Change // by owner; nil where it has none
	tallies  [6]Tally
	search   erase.Search
	quoted   map[string]int64
	named    int64 // entries that name the subject although their owner says that none may
	left     map[string]int64
}

// New makes an eraser of what from holds. picked are the records that go (see Pick).
func New(ctx context.Context, subject Subject, from erase.Reader, picked Picked) (*Eraser, error) {
	return begin(ctx, &erase.Run{Subject: subject, From: from, Picked: picked})
}

// NewFinder makes an eraser that finds what from has of a subject that was erased, records
// with those digests among it, and looks for the subject's id in all bytes.
func NewFinder(ctx context.Context, subject Subject, from erase.Reader, digests []string) (*Eraser, error) {
	r := &erase.Run{Subject: subject, From: from, Looks: true, Digests: make(map[string]bool, len(digests))}
	for _, d := range digests {
		r.Digests[d] = true
	}
	e, err := begin(ctx, r)
	if err == nil && subject.Filter == "" && subject.Step == 0 {
		e.search = erase.NewSearch(subject.ID)
		if subject.Session != "" {
			e.search = erase.NewSearch(subject.Session)
		}
	}
	return e, err
}

func begin(ctx context.Context, r *erase.Run) (e *Eraser, err error) {
	if r.Scope, err = scopeOf(r.Subject); err != nil {
		return nil, err
	}
	if r.Subject.Step != 0 { // no owner takes it for its session
		r.Within, r.Subject.Session = r.Subject.Session, ""
	}
	r.Steps, r.Refs = make(map[uint64]bool), make(map[string]bool)
	if r.Subject.Kind == User && !r.Subject.Narrowed() {
		for _, err := range r.From.Scan(ctx, kv.Records, kv.Prefix(r.Scope.AppendPrefix(nil))) {
			r.Shown = err == nil
			break
		}
	}
	e = &Eraser{run: r, registry: newSorts(), quoted: make(map[string]int64), left: make(map[string]int64)}
	for _, o := range e.registry.owners {
		var change erase.Change
		if o.Begin != nil {
			if change, err = o.Begin(ctx, r); err != nil {
				return nil, fmt.Errorf("erasure: %s: %w", o.Name, err)
			}
		}
		e.changes = append(e.changes, change)
	}
	e.search = r.Words
	return e, nil
}

// Step is where the step stands that is erased, and what looks for its words; no position where
// it is gone.
func (e *Eraser) Step() (erase.Place, erase.Search) { return e.run.Place, e.run.Words }

// Change says which value an entry gets, and whether it stays.
func (e *Eraser) Change(ctx context.Context, ks kv.Keyspace, p kv.Pair) (value []byte, keep bool, err error) {
	value, keep, err = e.change(ctx, ks, p)
	tally := &e.tallies[ks]
	if errors.Is(err, erase.ErrAnew) {
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
		return value, true, e.look(ks, p)
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
	return n + e.named
}

// LeftAt counts what was left by the package that owns it, for an error that says where.
func (e *Eraser) LeftAt() map[string]int64 { return maps.Clone(e.left) }

// leave notes whose an entry is that is left.
func (e *Eraser) leave(entry erase.Entry) {
	name := "nobody"
	if sort, owned := e.registry.find(entry.Keyspace, entry.Scope, entry.Tag); owned {
		name = e.registry.owners[sort.owner].Name
	}
	e.left[fmt.Sprintf("%s, tag %c of %s", name, entry.Tag, entry.Keyspace)]++
}

// Quoted counts the entries that stay although the subject's id stands in them, by whose words
// those are: what others said stays theirs.
func (e *Eraser) Quoted() map[string]int64 { return maps.Clone(e.quoted) }

// split takes the key of an entry of the subject's tenant apart; false for one of another's.
func (e *Eraser) split(ks kv.Keyspace, p kv.Pair) (entry erase.Entry, ours bool, err error) {
	scope, rest, err := kv.SplitKey(p.Key)
	if err != nil || scope.Tenant != e.run.Subject.Tenant {
		return entry, false, err
	}
	entry = erase.Entry{Keyspace: ks, Scope: scope, Pair: p}
	if len(rest) > 0 {
		entry.Tag, entry.Tail = rest[0], rest[1:]
	}
	return entry, true, nil
}

func (e *Eraser) change(ctx context.Context, ks kv.Keyspace, p kv.Pair) ([]byte, bool, error) {
	entry, ours, err := e.split(ks, p)
	switch {
	case err != nil:
		return nil, false, err
	case !ours, e.run.Looks && entry.Tag == 0: // an erasure on a running server leaves how often a scope was written to
		return p.Value, true, nil
	case e.whole(entry.Scope):
		return nil, false, nil
	case entry.Tag == 0: // a sequence
		return p.Value, true, nil
	}
	sort, owned := e.registry.find(ks, entry.Scope, entry.Tag)
	if !owned || e.changes[sort.owner] == nil {
		return p.Value, true, nil
	}
	return e.changes[sort.owner](ctx, entry)
}

// whole reports whether all of a scope of the tenant is the subject's.
func (e *Eraser) whole(scope kv.Scope) bool {
	s := e.run.Subject
	if s.Narrowed() {
		return false
	}
	if s.Kind == Tenant || scope == e.run.Scope {
		return true
	}
	return !e.run.Looks && !e.run.Counts && e.registry.whole(s, scope) // a running server empties those
}

// look searches an entry that stays for the subject's id, where that is asked for. Of a session
// only the agent's own entries can have it: others have sessions of that name, too. The words of
// a step are known as long as it is there, so that they are looked for when it is counted.
func (e *Eraser) look(ks kv.Keyspace, p kv.Pair) error {
	byWords := e.run.Counts && e.run.Subject.Step != 0
	if !e.run.Looks && !byWords {
		return nil
	}
	entry, ours, err := e.split(ks, p)
	if err != nil || !ours || entry.Tag == 0 || e.run.Subject.Session != "" && entry.Scope != e.run.Scope || Erasures.Has(entry.Scope) {
		return err
	}
	sort, owned := e.registry.find(ks, entry.Scope, entry.Tag)
	value := p.Value
	if owned && sort.Open != nil {
		if opened, err := sort.Open(value); err == nil {
			value = opened
		}
	}
	switch {
	case !e.search.Names(entry.Tail, value):
	case owned && sort.Texts != "":
		e.quoted[sort.Texts]++
	case byWords:
		e.quoted["other entries"]++
	case e.search.Is(entry.Tail, value):
		e.named++
		e.leave(entry)
	default: // such as a child that was named after its parent
		e.quoted["names of others that contain it"]++
	}
	return nil
}
