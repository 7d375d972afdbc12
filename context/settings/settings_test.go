package settings_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

func full() settings.Prompt {
	level := 0.5
	return settings.Prompt{
		Layout: settings.ReAct, System: "Be careful.", Rendering: settings.AsText, Tools: &settings.Tools{Levels: []int{1, 2}, Names: []string{"fs:*"}},
		Position: settings.Prepend, FewShot: []settings.Example{{Input: "a", Output: "b"}}, AgentsMD: "Rules", UserID: "u",
		Sources: settings.Sources{
			Exclude: []string{settings.Notes}, Layers: []string{"L1", "L2"}, UserMemories: 4, Knowledge: 5,
			KnowledgeTimeout: time.Second, EventActions: []string{"node.error"},
		},
		Skills:     []settings.Skill{{Name: "s", Description: "d", Text: "t", Tools: []string{"x"}, Active: true}},
		Limits:     settings.Limits{Total: 7, Sections: map[string]int{settings.Plan: 8}},
		Variation:  settings.Variation{Disabled: new(true), Level: &level},
		Injections: []settings.Injection{{Name: "i", Phase: 3, Strategy: 2, Priority: new(9), MaxTokens: 10, Tag: "t", Content: "c"}}, OutputTokens: 11,
	}
}

// Every field takes part in Over and in the stored form.
func TestEveryField(t *testing.T) {
	p := full()
	for i := range reflect.TypeFor[settings.Prompt]().NumField() {
		if reflect.ValueOf(p).Field(i).IsZero() {
			t.Fatalf("the test does not set %s", reflect.TypeFor[settings.Prompt]().Field(i).Name)
		}
	}
	if diff := cmp.Diff(p, settings.Prompt{}.Over(p)); diff != "" {
		t.Error("over nothing: ", diff)
	}
	if diff := cmp.Diff(p, p.Over(settings.Prompt{})); diff != "" {
		t.Error("nothing over: ", diff)
	}
	if err := p.Check("prompt"); err != nil {
		t.Error(err)
	}
	back, err := settings.Decode(settings.Encode(&p))
	if diff := cmp.Diff(&p, back); diff != "" || err != nil {
		t.Error("stored: ", err, diff)
	}
}

func TestOver(t *testing.T) {
	base := settings.Prompt{
		Limits:     settings.Limits{Sections: map[string]int{settings.Plan: 1, settings.Errors: 2}},
		Injections: []settings.Injection{{Name: "a", Content: "base"}, {Name: "b", Content: "base"}},
	}
	own := settings.Prompt{
		Limits:     settings.Limits{Sections: map[string]int{settings.Errors: 3}},
		Injections: []settings.Injection{{Name: "c", Content: "own"}, {Name: "a", Content: "own"}},
	}
	got := own.Over(base)
	want := settings.Prompt{
		Limits:     settings.Limits{Sections: map[string]int{settings.Plan: 1, settings.Errors: 3}},
		Injections: []settings.Injection{{Name: "a", Content: "own"}, {Name: "b", Content: "base"}, {Name: "c", Content: "own"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if base.Limits.Sections[settings.Errors] != 2 {
		t.Error("the settings below were changed")
	}
	if got.Cap(settings.Errors) != 3 || got.Cap(settings.System) != 2000 {
		t.Errorf("caps %d and %d", got.Cap(settings.Errors), got.Cap(settings.System))
	}
}

func TestCheck(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	for field, p := range map[string]settings.Prompt{
		"layout":                    {Layout: "spiral"},
		"tool_rendering":            {Rendering: "song"},
		"runtime_position":          {Position: "above"},
		"system":                    {System: long(settings.MaxSystemBytes + 1)},
		"agents_md":                 {AgentsMD: "\xff"},
		"user_id":                   {UserID: long(257)},
		"tools.levels[1]":           {Tools: &settings.Tools{Levels: []int{1, 4}}},
		"tools.names[0]":            {Tools: &settings.Tools{Names: []string{" "}}},
		"sources.exclude[0]":        {Sources: settings.Sources{Exclude: []string{settings.System}}},
		"sources.memory_layers[1]":  {Sources: settings.Sources{Layers: []string{"L1", "L3"}}},
		"sources.memory_layers":     {Sources: settings.Sources{Layers: []string{"L2"}}},
		"tools.none":                {Tools: &settings.Tools{None: true, Names: []string{"fs:*"}}},
		"agents_md ":                {AgentsMD: "a\x00"},
		"user_id ":                  {UserID: "a\x00b"},
		"sources.user_memories":     {Sources: settings.Sources{UserMemories: settings.MaxShown + 1}},
		"sources.knowledge_timeout": {Sources: settings.Sources{KnowledgeTimeout: 11 * time.Second}},
		"few_shot[0].output":        {FewShot: []settings.Example{{Input: "x"}}},
		"few_shot[0]":               {FewShot: []settings.Example{{Input: long(9 << 10), Output: long(9 << 10)}}},
		"skills[1].name":            {Skills: []settings.Skill{{Name: "s"}, {Name: "s"}}},
		"skills[0].description":     {Skills: []settings.Skill{{Name: "s", Description: "a\nb"}}},
		"limits.sections[\"x\"]":    {Limits: settings.Limits{Sections: map[string]int{"x": 1}}},
		"variation":                 {Variation: settings.Variation{Level: new(0.81)}},
		"injections[0].name":        {Injections: []settings.Injection{{Name: settings.History, Phase: 1}}},
		"injections[0].phase":       {Injections: []settings.Injection{{Name: "x"}}},
		"injections[0].xml_tag":     {Injections: []settings.Injection{{Name: "x", Phase: 1, Tag: "a>b"}}},
		"injections[0].priority":    {Injections: []settings.Injection{{Name: "x", Phase: 1, Priority: new(101)}}},
		"max_output_tokens":         {OutputTokens: -1},
	} {
		err := p.Check("prompt")
		e, ok := errors.AsType[*invalid.Error](err)
		if !ok || e.Field != "prompt."+strings.TrimSpace(field) || !errors.Is(err, settings.ErrInvalid) {
			t.Errorf("%s: %v", field, err)
		}
	}
	large := settings.Prompt{System: long(settings.MaxBytes)}
	if e, ok := errors.AsType[*invalid.Error](large.Check("prompt")); !ok || e.Field != "prompt" {
		t.Errorf("settings that are too large: %v", large.Check("prompt"))
	}
}

func FuzzDecode(f *testing.F) {
	p := full()
	f.Add(settings.Encode(&p))
	f.Add([]byte(`{"tools":null,"limits":{"sections":{"a":-1}}}`))
	f.Fuzz(func(t *testing.T, value []byte) {
		p, err := settings.Decode(value)
		if err != nil || p == nil {
			return
		}
		_ = p.Check("prompt")
		again, err := settings.Decode(settings.Encode(p))
		if err != nil || string(settings.Encode(again)) != string(settings.Encode(p)) {
			t.Errorf("%q changes when it is stored again: %v", value, err)
		}
	})
}
