package blob_test

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

// Bytes are uploaded, staged in a commit, and read back by any of their names.
func ExampleStore() {
	ctx, scope := context.Background(), kv.AgentScope("default", "researcher-1")
	engine := memkv.New(nil)
	writer := kv.NewWriter(engine, nil)
	store := blob.New(engine, writer, nil)

	stored, err := store.Add(ctx, scope, []byte("first\nsecond\nthird\n"))
	if err != nil {
		fmt.Println(err)
		return
	}
	err = writer.Do(ctx, kv.Request{
		Refs: []kv.Ref{store.Ref(scope)},
		Stage: func(ctx context.Context, tx *kv.Tx) error {
			_, err := store.Stage(ctx, tx, scope, stored, blob.Entry{StepID: "step_001", Category: "read"})
			return err
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	entry, err := store.Lookup(ctx, scope, "step_001")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(entry.Path, entry.Size)
	for piece, err := range store.Read(ctx, scope, entry, 6, 7) {
		fmt.Printf("%s%v\n", piece, err)
	}
	// Output:
	// workspace/outputs/read_001.txt 19
	// second
	// <nil>
}
