package assemble

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// answerAt is the place of the answer to the prompt that ended at a place, or 0: right
// behind it, or behind the message that was answered.
func (b *builder) answerAt(at int) int {
	for i := at + 1; i < min(at+3, len(b.places)); i++ {
		if b.roles[i] == session.Assistant {
			return i
		}
	}
	return 0
}

// endOf returns the place up to which the prompt is the anchored one, or -1.
func (b *builder) endOf(a tokens.Anchor) int {
	prefix, _, ok := strings.Cut(a.ID, "-")
	if !ok || a.Model != b.request.Model {
		return -1
	}
	var sum prefixSum
	if len(prefix) != hex.EncodedLen(len(sum)) {
		return -1
	}
	if _, err := hex.Decode(sum[:], []byte(prefix)); err != nil {
		return -1
	}
	for i := len(b.places) - 1; i >= 0; i-- {
		if b.places[i].sum == sum {
			return i
		}
	}
	return -1
}

// messageEnd is where a message ends.
type messageEnd struct {
	// sum is the hash of everything up to there.
	sum prefixSum
	// tokens and bytes are what it takes, without the opening of the reply.
	tokens int
	bytes  int64
	// blocks is how many content blocks stand up to there, each tool being one.
	blocks int
}

// prefixSum is a hash long enough to tell the prompts of one session apart.
type prefixSum [12]byte

func (s prefixSum) String() string { return hex.EncodeToString(s[:]) }

// mark notes that a message ends here.
func (b *builder) mark(role session.Role) {
	var room [sha256.Size]byte
	var sum prefixSum
	copy(sum[:], b.hash.Sum(room[:0]))
	b.markAs(role, sum)
}

// markAs is mark where the hash is known.
func (b *builder) markAs(role session.Role, sum prefixSum) {
	p := messageEnd{sum: sum, tokens: b.total.Tokens - tokens.ReplyTokens, bytes: b.size, blocks: b.blocks}
	b.places, b.roles = append(b.places, p), append(b.roles, role)
}

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
