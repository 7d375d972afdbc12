//go:build cgo && !norocksdb

package rockskv_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/rockskv"
)

func ExampleOpen() {
	parent, err := os.MkdirTemp("", "loom")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(parent)
	db, err := rockskv.Open(filepath.Join(parent, "store"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	scope := kv.AgentScope("default", "researcher-1")
	batch := new(kv.Batch)
	batch.Put(kv.Records, scope.Key('r', []byte("1")), []byte("on disk when Commit returns"))
	guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Records, Scope: scope}, Any: true}
	fmt.Println(db.Commit(context.Background(), kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}))
	fmt.Println(db.Stats().Commits)
	// Output:
	// <nil>
	// 1
}
