package assemble

import (
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
)

// edges are where the parts of a prompt end that a provider's cache may keep.
type edges struct{ tools, stable, session, folds, history provider.Edge }

// edge is the end of what was written so far.
func (b *builder) edge() provider.Edge {
	last := len(b.places) - 1
	return provider.Edge{
		// A block behind the last one of a message stands for the last one.
		Place: provider.Place{Message: last - 1, Block: math.MaxInt32}, Blocks: b.blocks, Tokens: b.places[last].tokens,
	}
}

// marks plans the cache marks of a prompt that begins with shared of the one before.
func (t *task) marks(b *builder, shared messageEnd, last lastPrompt) []provider.Mark {
	return provider.Plan(provider.Layout{
		Tools: b.edges.tools, Stable: b.edges.stable, Session: b.edges.session, Folds: b.edges.folds, History: b.edges.history,
		Shared: provider.Edge{Blocks: shared.blocks, Tokens: shared.tokens}, Before: last.marks,
		Minimum:    t.a.counter.Model(t.r.Model).CacheMinimum,
		StableHour: t.prompt.Cache.StableTTL >= time.Hour,
	})
}

// shown returns marks with the blocks that the messages have, where no encoder for a
// provider does that.
func (b *builder) shown(marks []provider.Mark) []provider.Mark {
	out := slices.Clone(marks)
	for i := range out {
		out[i].Block = 0
		if at := out[i].Message; at >= 0 && at < len(b.messages) {
			var blocks []json.RawMessage
			// A message without blocks has one text.
			_ = json.Unmarshal(b.messages[at].BlocksJSON, &blocks)
			out[i].Block = max(len(blocks)-1, 0)
		}
	}
	return out
}

// expectedHit is how many tokens the provider should read from its cache.
func expectedHit(marks []provider.Mark) int {
	n := 0
	for _, m := range marks {
		if m.ExpectedHit {
			n = m.Tokens
		}
	}
	return n
}
