package render

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

// AnswerAt is the place of the answer to the prompt that ended at a place, or 0: right
// behind it, or behind the message that was answered.
func (b *Builder) AnswerAt(at int) int {
	for i := at + 1; i < min(at+3, len(b.Places)); i++ {
		if b.roles[i] == session.Assistant {
			return i
		}
	}
	return 0
}

// EndOf returns the place up to which the prompt is the anchored one, or -1.
func (b *Builder) EndOf(a tokens.Anchor) int {
	prefix, _, ok := strings.Cut(a.ID, "-")
	if !ok || a.Model != b.job.Model {
		return -1
	}
	var sum Sum
	if len(prefix) != hex.EncodedLen(len(sum)) {
		return -1
	}
	if _, err := hex.Decode(sum[:], []byte(prefix)); err != nil {
		return -1
	}
	for i := len(b.Places) - 1; i >= 0; i-- {
		if b.Places[i].Sum == sum {
			return i
		}
	}
	return -1
}

// End is where a message ends.
type End struct {
	// Sum is the hash of everything up to there.
	Sum Sum
	// Tokens and Bytes are what it takes, without the opening of the reply.
	Tokens int
	Bytes  int64
	// Blocks is how many content blocks stand up to there, each tool being one.
	Blocks int
}

// Sum is a hash long enough to distinguish the prompts of one session.
type Sum [12]byte

// String is the sum in hex.
func (s Sum) String() string { return hex.EncodeToString(s[:]) }

// mark notes that a message ends here.
func (b *Builder) mark(role session.Role) {
	var room [sha256.Size]byte
	var sum Sum
	copy(sum[:], b.hash.Sum(room[:0]))
	b.markAs(role, sum)
}

// markAs is mark where the hash is known.
func (b *Builder) markAs(role session.Role, sum Sum) {
	p := End{Sum: sum, Tokens: b.Total.Tokens - tokens.ReplyTokens, Bytes: b.size, Blocks: b.blocks}
	b.Places, b.roles = append(b.Places, p), append(b.roles, role)
}

// Edges are where the parts of a prompt end that a provider's cache may keep.
type Edges struct{ Tools, Stable, Session, Folds, History provider.Edge }

// edge returns the end of the part written so far.
func (b *Builder) edge() provider.Edge {
	last := len(b.Places) - 1
	return provider.Edge{
		// A block behind the last one of a message stands for the last one.
		BlockPlace: provider.BlockPlace{Message: last - 1, Block: math.MaxInt32}, Blocks: b.blocks, Tokens: b.Places[last].Tokens,
	}
}

// shown returns marks with the blocks that the messages have, where no encoder for a
// provider does that.
func (b *Builder) shown(marks []provider.Mark) []provider.Mark {
	out := slices.Clone(marks)
	for i := range out {
		out[i].Block = 0
		if at := out[i].Message; at >= 0 && at < len(b.Messages) {
			var blocks []json.RawMessage
			// A message without blocks has one text.
			_ = json.Unmarshal(b.Messages[at].BlocksJSON, &blocks)
			out[i].Block = max(len(blocks)-1, 0)
		}
	}
	return out
}
