package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/memory/kv"
)

// tagPins is the tag of what the tools of a server were when they were seen first.
const tagPins = 'p'

// pins are what a server said of its tools when each was seen first, or since somebody has
// said yes to what it says now.
type pins struct {
	// Of stands for the server: another program or address is another server.
	Of string `json:"of"`
	// Tools stand for what each tool said, by name.
	Tools map[string]string `json:"tools"`
}

func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return "" // of what came as JSON: never
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// saidOf stands for all that a server says of a tool and that a model, or a person, is shown.
func saidOf(t *sdk.Tool) string {
	return digest([]any{t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema, t.Annotations})
}

func pinsKey(tenant, name string) []byte { return keptScope(tenant).Key(tagPins, []byte(name)) }

// readPins reads the pins of a server; empty ones if it was not seen before.
func (c *client) readPins(ctx context.Context) error {
	own := c.Server
	own.Env, own.Headers = nil, nil // secrets may change, and are not to be guessed from the stored data
	fresh := &pins{Of: digest(own), Tools: map[string]string{}}
	if c.pins != nil && c.pins.Of == fresh.Of {
		return nil
	}
	c.pins = fresh
	if c.set.opts.Engine == nil {
		return nil
	}
	values, err := c.set.opts.Engine.Get(ctx, kv.System, pinsKey(c.tenant, c.Name))
	if err != nil {
		c.pins = nil
		return fmt.Errorf("mcp: read the stored tool descriptions of %s: %w", c.Name, err)
	}
	var stored pins
	if values[0] != nil && json.Unmarshal(values[0], &stored) == nil && stored.Of == fresh.Of && stored.Tools != nil {
		c.pins = &stored
	}
	return nil
}

// pin leaves out the tools of which the server said something else before, and returns their
// names. What is seen first is pinned. Once somebody has said yes, all is as it is now.
func (c *client) pin(ctx context.Context, list []serverTool) (left []serverTool, changed []string, err error) {
	if err := c.readPins(ctx); err != nil {
		return nil, nil, err
	}
	accepted := c.accepted.Swap(false)
	next := pins{Of: c.pins.Of, Tools: make(map[string]string, len(list))}
	for name, said := range c.pins.Tools {
		next.Tools[name] = said
	}
	fresh := false
	for _, t := range list {
		name, before := t.offer.Name, c.pins.Tools[t.offer.Name]
		switch {
		case t.said == before || t.said == "": // or one of the bridge's own
		case before == "" || accepted:
			next.Tools[name], fresh = t.said, true
		default:
			changed = append(changed, name)
			continue
		}
		left = append(left, t)
	}
	if len(next.Tools) > maxPins { // it makes up names for ever
		return nil, nil, fmt.Errorf("mcp: %s has named more than %d tools so far", c.Name, maxPins)
	}
	slices.Sort(changed)
	if fresh {
		value, err := json.Marshal(next)
		if err == nil {
			err = c.set.commit(ctx, c.tenant, func(_ context.Context, tx *kv.Tx) error {
				tx.Put(kv.System, pinsKey(c.tenant, c.Name), value)
				return nil
			})
		}
		if err != nil {
			if accepted {
				c.accepted.Store(true)
			}
			return nil, nil, err
		}
		c.pins = &next
	}
	return left, changed, nil
}

// maxPins bounds the names of tools that are remembered of one server.
const maxPins = 8 * maxTools
