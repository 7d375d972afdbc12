package main

import (
	"embed"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loom-bridge/loom-bridge/internal/testkit/contexts"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// labelled are 200 tools (name, description, arguments) of servers such as there are, and
// what somebody asks for with the names of the tools that would do, with tabs between.
//
//go:embed testdata/toolsearch/*.tsv
var labelled embed.FS

// rows are the lines of a file of labelled, cut at tabs.
func rows(tb testing.TB, name string) (out [][]string) {
	tb.Helper()
	text, err := labelled.ReadFile("testdata/toolsearch/" + name)
	must(tb, err)
	for line := range strings.Lines(string(text)) {
		out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return out
}

// labelledTools are the tools, as a server has them.
func labelledTools() (all []*sdk.Tool) {
	text, _ := labelled.ReadFile("testdata/toolsearch/tools.tsv") // it is embedded
	for line := range strings.Lines(string(text)) {
		row := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		properties := object{}
		for _, name := range strings.FieldsFunc(row[2], func(r rune) bool { return r == ',' }) {
			properties[name] = object{"type": "string"}
		}
		schema, _ := json.Marshal(object{"type": "object", "properties": properties})
		all = append(all, &sdk.Tool{Name: row[0], Description: row[1], InputSchema: json.RawMessage(schema)})
	}
	return all
}

// search is what tools:search finds for an agent.
func (p *process) search(tb testing.TB, arguments object) (names []string, output string) {
	tb.Helper()
	text, err := json.Marshal(arguments)
	must(tb, err)
	got, err := p.bridge().Tool(convert.AskText(tb.Context()), &loombridgev1.ToolRequest{
		AgentId: "a", Name: "tools:search", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: string(text)},
	})
	must(tb, err)
	var found struct {
		Tools []struct{ Name string } `json:"tools"`
	}
	must(tb, json.Unmarshal([]byte(got.GetOutputJson()), &found))
	for _, t := range found.Tools {
		names = append(names, t.Name)
	}
	return names, got.GetOutputJson()
}

// A server with 200 tools costs a prompt nothing, and tools:search finds the right one of
// them among the first five. The words that it knows to mean the same were written with
// asks.tsv in view; those of held_out.tsv were written afterwards, and nothing was changed
// for them.
func TestToolsSearch(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tools := func(p *process, settings *loombridgev1.PromptSettings) string {
		got, err := contexts.New(p.conn).Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: "a", Goal: "x", DryRun: true, Settings: settings})
		must(t, err)
		return got.GetToolsJson()
	}
	p := MustServe(t, dir, object{"world": guest(t, dir, "catalogue", nil)})
	without := tools(p, nil)
	p.waitFor(t, "world:dns_resolve")
	if with := tools(p, nil); with != without || !strings.Contains(with, `"tools:search"`) {
		t.Errorf("the tools of a prompt were %d bytes, and are %d", len(without), len(with))
	}
	for file, floor := range map[string]int{"asks.tsv": 95, "held_out.tsv": 36} {
		first, five, all := 0, 0, 0
		for _, row := range rows(t, file) {
			names, _ := p.search(t, object{"query": row[0]})
			at := slices.IndexFunc(names, func(name string) bool {
				return slices.Contains(strings.Fields(row[1]), strings.TrimPrefix(name, "world:"))
			})
			all++
			if at == 0 {
				first++
			}
			if at >= 0 {
				five++
			}
			if len(names) > 5 {
				t.Errorf("%q: %d tools", row[0], len(names))
			}
		}
		t.Logf("%s: right at the first place %d of %d, among the first five %d", file, first, all, five)
		if five < floor {
			t.Errorf("%s: %d of %d are right among the first five, want %d", file, five, all, floor)
		}
	}

	// What was found can be called, and chosen for prompts by its name or a pattern.
	names, output := p.search(t, object{"query": "refund a charge", "limit": 1})
	if !slices.Equal(names, []string{"world:stripe_create_refund"}) || !strings.Contains(output, `"payment_intent":{"type":"string"}`) || !strings.Contains(output, `"description":"Refund a charge`) {
		t.Fatalf("%v %s", names, output)
	}
	answer, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: "a", Name: names[0]})
	must(t, err)
	if !answer.GetSuccess() {
		t.Errorf("%v", answer)
	}
	chosen := tools(p, &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{Names: []string{names[0], "world:maps_*"}}})
	for name, want := range map[string]int{"world:stripe_create_refund": 1, "world:maps_geocode": 1, "world:stripe_create_invoice": 0} {
		if got := strings.Count(chosen, `"`+name+`"`); got != want {
			t.Errorf("%s stands in the prompt %d times, want %d", name, got, want)
		}
	}
	// By the name that models call it, too.
	if answer, err := p.bridge().Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: "a", Name: "world_maps_geocode"}); err != nil || !answer.GetSuccess() || answer.GetStep().GetToolName() != "world:maps_geocode" {
		t.Errorf("%v, %v", answer, err)
	}
}
