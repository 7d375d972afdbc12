package audit

import (
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure covers records of calls when a subject is erased: Log.Erase removes them
// beforehand. Their digests and numbers stay.
func Erasure() erase.Owner {
	return erase.Owner{
		Name: "bridge/audit",
		Sorts: []erase.Sort{
			{Keyspace: kv.System, Kinds: "y", Lists: []string{name}, Tags: string(rune(tagRecord)), Counted: "audit_records", Phase: erase.Elsewhere, Texts: "arguments of calls of others"},
			{Keyspace: kv.System, Kinds: "y", Lists: []string{name}, Tags: string([]byte{tagEpoch, tagLink}), Phase: erase.Elsewhere, Texts: "digests and numbers of records of calls"},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				if e.Tag != tagRecord {
					return e.Stays()
				}
				record, err := decodeRecord(e.Value)
				byStep := r.Subject.Step != 0 && record.Agent == r.Subject.ID && r.Steps[record.Step]
				return e.Goes(err == nil && (byStep || r.Subject.Of(record.Agent, record.Session)), err)
			}, nil
		},
	}
}
