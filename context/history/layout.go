package history

import (
	"cmp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/step"
)

// Chunk is what a preset shows as lines all at once or not at all: the calls of one
// turn with their results. One without acts is a message, which always stays.
type Chunk struct {
	// Acts are its calls, in order.
	Acts []Act
	// Text says that no message asked for the calls. In full, too, they are text
	// then, a message each.
	Text bool
	// Stays says that it is never shown as lines: it is pinned, or a call still waits
	// for its result.
	Stays bool
	// Awaited says that a message may still come that asks for the calls. It becomes
	// lines only if it has to, or by a preset taken literally.
	Awaited bool
	// Position is the place of its first entry in the log.
	Position uint64
	// Tokens is what its messages take in full, Bare what they take without the
	// results themselves. With Text, Compactor.Brief says so.
	Tokens, Bare int
	// Whole is what it takes as it is, without a preset; 0 where it can't be shown so.
	Whole int
	// Load returns the acts in full where Acts are brief; nil where they are not.
	Load func() []Act
}

// full are the acts in full.
func (p *Chunk) full() []Act {
	if p.Load != nil {
		return p.Load()
	}
	return p.Acts
}

// Brief returns a part without the texts of its acts, with their lines and sizes
// instead: what it takes to show the part as lines, and to weigh whether to. Give
// it a Load to have it shown in full, too.
func (c *Compactor) Brief(p Chunk, messageTokens int) Chunk {
	p = c.weighed(p, messageTokens)
	brief := make([]Act, len(p.Acts))
	for i := range p.Acts {
		a := &p.Acts[i]
		brief[i] = Act{Ref: a.Ref, summary: c.lineOf(a), Step: step.Step{
			Number: a.Number, ToolName: a.ToolName, Outcome: a.Outcome, Error: a.Error, Metadata: a.Metadata, Pinned: a.Pinned,
		}}
	}
	p.Acts = brief
	return p
}

// weighed is a part with the sizes of its texts.
func (c *Compactor) weighed(p Chunk, messageTokens int) Chunk {
	if !p.Text || p.Tokens > 0 {
		return p
	}
	for i := range p.Acts {
		p.Tokens += c.count(c.fullText(&p.Acts[i], false)) + messageTokens
		p.Bare += c.count(c.fullText(&p.Acts[i], true)) + messageTokens
	}
	return p
}

// Conversation is what a preset lays out.
type Conversation struct {
	// Parts are all of a session, in order. They belong to the Compactor.
	Parts []Chunk
	// Mark is where the preset's boundary stands.
	Mark Mark
	// Literal lets the boundary move with every call, as the preset is written.
	Literal bool
	// Budget is the most tokens that the history may take; 0 is no bound.
	Budget int
	// Since and ExpectedTurns are as in a History.
	Since         uint64
	ExpectedTurns int
}

// Shown is one item of a layout: a text, or a part as its messages show it.
type Shown struct {
	// Text is what stands there as one message of role user. Empty shows the
	// messages of a part.
	Text string
	// Part is the index of that part, Form which of its messages.
	Part int
	Form Form
	// Tokens is its size.
	Tokens int
}

// Form is how a part is shown that is no line.
type Form uint8

// The forms.
const (
	// InFull is in the words of the preset.
	InFull Form = iota
	// Bare is that without results.
	Bare
	// AsItIs is as a prompt without a preset has it.
	AsItIs
)

// Layout is a conversation as a preset shows it.
type Layout struct {
	// Shown is what stands there, in order.
	Shown []Shown
	// Tokens is the size of it all. It is over the budget where the preset has no
	// way to say less. Lines is how much of that is text in place of older calls.
	Tokens, Lines int
	// Mark is where the boundary stands for this layout; a literal one has none.
	Mark Mark
	// Reason is why the boundary moved, zero if it did not. Refs name what became
	// lines by that, or lost its result; Before is what the layout took until then.
	// BreakEven is as in a Decision.
	Reason    Reason
	Refs      []string
	Before    int
	BreakEven float64
}

// Show lays out a conversation. Messages, and calls in full, stand where they
// stood; each run of older calls between them is one text in their place. As long
// as the mark stays, a layout begins with the layout of any shorter beginning of
// the conversation, unless a call was open at its end.
//
// The boundary moves, to where the preset as written would have it, when leaving
// it has cost as much as moving it, or when the layout is over its budget. If it
// still is then, the oldest results that are shown are left out, then the oldest
// lines. Finally, a conversation that takes less unfolded is shown unfolded. opts are the
// options of a Ledger.
func (c *Compactor) Show(conv Conversation, opts *Options) Layout {
	v := newView(c, conv, opts)
	if conv.Literal {
		out := v.fit(v.layout(Mark{Older: v.boundary(true)}))
		out.Reason, out.Mark = 0, conv.Mark
		return out
	}
	before := v.layout(v.within(conv.Mark))
	out := v.fit(v.settle(before))
	if out.Mark == conv.Mark {
		out.Reason = 0
		return out
	}
	// A turn that had to be cut in two is shown otherwise, too.
	out.Reason = cmp.Or(out.Reason, ByBudget)
	out.Before = before.Tokens
	out.Refs = v.refs(conv.Mark, out.Mark)
	return out
}

// showing is one call of Show.
type showing struct {
	c    *Compactor
	conv Conversation
	l    *Ledger
	// before is how many acts stand before each part, and in all.
	before []int
}

func newView(c *Compactor, conv Conversation, opts *Options) *showing {
	v := &showing{c: c, conv: conv, l: New(c.count, opts)}
	v.before = make([]int, len(conv.Parts)+1)
	for i := range conv.Parts {
		p := &conv.Parts[i]
		*p = c.weighed(*p, v.l.opts.MessageTokens)
		v.before[i+1] = v.before[i] + len(p.Acts)
	}
	return v
}

// message is what a text takes as a message.
func (v *showing) message(text string) int { return v.c.count(text) + v.l.opts.MessageTokens }

// acts is how many acts there are.
func (v *showing) acts() int { return v.before[len(v.conv.Parts)] }

// older reports whether a part is shown as lines.
func (v *showing) older(i int, m Mark) bool {
	p := &v.conv.Parts[i]
	return len(p.Acts) > 0 && !p.Stays && m.Whole < v.before[i+1] && v.before[i+1] <= m.Older
}

// form is how a part is shown that is no line.
func (v *showing) form(i int, m Mark) Form {
	switch {
	case len(v.conv.Parts[i].Acts) == 0:
	case v.before[i+1] <= m.Whole:
		return AsItIs
	case v.before[i+1] <= m.Bare && v.conv.Parts[i].Bare < v.conv.Parts[i].Tokens:
		return Bare
	}
	return InFull
}

// size is what a part takes that is no line.
func (v *showing) size(i int, m Mark) int {
	p := &v.conv.Parts[i]
	switch v.form(i, m) {
	case Bare:
		return p.Bare
	case AsItIs:
		return p.Whole
	}
	return p.Tokens
}

// stretch is consecutive parts that are shown as lines.
type stretch struct {
	first, last int
	acts        []Act
	tokens      int // what they would take otherwise
	text        string
}

// stretches are all of them at a mark, each with its text. One that would not be
// shorter so stays as it is.
func (v *showing) stretches(m Mark) []stretch {
	var all []stretch
	for i := range v.conv.Parts {
		if !v.older(i, m) {
			continue
		}
		if last := len(all) - 1; last < 0 || all[last].last != i-1 {
			all = append(all, stretch{first: i})
		}
		s := &all[len(all)-1]
		s.last = i
		s.acts = append(s.acts, v.conv.Parts[i].Acts...)
		s.tokens += v.size(i, m)
	}
	for {
		runs := make([][]Act, len(all))
		for i := range all {
			runs[i] = all[i].acts
		}
		for i, text := range v.c.sections(runs, v.acts(), m.Omitted) {
			all[i].text = text
		}
		shorter := slices.DeleteFunc(slices.Clone(all), func(s stretch) bool { return v.message(s.text) >= s.tokens })
		if len(shorter) == len(all) {
			return all
		}
		all = shorter
	}
}

// layout is the conversation at a mark.
func (v *showing) layout(m Mark) Layout {
	out := Layout{Mark: m}
	w := &writing{showing: v, mark: m}
	all := v.stretches(m)
	for i := 0; i < len(v.conv.Parts); i++ {
		if len(all) > 0 && all[0].first == i {
			w.lines(all[0].text)
			out.Lines += v.message(all[0].text)
			i, all = all[0].last, all[1:]
			continue
		}
		w.part(i)
	}
	w.flush()
	out.Shown = w.shown
	out.Tokens = sum(out.Shown, func(s *Shown) int { return s.Tokens })
	return out
}

// writing puts a layout together.
type writing struct {
	*showing
	mark  Mark
	shown []Shown
	// text is the message written last, if more may be added to it: the text of a literal
	// preset is one message.
	text strings.Builder
	// behind says what the last text was: lines, or an act in full.
	behind what
}

// what stands before an act.
type what uint8

const (
	behindMessage what = iota
	behindLines
	behindAct
)

func (w *writing) lines(text string) {
	w.write("", text)
	w.behind = behindLines
}

// part shows a part in full.
func (w *writing) part(i int) {
	p := &w.conv.Parts[i]
	form := w.form(i, w.mark)
	if !p.Text || form == AsItIs {
		w.flush()
		w.shown = append(w.shown, Shown{Part: i, Form: form, Tokens: w.size(i, w.mark)})
		w.behind = behindMessage
		return
	}
	acts := p.full()
	for k := range acts {
		text := w.c.fullText(&acts[k], form == Bare)
		between := w.c.between()
		if w.behind != behindAct {
			text = w.c.heading(w.behind == behindLines) + text
			between = "\n\n"
		}
		w.write(between, text)
		w.behind = behindAct
	}
}

// write shows a text, behind what stands between it and the one before.
func (w *writing) write(between, text string) {
	if !w.conv.Literal || w.behind == behindMessage {
		w.flush()
	} else {
		w.text.WriteString(between)
	}
	w.text.WriteString(text)
}

// flush ends the text that was written last.
func (w *writing) flush() {
	if w.text.Len() == 0 {
		return
	}
	text := w.text.String()
	w.shown = append(w.shown, Shown{Text: text, Tokens: w.message(text)})
	w.text.Reset()
}
