package record

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/past"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// sentExtra is what a record keeps for this package.
type sentExtra struct {
	past.ShownMemory
	account
	Policy string          `json:"policy"`
	Layout settings.Layout `json:"layout"`
	// Asked is how often the session asked for what had been folded away, up to there.
	Asked asked `json:"asked"`
	// Planned are the marks written into the body, Shown the marks in the answer.
	Planned []provider.Mark `json:"planned,omitempty"`
	Figures
	Shown []provider.Mark `json:"shown,omitempty"`
}

// Figures of a prompt that its record keeps; zero in records of older versions.
type Figures struct {
	// Time is when it was made.
	Time time.Time `json:"time,omitzero"`
	// Cached, Cost and AppendOnlyCost are those of its receipt.
	Cached         int     `json:"cached,omitempty"`
	Cost           float64 `json:"cost,omitempty"`
	AppendOnlyCost float64 `json:"append_only,omitempty"`
	// Batch is the stored batch of folds that was made for it, Renewals how often the window
	// had been renewed, Undone where the log ended when folds were last undone.
	Batch    uint64 `json:"folded,omitempty"`
	Renewals int    `json:"-"`
	Undone   uint64 `json:"undone,omitempty"`
}

func figuresOf(r *Receipt, made time.Time) Figures {
	f := Figures{Time: made.UTC(), Cached: r.ExpectedCached, Cost: r.Cost, AppendOnlyCost: r.AppendOnlyCost}
	if r.Batch != nil {
		f.Batch = r.Batch.Number
	}
	return f
}

// FiguresOf are what the record of a prompt says of it.
func FiguresOf(p *past.Kept) Figures {
	var extra sentExtra
	_ = json.Unmarshal(p.Extra, &extra) // of an older version: nothing
	extra.Renewals = extra.Sprint
	return extra.Figures
}

// record keeps what the prompt was made of, without waiting until it is written. A prompt
// is sent although its record can't be; it can't be made again then.
func (a *Recorder) record(ctx context.Context, m *Made, p *Prompt, asked asked, planned []provider.Mark) {
	if a.past == nil || m.DryRun {
		return
	}
	user := m.UserID
	figures := figuresOf(&p.Receipt, m.Time)
	figures.Undone = m.Source.State.Since
	extra, err := json.Marshal(sentExtra{ShownMemory: past.ShownMemory{User: &user, Forked: m.ForkedUsers}, Policy: m.Policy, Layout: m.Layout, account: accountFor(&p.Receipt), Asked: asked, Planned: planned, Figures: figures, Shown: p.Marks})
	if err != nil {
		return // of plain data: never
	}
	r := past.Kept{
		ID: p.Receipt.PromptID, Model: m.Model, Format: uint8(m.Format), Position: m.Through,
		Tokens: p.Tokens.Tokens, Counter: p.Tokens.Counter, Certainty: certaintyOf(p.Tokens),
		Prefix: p.PrefixSHA256, Extra: extra, Sum: sumOf(m.Built, p),
	}
	if len(m.Built.Tools.Counted) > 0 {
		r.Tools = m.Built.Tools.JSON
	}
	for _, part := range p.Parts {
		r.Sizes = append(r.Sizes, past.Size{Section: part.Name, Tokens: part.Tokens})
	}
	a.past.SaveLater(ctx, m.Scope, m.SessionID, &past.Later{
		Prompt: r, Messages: func() []past.Message { return recorded(m.Built, m.Source) }, Bytes: m.Built.Text,
	})
}

// certaintyOf is how certain a count is.
func certaintyOf(c tokens.Count) uint8 {
	var bits uint8
	if c.Exact {
		bits |= countExact
	}
	if c.Anchored {
		bits |= countAnchored
	}
	return bits
}

// Bits of how certain a stored count is.
const (
	countExact = 1 << iota
	countAnchored
)

// sumOf is the hash of a prompt: of its body, or of the layout of a neutral one.
func sumOf(b *render.Builder, p *Prompt) (sum [32]byte) {
	if len(p.Body) > 0 {
		return sha256.Sum256(p.Body)
	}
	return b.Sum()
}

// recorded are the messages of a prompt as a record has them.
func recorded(b *render.Builder, s *fold.Material) []past.Message {
	places := placesOf(s)
	out := make([]past.Message, len(b.Messages))
	for i := range b.Messages {
		m, o := &out[i], b.Origins[i]
		m.Message, m.Batch, m.First = b.Messages[i], o.Batch, o.First
		for k := range o.Pieces {
			m.Pieces = append(m.Pieces, past.Piece{Section: o.Pieces[k].Section, Bytes: len(o.Pieces[k].Text)})
		}
		if o.Said == nil && o.Result > 0 {
			o.Said = places.messages[o.Result]
		}
		if o.Said != nil && len(o.Pieces) == 0 && render.SameMessage(o.Said, &m.Message) {
			m.From = places.positions[o.Said]
		}
	}
	return out
}

// places are where the messages of the log stand that a prompt was read from.
type places struct {
	messages  map[uint64]*session.Message
	positions map[*session.Message]uint64
}

func placesOf(s *fold.Material) places {
	p := places{make(map[uint64]*session.Message), make(map[*session.Message]uint64)}
	for _, g := range s.Groups {
		for i := range g.Members {
			if e := &g.Members[i].Entry; e.Message != nil {
				p.messages[e.Position], p.positions[e.Message] = e.Message, e.Position
			}
		}
	}
	return p
}

// PastRequest names a prompt that a session has sent.
type PastRequest struct {
	// PromptID is its id; if it is empty, Position and Step name a step, and the prompt is
	// the last one that was sent before the step was recorded.
	PromptID string
	Position uint64
	Step     string
}

// lastTexts are the messages of a session's last prompt. They are never changed.
type lastTexts struct {
	format   provider.Format
	tools    []byte
	messages []session.Message
	origins  []pairing.Origin
}

// sentTexts are the messages that were written, and what they take in memory.
func sentTexts(b *render.Builder) (texts lastTexts, bytes int) {
	const perMessage = 300
	var tools []byte
	if len(b.Tools.Counted) > 0 {
		tools = b.Tools.JSON
	}
	return lastTexts{b.Format(), tools, b.Messages, b.Origins}, b.Text + len(tools) + perMessage*len(b.Messages)
}

// headOf is what stands before the messages of a prompt with tools.
func headOf(tools []byte) []byte {
	head := []byte("{")
	if len(tools) > 0 {
		head = append(append(append(head, `"tools":`...), tools...), ',')
	}
	return append(head, `"messages":[`...)
}

// difference is where a prompt first differs from the session's prompt before; nil where
// that is not known any more.
func (a *Recorder) difference(m *Made, last Last) *past.Difference {
	before, ok := a.Known.texts.Get(sessionKey{m.Scope, m.SessionID})
	if !ok || len(last.places) == 0 || len(before.messages) != len(last.places)-1 {
		return nil
	}
	b := m.Built
	now, _ := sentTexts(b)
	if last.places[0].Sum != b.Places[0].Sum {
		d := past.Compare(&past.Comparable{Head: headOf(before.tools)}, &past.Comparable{Head: headOf(now.tools), Tools: settings.ToolList})
		return &d
	}
	for i := 1; i < max(len(last.places), len(b.Places)); i++ {
		if i < len(last.places) && i < len(b.Places) && last.places[i].Sum == b.Places[i].Sum {
			continue
		}
		d := past.Compare(before.layout(i-1), now.layout(i-1))
		d.Message, d.Byte = i-1, d.Byte+b.Places[min(i, len(b.Places))-1].Bytes
		return &d
	}
	return &past.Difference{}
}

// layout is a message as it was written, alone; nothing where there is none.
func (l *lastTexts) layout(i int) *past.Comparable {
	if i >= len(l.messages) {
		return &past.Comparable{}
	}
	var line bytes.Buffer
	w := provider.NewWriter(l.format)
	w.Resume(i)
	if err := w.Add(&line, l.format.Renamed(l.messages[i])); err != nil {
		return &past.Comparable{} // it was written before
	}
	m := past.Written{Bytes: line.Bytes(), Content: l.messages[i].Content}
	for _, p := range l.origins[i].Pieces {
		m.Pieces = append(m.Pieces, past.Piece{Section: p.Section, Bytes: len(p.Text)})
	}
	if len(m.Pieces) == 0 {
		m.Pieces = []past.Piece{{Section: settings.History, Bytes: len(m.Content)}}
	}
	return &past.Comparable{Messages: []past.Written{m}}
}
