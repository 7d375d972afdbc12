package render

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/pairing"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// addTools writes the tools that are offered.
func (b *Builder) addTools() {
	b.Total = b.Total.Plus(b.Tools.Count)
	b.own(settings.ToolList, b.Tools.Count.Tokens)
	if len(b.Tools.Counted) > 0 {
		b.write([]byte(`"tools":`))
		b.write(b.Tools.JSON)
		b.write([]byte(","))
	}
}

// Render writes a prompt around its history. items are the messages of the history,
// last is the trail of the prompt before.
func (b *Builder) Render(ctx context.Context, f *layout.Frame, items []pairing.Item, last *Trail) error {
	b.grow(items)
	b.own(settings.System, 0)
	b.write([]byte("{"))
	b.addTools()
	b.write([]byte(`"messages":[`))
	b.blocks = len(b.Tools.Counted)
	b.mark(0)
	b.Edges.Tools = b.edge()
	items, end := ending(f, items, Merges(b.job.Format))
	before := f.Before
	if len(items) == 0 && len(f.After) == 0 && !Merges(b.job.Format) {
		before, end = joinNeighbours(before, end)
	}
	if err := b.addBefore(before); err != nil {
		return err
	}
	if err := b.renderHistory(ctx, items, last); err != nil {
		return err
	}
	b.settle()
	if err := b.addFrame(f.After); err != nil {
		return err
	}
	return b.addFrame(end)
}

// addBefore writes the messages before the history, and notes where what is stable ends,
// and what stays for minutes.
func (b *Builder) addBefore(messages []layout.Message) error {
	cached := inject.Stable
	for i := range messages {
		if err := b.addFrame(messages[i : i+1]); err != nil {
			return err
		}
		if cached = max(cached, messages[i].Cache); cached == inject.Stable {
			b.Edges.Stable = b.edge()
		}
		if cached <= inject.Session {
			b.Edges.Session = b.edge()
		}
	}
	return nil
}

// Merges reports whether a format makes one message of neighbours of one role.
func Merges(f provider.Format) bool { return f == provider.Anthropic || f == provider.Gemini }

// addFrame writes messages that are made of sections.
func (b *Builder) addFrame(messages []layout.Message) error {
	for i := range messages {
		m := &messages[i]
		it := pairing.Item{Label: m.Pieces[0].Section, Message: m.Message, Pieces: m.Pieces}
		if err := b.add(it.Label, it); err != nil {
			return err
		}
	}
	return nil
}

// ending takes what belongs into the last message off the history, and returns the rest
// of the history and the messages that the prompt ends with.
func ending(f *layout.Frame, items []pairing.Item, split bool) ([]pairing.Item, []layout.Message) {
	if f.JoinsSteps() {
		items = joinSteps(items)
		if n := len(items); n > 0 && items[n-1].Label == pairing.LabelSteps {
			return items[:n-1], f.WithSteps(items[n-1].Message.Content)
		}
	}
	if n := len(items); n > 0 && f.TakesQuery() && items[n-1].Asks() {
		return items[:n-1], f.Last(&items[n-1].Message, split)
	}
	return items, f.Last(nil, split)
}

// joinNeighbours makes one message of the part about the user and the message that the
// prompt ends with, where no history stands between them: they would be two messages of the
// user in a row. Content blocks stay separate messages.
func joinNeighbours(before, end []layout.Message) (rest, joined []layout.Message) {
	last := len(before) - 1
	if last < 0 || len(end) == 0 {
		return before, end
	}
	known, asked := before[last], end[0]
	if known.Pieces[0].Section == layout.Forked {
		return before, end
	}
	if known.Role != session.User || asked.Role != session.User || len(known.BlocksJSON)+len(asked.BlocksJSON) > 0 {
		return before, end
	}
	return before[:last], append([]layout.Message{layout.Join(known, asked)}, end[1:]...)
}

// joinSteps makes one message of neighbours that are steps as text.
func joinSteps(items []pairing.Item) []pairing.Item {
	var out []pairing.Item
	for _, it := range items {
		last := len(out) - 1
		if last < 0 || it.Label != pairing.LabelSteps || out[last].Label != pairing.LabelSteps {
			out = append(out, it)
			continue
		}
		out[last].Message.Content += "\n\n" + it.Message.Content
		out[last].Tokens = 0 // both together are counted anew
	}
	return out
}

// renderHistory writes the history, without counting again what stood in the prompt
// before.
func (b *Builder) renderHistory(ctx context.Context, items []pairing.Item, last *Trail) error {
	b.own(settings.History, 0)
	b.Head = len(b.Places)
	done, err := b.resume(settings.History, last, items)
	if err != nil {
		return err
	}
	leave := trailOf(items)
	for i := done; i < len(items); i++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("assemble: write history: %w", err)
		}
		if err := b.add(settings.History, items[i]); err != nil {
			return err
		}
		if items[i].Label == pairing.LabelFold {
			b.Edges.Folds = b.edge()
		}
		if i+1 == leave {
			b.leave(items[:leave])
		}
	}
	return nil
}

// settle ends what the next prompt begins with, unless something is folded.
func (b *Builder) settle() {
	b.prefix, b.Settled = hex.EncodeToString(b.hash.Sum(nil)), b.Places[len(b.Places)-1]
	if len(b.Places) > b.Head {
		b.Edges.History = b.edge()
	}
}

// own adds tokens to a section, which stands in the order in which it is first named.
func (b *Builder) own(section string, tokens int) {
	if _, known := b.Parts[section]; !known {
		b.Order = append(b.Order, section)
	}
	b.Parts[section] += tokens
}

// share shares the tokens of a message out to the sections that own its text.
func (b *Builder) share(section string, pieces []layout.Piece, total int) error {
	if len(pieces) < 2 {
		b.own(section, total)
		return nil
	}
	sizes := make([]int, len(pieces))
	for i := len(pieces) - 1; i > 0; i-- {
		n, err := CountText(b.counter, b.job.Model, pieces[i].Text)
		if err != nil {
			return fmt.Errorf("assemble: count %s: %w", pieces[i].Section, err)
		}
		sizes[i] = min(n.Tokens, total)
		total -= sizes[i]
	}
	// The first has the frame of the message, too.
	sizes[0] = total
	for i := range pieces {
		b.own(pieces[i].Section, sizes[i])
	}
	return nil
}
