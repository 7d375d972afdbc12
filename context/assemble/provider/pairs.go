package provider

import (
	"fmt"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/content"
	"github.com/loom-bridge/loom-bridge/context/session"
)

// noResult stands in for a result that the prompt does not have.
const noResult = "No result of this call was recorded."

// pairing puts each call and its result together. Providers refuse a call without a
// result right behind it, a result without a call, and ids that repeat.
type pairing struct {
	turns []turn
	used  map[string]bool
	// clean makes an id that the provider takes.
	clean func(id string) string
	// open are the calls since the model spoke last, and answers the turn that takes
	// their results, -1 for none yet.
	open    []openCall
	answers int
}

type openCall struct {
	id, given, name          string
	answered, custom, native bool
	at                       BlockPlace
}

// pair returns turns in which all calls have results.
func pair(turns []turn, clean func(id string) string) []turn {
	p := &pairing{used: make(map[string]bool), clean: clean, answers: -1}
	for i := range turns {
		p.turn(&turns[i])
	}
	p.close()
	return p.turns
}

func (p *pairing) turn(t *turn) {
	speaks := t.role == session.Assistant
	if speaks && p.answers >= 0 {
		p.close()
	}
	if !speaks && len(p.open) > 0 && p.answers < 0 {
		p.answers = len(p.turns)
	}
	for i := range t.pieces {
		switch piece := &t.pieces[i]; {
		case piece.Kind == content.Call && speaks && piece.Name != "":
			p.asks(piece)
		case piece.Kind == content.Result && !speaks:
			p.answer(piece)
		case piece.Kind == content.Call, piece.Kind == content.Result:
			piece.Block = content.Block{Kind: content.Text, Text: loose(&piece.Block)}
		}
	}
	p.turns = append(p.turns, *t)
}

// asks gives a call its own id.
func (p *pairing) asks(c *piece) {
	id := p.clean(c.ID)
	for n := 2; id == "" || p.used[id]; n++ {
		id = fmt.Sprintf("%s_%d", p.clean(c.ID), n)
	}
	p.used[id] = true
	f := string(c.Raw)
	p.open = append(p.open, openCall{
		id: c.ID, given: id, name: c.Name, at: c.at,
		custom: c.Custom,
		native: c.Dialect == content.Gemini && strings.Contains(f, `"id"`),
	})
	c.renamed = id != c.ID
	c.ID = id
}

// answer puts a result to the first call that waits for it. Others become text.
func (p *pairing) answer(r *piece) {
	for i := range p.open {
		if o := &p.open[i]; o.id == r.ID && !o.answered {
			o.answered = true
			r.ID, r.Name, r.renamed, r.custom, r.native = o.given, o.name, o.given != o.id, o.custom, o.native
			return
		}
	}
	r.Block = content.Block{Kind: content.Text, Text: loose(&r.Block)}
}

// loose is what is left of a call or a result without the other.
func loose(p *content.Block) string {
	if p.Kind == content.Call {
		return fmt.Sprintf("[Call of %s: %s]", p.Name, p.Arguments)
	}
	return fmt.Sprintf("Result of the call %s:\n%s", p.ID, strings.Join(content.Texts(p.Parts), "\n"))
}

// close answers the calls that nothing answered.
func (p *pairing) close() {
	var missing []piece
	for _, o := range p.open {
		if !o.answered {
			missing = append(missing, piece{at: o.at, custom: o.custom, native: o.native, Block: content.Block{
				Kind: content.Result, ID: o.given, Name: o.name, Parts: []content.Block{{Kind: content.Text, Text: noResult}},
			}})
		}
	}
	switch {
	case len(missing) == 0:
	case p.answers < 0:
		p.turns = append(p.turns, turn{role: session.User, pieces: missing})
	default:
		t := &p.turns[p.answers]
		if t.instructs() {
			p.turns = append(p.turns[:p.answers+1], p.turns[p.answers:]...)
			p.turns[p.answers] = turn{role: session.User, pieces: missing}
		} else {
			t.pieces = append(missing, t.pieces...)
		}
	}
	p.open, p.answers = nil, -1
}
