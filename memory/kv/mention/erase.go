package mention

import (
	"bytes"
	"context"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
)

// Erasure is what becomes of mentions when a subject is erased.
func Erasure() erase.Owner {
	return erase.Owner{
		Name: "memory/kv/mention",
		Sorts: []erase.Sort{
			{Keyspace: kv.Log, Kinds: "a", Tags: string(rune(tagMention)), Texts: "which offloaded results agents' texts name, by path"},
			{Keyspace: kv.Records, Kinds: "aus", Tags: string(rune(tagMention)), Texts: "which offloaded results records name, by path"},
			{Keyspace: kv.System, Kinds: "y", Lists: []string{"mentions"}, Tags: string([]byte{tagMention, tagListed, tagBackfill}), Texts: "which offloaded results records name, by path"},
		},
		Begin: func(_ context.Context, r *erase.Run) (erase.Change, error) {
			return func(_ context.Context, e erase.Entry) ([]byte, bool, error) {
				_, picked := r.Picked[e.Scope]
				switch {
				case e.Keyspace == kv.Records && picked && !r.Looks && !r.Counts:
					return nil, false, erase.ErrAnew // the key has the record's id
				case e.Keyspace == kv.System && e.Tag == tagListed:
					return e.Goes(r.Subject.Names(behindName(e.Tail)), nil)
				case e.Keyspace == kv.System && e.Tag == tagBackfill && !r.Looks:
					// Earlier versions kept the key of a record here, where a back-fill went on.
					return e.Goes(!isComplete(e.Value), nil)
				case e.Keyspace == kv.Log && r.Own(e) && r.Subject.Session != "":
					return e.Goes(len(e.Tail) > 0 && string(behindName(e.Tail)) == r.Subject.Session, nil)
				}
				return e.Stays()
			}, nil
		},
	}
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
