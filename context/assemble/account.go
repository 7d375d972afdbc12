package assemble

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// Section is the account of a section of a prompt.
type Section struct {
	// Name is that of the section.
	Name string
	// Phase is where it stands, 0 for the history and for tools as a parameter; Cache how
	// long it stays as it is, 0 for the same.
	Phase inject.Phase
	Cache inject.Cache
	// Tokens is its size, Before what it would take without its cap, MaxTokens its cap; 0
	// is none.
	Tokens, Before, MaxTokens int
	// Outcome is what became of it, Reason why something of it is missing, or a warning.
	Outcome Outcome
	Reason  string
	// Source says where its text came from, for people; empty where it has none of its own.
	Source string
	// Refs name what it shows, LeftOut what was found for it and had no room.
	Refs, LeftOut []string
}

// Outcome is what became of a section.
type Outcome uint8

// The outcomes.
const (
	// Shown: it stands there whole.
	Shown Outcome = iota + 1
	// Cut: a part of it stands there.
	Cut
	// LeftOut: there was no room for it.
	LeftOut
	// Failed: its source failed.
	Failed
	// TimedOut: its source took too long.
	TimedOut
	// Empty: there was nothing to show.
	Empty
)

// Partitions are the tokens of a prompt by what they are part of.
type Partitions struct {
	// System are instructions and examples, Memory what is known of the user and the task,
	// Skill active skills and tools, History what was said and done, Working what the
	// agent is at, with all that stands for this turn only.
	System, Memory, Skill, History, Working int
}

// partitionsOf adds up sections.
func partitionsOf(sections []Section) Partitions {
	var p Partitions
	for i := range sections {
		s := &sections[i]
		switch {
		case s.Name == settings.ToolList || s.Name == settings.SkillTexts:
			p.Skill += s.Tokens
		case s.Name == settings.History || s.Name == settings.Tasks || s.Name == settings.Events || s.Name == settings.Messages:
			p.History += s.Tokens
		case s.Name == settings.Working || s.Name == settings.Goal || s.Phase == inject.Runtime:
			p.Working += s.Tokens
		case s.Phase == inject.UserContext:
			p.Memory += s.Tokens
		default:
			p.System += s.Tokens
		}
	}
	return p
}

// ToolCost is what a tool takes in a prompt.
type ToolCost struct {
	Name   string
	Tokens int
}

// maxRefs bounds the names that a section's account lists.
const maxRefs = 64

// sections are the account of all sections: those that stand in the prompt, in its
// order, then those that do not: cut to nothing, failed, and without anything to show.
func (t *task) sections(b *render.Builder) []Section {
	pieces := make(map[string]*inject.Piece, len(t.prepared.Pieces))
	for i := range t.prepared.Pieces {
		pieces[t.prepared.Pieces[i].Name] = &t.prepared.Pieces[i]
	}
	var out []Section
	for _, name := range b.Order {
		p := pieces[name]
		delete(pieces, name)
		s := t.section(name, p, b.Parts[name])
		if shared := t.prompt.Limits.Shared; shared > 0 && name == settings.ToolList && s.Tokens > 0 && b.Parts[settings.System]+s.Tokens > shared {
			s.Reason = fmt.Sprintf("system prompt and tools take %d tokens, over their %d", b.Parts[settings.System]+s.Tokens, shared)
		}
		if s.Tokens > 0 || s.Outcome == LeftOut {
			out = append(out, s)
		}
	}
	for i := range t.prepared.Pieces {
		if p := &t.prepared.Pieces[i]; pieces[p.Name] != nil && p.Before > 0 {
			out = append(out, t.section(p.Name, p, 0))
		}
	}
	for i := range t.gathered.Failures {
		out = append(out, failed(&t.gathered.Failures[i]))
	}
	return t.withAbsent(out)
}

// withAbsent adds the sections that were looked for, and have nothing to show, and those
// that the settings leave out.
func (t *task) withAbsent(out []Section) []Section {
	absent := func(name string, o Outcome, reason string) {
		named := func(s Section) bool { return s.Name == name || strings.HasPrefix(s.Name, name+":") }
		if !slices.ContainsFunc(out, named) {
			out = append(out, Section{Name: name, MaxTokens: t.prompt.Cap(name), Outcome: o, Reason: reason})
		}
	}
	for _, name := range t.prompt.Sources.Exclude {
		absent(name, LeftOut, "the settings leave it out")
	}
	for _, name := range t.gathered.Asked {
		absent(name, Empty, cmp.Or(t.gathered.Notes[name], "nothing was found for it"))
	}
	return out
}

func (t *task) section(name string, p *inject.Piece, tokens int) Section {
	s := Section{Name: name, Tokens: tokens, Before: tokens, Outcome: Shown, Reason: t.gathered.Notes[name]}
	s.Refs, s.LeftOut = someOf(t.gathered.Refs[name]), someOf(t.gathered.LeftOut[name])
	if p == nil {
		return s
	}
	s.Phase, s.Cache, s.MaxTokens, s.Source = p.Phase, p.Cache, p.MaxTokens, p.Source
	for _, number := range p.Left {
		s.LeftOut = append(s.LeftOut, fmt.Sprintf("%s[%d]", name, number-1))
	}
	s.LeftOut = someOf(s.LeftOut)
	s.Before = tokens + p.Before - p.After // what begins a message takes a little more
	if p.Reason != inject.AsGiven {
		s.Reason = p.Reason.String()
	}
	switch {
	case p.LeftOut():
		s.Outcome = LeftOut
	case p.After < p.Before || len(p.Left) > 0:
		s.Outcome = Cut
	default:
		s.Before = tokens
	}
	return s
}

func failed(f *gather.Failure) Section {
	s := Section{Name: f.Source, Outcome: Failed, Reason: f.Reason}
	if f.TimedOut {
		s.Outcome = TimedOut
	}
	return s
}

func someOf(names []string) []string { return slices.Clone(names[:min(len(names), maxRefs)]) }

// sequences say how far the prompt was read.
func (t *task) sequences() []gather.Sequence {
	var out []gather.Sequence
	if t.moment.Sequence > 0 {
		out = append(out, gather.Sequence{Source: "session", Number: t.moment.Sequence})
	}
	return append(out, t.gathered.Sequences...)
}

// marks plans the cache marks of a prompt that begins with shared of the one before.
func (t *task) marks(b *render.Builder, shared render.End, last lastPrompt) []provider.Mark {
	return provider.Plan(provider.Layout{
		Tools: b.Edges.Tools, Stable: b.Edges.Stable, Session: b.Edges.Session, Folds: b.Edges.Folds, History: b.Edges.History,
		Shared: provider.Edge{Blocks: shared.Blocks, Tokens: shared.Tokens}, Before: last.marks,
		Minimum: t.a.counter.Model(t.r.Model).CacheMinimum,
	})
}

// expectedHit is how many tokens the provider should read from its cache.
func expectedHit(marks []provider.Mark) int {
	n := 0
	for _, m := range marks {
		n = max(n, m.Expected)
	}
	return n
}
