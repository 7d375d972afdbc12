package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/access"
	"github.com/loom-bridge/loom-bridge/memory/feed"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	"github.com/loom-bridge/loom-bridge/memory/left"
	"github.com/loom-bridge/loom-bridge/memory/lexical/segment"
	"github.com/loom-bridge/loom-bridge/memory/plans"
	"github.com/loom-bridge/loom-bridge/memory/record"
	"github.com/loom-bridge/loom-bridge/memory/relations"
	"github.com/loom-bridge/loom-bridge/memory/vector"
)

// Erasure is what becomes of records, their index and the lists about them when a subject is
// erased. A memory that loses some of its records, or names in them, is written anew, or
// changed by Expunge; its index is made anew from what stays.
func Erasure() erase.Owner {
	const others = "what others remember"
	sort := func(tags, counted string) erase.Sort {
		return erase.Sort{Keyspace: kv.Records, Kinds: "aus", Tags: tags, Counted: counted, Texts: others}
	}
	list := func(l kv.List, tag byte) erase.Sort {
		return erase.Sort{Keyspace: kv.System, Kinds: "y", Lists: []string{string(l)}, Tags: string(rune(tag))}
	}
	return erase.Owner{
		Name: "memory",
		Sorts: slices.Concat([]erase.Sort{
			sort(string(rune(record.Tag)), "records"),
			sort(string(rune(record.TagVersion)), "versions"),
			sort(string([]byte{record.TagKey, record.TagSame, tagExpiry, tagCounts, left.Tag, access.Tag, tagWaiting, 'q'}), ""),
			list(expiryList, tagDue),
			list(waitingList, tagWaitingScope),
		}, feed.Sorts(), relations.Sorts(), vector.Sorts(), segment.Sorts()),
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			x := erasing{r}
			return x.change, nil
		},
	}
}

// erasing is one run.
type erasing struct{ *erase.Run }

func (x erasing) change(_ context.Context, e erase.Entry) ([]byte, bool, error) {
	switch {
	case e.Keyspace == kv.System && expiryList.Has(e.Scope):
		const span = 4
		return e.Goes(len(e.Tail) > span && x.Subject.Names(e.Tail[min(span, len(e.Tail)):]), nil)
	case e.Keyspace == kv.System:
		return e.Goes(x.Subject.Names(e.Tail), nil)
	case x.Looks:
		return x.left(e)
	}
	if ids, picked := x.Picked[e.Scope]; picked && !plans.Is(e) {
		if x.Counts {
			id, err := recordOf(e)
			if err != nil || id == "" || ids[id] {
				return e.Goes(id != "" && err == nil, err)
			}
			r, err := record.Decode(e.Value)
			if err != nil || !SavedIn(x.Subject, e.Scope, &r) {
				return e.Goes(false, err)
			}
			return record.Encode(Unsigned(x.Subject, r)), true, nil
		}
		return nil, false, erase.ErrAnew
	}
	if x.Subject.Kind == erase.Agent && !x.Subject.Narrowed() && vector.IsDirectory(e) {
		return vector.Unmade(e, x.Subject.ID)
	}
	return e.Stays()
}

// recordOf is the id of the record that an entry is, now or in an earlier version; empty for
// other entries.
func recordOf(e erase.Entry) (string, error) {
	switch {
	case e.Keyspace != kv.Records:
	case e.Tag == record.Tag:
		return string(e.Tail), nil
	case e.Tag == record.TagVersion:
		id, _, err := kv.CutEscaped(e.Tail)
		return id, err
	}
	return "", nil
}

// left finds what should have gone: records by their digests, and what the subject saved.
func (x erasing) left(e erase.Entry) ([]byte, bool, error) {
	ids, err := relations.Ends(e)
	for _, id := range ids {
		if x.Digests[Digest(e.Scope, id)] {
			return e.Goes(true, nil)
		}
	}
	if err != nil {
		return nil, false, err
	}
	id, err := recordOf(e)
	if err != nil || id == "" {
		return e.Goes(false, err)
	}
	if x.Digests[Digest(e.Scope, id)] {
		return e.Goes(true, nil)
	}
	r, err := record.Decode(e.Value)
	return e.Goes(err == nil && SavedIn(x.Subject, e.Scope, &r), err)
}

// SavedIn reports whether a record of a memory was saved by an agent, or in a session of one, that
// is erased: one that others share has the agent's name in it.
func SavedIn(s erase.Subject, scope kv.Scope, r *record.Record) bool {
	if s.Kind != erase.Agent || s.Filter != "" || s.Step != 0 {
		return false
	}
	if scope.Kind == kv.OwnerAgent {
		return s.Session != "" && scope.Owner == s.ID && r.SessionID == s.Session
	}
	return s.Of(r.SavedBy, r.SessionID)
}

// Unsigned is a record without the name of who saved it, or of the session that it was saved
// in.
func Unsigned(s erase.Subject, r record.Record) record.Record {
	switch {
	case s.Session != "":
		r.SessionID = ""
	default:
		r.SavedBy = ""
	}
	if r.Author == s.ID {
		r.Author = ""
	}
	return r
}

// Digest stands for the id of a record in a certificate.
func Digest(scope kv.Scope, id string) string {
	sum := sha256.Sum256(append(scope.AppendPrefix(nil), id...))
	return hex.EncodeToString(sum[:16])
}
