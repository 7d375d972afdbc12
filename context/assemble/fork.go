package assemble

import (
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// forkToolset are the tools of a fork's parent, as they stood in its prompt.
func (a *Assembler) forkToolset(k *record.Fork, model string) (toolset, error) {
	set := toolset{}
	set.JSON = k.Tools
	for _, tool := range provider.ToolsOf(k.Tools) {
		schema := text.CanonicalJSON(tool.Schema)
		set.Counted = append(set.Counted, tokens.ToolDefinition{Name: tool.Name, Description: tool.Description, Schema: schema})
		set.costs = append(set.costs, record.ToolCost{Name: tool.Name})
	}
	if len(set.Counted) == 0 {
		set.JSON = []byte("[]")
	}
	var err error
	if set.Count, err = a.counter.Tools(model, set.Counted); err != nil {
		return toolset{}, fmt.Errorf("assemble: count tools: %w", err)
	}
	return set, a.price(model, &set)
}
