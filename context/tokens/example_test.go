package tokens_test

import (
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

func ExampleCounter() {
	counter, err := tokens.New(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, model := range []string{"gpt-4o", "gpt-4", "claude-sonnet-5", "my-own"} {
		n, err := counter.Count(model, "Hello, world!")
		fmt.Println(n.Tokens, n.Counter, n.Exact, err)
	}
	// Output:
	// 4 o200k_base true <nil>
	// 4 cl100k_base true <nil>
	// 6 anthropic false <nil>
	// 4 estimate false <nil>
}

func ExampleMeter() {
	meter, err := tokens.NewMeter(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	first := tokens.Request{Model: "my-own", ID: "first", Local: tokens.Count{Tokens: 1000, Counter: "estimate"}}
	anchor := meter.Report(first, tokens.Anchor{}, tokens.Usage{Prompt: 1250, Completion: 50})

	next := tokens.Request{Model: "my-own", ID: "next", Base: "first", Local: tokens.Count{Tokens: 1240, Counter: "estimate"}, Added: 200}
	predicted := meter.Predict(next, anchor)
	fmt.Println(predicted.Tokens, predicted.Anchored)
	// Output: 1500 true
}
