package search

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// Name is that of the tool that finds tools.
const Name = "tools:search"

const (
	defaultLimit = 5
	maxLimit     = 20
	// maxSchemas bounds the schemas of one answer, in bytes: one that has no more room is
	// left out.
	maxSchemas = 32 << 10
)

const schema = `{"type":"object","properties":{
"query":{"type":"string","minLength":1,"maxLength":1000,"description":"What the tool should do, in words"},
"limit":{"type":"integer","minimum":1,"maximum":20,"description":"Most tools to return (default 5)"}},
"required":["query"]}`

// Register adds the tool that finds tools of a finder.
func Register(r *tools.Registry, f *Finder) error {
	err := r.Add(tools.Descriptor{
		Name:        Name,
		Description: "Find further tools, which are not listed here, by what they do. Gives their names and arguments; call them by name.",
		Schema:      json.RawMessage(schema),
		Level:       tools.LevelFunction,
		Category:    "search",
		ResultKind:  "search",
	}, f.run)
	if err != nil {
		return fmt.Errorf("search: register: %w", err)
	}
	return nil
}

func (f *Finder) run(_ context.Context, in tools.Input) (tools.Output, error) {
	limit, ok := in.Int("limit")
	if !ok {
		limit = defaultLimit
	}
	found, of := f.Find(in.Scope.Tenant, in.String("query", ""), int(min(limit, maxLimit)))
	list, room := make([]any, len(found)), maxSchemas
	if len(found) == 1 {
		room = tools.MaxSchemaBytes
	}
	for i, o := range found {
		entry := map[string]any{"name": o.Name, "description": o.Description}
		if room -= len(o.Schema); room < 0 {
			entry["parameters_omitted"] = fmt.Sprintf("their schema has %d bytes; ask with limit 1", len(o.Schema))
		} else if parameters, err := text.DecodeJSON(o.Schema); err == nil {
			entry["parameters"] = parameters
		}
		if o.AgentID != "" {
			entry["agent_id"] = o.AgentID
		}
		list[i] = entry
	}
	return tools.Output{Values: map[string]any{"tools": list, "searched": int64(of)}}, nil
}
