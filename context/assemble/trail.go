package assemble

import (
	"bytes"
	"hash"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
)

const (
	// maxTrails bounds the sessions whose trail is remembered. Its folds are those
	// that the log remembers, too.
	maxTrails = 256
	// maxTrailBytes bounds the text of a trail that is no fold.
	maxTrailBytes = 64 << 10
)

// trail is what the last prompt of a session had up to its last fold, most of a
// long one. As long as the next prompt begins with the same messages, it is
// neither written nor counted again. A trail never changes, and changes no
// prompt.
type trail struct {
	// format is that of the prompt: in another one the same messages are other
	// bytes, since names are written otherwise.
	format Format
	// head is the place where the history begins, messages what follows, and ends
	// where they end.
	head     prefixSum
	messages []session.Message
	ends     []messageEnd
	// hash is that of everything up to the last end. It is only cloned.
	hash hash.Cloner
	// sizes are those of the session's folds for a model.
	model string
	sizes []foldSize
}

type foldSize struct {
	text   string
	tokens int
}

// size returns the size of the fold that is made as the i-th of its session.
func (t *trail) size(model string, i int, text string) (tokens int, ok bool) {
	if t == nil || t.model != model || i >= len(t.sizes) || t.sizes[i].text != text {
		return 0, false
	}
	return t.sizes[i].tokens, true
}

// begins tells whether a history of a format that begins at head begins with the
// trail.
func (t *trail) begins(format Format, head messageEnd, items []pairing.Item) bool {
	if t == nil || t.format != format || len(t.messages) == 0 || head.sum != t.head || len(items) < len(t.messages) {
		return false
	}
	for i := range t.messages {
		if !sameMessage(&t.messages[i], &items[i].Message) {
			return false
		}
	}
	return true
}

// sameMessage tells whether two messages are written the same.
func sameMessage(a, b *session.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && bytes.Equal(a.BlocksJSON, b.BlocksJSON) && a.Name == b.Name &&
		slices.Equal(a.ToolCalls, b.ToolCalls) && a.ToolCallID == b.ToolCallID && bytes.Equal(a.ExtraJSON, b.ExtraJSON)
}

// trailOf returns how many of a history's messages a trail of it has: up to the
// last fold, 0 where there is none or too much text beside them.
func trailOf(items []pairing.Item) int {
	n, others, size := 0, 0, 0
	for i := range items {
		if items[i].Label != pairing.LabelFold {
			others += textBytes(items[i].Message)
			continue
		}
		if size += others; size > maxTrailBytes {
			break
		}
		n, others = i+1, 0
	}
	return n
}

// resume writes the messages of a history that the last prompt had, too, and
// returns how many those are. name is the section. The text of other formats has to be written anyway.
func (b *builder) resume(name string, t *trail, items []pairing.Item) (int, error) {
	if b.request.Format != Neutral || !t.begins(b.request.Format, b.places[len(b.places)-1], items) {
		return 0, nil
	}
	for i := range t.messages {
		if err := b.admit(name, &items[i], items[i].Message); err != nil {
			return 0, err
		}
		b.keep(&items[i], items[i].Message)
		b.size = t.ends[i].bytes
		b.markAs(items[i].Message.Role, t.ends[i].sum)
	}
	b.writer.Resume(len(t.messages))
	b.hash = clone(t.hash)
	b.trail = t
	return len(t.messages), nil
}

// leave makes what was written of a history the trail.
func (b *builder) leave(items []pairing.Item) {
	head := len(b.places) - len(items)
	b.trail = &trail{format: b.request.Format, head: b.places[head-1].sum, ends: slices.Clone(b.places[head:]), hash: clone(b.hash)}
	for i := range items {
		b.trail.messages = append(b.trail.messages, items[i].Message)
	}
}

// clone returns a copy of a hash of SHA-256, which can always be copied.
func clone(h hash.Cloner) hash.Cloner {
	own, _ := h.Clone()
	return own
}

// with returns the trail, or an empty one, with the sizes of a session's folds.
func (t *trail) with(model string, folds []history.Fold) *trail {
	own := trail{}
	if t != nil {
		own = *t
	}
	own.model, own.sizes = model, make([]foldSize, len(folds))
	for i := range folds {
		own.sizes[i] = foldSize{folds[i].Text, folds[i].Tokens}
	}
	return &own
}
