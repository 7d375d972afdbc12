package memory_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/question"
	"github.com/loom-bridge/loom-bridge/memory/record"
)

func ExampleStore() {
	ctx := context.Background()
	engine := memkv.New(nil)
	defer engine.Close()
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	store := memory.New(engine, writer, nil)
	defer store.Close()

	scope := kv.AgentScope("default", "researcher-1")
	for _, r := range []record.Record{
		{Text: "Bitcoin closed at 45,000", Metadata: json.RawMessage(`{"source": "desk"}`), Tags: []string{"market"}},
		{Text: "Bitcoin is a currency", Metadata: json.RawMessage(`{"source": "web"}`), Origin: record.OriginWeb},
	} {
		if _, err := store.Save(ctx, scope, r, ""); err != nil {
			fmt.Println(err)
			return
		}
	}
	found, err := store.Query(ctx, scope, question.Question{Text: "Where did bitcoin close?", Filter: `metadata.source = "desk" AND tags:"market"`})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, hit := range found.Hits {
		fmt.Println(hit.Record.Text)
	}
	fmt.Println(found.Receipt.LexicalCandidates, "candidates,", found.Receipt.Filtered, "filtered")
	// Output:
	// Bitcoin closed at 45,000
	// 2 candidates, 1 filtered
}
