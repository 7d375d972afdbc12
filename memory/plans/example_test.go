package plans_test

import (
	"context"
	"fmt"

	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/memkv"
	"github.com/loom-bridge/loom-bridge/memory/plans"
)

func ExampleStore() {
	ctx := context.Background()
	engine := memkv.New(nil)
	defer engine.Close()
	writer := kv.NewWriter(engine, nil)
	defer writer.Close()
	trades := plans.New(engine, writer, nil)

	plan := plans.Plan{TimestampMillis: 1000, Symbol: "BTC", Action: "BUY", Confidence: 0.85, Hash: "5eb63bbb"}
	if err := trades.SavePlan(ctx, "default", "trader-1", plan); err != nil {
		fmt.Println(err)
		return
	}
	plan.TimestampMillis = 2000
	_, apart, duplicate, err := trades.FindDuplicate(ctx, "default", "trader-1", plan, 300)
	fmt.Println(duplicate, apart, err)

	done := &plans.Execution{PlanHash: plan.Hash, Status: plans.StatusSuccess, Executed: true, OrderID: "o-1"}
	if err := trades.MarkExecuted(ctx, "default", "trader-1", plan.Hash, done); err != nil {
		fmt.Println(err)
		return
	}
	execution, found, err := trades.FindExecution(ctx, "default", "trader-1", plan.Hash)
	fmt.Println(execution.OrderID, found, err)
	// Output:
	// true 1s <nil>
	// o-1 true <nil>
}
