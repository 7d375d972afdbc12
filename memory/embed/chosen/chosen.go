// Package chosen remembers which embedder a server chose by itself for a store. Vectors of
// two embedders can't be compared, so a later start takes the same one.
//
// Caveats: an embedder that a person named is never remembered, as its address may hold a
// key.
package chosen

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/erase"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

// Embedder is the chosen embedder.
type Embedder struct {
	// BaseURL and Model name a server on this machine, as in embed.Options. Both are empty
	// for the server's own model.
	BaseURL, Model string
}

// scope holds the choice, one for the whole store. No tenant has such a name.
var scope = kv.Scope{Tenant: "*", Kind: kv.OwnerSystem, Owner: "embedder"}

const tagChoice = 'c'

// Load returns the choice; false if there is none or it is unreadable.
func Load(ctx context.Context, from kv.Reader) (Embedder, bool, error) {
	values, err := from.Get(ctx, kv.System, scope.Key(tagChoice, nil))
	if err != nil {
		return Embedder{}, false, fmt.Errorf("chosen: %w", err)
	}
	e, ok := decode(values[0])
	return e, ok, nil
}

// Store replaces the choice.
func (e Embedder) Store(ctx context.Context, engine kv.Engine) error {
	var batch kv.Batch
	batch.Put(kv.System, scope.Key(tagChoice, nil), e.encode())
	return commit(ctx, engine, &batch)
}

// Forget removes the choice, so that the next start chooses anew.
func Forget(ctx context.Context, engine kv.Engine) error {
	var batch kv.Batch
	batch.Delete(kv.System, scope.Key(tagChoice, nil))
	return commit(ctx, engine, &batch)
}

func commit(ctx context.Context, engine kv.Engine, batch *kv.Batch) error {
	ref := kv.Ref{Keyspace: kv.System, Scope: scope}
	if err := engine.Commit(ctx, kv.Commit{Guards: []kv.Guard{{Ref: ref, Any: true}}, Batch: batch}); err != nil {
		return fmt.Errorf("chosen: %w", err)
	}
	return nil
}

// Erasure says who owns the choice. It names no subject.
func Erasure() erase.Owner {
	return erase.Owner{Name: "memory/embed/chosen", Sorts: []erase.Sort{
		{Keyspace: kv.System, Kinds: "y", Lists: []string{scope.Owner}, Tags: string(rune(tagChoice)), Texts: "address and name of an embedder"},
	}}
}

func (e Embedder) encode() []byte {
	value, err := proto.Marshal(&storev1.EmbedderChoice{BaseUrl: e.BaseURL, Model: e.Model})
	if err != nil {
		panic(err) // two texts can't fail
	}
	if value == nil {
		value = []byte{}
	}
	return value
}

func decode(value []byte) (Embedder, bool) {
	var m storev1.EmbedderChoice
	if value == nil || proto.Unmarshal(value, &m) != nil {
		return Embedder{}, false
	}
	return Embedder{m.GetBaseUrl(), m.GetModel()}, true
}
