package assemble

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
func (b *builder) addTools() {
	b.total = b.total.Plus(b.tools.count)
	b.own(settings.ToolList, b.tools.count.Tokens)
	if len(b.tools.counted) > 0 {
		b.write([]byte(`"tools":`))
		b.write(b.tools.json)
		b.write([]byte(","))
	}
}

// render writes a prompt around its history. items are the messages of the history,
// last is the trail of the prompt before.
func (b *builder) render(ctx context.Context, f *layout.Frame, items []pairing.Item, last *trail) error {
	b.grow(items)
	b.own(settings.System, 0)
	b.write([]byte("{"))
	b.addTools()
	b.write([]byte(`"messages":[`))
	b.blocks = len(b.tools.counted)
	b.mark(0)
	b.edges.tools = b.edge()
	if err := b.addBefore(f.Before); err != nil {
		return err
	}
	items, end := ending(f, items, merges(b.request.Format))
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
func (b *builder) addBefore(messages []layout.Message) error {
	cached := inject.Stable
	for i := range messages {
		if err := b.addFrame(messages[i : i+1]); err != nil {
			return err
		}
		if cached = max(cached, messages[i].Cache); cached == inject.Stable {
			b.edges.stable = b.edge()
		}
		if cached <= inject.Session {
			b.edges.session = b.edge()
		}
	}
	return nil
}

// merges tells whether a format makes one message of neighbours of one role.
func merges(f Format) bool { return f == provider.Anthropic || f == provider.Gemini }

// addFrame writes messages that are made of sections.
func (b *builder) addFrame(messages []layout.Message) error {
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
		if n := len(items); n > 0 && items[n-1].Label == partSteps {
			return items[:n-1], f.WithSteps(items[n-1].Message.Content)
		}
	}
	if n := len(items); n > 0 && f.TakesQuery() && asks(&items[n-1]) {
		return items[:n-1], f.Last(&items[n-1].Message, split)
	}
	return items, f.Last(nil, split)
}

// joinSteps makes one message of neighbours that are steps as text.
func joinSteps(items []pairing.Item) []pairing.Item {
	var out []pairing.Item
	for _, it := range items {
		last := len(out) - 1
		if last < 0 || it.Label != partSteps || out[last].Label != partSteps {
			out = append(out, it)
			continue
		}
		out[last].Message.Content += "\n\n" + it.Message.Content
		out[last].Tokens = 0 // both together are counted anew
	}
	return out
}

// asks tells whether an item is a message in which the user asks for something.
func asks(it *pairing.Item) bool {
	m := &it.Message
	return m.Role == session.User && !m.Observation && it.Label != pairing.LabelFold && it.Label != labelSummary && it.Label != partSteps && !pairing.OnlyResults(m)
}

// renderHistory writes the history, without counting again what stood in the prompt
// before.
func (b *builder) renderHistory(ctx context.Context, items []pairing.Item, last *trail) error {
	b.own(settings.History, 0)
	b.head = len(b.places)
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
			b.edges.folds = b.edge()
		}
		if i+1 == leave {
			b.leave(items[:leave])
		}
	}
	return nil
}

// settle ends what the next prompt begins with, unless something is folded.
func (b *builder) settle() {
	b.prefix, b.settled = hex.EncodeToString(b.hash.Sum(nil)), b.places[len(b.places)-1]
	if len(b.places) > b.head {
		b.edges.history = b.edge()
	}
}

// own adds tokens to a section, which stands in the order in which it is first named.
func (b *builder) own(section string, tokens int) {
	if _, known := b.parts[section]; !known {
		b.order = append(b.order, section)
	}
	b.parts[section] += tokens
}

// share shares the tokens of a message out to the sections that own its text.
func (b *builder) share(section string, pieces []layout.Piece, total int) error {
	if len(pieces) < 2 {
		b.own(section, total)
		return nil
	}
	sizes := make([]int, len(pieces))
	for i := len(pieces) - 1; i > 0; i-- {
		n, err := countText(b.counter, b.request.Model, pieces[i].Text)
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
