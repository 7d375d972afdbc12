package assemble

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/session"
)

// section is one part of a prompt. A prompt is a list of them: Prompt.Parts and
// OverflowError.Detail have the order of the list, and so have the messages.
type section struct {
	// name is that of the Part, and of the section in an OverflowError.
	name string
	// messages are its content, made of the request alone. Such a section takes the
	// tokens that it needs, and is never cut. The one section without them and without
	// beside is the history, which takes what the others leave of the budget.
	messages func(r *Request) []item
	// beside writes the content as a parameter of the prompt, before all messages.
	beside func(b *builder)
	// changing sections differ with every prompt: the next one does not begin with them,
	// nor with anything behind them.
	changing bool
}

func (s *section) isHistory() bool { return s.messages == nil && s.beside == nil }

// The names of the sections.
const (
	sectionSystem  = "system"
	sectionTools   = "tools"
	sectionHistory = "history"
	sectionGoal    = "goal"
)

// defaultSections are those of every prompt.
func defaultSections() []section {
	return []section{
		{name: sectionSystem, messages: systemMessages},
		{name: sectionTools, beside: (*builder).addTools},
		{name: sectionHistory},
		{name: sectionGoal, messages: goalMessages, changing: true},
	}
}

func systemMessages(r *Request) []item {
	if r.System == "" {
		return nil
	}
	return []item{{label: sectionSystem, message: session.Message{Role: session.System, Content: r.System}}}
}

// goalPrefix stands before the goal, which follows as it came.
const goalPrefix = "Goal: "

func goalMessages(r *Request) []item {
	if r.Goal == "" {
		return nil
	}
	return []item{{label: sectionGoal, message: session.Message{Role: session.User, Content: goalPrefix + r.Goal}}}
}

// addTools writes the tools that are offered.
func (b *builder) addTools() {
	b.total = b.total.Plus(b.tools.count)
	b.parts[sectionTools] = b.tools.count.Tokens
	if len(b.request.Tools) > 0 {
		b.write([]byte(`"tools":`))
		b.write(b.tools.json)
		b.write([]byte(","))
	}
}

// render writes all sections. items are the messages of the history, last is the
// trail of the prompt before.
func (b *builder) render(ctx context.Context, sections []section, items []item, last *trail) error {
	b.grow(items)
	b.write([]byte("{"))
	for i := range sections {
		if sections[i].beside != nil {
			sections[i].beside(b)
		}
	}
	b.write([]byte(`"messages":[`))
	b.mark(0)
	for i := range sections {
		if err := b.renderMessages(ctx, &sections[i], items, last); err != nil {
			return err
		}
	}
	b.settle()
	return nil
}

func (b *builder) renderMessages(ctx context.Context, s *section, items []item, last *trail) error {
	if s.changing {
		b.settle()
	}
	if s.isHistory() {
		return b.renderHistory(ctx, s.name, items, last)
	}
	if s.messages == nil {
		return nil
	}
	for _, it := range s.messages(&b.request) {
		if err := b.add(s.name, it); err != nil {
			return err
		}
	}
	return nil
}

// renderHistory writes the history, without counting again what stood in the prompt
// before.
func (b *builder) renderHistory(ctx context.Context, name string, items []item, last *trail) error {
	b.head = len(b.places)
	done, err := b.resume(name, last, items)
	if err != nil {
		return err
	}
	leave := trailOf(items)
	for i := done; i < len(items); i++ {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("assemble: write history: %w", err)
		}
		if err := b.add(name, items[i]); err != nil {
			return err
		}
		if i+1 == leave {
			b.leave(items[:leave])
		}
	}
	return nil
}

// settle ends what the next prompt begins with, unless something is folded. Only the
// first call counts.
func (b *builder) settle() {
	if b.prefix == "" {
		b.prefix, b.settled = hex.EncodeToString(b.hash.Sum(nil)), b.places[len(b.places)-1]
	}
}
