package chosen

import (
	"errors"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/storedtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func TestStored(t *testing.T) {
	storedtest.Check(t, storedtest.Format[Embedder]{
		Message: &storev1.EmbedderChoice{},
		Encode:  Embedder.encode,
		Decode: func(value []byte) (Embedder, error) {
			e, ok := decode(value)
			if !ok {
				return e, errors.New("not read")
			}
			return e, nil
		},
	})
}

func TestChoice(t *testing.T) {
	ctx, engine := t.Context(), memkv.New(nil)
	defer engine.Close()
	expect := func(want Embedder, wantKnown bool) {
		t.Helper()
		got, known, err := Load(ctx, engine)
		if got != want || known != wantKnown || err != nil {
			t.Errorf("%+v, %v, %v; want %+v, %v", got, known, err, want, wantKnown)
		}
	}
	store := func(e Embedder) {
		t.Helper()
		if err := e.Store(ctx, engine); err != nil {
			t.Fatal(err)
		}
		expect(e, true)
	}
	expect(Embedder{}, false)
	store(Embedder{})
	store(Embedder{BaseURL: "http://127.0.0.1:11434/v1", Model: "nomic-embed-text"})
	if err := Forget(ctx, engine); err != nil {
		t.Fatal(err)
	}
	expect(Embedder{}, false)

	// What can't be read is no choice: the next start makes one.
	var batch kv.Batch
	batch.Put(kv.System, scope.Key(tagChoice, nil), []byte{0xff})
	if err := commit(ctx, engine, &batch); err != nil {
		t.Fatal(err)
	}
	expect(Embedder{}, false)
	if err := engine.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Load(ctx, engine); !errors.Is(err, kv.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
}
