package blob

import (
	"context"
	"iter"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// Referrers knows who needs a blob: sessions, memory records, whatever stands
// outside this package. All methods must be safe for concurrent use, and read
// through the View they are given and nothing else.
type Referrers interface {
	// Refs are what Texts reads: a collection that deletes guards them, so that
	// no reference comes up meanwhile.
	Refs(scope kv.Scope) []kv.Ref
	// Open tells whether a session of the owner has not ended. What its steps
	// made is needed, and so is what is named in it. An empty id is the session of
	// callers that name none.
	Open(ctx context.Context, from View, scope kv.Scope, sessionID string) (bool, error)
	// Texts yields every stored value of the owner that may name a blob and
	// thereby keeps it: what stands in sessions that have not ended, and memory
	// records. An error comes last. The bytes are looked at before the next ones
	// are asked for.
	Texts(ctx context.Context, from View, scope kv.Scope) iter.Seq2[[]byte, error]
	// Elsewhere yields the values of other owners that may do so.
	Elsewhere(ctx context.Context, from View, scope kv.Scope) iter.Seq2[[]byte, error]
}

// nobody refers to nothing, and his sessions never end.
type nobody struct{}

func (nobody) Refs(kv.Scope) []kv.Ref { return nil }

func (nobody) Open(context.Context, View, kv.Scope, string) (bool, error) { return true, nil }

func (nobody) Texts(context.Context, View, kv.Scope) iter.Seq2[[]byte, error] {
	return func(func([]byte, error) bool) {}
}

func (nobody) Elsewhere(context.Context, View, kv.Scope) iter.Seq2[[]byte, error] {
	return func(func([]byte, error) bool) {}
}
