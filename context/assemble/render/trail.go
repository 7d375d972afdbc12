package render

import (
	"bytes"
	"hash"
	"slices"

	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
)

const (
	// MaxTrails bounds the sessions whose trail is remembered. Its folds are those
	// that the log remembers, too.
	MaxTrails = 256
	// maxTrailBytes bounds the text of a trail that is no fold.
	maxTrailBytes = 64 << 10
)

// Trail is what the last prompt of a session had up to its last fold, most of a
// long one. As long as the next prompt begins with the same messages, it is
// neither written nor counted again. A trail never changes, and changes no
// prompt.
type Trail struct {
	// format is that of the prompt: in another one the same messages are other
	// bytes, since names are written otherwise.
	format provider.Format
	// head is the place where the history begins, messages what follows, and ends
	// where they end.
	head     Sum
	messages []session.Message
	ends     []End
	// hash is that of everything up to the last end. It is only cloned.
	hash hash.Cloner
	// sizes are the sizes of the session's folds for a model.
	model string
	sizes []foldSize
}

type foldSize struct {
	text   string
	tokens int
}

// Size returns the size of the fold that is made as the i-th of its session.
func (t *Trail) Size(model string, i int, text string) (tokens int, ok bool) {
	if t == nil || t.model != model || i >= len(t.sizes) || t.sizes[i].text != text {
		return 0, false
	}
	return t.sizes[i].tokens, true
}

// begins reports whether a history of a format that begins at head begins with the
// trail.
func (t *Trail) begins(format provider.Format, head End, items []pairing.Item) bool {
	if t == nil || t.format != format || len(t.messages) == 0 || head.Sum != t.head || len(items) < len(t.messages) {
		return false
	}
	for i := range t.messages {
		if !SameMessage(&t.messages[i], &items[i].Message) {
			return false
		}
	}
	return true
}

// SameMessage reports whether two messages are written the same.
func SameMessage(a, b *session.Message) bool {
	return a.Role == b.Role && a.Content == b.Content && bytes.Equal(a.BlocksJSON, b.BlocksJSON) && a.Name == b.Name &&
		slices.Equal(a.ToolCalls, b.ToolCalls) && a.ToolCallID == b.ToolCallID && bytes.Equal(a.ExtraJSON, b.ExtraJSON)
}

// trailOf returns how many of a history's messages a trail of it has: up to the
// last fold, 0 where there is none or too much text next to them.
func trailOf(items []pairing.Item) int {
	n, others, size := 0, 0, 0
	for i := range items {
		if items[i].Label != pairing.LabelFold {
			others += TextBytes(items[i].Message)
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
func (b *Builder) resume(name string, t *Trail, items []pairing.Item) (int, error) {
	if b.job.Format == provider.OpenAIChat || !t.begins(b.job.Format, b.Places[len(b.Places)-1], items) {
		return 0, nil
	}
	for i := range t.messages {
		m := b.job.Format.Renamed(items[i].Message)
		if err := b.admit(name, &items[i], m); err != nil {
			return 0, err
		}
		b.keep(&items[i], m)
		b.size = t.ends[i].Bytes
		b.markAs(items[i].Message.Role, t.ends[i].Sum)
		if items[i].Label == pairing.LabelFold {
			b.Edges.Folds = b.edge()
		}
	}
	b.writer.Resume(len(t.messages))
	b.hash = clone(t.hash)
	b.Trail = t
	return len(t.messages), nil
}

// leave saves the written history as the trail.
func (b *Builder) leave(items []pairing.Item) {
	head := len(b.Places) - len(items)
	b.Trail = &Trail{format: b.job.Format, head: b.Places[head-1].Sum, ends: slices.Clone(b.Places[head:]), hash: clone(b.hash)}
	for i := range items {
		b.Trail.messages = append(b.Trail.messages, items[i].Message)
	}
}

// clone returns a copy of a hash of SHA-256, which can always be copied.
func clone(h hash.Cloner) hash.Cloner {
	own, _ := h.Clone()
	return own
}

// With returns the trail, or an empty one, with the sizes of a session's folds.
func (t *Trail) With(model string, folds []history.Fold) *Trail {
	own := Trail{}
	if t != nil {
		own = *t
	}
	own.model, own.sizes = model, make([]foldSize, len(folds))
	for i := range folds {
		own.sizes[i] = foldSize{folds[i].Text, folds[i].Tokens}
	}
	return &own
}
