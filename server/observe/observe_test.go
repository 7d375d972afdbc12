package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/loom-bridge/loom-bridge/context/assemble/fold"
	loomv1pb "github.com/loom-bridge/loom-bridge/proto/gen/loom/v1"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// failure is an error with a reason.
func failure(t *testing.T, code codes.Code, reason loombridgev1.ErrorReason, hidden bool) error {
	t.Helper()
	s, err := status.New(code, "refused").WithDetails(&errdetails.ErrorInfo{Reason: ReasonName(reason)})
	if err != nil {
		t.Fatal(err)
	}
	return &CallError{Status: s, Cause: errors.New("the cause"), Hidden: hidden}
}

// observer is one with everything, and what it has counted and logged.
type observer struct {
	Observer
	registry *prometheus.Registry
	log      bytes.Buffer
}

func newObserver(level slog.Level) *observer {
	o := &observer{registry: prometheus.NewRegistry()}
	o.Observer = Observer{
		Log: slog.New(slog.NewJSONHandler(&o.log, &slog.HandlerOptions{Level: level})), Metrics: NewMetrics(o.registry), Outcomes: &Outcomes{},
		OwnTool: func(name string) (string, bool) { return name, name == "read_file" },
	}
	return o
}

// call reports a call from its first message to its end.
func (o *observer) call(ctx context.Context, request, answer any, err error, took time.Duration) {
	r, _ := o.ServerReporter(ctx, interceptors.CallMeta{ReqOrNil: request, Typ: interceptors.Unary, Service: "s.S", Method: "M", IsClient: false})
	r.PostMsgReceive(request, nil, 0)
	if err == nil {
		r.PostMsgSend(answer, nil, 0)
	}
	r.PostCall(err, took)
}

// counted are the series of one name by their labels.
func (o *observer) counted(t *testing.T, name string) map[string]float64 {
	t.Helper()
	families, err := o.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if f.GetName() == name {
				all[strings.Join(labels, " ")] = m.GetCounter().GetValue()
			}
		}
	}
	return all
}

func same(t *testing.T, what string, got, want map[string]float64) {
	t.Helper()
	for name := range got {
		if got[name] != want[name] {
			t.Errorf("%s %q: %v, want %v", what, name, got[name], want[name])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestToolCalls: names that callers choose are no labels, and every call is counted once.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	o := newObserver(slog.LevelError)
	ask := func(name string) *loombridgev1.ToolRequest {
		return &loombridgev1.ToolRequest{Name: name, AgentId: "a"}
	}
	o.call(t.Context(), ask("read_file"), &loombridgev1.ToolResponse{Success: true}, nil, 0)
	o.call(t.Context(), ask("read_file"), &loombridgev1.ToolResponse{ErrorCode: loombridgev1.ToolErrorCode_TOOL_ERROR_CODE_TIMEOUT}, nil, 0)
	o.call(t.Context(), ask("read_file"), &loombridgev1.ToolResponse{ErrorCode: 99}, nil, 0)
	for _, name := range []string{"mine", "yours", strings.Repeat("x", 1000)} {
		o.call(t.Context(), ask(name), &loombridgev1.ToolResponse{Success: true}, nil, 0)
		o.call(t.Context(), ask(name), nil, failure(t, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND, false), 0)
	}
	o.call(t.Context(), ask("read_file"), nil, failure(t, codes.PermissionDenied, loombridgev1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND+1, false), 0)
	o.call(t.Context(), &loomv1pb.ToolCall{Name: "read_file"}, &loomv1pb.ToolResult{Status: 99}, nil, 0)
	same(t, "tool", o.counted(t, "loom_bridge_tool_calls_total"), map[string]float64{
		"ok read_file": 1, "timeout read_file": 1, "other read_file": 2, "ok agent": 3, "not_found unknown": 3, "refused read_file": 1,
	})
	want := map[string]int64{"ok": 4, "timeout": 1, "other": 2, "not_found": 3, "refused": 1}
	for outcome, n := range o.Outcomes.All() {
		if want[outcome] != n {
			t.Errorf("%s: %d, want %d", outcome, n, want[outcome])
		}
	}
	copied := o.Outcomes.All()
	copied["ok"] = 0
	if o.Outcomes.All()["ok"] != 4 || len(copied) != len(want) {
		t.Errorf("%v", o.Outcomes.All())
	}
}

// TestRefusals: errors are counted by reason, those of gRPC itself by code; a caller that goes
// away is none.
func TestRefusals(t *testing.T) {
	t.Parallel()
	o := newObserver(slog.LevelError)
	found := failure(t, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND, false)
	for _, err := range []error{found, found, status.Error(codes.Unimplemented, "x"), errors.New("x"), status.Error(codes.Canceled, "x"), nil} {
		o.call(t.Context(), &loombridgev1.GetRecordRequest{}, &loombridgev1.Record{}, err, 0)
	}
	same(t, "reason", o.counted(t, "loom_bridge_refused_total"), map[string]float64{"TOOL_NOT_FOUND": 2, "Unimplemented": 1, "Unknown": 1})
}

// TestLines: what is worth a line, at which level, and what stands in it.
func TestLines(t *testing.T) {
	t.Parallel()
	secret := &loombridgev1.MemorySaveRequest{AgentId: "agent", Text: "secret"}
	hidden := failure(t, codes.Internal, loombridgev1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND, true)
	refused := failure(t, codes.NotFound, loombridgev1.ErrorReason_ERROR_REASON_TOOL_NOT_FOUND, false)
	for name, row := range map[string]struct {
		err   error
		took  time.Duration
		level string
	}{
		"fine": {nil, 0, "DEBUG"}, "slow": {nil, slow, "WARN"}, "refused": {refused, 0, "INFO"}, "slow and refused": {refused, slow, "WARN"},
		"hidden": {hidden, slow, "ERROR"}, "canceled": {status.Error(codes.Canceled, "x"), 0, "DEBUG"},
	} {
		o := newObserver(slog.LevelDebug)
		o.call(t.Context(), secret, nil, row.err, row.took)
		var line map[string]any
		if err := json.Unmarshal(o.log.Bytes(), &line); err != nil {
			t.Fatalf("%s: %s: %v", name, o.log.Bytes(), err)
		}
		if line["level"] != row.level || line["method"] != "/s.S/M" || strings.Contains(o.log.String(), "secret") || line["agent"] != "agent" {
			t.Errorf("%s: %v", name, line)
		}
		if _, ok := line["cause"]; ok != (row.level == "ERROR") {
			t.Errorf("%s: the cause stands in it: %v", name, ok)
		}
	}
	o := newObserver(slog.LevelInfo)
	o.call(t.Context(), secret, nil, nil, 0)
	if o.log.Len() > 0 {
		t.Errorf("a line that nobody reads: %s", o.log.Bytes())
	}
}

// TestStreams: the agent of a stream is that of its first message, and a long stream is not slow.
func TestStreams(t *testing.T) {
	t.Parallel()
	o := newObserver(slog.LevelDebug)
	r, _ := o.ServerReporter(t.Context(), interceptors.CallMeta{Typ: interceptors.BidiStream, Service: "s.S", Method: "M"})
	r.PostMsgReceive(nil, errors.New("ended"), 0)
	hello := &loombridgev1.AttachRequest{Item: &loombridgev1.AttachRequest_Hello{Hello: &loombridgev1.AttachHello{AgentId: "first"}}}
	r.PostMsgReceive(hello, nil, 0)
	r.PostMsgReceive(&loombridgev1.GetRecordRequest{AgentId: "second"}, nil, 0)
	r.PostMsgSend(&loombridgev1.ToolResponse{Success: true}, nil, 0)
	r.PostCall(nil, time.Hour)
	if line := o.log.String(); !strings.Contains(line, `"agent":"first"`) || !strings.Contains(line, "DEBUG") || len(o.Outcomes.All()) > 0 {
		t.Error(line)
	}
}

func TestTraces(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	for _, row := range []struct {
		want   string
		values []string
	}{
		{"", nil},
		{id, []string{"00-" + id + "-b7ad6b7169203331-01"}},
		{id, []string{"nothing", "00-" + id + "-b7ad6b7169203331-01-later"}},
		{"", []string{"00-" + strings.Repeat("0", 32) + "-b7ad6b7169203331-01"}},
		{"", []string{"00-" + strings.ToUpper(id) + "-b7ad6b7169203331-01", "00-" + id, " 00-" + id + "-b7ad6b7169203331-01"}},
	} {
		ctx := metadata.NewIncomingContext(t.Context(), metadata.MD{"traceparent": row.values})
		if got := traceOf(ctx); got != row.want {
			t.Errorf("%q: %q", row.values, got)
		}
	}
}

// TestNothingCounted: figures that are not collected cost nothing and break nothing.
func TestNothingCounted(t *testing.T) {
	t.Parallel()
	o := newObserver(slog.LevelError)
	o.Metrics, o.Outcomes = nil, nil
	for _, err := range []error{nil, errors.New("x")} {
		o.call(t.Context(), &loombridgev1.ToolRequest{}, &loombridgev1.ToolResponse{}, err, 0)
		o.call(t.Context(), nil, nil, err, 0)
	}
	o.Metrics.Folded(&fold.Batch{})
	o.Metrics.Asked(1, 1)
	o.Metrics.Interrupted()
	if o.Outcomes.All() != nil || AgentOf(nil) != "" || AgentOf(7) != "" {
		t.Error("something is counted")
	}
}

func TestCallError(t *testing.T) {
	t.Parallel()
	cause := errors.New("the cause")
	err := error(&CallError{Status: status.New(codes.NotFound, "shown"), Cause: cause})
	if !errors.Is(err, cause) || status.Code(err) != codes.NotFound || status.Convert(err).Message() != "shown" || err.Error() != "the cause" {
		t.Error(err)
	}
}
