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
	for _, model := range []string{"gpt-4o", "gpt-4", "claude-sonnet-5"} {
		n, err := counter.Count(model, "Hello, world!")
		fmt.Println(n.Tokens, n.Encoding, n.Exact, err)
	}
	// Output:
	// 4 o200k_base true <nil>
	// 4 cl100k_base true <nil>
	// 4 o200k_base false <nil>
}
