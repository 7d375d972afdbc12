package memkv_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/loom-bridge/loom-bridge/internal/testkit/kvtest"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
)

func factory(testing.TB) kv.Engine { return memkv.New(nil) }

func TestContract(t *testing.T) { kvtest.Run(t, factory) }

func TestContractOfPeers(t *testing.T) {
	kvtest.RunPair(t, func(testing.TB) (a, b kv.Engine) {
		peers := kvtest.Peers(2)
		return peers[0], peers[1]
	})
	kvtest.Run(t, func(testing.TB) kv.Engine { return kvtest.Peers(2)[0] })
}

func BenchmarkEngine(b *testing.B) { kvtest.Benchmark(b, factory) }

func Example() {
	ctx := context.Background()
	engine := memkv.New(nil)
	defer engine.Close()

	scope := kv.AgentScope("default", "researcher-1")
	batch := new(kv.Batch)
	batch.Put(kv.Records, scope.Key('r', []byte("1")), []byte("hello"))
	guard := kv.Guard{Ref: kv.Ref{Keyspace: kv.Records, Scope: scope}, Sequence: 0}
	fmt.Println(engine.Commit(ctx, kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}))
	fmt.Println(engine.Commit(ctx, kv.Commit{Guards: []kv.Guard{guard}, Batch: batch}))
	for pair, err := range engine.Scan(ctx, kv.Records, kv.Prefix(scope.AppendPrefix(nil))) {
		fmt.Printf("%s %v\n", pair.Value, err)
	}
	// Output:
	// <nil>
	// kv: conflict: records:default/a/researcher-1 is at sequence 1, expected 0
	// hello <nil>
}
