package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/convert"
)

// call has the server run a tool.
func (c caller) call(tool, args string) *loombridgev1.ToolResponse {
	c.tb.Helper()
	got, err := c.Bridge.Tool(convert.AskText(c.tb.Context()), &loombridgev1.ToolRequest{
		AgentId: c.id, SessionId: "s", Name: tool, ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: args},
	})
	must(c.tb, err)
	return got
}

// All that a step holds is there, and the same by each way to it.
//
// A03
func TestFieldsOfSteps(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, agent)
	content := strings.Repeat("line\n", 300)
	made := c.record(&loombridgev1.RecordStepRequest{
		ToolName: "fs:read_file", Success: true, Thought: "I look into it.", TurnId: "turn", CallId: "call", Pinned: true,
		ArgumentsForm: &loombridgev1.RecordStepRequest_ArgumentsJson{ArgumentsJson: `{"path":"a.txt","offset":1}`},
		OutputForm:    &loombridgev1.RecordStepRequest_OutputJson{OutputJson: object(t, map[string]any{"content": content})},
	})
	want := &loombridgev1.Step{
		Id: "step_001", ToolName: "fs:read_file", MinimalArgsForm: &loombridgev1.Step_MinimalArgsJson{MinimalArgsJson: `{"path":"a.txt"}`},
		Observation: "Read a.txt (1500 bytes, text)", OutcomeRef: hashed(content), OutcomePath: "workspace/outputs/read_001.txt", CreateTime: timestamppb.New(s.Clock.Now()),
		Success: true, Outcome: loombridgev1.StepOutcome_STEP_OUTCOME_SUCCEEDED, Thought: "I look into it.", Inline: content,
		Metadata:  MustStruct(t, map[string]any{"size": 1500, "bytes": 1500, "sha256": hashed(content), "type": "text", "lines": 300}),
		SessionId: "s", TurnId: "turn", CallId: "call", Position: 1, Pinned: true,
	}
	failed := c.fail("db:query", `{"table":"t"}`, "no such\ntable")
	if got := c.step(failed.GetStep().GetId()); got.GetSuccess() || got.GetOutcome() != loombridgev1.StepOutcome_STEP_OUTCOME_FAILED ||
		got.GetError() != "no such\ntable" || got.GetObservation() != "db:query failed: no such table" || got.GetOutcomeRef() != "" {
		t.Errorf("a failure: %v", got)
	}
	made.Step.MinimalArgsForm = want.MinimalArgsForm // the answer has it as a Struct
	listed, err := s.Context.ListSteps(convert.AskText(t.Context()), &loombridgev1.ListStepsRequest{AgentId: agent, SessionId: "s"})
	must(t, err)
	for where, got := range map[string]*loombridgev1.Step{"GetStep": c.step("step_001"), "RecordStep": made.GetStep(), "ListSteps": listed.GetSteps()[0]} {
		got.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, _ protoreflect.Value) bool {
			if !want.ProtoReflect().Has(field) && field.Name() != "error" { // of other rows
				got.ProtoReflect().Clear(field)
			}
			return true
		})
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", where, diff)
		}
	}
}

// The line of a step has its size for people, its observation plain bytes.
//
// A04, N10, P01
func TestSizesForPeople(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, agent)
	for size, want := range map[int]string{
		0: "0 bytes", 1: "1 bytes", 1023: "1023 bytes", 1024: "1KB", 1075: "1KB", 1076: "1.1KB", 1229: "1.2KB", 5120: "5KB", 10188: "9.9KB", 10189: "10KB",
		10240: "10KB", 10751: "10KB", 10752: "11KB", 51200: "50KB", 1<<20 - 1: "1024KB", 1 << 20: "1MB", 5 << 19: "2.5MB",
	} {
		MustWrite(t, s, "config.json", strings.Repeat("x", size))
		step := c.call("fs:read_file", `{"path":"config.json"}`).GetStep()
		if got := c.read("workspace/history/" + step.GetId() + ".compact"); got != "Read config.json ("+want+")" {
			t.Errorf("%d bytes: %q, want %s", size, got, want)
		}
		if step.GetObservation() != fmt.Sprintf("Read config.json (%d bytes, JSON)", size) {
			t.Errorf("%d bytes: %q", size, step.GetObservation())
		}
	}
}

// Ids count from step_001 for each agent. Many calls at once, some of which fail or
// are given up, leave no gap and no duplicate.
//
// A05
func TestIDsOfSteps(t *testing.T) {
	s := servertest.Start(t, nil)
	MustWrite(t, s, "a.txt", "hello")
	const callers, each = 8, 130
	ids := make([][]string, callers)
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			gone, cancel := context.WithCancel(t.Context())
			cancel()
			for j := range each {
				record := &loombridgev1.RecordStepRequest{AgentId: agent, SessionId: fmt.Sprint("s", j%3), ToolName: "x", Success: true}
				var step *loombridgev1.Step
				var err error
				switch j % 10 {
				case 0: // a call that is given up
					_, _ = s.Context.RecordStep(gone, record)
					record.ToolName = "" // and one that is refused
					_, refused := s.Context.RecordStep(t.Context(), record)
					if refused == nil {
						t.Error("a step without a tool is taken")
					}
					continue
				case 1:
					var got *loombridgev1.ToolResponse
					got, err = s.Bridge.Tool(t.Context(), &loombridgev1.ToolRequest{AgentId: agent, SessionId: record.SessionId, Name: "fs:read_file", ArgumentsForm: &loombridgev1.ToolRequest_ArgumentsJson{ArgumentsJson: `{"path":"a.txt"}`}})
					step = got.GetStep()
				default:
					var got *loombridgev1.RecordStepResponse
					got, err = s.Context.RecordStep(t.Context(), record)
					step = got.GetStep()
				}
				if err != nil {
					t.Error(err)
					return
				}
				ids[i] = append(ids[i], step.GetId())
			}
		})
	}
	all.Wait()
	got := slices.Concat(ids...)
	slices.SortFunc(got, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b)*(1-min(1, len(a)^len(b))) })
	for i, id := range got {
		if want := fmt.Sprintf("step_%03d", i+1); id != want {
			t.Fatalf("step %d of %d is %s", i+1, len(got), id)
		}
	}
	if len(got) < 900 {
		t.Errorf("%d steps", len(got))
	}
	c := as(t, s, agent)
	for n := len(got) + 1; n <= 1001; n++ {
		if id := c.report("x", "", "").GetStep().GetId(); id != fmt.Sprintf("step_%03d", n) {
			t.Errorf("step %d is %s", n, id)
		}
	}
	if c.step("step_1000").GetId() != "step_1000" {
		t.Error("step_1000 is not found")
	}
	if id := as(t, s, "another").report("x", "", "").GetStep().GetId(); id != "step_001" {
		t.Errorf("the first step of another agent is %s", id)
	}
}

// Each rule takes any result and any arguments, and says it in one line. What is
// missing or of another type counts as empty.
//
// A06
func TestOddResults(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	odd := []string{
		`null`, `true`, `0`, `-1e300`, `12345678901234567890`, `""`, `" \n\t"`, `"\u0000"`, `"{"`, `[]`, `{}`, `[[[]]]`, `[null]`, `{"":""}`,
		`{"content":1,"bytes_written":"x","entries":{},"results":7,"count":"many","status":[],"text":null,"stdout":{},"stderr":3,"exit_code":"no"}`,
		`{"content":null,"entries":[1,null,{},{"name":3}],"results":[null,[],1],"status":-5,"text":["a"],"stdout":"a","exit_code":1.5}`,
	}
	for _, tool := range []string{
		"fs:read_file", "fs:write_file", "fs:list_dir", "fs:search", "fs:delete", "fs:stat", "web:search", "browser:navigate", "system:shell", "weather:get", "x:y", "z",
	} {
		for i, output := range odd {
			args := []string{`{}`, `{"path":[],"query":{},"url":5,"command":null,"args":"x","location":{}}`, `{"path":"p","query":"q","url":"u","command":"c","location":"l"}`}[i%3]
			made := c.report(tool, args, output)
			step := c.step(made.GetStep().GetId())
			line, _, more := strings.Cut(step.GetObservation(), "\n")
			if line == "" || more && tool != "system:shell" || !utf8.ValidString(line) {
				t.Errorf("%s of %s with %s: %q", tool, args, output, step.GetObservation())
			}
			if got := c.read("workspace/history/" + step.GetId() + ".compact"); got == "" || strings.Contains(got, "\n") {
				t.Errorf("%s with %s: the line is %q", tool, output, got)
			}
		}
		// The rule is found by the name with an underscore as well.
		under := strings.Replace(tool, ":", "_", 1)
		same := [2]string{}
		for i, name := range []string{tool, under} {
			same[i] = c.report(name, `{"path":"p","query":"q","command":"c","url":"u","location":"l"}`, `{"content":"x","text":"t"}`).GetStep().GetObservation()
		}
		if tool != "x:y" && same[0] != same[1] {
			t.Errorf("%s: %q, %s: %q", tool, same[0], under, same[1])
		}
	}
}

// A command that failed is a failure, whatever its caller says. The end of what it
// complained of stays below its line, word for word, at most 500 characters.
//
// A16
func TestFailedCommands(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	long := strings.Repeat("é", 500)
	for _, tt := range []struct {
		name, stdout, stderr, want string
		blob                       bool
	}{
		{"stderr", "out\n", "err:  no such file\n", "cat x: exit 2, 2 lines output\nerr:  no such file\n", false},
		{"stdout if stderr is blank", "it failed", " \n", "cat x: exit 2, 2 lines output\nit failed", false},
		{"nothing", "", "", "cat x: exit 2, 0 lines output", false},
		{"499 characters", "", long[2:], "cat x: exit 2, 1 lines output\n" + long[2:], false},
		{"500 characters", "", long, "cat x: exit 2, 1 lines output\n" + long, false},
		{"501 characters", "", "x" + long, "cat x: exit 2, 1 lines output\n…" + long, true},
	} {
		got := c.report("system:shell", `{"command":"cat","args":["x"]}`, object(t, map[string]any{"stdout": tt.stdout, "stderr": tt.stderr, "exit_code": 2}))
		step := got.GetStep()
		if step.GetObservation() != tt.want || step.GetSuccess() || step.GetOutcome() != loombridgev1.StepOutcome_STEP_OUTCOME_FAILED || step.GetMetadata().AsMap()["exit_code"] != 2.0 {
			t.Errorf("%s: %q, %v, %v", tt.name, step.GetObservation(), step.GetOutcome(), step.GetMetadata())
		}
		if blob := got.GetOutputBlob(); (blob != nil) != tt.blob || tt.blob && c.read(blob.GetPath()) != tt.stdout+tt.stderr {
			t.Errorf("%s: the whole lies at %v", tt.name, blob)
		}
		// In a prompt the first line says where the whole lies, if it is not all there.
		_, complaint, _ := strings.Cut(tt.want, "\n")
		if text := shownIn(c.prompt(literally("reduction"))); !strings.HasSuffix(text, complaint) || strings.Contains(text, "Saved to") != tt.blob {
			t.Errorf("%s: the prompt ends with %q", tt.name, text)
		}
	}
}

// The reduced records of a hundred mixed steps have at most 100 tokens on average.
//
// Q01
func TestTokensOfRecords(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	before, after := 0, 0
	body := func(i int) string {
		return strings.Repeat(fmt.Sprintf("the parser %d reads dates from a table of formats\n", i), 5+i)
	}
	for i := range 100 {
		tool, args, output := "", map[string]any{}, map[string]any{}
		switch i % 8 {
		case 0:
			tool, args["path"], output["content"] = "fs:read_file", fmt.Sprintf("src/module_%d/file_%d.py", i%7, i), body(i)
		case 1:
			tool, args["path"], args["content"], output["bytes_written"] = "fs:write_file", fmt.Sprintf("src/out_%d.py", i), body(i), len(body(i))
		case 2:
			tool, args["path"], output["entries"] = "fs:list_dir", "src", entriesOf(i)
		case 3:
			tool, args["query"], output["results"] = "web:search", fmt.Sprint("how to parse dates of kind ", i), []any{body(i), body(i)}
		case 4:
			tool, args["url"], output["status"], output["text"] = "browser:navigate", fmt.Sprintf("https://docs.example.org/guide/chapter-%d?lang=en", i), 200, body(i)
		case 5, 6:
			tool, args["command"], output["stdout"], output["exit_code"] = "system:shell", fmt.Sprintf("pytest -q tests/test_module_%d.py", i), body(i), 0
			if i%2 == 0 {
				output["stdout"], output["stderr"], output["exit_code"] = "", "grep: src: No such file or directory\n", 2
			}
		case 7:
			tool, args["table"], args["where"], output["rows"] = "db:query", "orders", fmt.Sprint("total > ", i), body(i)
		}
		text := object(t, output)
		step := c.step(c.report(tool, object(t, args), text).GetStep().GetId())
		before += c.tokens(object(t, args)) + c.tokens(text)
		after += c.tokens(fmt.Sprintf(`{"tool":%q,"minimal_args":%s,"observation":%q,"outcome_ref":%q}`, step.GetToolName(), step.GetMinimalArgsJson(), step.GetObservation(), step.GetOutcomeRef()))
	}
	t.Logf("%d tokens a step before, %d after", before/100, after/100)
	if after > 100*100 || before < 4*after {
		t.Errorf("%d tokens of 100 records, %d before", after, before)
	}
}
