package assemble

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/assemble/gather"
	"github.com/loom-bridge/loom-bridge/context/assemble/inject"
	"github.com/loom-bridge/loom-bridge/context/assemble/record"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/settings"
)

// maxRefs bounds the names that a section's account lists.
const maxRefs = 64

// sections returns the account of all sections: first the sections in the prompt, in its
// order, then the absent ones: cut to nothing, failed or empty.
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
		if s.Tokens > 0 || s.Outcome == record.LeftOut {
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
	absent := func(name string, o record.Outcome, reason string) {
		named := func(s Section) bool { return s.Name == name || strings.HasPrefix(s.Name, name+":") }
		if !slices.ContainsFunc(out, named) {
			out = append(out, Section{Name: name, MaxTokens: t.prompt.Cap(name), Outcome: o, Reason: reason})
		}
	}
	for _, name := range t.prompt.Sources.Exclude {
		absent(name, record.LeftOut, "the settings leave it out")
	}
	for _, name := range t.gathered.Asked {
		absent(name, record.Empty, cmp.Or(t.gathered.Notes[name], "nothing was found for it"))
	}
	return out
}

func (t *task) section(name string, p *inject.Piece, tokens int) Section {
	s := Section{Name: name, Tokens: tokens, Before: tokens, Outcome: record.Shown, Reason: t.gathered.Notes[name]}
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
		s.Outcome = record.LeftOut
	case p.After < p.Before || len(p.Left) > 0:
		s.Outcome = record.Cut
	default:
		s.Before = tokens
	}
	return s
}

func failed(f *gather.Failure) Section {
	s := Section{Name: f.Source, Outcome: record.Failed, Reason: f.Reason}
	if f.TimedOut {
		s.Outcome = record.TimedOut
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
