// Package erase is how a package that owns entries of the store says what becomes of them
// when a subject is erased.
//
// The nouns:
//
//   - A [Subject] is whose data goes: an agent, a person or a tenant, or a part of it.
//   - An [Owner] is a package with its entries: it describes them as a list of [Sort], and
//     makes the [Change] that takes a subject out of them.
//   - A [Run] is one erasure, with what the owners have learned about the subject.
//   - A [Search] looks for the subject's id in bytes of any format.
//
// Entries in the subject's own scope are deleted without asking an owner. An owner only
// handles entries in other scopes that name the subject, and entries of a part, such as a
// session. The caller is bridge/erasure, which knows no formats.
package erase

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

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

// Shared is what becomes of records that an agent, or a session of one, saved into the memory
// of a person or a space.
type Shared string

// The choices. They are the caller's: the record may be the person's or the agent's.
const (
	// Authorship, the default, takes the agent's and the session's name off the records, which
	// stay.
	Authorship Shared = ""
	// Records takes the records with it.
	Records Shared = "records"
)

// Subject is whose data goes.
type Subject struct {
	Tenant string `json:"tenant"`
	Kind   Kind   `json:"kind"`
	// ID is the agent's or the person's; empty for a tenant.
	ID string `json:"id,omitempty"`
	// Session narrows an agent to what stands in one session.
	Session string `json:"session,omitempty"`
	// Step narrows an agent to one of its steps, by its number. Session, if set, is the
	// session that the step must belong to.
	Step uint64 `json:"step,omitempty"`
	// Filter narrows a subject to the records that it lets through.
	Filter string `json:"filter,omitempty"`
	// Shared is what becomes of records in memories that others share.
	Shared Shared `json:"shared,omitempty"`
}

func (s Subject) String() string {
	what := "tenant " + s.Tenant
	if s.Kind != Tenant {
		what = fmt.Sprintf("%s %s of tenant %s", s.Kind, s.ID, s.Tenant)
	}
	switch {
	case s.Step != 0:
		return fmt.Sprintf("step %d of %s", s.Step, what)
	case s.Session != "":
		return fmt.Sprintf("session %s of %s", s.Session, what)
	case s.Filter != "":
		return fmt.Sprintf("records of %s with %s", what, s.Filter)
	}
	return what
}

// Narrowed reports whether only a part of the agent's, the person's or the tenant's goes.
func (s Subject) Narrowed() bool { return s.Session != "" || s.Step != 0 || s.Filter != "" }

// Is reports whether the subject is the whole of an agent or a person with that id.
func (s Subject) Is(kind Kind, id string) bool {
	return !s.Narrowed() && s.Kind == kind && s.ID == id
}

// Of reports whether something of an agent, in one of its sessions, is the subject's. False for
// a subject with a step, since the session alone does not identify it.
func (s Subject) Of(agent, session string) bool {
	return s.Kind == Agent && s.Filter == "" && s.Step == 0 && s.ID == agent && (s.Session == "" || s.Session == session)
}

// Names reports whether some bytes are the owner of an entry of a list: the byte of its kind and
// its id.
func (s Subject) Names(owner []byte) bool {
	kind := map[Kind]kv.OwnerKind{Agent: kv.OwnerAgent, User: kv.OwnerUser}[s.Kind]
	return !s.Narrowed() && kind != 0 && len(owner) > 1 && owner[0] == byte(kind) && string(owner[1:]) == s.ID
}

// Reader is what is read of a store.
type Reader interface {
	Get(ctx context.Context, ks kv.Keyspace, keys ...[]byte) ([][]byte, error)
	Scan(ctx context.Context, ks kv.Keyspace, r kv.Range) iter.Seq2[kv.Pair, error]
}

// Picked are the ids of the records that go, by memory. A memory without any is there where
// something else of its records goes: a name, or an earlier version.
type Picked map[kv.Scope]map[string]bool

// Run is one erasure.
type Run struct {
	Subject Subject
	// Scope is the subject's own, or that of whose part it is; of a tenant, none of the store.
	Scope kv.Scope
	From  Reader
	// Looks says that nothing is erased: it looks for what should have gone, with records
	// whose digests these are.
	Looks   bool
	Digests map[string]bool
	// Counts says that nothing is erased yet: what would become of each record that is picked
	// is asked for, and not ErrAnew.
	Counts bool
	// Picked are records that are to go.
	Picked Picked
	// Shown says that prompts may have shown the person's memory.
	Shown bool

	// Within is the session that the step must be of; empty: any. The subject of a run has no
	// session then.
	Within string

	// What owners find out in the order in which they are asked: numbers of the steps that go,
	// with a session or alone, and hashes of offloaded results that go with them.
	Steps map[uint64]bool
	Refs  map[string]bool
	// Of a step that is there: where it stands, the ids of its tasks, and what looks for its
	// words.
	Place Place
	Tasks []string
	Words Search
}

// Place is where a step stands in the log.
type Place struct {
	Session  string
	Position uint64
}

// MayShow reports whether prompts of an agent may show what goes: a person's memory, or
// records that are picked.
func (r *Run) MayShow(agent kv.Scope) bool {
	switch {
	case r.Subject.Kind == User:
		return r.Shown || len(r.Picked) > 0
	case r.Subject.Filter == "" || len(r.Picked) == 0:
		return false
	}
	return r.Subject.Kind == Tenant || agent == r.Scope
}

// Own reports whether an entry is in the scope that the run erases a part of.
func (r *Run) Own(e Entry) bool { return e.Scope == r.Scope }

// Entry is one entry of the subject's tenant, in the scope of somebody else or, of a part of
// a subject, in any.
type Entry struct {
	Keyspace kv.Keyspace
	Scope    kv.Scope
	Tag      byte
	// Tail is the key behind the tag.
	Tail []byte
	kv.Pair
}

// Stays is the answer that an entry stays as it is.
func (e Entry) Stays() ([]byte, bool, error) { return e.Value, true, nil }

// Goes is the answer that an entry goes if gone is true, and stays otherwise.
func (e Entry) Goes(gone bool, err error) ([]byte, bool, error) { return e.Value, !gone, err }

// Change says which value an entry gets, and whether it stays. Entries come in the order of
// their keys.
type Change func(ctx context.Context, e Entry) (value []byte, keep bool, err error)

// ErrAnew says that an entry is left out, and that its memory is written anew without the
// records that go.
var ErrAnew = errors.New("erase: written anew")

// Elsewhere is the phase of entries that a running server deletes by a separate procedure.
const Elsewhere = -1

// Sort is a sort of entries: the entries of one keyspace with certain tags.
type Sort struct {
	Keyspace kv.Keyspace
	// Kinds are the bytes of the kinds of owners, such as "au".
	Kinds string
	// Lists are the names of the server's own scopes (kind y), whole or in parts. One that
	// ends with a slash is the beginning of names.
	Lists []string
	// Tags are the bytes of the tags.
	Tags string
	// Counted is what each entry counts as in the answer, such as "records"; empty: as a part
	// of another one.
	Counted string
	// Marked is another kind that an entry with a value counts as, too. Nil or empty: none.
	Marked func(s Subject, value []byte) string
	// Phase is that in which a running server changes them, from 0: what leads to other
	// entries goes behind those.
	Phase int
	// Texts says whose words stand there, and may name a subject although nothing of it is
	// left: what others said stays theirs. Empty: nothing there may name an erased subject.
	Texts string
	// Open unpacks a value before it is searched. Nil: it is searched as it is.
	Open func(value []byte) ([]byte, error)
}

// Has reports whether an entry is of the sort.
func (s *Sort) Has(ks kv.Keyspace, scope kv.Scope, tag byte) bool {
	if s.Keyspace != ks || strings.IndexByte(s.Tags, tag) < 0 || strings.IndexByte(s.Kinds, byte(scope.Kind)) < 0 {
		return false
	}
	if scope.Kind != kv.OwnerSystem {
		return true
	}
	for _, name := range s.Lists {
		if strings.HasSuffix(name, "/") && strings.HasPrefix(scope.Owner, name) || kv.List(name).Has(scope) {
			return true
		}
	}
	return false
}

// Owner is a package with its entries.
type Owner struct {
	// Name is the package's.
	Name  string
	Sorts []Sort
	// Whole reports whether a scope of another kind or owner belongs to the subject as a
	// whole, such as a topic named after it. Nil: no scope does.
	Whole func(s Subject, scope kv.Scope) bool
	// Along are entries of the subject's own scope that a running server takes out in the same
	// commit as an entry that goes. Nil: there are none.
	Along func(r *Run, e Entry) ([]kv.Pair, error)
	// Begin makes the change of a run. Nil: nothing of a subject stands there but in its own
	// scope.
	Begin func(ctx context.Context, r *Run) (Change, error)
}

// Text are the texts of some fields of a message.
func Text(message []byte, numbers ...int) (texts []string, err error) {
	for f, err := range wire.Fields(message) {
		if err != nil {
			return nil, err
		}
		for _, n := range numbers {
			if n == f.Number {
				texts = append(texts, string(f.Bytes))
			}
		}
	}
	return texts, nil
}

// Each calls see for all keys with a prefix, which is cut off.
func Each(ctx context.Context, from Reader, ks kv.Keyspace, prefix []byte, see func(tail, value []byte) error) error {
	for pair, err := range from.Scan(ctx, ks, kv.Prefix(prefix)) {
		if err == nil {
			err = see(pair.Key[len(prefix):], pair.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
