package frame

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

// Sections returns the account of all sections: first the sections in the prompt, in its
// order, then the absent ones: cut to nothing, failed or empty.
func (f *Framing) Sections(b *render.Builder) []record.Section {
	pieces := make(map[string]*inject.Piece, len(f.prepared.Pieces))
	for i := range f.prepared.Pieces {
		pieces[f.prepared.Pieces[i].Name] = &f.prepared.Pieces[i]
	}
	var out []record.Section
	for _, name := range b.Order {
		p := pieces[name]
		delete(pieces, name)
		s := section(&f.Gathered, name, p, b.Parts[name])
		if shared := f.Settings.Limits.Shared; shared > 0 && name == settings.ToolList && s.Tokens > 0 && b.Parts[settings.System]+s.Tokens > shared {
			s.Reason = fmt.Sprintf("system prompt and tools take %d tokens, over their %d", b.Parts[settings.System]+s.Tokens, shared)
		}
		if s.Tokens > 0 || s.Outcome == record.LeftOut {
			out = append(out, s)
		}
	}
	for i := range f.prepared.Pieces {
		if p := &f.prepared.Pieces[i]; pieces[p.Name] != nil && p.Before > 0 {
			out = append(out, section(&f.Gathered, p.Name, p, 0))
		}
	}
	for i := range f.Gathered.Failures {
		out = append(out, failed(&f.Gathered.Failures[i]))
	}
	return withAbsent(out, &f.Settings, &f.Gathered)
}

// withAbsent adds the sections that were looked for, and have nothing to show, and those
// that the settings leave out.
func withAbsent(out []record.Section, p *settings.Prompt, g *gather.Gathered) []record.Section {
	absent := func(name string, o record.Outcome, reason string) {
		named := func(s record.Section) bool { return s.Name == name || strings.HasPrefix(s.Name, name+":") }
		if !slices.ContainsFunc(out, named) {
			out = append(out, record.Section{Name: name, MaxTokens: p.Cap(name), Outcome: o, Reason: reason})
		}
	}
	for _, name := range p.Sources.Exclude {
		absent(name, record.LeftOut, "the settings leave it out")
	}
	for _, name := range g.Asked {
		absent(name, record.Empty, cmp.Or(g.Notes[name], "nothing was found for it"))
	}
	return out
}

func section(g *gather.Gathered, name string, p *inject.Piece, tokens int) record.Section {
	s := record.Section{Name: name, Tokens: tokens, Before: tokens, Outcome: record.Shown, Reason: g.Notes[name]}
	s.Refs, s.LeftOut = someOf(g.Refs[name]), someOf(g.LeftOut[name])
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

func failed(f *gather.Failure) record.Section {
	s := record.Section{Name: f.Source, Outcome: record.Failed, Reason: f.Reason}
	if f.TimedOut {
		s.Outcome = record.TimedOut
	}
	return s
}

func someOf(names []string) []string { return slices.Clone(names[:min(len(names), maxRefs)]) }
