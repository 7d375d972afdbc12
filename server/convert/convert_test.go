package convert

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/loom-bridge/loom-bridge/bridge/erasure/live"
	"github.com/loom-bridge/loom-bridge/bridge/tools"
	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/session"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/step"
	"github.com/loom-bridge/loom-bridge/context/working"
	"github.com/loom-bridge/loom-bridge/memory/question"
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
	for number, name := range []string{"succeeded", "failed", "unknown"} {
		if got := loombridgev1.StepOutcome(number + 1); nameOf(got) != name || step.Outcome(number).String() != name { //nolint:gosec // of three
			t.Errorf("%s became %s", name, got)
		}
	}
	for tier := blob.Working; tier <= blob.LongTerm; tier++ {
		if got := loombridgev1.BlobTier(tier + 1); nameOf(got) != tier.String() || BlobTier(got) != tier {
			t.Errorf("%s became %s", tier, got)
		}
	}
	for reason := history.ByPrice; reason <= history.ByCaller; reason++ {
		if got := loombridgev1.FoldReason(reason); nameOf(got) != reason.String() {
			t.Errorf("%s became %s", reason, got)
		}
	}
	for status, want := range map[working.Status]loombridgev1.PlanStatus{
		working.Pending: loombridgev1.PlanStatus_PLAN_STATUS_PENDING, working.InProgress: loombridgev1.PlanStatus_PLAN_STATUS_IN_PROGRESS,
		working.Done: loombridgev1.PlanStatus_PLAN_STATUS_DONE, working.Failed: loombridgev1.PlanStatus_PLAN_STATUS_FAILED,
	} {
		if got := loombridgev1.PlanStatus(status + 1); got != want || shifted[working.Status](want) != status {
			t.Errorf("%d became %s", status, got)
		}
	}
	for mode, want := range map[question.Mode]loombridgev1.QueryMode{
		question.Hybrid: loombridgev1.QueryMode_QUERY_MODE_HYBRID, question.Lexical: loombridgev1.QueryMode_QUERY_MODE_LEXICAL, question.Vector: loombridgev1.QueryMode_QUERY_MODE_VECTOR,
	} {
		if shifted[question.Mode](want) != mode || shifted[question.Mode](loombridgev1.QueryMode_QUERY_MODE_UNSPECIFIED) != question.Hybrid {
			t.Errorf("%s became %d", want, shifted[question.Mode](want))
		}
	}
	for style, want := range map[history.Style]loombridgev1.HistoryStyle{
		history.StyleDesign: loombridgev1.HistoryStyle_HISTORY_STYLE_DESIGN, history.StyleReduction: loombridgev1.HistoryStyle_HISTORY_STYLE_REDUCTION,
		history.StyleGrouped: loombridgev1.HistoryStyle_HISTORY_STYLE_GROUPED,
	} {
		if history.Style(want) != style { //nolint:gosec // of three
			t.Errorf("%s became %d", want, style)
		}
	}
	texts := map[string]protoreflect.Enum{
		session.PolicyLedger: loombridgev1.HistoryPolicy_HISTORY_POLICY_LEDGER, session.PolicyAppendOnly: loombridgev1.HistoryPolicy_HISTORY_POLICY_APPEND_ONLY,
		session.PolicyPreset: loombridgev1.HistoryPolicy_HISTORY_POLICY_PRESET, string(settings.AsParameter): loombridgev1.ToolRendering_TOOL_RENDERING_PARAMETER,
		string(settings.AsText): loombridgev1.ToolRendering_TOOL_RENDERING_TEXT, string(settings.Append): loombridgev1.RuntimePosition_RUNTIME_POSITION_APPEND,
		string(settings.Prepend): loombridgev1.RuntimePosition_RUNTIME_POSITION_PREPEND, string(live.Waiting): loombridgev1.EraseStep_ERASE_STEP_WAITING,
		string(live.Counting): loombridgev1.EraseStep_ERASE_STEP_COUNTING, string(live.Erasing): loombridgev1.EraseStep_ERASE_STEP_ERASING,
		string(live.Checking): loombridgev1.EraseStep_ERASE_STEP_CHECKING, string(live.Reclaiming): loombridgev1.EraseStep_ERASE_STEP_RECLAIMING,
	}
	for _, layout := range settings.Layouts() {
		texts[string(layout)] = enumOf[loombridgev1.PromptLayout](string(layout))
	}
	for name, value := range texts {
		if nameOf(value) != name {
			t.Errorf("%s is %v", name, value)
		}
	}
	for _, code := range []tools.Code{tools.NotFound, tools.PermissionDenied, tools.TooLarge, tools.Timeout, tools.Failed, tools.OutcomeUnknown, tools.InvalidArguments, tools.Refused, tools.ProviderAway} {
		if got := errorCodeOf(code); strings.ToUpper(nameOf(got)) != string(code) {
			t.Errorf("%s became %s", code, got)
		}
	}
	if errorCodeOf("") != 0 || errorCodeOf("OTHER") != loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_FAILED {
		t.Error("none, or another one, is a code")
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
