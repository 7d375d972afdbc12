package frame_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	"github.com/loom-bridge/loom-bridge/context/assemble/frame"
	"github.com/loom-bridge/loom-bridge/context/assemble/layout"
	"github.com/loom-bridge/loom-bridge/context/assemble/provider"
	"github.com/loom-bridge/loom-bridge/context/assemble/read"
	"github.com/loom-bridge/loom-bridge/context/assemble/render"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/tokens"
	"github.com/loom-bridge/loom-bridge/memory/kv"
)

var served = []frame.Served{
	{Tool: frame.Tool{Name: "fs:read_file", Description: "the server's"}, Level: 1},
	{Tool: frame.Tool{Name: "deep", Description: "of the third level"}, Level: 3},
	{Tool: frame.Tool{Name: "theirs", Description: "of an agent"}, Level: 1, AgentID: "other", Foreign: true},
	{Tool: frame.Tool{Name: "plain", Description: "the server's"}, Level: 1},
}

// framing prepares a frame with some settings.
func framing(t *testing.T, s settings.Prompt, own ...frame.Tool) *frame.Framing {
	t.Helper()
	counter, err := tokens.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	stage := frame.New(frame.Sources{Counter: counter, Clock: time.Now, Served: func(context.Context, kv.Scope, provider.Format) ([]frame.Served, error) { return served, nil }})
	f := stage.Framing(frame.Ask{
		Moment: &read.Moment{SessionID: "s"}, Tally: render.NewTally(t.Context(), counter, "gpt-4o", provider.Neutral), Model: "gpt-4o", Tools: own,
		System: "Be brief.", Goal: "Mend the pump", Rules: fold.Rules{Policy: session.PolicyPreset}, Settings: s, Table: layout.Named(settings.ThreePhase),
	})
	if err := f.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

func names(f *frame.Framing) (all []string) {
	for _, tool := range f.Offered {
		all = append(all, tool.Name)
	}
	return all
}

// text is the whole frame.
func text(f *frame.Framing) string {
	var b strings.Builder
	for _, m := range append(append(f.Frame.Before, f.Frame.After...), f.Frame.Last(nil, false)...) {
		b.WriteString(m.Content + "\n")
	}
	return b.String()
}

// The caller's own tools stand first and override served ones; of these settings choose, by
// level, by name, or through skills.
func TestOfferedTools(t *testing.T) {
	own := frame.Tool{Name: "plain", Description: "the caller's"}
	for name, test := range map[string]struct {
		settings settings.Prompt
		want     []string
	}{
		"by default":  {settings.Prompt{}, []string{"plain", "fs:read_file"}},
		"by level":    {settings.Prompt{Tools: &settings.Tools{Levels: []int{3}}}, []string{"plain", "deep"}},
		"by name":     {settings.Prompt{Tools: &settings.Tools{Names: []string{"the*"}}}, []string{"plain", "fs:read_file", "theirs"}},
		"none":        {settings.Prompt{Tools: &settings.Tools{None: true}}, []string{"plain"}},
		"of a skill":  {settings.Prompt{Skills: []settings.Skill{{Name: "x", Active: true, Tools: []string{"deep"}}}}, []string{"plain", "fs:read_file", "deep"}},
		"none of one": {settings.Prompt{Skills: []settings.Skill{{Name: "x", Tools: []string{"deep"}}}}, []string{"plain", "fs:read_file"}},
	} {
		f := framing(t, test.settings, own)
		if diff := cmp.Diff(test.want, names(f)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if f.Offered[0].Description != own.Description || strings.Count(string(f.Set.JSON), `"name"`) != len(test.want) {
			t.Errorf("%s: %s", name, f.Set.JSON)
		}
	}
}

// Tools as text stand once in the prompt, however often it is laid out.
func TestToolsAsText(t *testing.T) {
	f := framing(t, settings.Prompt{Rendering: settings.AsText, Tools: &settings.Tools{Names: []string{"theirs"}}}, frame.Tool{Name: "mine", Description: "of the caller"})
	before := text(f)
	for _, said := range []string{"of the caller", "of an agent", "the server's"} {
		if !strings.Contains(before, said) {
			t.Errorf("%q is missing in %s", said, before)
		}
	}
	if err := f.Arrange(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, text(f)); diff != "" {
		t.Errorf("laid out again: %s", diff)
	}
	if string(f.Set.JSON) != "[]" {
		t.Errorf("%s are offered as well", f.Set.JSON)
	}
}

// Skills give way before knowledge about the user, and each time less is left.
func TestEvict(t *testing.T) {
	facts := settings.Injection{Name: "facts", Phase: 2, Content: strings.Repeat("Eva wants the pump quiet. ", 40)}
	f := framing(t, settings.Prompt{
		Skills:     []settings.Skill{{Name: "plumbing", Description: "pumps", Text: strings.Repeat("Turn the valve. ", 40), Active: true}},
		Injections: []settings.Injection{facts},
	})
	if !strings.Contains(text(f), "Turn the valve") {
		t.Fatalf("no skill in %s", text(f))
	}
	sizes := []int{len(text(f))}
	for {
		evicted, err := f.Evict(10)
		if err != nil {
			t.Fatal(err)
		}
		if !evicted {
			break
		}
		sizes = append(sizes, len(text(f)))
		if last := len(sizes) - 1; sizes[last] >= sizes[last-1] {
			t.Fatalf("nothing was left out: %v", sizes)
		}
	}
	if got := text(f); !f.Evicting || len(f.Swapped) != 1 || strings.Contains(got, "Turn the valve") || strings.Contains(got, "Eva wants") || !strings.Contains(got, "Mend the pump") {
		t.Errorf("after %v: %s", sizes, got)
	}
}
