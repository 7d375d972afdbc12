package convert

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/memory/record"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
	"github.com/loom-bridge/loom-bridge/server/page"
	"github.com/loom-bridge/loom-bridge/server/validate"
)

func TestStructsBecomeExactJSON(t *testing.T) {
	for _, test := range []struct {
		in   map[string]any
		want string
	}{
		{nil, `{}`},
		{map[string]any{"b": 1, "a": []any{true, nil, "x"}}, `{"a":[true,null,"x"],"b":1}`},
		{map[string]any{"n": 1e15}, `{"n":1000000000000000}`},
		{map[string]any{"n": 0.1}, `{"n":0.1}`},
		{map[string]any{"n": -0.5e-8}, `{"n":-5e-9}`},
		{map[string]any{"html": "<a>&</a>"}, `{"html":"<a>&</a>"}`},
	} {
		s, err := structpb.NewStruct(test.in)
		if err != nil {
			t.Fatal(err)
		}
		got, err := jsonOf("f", structpb.NewStructValue(s))
		if err != nil || string(got) != test.want {
			t.Errorf("%v became %s, %v; want %s", test.in, got, err, test.want)
		}
	}
	if _, err := jsonOf("f", structpb.NewNumberValue(math.NaN())); len(refusedFields(err)) != 1 {
		t.Errorf("NaN: %v", err)
	}
	if got, err := jsonOf("f", &structpb.Value{}); err != nil || string(got) != "null" {
		t.Errorf("a Value of no kind: %s, %v", got, err)
	}
}

func TestPleasantValue(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for _, test := range []struct {
		name, text string
		asText     bool
		ok         bool
	}{
		{"object", `{"a":1}`, false, true},
		{"asked for text", `{"a":1}`, true, false},
		{"as deep as allowed", deep(24), false, true},
		{"too deep", deep(25), false, false},
		{"brackets in text", `"` + strings.Repeat("[", 50) + `\"["`, false, true},
		{"too large", `"` + strings.Repeat("x", 256<<10) + `"`, false, false},
	} {
		if _, ok := PleasantValue(json.RawMessage(test.text), test.asText); ok != test.ok {
			t.Errorf("%s: %v", test.name, ok)
		}
	}
	huge, _ := PleasantValue(json.RawMessage(`[1e400,-1e400,9007199254740993]`), false)
	numbers := huge.GetListValue().GetValues()
	if numbers[0].GetNumberValue() != math.MaxFloat64 || numbers[1].GetNumberValue() != -math.MaxFloat64 || numbers[2].GetNumberValue() != 1<<53 {
		t.Errorf("numbers = %v", numbers)
	}
	if _, ok := pleasantStruct(json.RawMessage(`[1]`), false); ok {
		t.Error("an array became a Struct")
	}
}

func TestTimes(t *testing.T) {
	if Timestamp(time.Time{}) != nil || !timeOf(nil).IsZero() || spanOf(nil) != 0 {
		t.Error("unset times are not kept unset")
	}
	now := time.Date(2026, 3, 1, 12, 0, 0, 123000, time.UTC)
	if !timeOf(timestamppb.New(now)).Equal(now) {
		t.Error("a time changed")
	}
}

func TestPageTokens(t *testing.T) {
	for _, position := range []uint64{0, 1, 35, 36, math.MaxUint64} {
		if got, ok := page.ParseToken(page.Token(position)); !ok || got != position {
			t.Errorf("%d became %d, %v", position, got, ok)
		}
	}
	for _, token := range []string{"x", "p1.", "p1.!", "p2.1"} {
		if _, ok := page.ParseToken(token); ok {
			t.Errorf("%q was accepted", token)
		}
	}
}

// The enums of the API and of the domain are converted by number.
func TestEnumsAgree(t *testing.T) {
	for name, number := range loombridgev1.Role_value {
		if want := strings.ToLower(strings.TrimPrefix(name, "ROLE_")); number != 0 && session.Role(number).String() != want {
			t.Errorf("%s is %v", name, session.Role(number))
		}
	}
	for name, number := range loombridgev1.Origin_value {
		if want := strings.ToLower(strings.TrimPrefix(name, "ORIGIN_")); number != 0 && record.Origin(number).String() != want {
			t.Errorf("%s is %v", name, record.Origin(number))
		}
	}
	for outcome, want := range map[step.Outcome]string{step.Succeeded: "SUCCEEDED", step.Failed: "FAILED", step.Unknown: "UNKNOWN"} {
		if got := outcomeOf(outcome).String(); got != "STEP_OUTCOME_"+want {
			t.Errorf("%v became %s", outcome, got)
		}
	}
}

// refusedFields are the fields that an error says are wrong.
func refusedFields(err error) (names []string) {
	if request, ok := errors.AsType[*validate.RequestError](err); ok {
		for _, v := range request.Violations {
			names = append(names, v.Field)
		}
	}
	return names
}

func TestSchemas(t *testing.T) {
	text := func(s string) *loombridgev1.ToolDescriptor {
		return &loombridgev1.ToolDescriptor{ParametersSchemaJson: s}
	}
	for _, test := range []struct {
		name   string
		tool   *loombridgev1.ToolDescriptor
		want   string
		fields []string
	}{
		{"none", &loombridgev1.ToolDescriptor{}, `{"type":"object"}`, nil},
		{"text", text(`{ }`), `{ }`, nil},
		{"null", text(`null`), "", []string{"t.parameters_schema_json"}},
		{"an array", text(`[]`), "", []string{"t.parameters_schema_json"}},
		{"two objects", text(`{}{}`), "", []string{"t.parameters_schema_json"}},
		{"of a text", text(`{"type": "string"}`), "", []string{"t.parameters_schema_json"}},
		{"broken", text(`{"type": "objekt"}`), "", []string{"t.parameters_schema_json"}},
	} {
		got, err := schemaOf("t.", test.tool, &tools.Schemas{})
		if diff := cmp.Diff(test.fields, refusedFields(err)); diff != "" || err == nil && got != test.want {
			t.Errorf("%s: %q, fields (-want +got):\n%s", test.name, got, diff)
		}
	}
}
