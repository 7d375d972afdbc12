package compress_test

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/compress"
)

func Example() {
	count := func(text string) int { return len(text) / 4 }
	c := compress.New(count, nil)
	short := c.Compress(compress.Result{
		Tool:    "billing:get_invoice",
		Content: `{"id":"inv_1","paid":false,"lines":["` + strings.Repeat(`one","`, 400) + `last"],"customer":{"name":"Ada"}}`,
		Ref:     "9f86d081884c",
		RefPath: "storage/tool_results/9f86d081884c.json",
	})
	fmt.Println(short.IsCompressed, short.Strategy)
	fmt.Println(short.Text)
	// Output:
	// true api
	// [COMPRESSED:9f86d081884c] 4 keys
	// id: inv_1
	// paid: false
	// lines: [401 items]
	// customer: {1 keys}
	// Full data: storage/tool_results/9f86d081884c.json
}
