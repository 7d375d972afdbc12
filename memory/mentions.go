package memory

import (
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/mention"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

// moveMentions keeps the names of blobs in a record, which is stored as value, in step
// with it.
func (e *edit) moveMentions(w write, value []byte) {
	names := mention.In(value)
	if w.before != nil {
		before := mention.In(record.Encode(*w.before))
		mention.Drop(e.tx, recordsRef(e.scope), w.record.ID, without(before, names))
		names = without(names, before)
	}
	mention.Stage(e.tx, recordsRef(e.scope), w.record.ID, names)
}

// without returns the names that are not among others, which are in order.
func without(names, others []mention.Name) []mention.Name {
	return slices.DeleteFunc(slices.Clone(names), func(n mention.Name) bool {
		_, found := slices.BinarySearch(others, n)
		return found
	})
}

// Mentions are the sources of the mentions in records.
func Mentions() []mention.Source {
	id := func(rest []byte) (string, error) { return string(rest), nil }
	return []mention.Source{mention.Texts(kv.Records, record.Tag, mention.In, id)}
}
