package server_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/codes"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// JSON has its keys sorted and its numbers and letters in one form, in steps and in
// prompts; other texts are one line, and what is cut ends with a whole character.
//
// P01
func TestFormsOfTexts(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	for _, tt := range []struct{ args, compact, spaced string }{
		{`{ "b" : 1e3, "a" : {} , "c":null, "B":true}`, `{"B":true,"a":"{0 keys}","b":1000,"c":null}`, `{"B": true, "a": "{0 keys}", "b": 1000, "c": null}`},
		{`{"a":"<a href='x'>&amp; \u00e9 \n \" \\ \/"}`, `{"a":"<a href='x'>&amp; é \n \" \\ /"}`, `{"a": "<a href='x'>&amp; é \n \" \\ /"}`},
		{`{"\ud83d\ude00":1,"\uffff":2,"z":3}`, "{\"z\":3,\"\uffff\":2,\"😀\":1}", "{\"z\": 3, \"\uffff\": 2, \"😀\": 1}"},
		{`{"a":9007199254740993,"b":1.50,"c":-0,"d":1E21,"e":-2.5e-1,"f":1e-7}`, `{"a":9007199254740993,"b":1.5,"c":0,"d":1000000000000000000000,"e":-0.25,"f":0.0000001}`, `{"a": 9007199254740993, "b": 1.5, "c": 0, "d": 1000000000000000000000, "e": -0.25, "f": 0.0000001}`},
	} {
		step := c.step(c.report("db:query", tt.args, "").GetStep().GetId())
		if got := step.GetMinimalArgsJson(); got != tt.compact {
			t.Errorf("%s: got %s, want %s", tt.args, got, tt.compact)
		}
		if text := shownIn(c.prompt(literally("reduction"))); !strings.Contains(text, `Action: {"tool": "db:query", "args": `+tt.spaced+"}\n") {
			t.Errorf("%s: the prompt is\n%s", tt.args, text)
		}
	}
	for in, want := range map[string]string{
		"a\n\n\tb": "a b", "  a b  ": "a b", "a\u2028b\u0085c\u00a0d": "a b c d", "a\r\nb": "a b", "é\nß": "é ß",
		strings.Repeat("é", 200): strings.Repeat("é", 200), strings.Repeat("é", 201): strings.Repeat("é", 200) + "...",
		strings.Repeat("👍", 300): strings.Repeat("👍", 200) + "...", strings.Repeat("天 \n", 300): strings.TrimSpace(strings.Repeat("天 ", 100)) + "...",
	} {
		if got := c.report("db:query", `{}`, quoted(t, in)).GetStep().GetObservation(); got != "db:query → "+want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
	for chars, want := range map[int]int{99: 99, 100: 100, 101: 103} {
		step := c.step(c.report("db:query", `{"a":`+quoted(t, strings.Repeat("👍", chars))+`}`, "").GetStep().GetId())
		var args struct{ A string }
		must(t, json.Unmarshal([]byte(step.GetMinimalArgsJson()), &args))
		if utf8.RuneCountInString(args.A) != want || strings.Trim(args.A, "👍") != strings.Repeat(".", max(chars-100, 0)*3) {
			t.Errorf("%d characters become %q", chars, args.A)
		}
	}
}

// shuffledJSON is a value as JSON with its keys in any order.
func shuffledJSON(random *rand.Rand, v any) string {
	object, isObject := v.(map[string]any)
	if !isObject {
		text, _ := json.Marshal(v)
		return string(text)
	}
	members := []string{}
	for key, value := range object {
		members = append(members, fmt.Sprintf("%q : %s", key, shuffledJSON(random, value)))
	}
	slices.Sort(members)
	random.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	return "{ " + strings.Join(members, ", ") + "}"
}

// The same tools, in whatever order they and the keys of their schemas come, and the
// same log give the same bytes, a thousand times over.
//
// M01
func TestSameToolsSameBytes(t *testing.T) {
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	s := servertest.Start(t, nil)
	c := as(t, s, agent)
	for i := range 8 {
		c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: fmt.Sprint("Look at part ", i)})
		c.report("db:query", shuffledJSON(random, map[string]any{"part": i, "a": "b", "deep": map[string]any{"x": 1, "y": 2}}), quoted(t, textAbout(fmt.Sprint(i))))
	}
	schema := map[string]any{"type": "object", "properties": map[string]any{"path": map[string]any{"type": "string", "description": "<where>"}, "a": map[string]any{"type": "integer"}}}
	names := []string{"one", "two", "three", "a:b", "z"}
	hashes, toolTexts := map[string]int{}, map[string]bool{}
	rounds, each := 20, 50
	if testing.Short() {
		rounds, each = 10, 10
	}
	for range rounds {
		hello := helloOf("provider")
		random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
		for _, name := range names {
			hello.Tools = append(hello.Tools, &loombridgev1.ToolDescriptor{
				Name: name, Description: "does " + name, ParametersSchemaJson: shuffledJSON(random, schema),
			})
		}
		a := MustAttach(t, t.Context(), s.Bridge, hello)
		for i := range each {
			format := []loombridgev1.PromptFormat{loombridgev1.PromptFormat_PROMPT_FORMAT_NEUTRAL, loombridgev1.PromptFormat_PROMPT_FORMAT_OPENAI_CHAT}[i%2]
			got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: agent, SessionId: "s", Goal: "go on", System: "You are an agent.", Format: format, MaxTokens: 100_000, Settings: &loombridgev1.PromptSettings{Tools: &loombridgev1.ToolSelection{Names: []string{"*"}}}})
			must(t, err)
			hashes[fmt.Sprintf("%d %x", i%2, sha256.Sum256(fmt.Append(nil, got.GetPromptJson(), got.GetToolsJson(), got.GetMessages(), got.GetPrefixSha256(), got.GetTokens())))]++
			if format == loombridgev1.PromptFormat_PROMPT_FORMAT_NEUTRAL {
				toolTexts[got.GetToolsJson()] = true
			}
		}
		a.leave()
	}
	if len(hashes) != 2 || len(toolTexts) != 1 {
		t.Errorf("seed %d: prompts %v, %d lists of tools", seed, hashes, len(toolTexts))
	}
	for text := range toolTexts {
		at := -1
		for _, name := range []string{`"does a:b"`, `"does one"`, `"does three"`, `"does two"`, `"does z"`} {
			next := strings.Index(text, name)
			if next <= at {
				t.Errorf("%s is not where it should be in %s", name, text)
			}
			at = next
		}
		if !strings.Contains(text, `{"properties":{"a":{"type":"integer"},"path":{"description":"<where>","type":"string"}},"type":"object"}`) {
			t.Errorf("schemas are not canonical: %s", text)
		}
	}
}

// Each model's tokens are counted by its own rules, and the answer names these: of
// texts, messages, images and tools.
//
// P31
func TestCountersOfModels(t *testing.T) {
	s := servertest.Start(t, nil)
	const exact, estimated = loombridgev1.TokenCertainty_TOKEN_CERTAINTY_EXACT, loombridgev1.TokenCertainty_TOKEN_CERTAINTY_ESTIMATED
	count := func(model, text string) *loombridgev1.TokenCount {
		t.Helper()
		got, err := s.Context.CountTokens(t.Context(), &loombridgev1.CountTokensRequest{AgentId: agent, Text: text, Model: model})
		must(t, err)
		return got
	}
	for text, want := range map[string]int32{
		"": 0, "a": 1, "abcd": 1, "abcde": 2, "天地玄黄": 4, "ひらがなカー": 6, "안녕하세요": 4, "안녕하세요!": 5, "你好, world": 4,
	} {
		if got := count("of-nobody", text); got.GetTokens() != want || got.GetCounter() != "estimate" || got.GetCertainty() != estimated {
			t.Errorf("%q: %v, want %d", text, got, want)
		}
	}
	// Tables of figures, whose digits many models take one by one.
	var figures strings.Builder
	for i := range 400 {
		fmt.Fprintf(&figures, "%d,", i*7919*104729)
	}
	real := int32(0)
	for _, r := range figures.String() {
		if r != ',' {
			real++
		}
	}
	for _, model := range []string{"gemini-2.5-pro", "qwen3-32b", "mistral-large", "grok-4", "of-nobody"} {
		if got := count(model, figures.String()); got.GetTokens() < real || got.GetTokens() > 2*real || got.GetCertainty() != estimated {
			t.Errorf("%s: %v for %d digits", model, got, real)
		}
	}
	long := strings.Repeat("The quick brown fox jumps over the lazy dog. ", 50)
	base := count("gpt-4o", long)
	if base.GetTokens() != 501 || base.GetCounter() != "o200k_base" || base.GetCertainty() != exact {
		t.Errorf("gpt-4o: %v", base)
	}
	for model, ratio := range map[string]float64{"claude-3-opus": 1.1, "claude-sonnet-5": 1.43} {
		if got, want := count(model, long), int32(math.Ceil(float64(base.GetTokens())*ratio)); got.GetTokens() != want || got.GetCounter() != "anthropic" || got.GetCertainty() != estimated {
			t.Errorf("%s: %v, want %d", model, got, want)
		}
	}
	var picture bytes.Buffer
	must(t, png.Encode(&picture, image.NewGray(image.Rect(0, 0, 300, 200))))
	data := base64.StdEncoding.EncodeToString(picture.Bytes())
	openai := `[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `","detail":"high"}}]`
	anthropic := `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}]`
	for i, tt := range []struct {
		model, content, blocks string
		history                int32 // of one message of a user
	}{
		{"gpt-4o", "hello world", "", 3 + 1 + 2},
		{"claude-3-opus", "hello world", "", 3 + 2 + 3},
		{"of-nobody", "hello world", "", 4 + 1 + 3},
		{"gpt-4o", "", openai, 3 + 1 + 85 + 170},
		{"claude-sonnet-5", "", anthropic, 3 + 2 + 80}, // 300 × 200 / 750
		{"of-nobody", "", anthropic, 4 + 1 + 1600},
		{"gpt-4o", "", `[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]`, 3 + 1 + 1600},
	} {
		c := as(t, s, fmt.Sprint("agent", i))
		c.say(&loombridgev1.Message{Role: loombridgev1.Role_ROLE_USER, Content: tt.content, BlocksJson: tt.blocks})
		sizes := map[bool]int32{}
		for _, without := range []bool{true, false} {
			got, err := s.Context.Assemble(t.Context(), &loombridgev1.AssembleRequest{AgentId: c.id, SessionId: "s", Model: tt.model, WithoutTools: without})
			must(t, err)
			parts := got.GetParts()
			if parts["history"] != tt.history || (parts["tools"] == 0) != without || got.GetTokens().GetCounter() != count(tt.model, "a").GetCounter() {
				t.Errorf("%s %q %.20s: %v by %s, want %d", tt.model, tt.content, tt.blocks, parts, got.GetTokens().GetCounter(), tt.history)
			}
			sizes[without] = got.GetTokens().GetTokens() - parts["tools"]
		}
		if sizes[true] != sizes[false] || sizes[true] != tt.history+3 { // the beginning of the answer takes 3
			t.Errorf("%s: without the tools %d and %d tokens", tt.model, sizes[true], sizes[false])
		}
	}
}

// A tool is listed as it describes itself; one that describes itself badly is refused
// with the field, and nothing of its agent is listed.
//
// E02
func TestDescriptionsOfTools(t *testing.T) {
	s := servertest.Start(t, nil)
	list := func() map[string]*loombridgev1.ToolDescriptor {
		t.Helper()
		got, err := s.Tools.ListTools(convert.AskText(t.Context()), &loombridgev1.ListToolsRequest{AgentId: agent})
		must(t, err)
		all := map[string]*loombridgev1.ToolDescriptor{}
		for _, tool := range got.GetTools() {
			all[tool.GetName()] = tool
		}
		return all
	}
	own := list()
	for name, tool := range own {
		var schema struct{ Type string }
		must(t, json.Unmarshal([]byte(tool.GetParametersSchemaJson()), &schema))
		if tool.GetDescription() == "" || schema.Type != "object" || tool.GetLevel() < 1 || tool.GetLevel() > 3 || tool.GetCategory() == "" {
			t.Errorf("%s: %v", name, tool)
		}
	}
	provided := func(name, description, schema string) *loombridgev1.ToolDescriptor {
		return &loombridgev1.ToolDescriptor{Name: name, Description: description, ParametersSchemaJson: schema}
	}
	for what, tt := range map[string]struct {
		tool  *loombridgev1.ToolDescriptor
		field string
	}{
		"no name":               {provided("", "", `{}`), "hello.tools.name"},
		"a long name":           {provided(strings.Repeat("x", 129), "", `{}`), "hello.tools.name"},
		"a space in the name":   {provided("read file", "", `{}`), "hello.tools.name"},
		"a long description":    {provided("x", strings.Repeat("x", 16<<10+1), `{}`), "hello.tools.description"},
		"no JSON":               {provided("x", "", `{`), "hello.tools.parameters_schema_json"},
		"of a string":           {provided("x", "", `{"type":"string"}`), "hello.tools.parameters_schema_json"},
		"refers to a file":      {provided("x", "", `{"properties":{"a":{"$ref":"file:///etc/passwd"}}}`), "hello.tools.parameters_schema_json"},
		"refers to nothing":     {provided("x", "", `{"$ref":"#/$defs/missing"}`), "hello.tools.parameters_schema_json"},
		"longer than it may be": {provided("x", "", `{"description":"`+strings.Repeat("x", 64<<10)+`"}`), "hello.tools.parameters_schema_json"},
	} {
		stream, err := s.Bridge.Attach(t.Context())
		must(t, err)
		hello := helloOf("provider")
		hello.Tools = []*loombridgev1.ToolDescriptor{provided("good", "is good", `{}`), tt.tool}
		must(t, stream.Send(helloMessage(hello)))
		_, err = stream.Recv()
		MustFail(t, err, codes.InvalidArgument, "INVALID_REQUEST")
		if fields := violated(err); !slices.Equal(fields, []string{tt.field}) {
			t.Errorf("%s: fields %q, want %q", what, fields, tt.field)
		}
		if len(own) != len(list()) {
			t.Errorf("%s: tools of the refused agent are listed", what)
		}
	}
	hello := helloOf("provider")
	schema := `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`
	hello.Tools = []*loombridgev1.ToolDescriptor{provided("sum:up", "adds <things> up", schema)}
	MustAttach(t, t.Context(), s.Bridge, hello)
	if got := list()["sum:up"]; got.GetDescription() != "adds <things> up" || got.GetParametersSchemaJson() != schema || got.GetAgentId() != "provider" || got.GetLevel() != 1 || !got.GetMutates() {
		t.Errorf("listed as %v", got)
	}
}
