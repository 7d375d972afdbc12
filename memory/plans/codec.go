package plans

import (
	"math"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
)

func (h counters) encode() []byte {
	return wire.Marshal(&storev1.PlanCounters{Plans: h.plans, Executions: h.executions, Lines: h.lines})
}

// decodeCounters reads a counters; nil is that of an unknown session.
func decodeCounters(b []byte) (counters, error) {
	var m storev1.PlanCounters
	if err := wire.Unmarshal(b, &m); err != nil {
		return counters{}, damaged("counters", err)
	}
	return counters{plans: m.Plans, executions: m.Executions, lines: m.Lines}, nil
}

func encodePlan(p Plan) []byte {
	return wire.Marshal(&storev1.Plan{
		Timestamp: p.TimestampMillis, Symbol: p.Symbol, Action: p.Action, Confidence: bits(p.Confidence),
		Reasoning: p.Reasoning, Hash: p.Hash, Method: p.Method, Metadata: wire.Pairs(p.Metadata),
	})
}

func decodePlan(b []byte) (Plan, error) {
	var m storev1.Plan
	if err := wire.Unmarshal(b, &m); err != nil {
		return Plan{}, damaged("plan", err)
	}
	return Plan{
		TimestampMillis: m.Timestamp, Symbol: m.Symbol, Action: m.Action, Confidence: single(m.Confidence),
		Reasoning: m.Reasoning, Hash: m.Hash, Method: m.Method, Metadata: wire.MapOf(m.Metadata),
	}, nil
}

func encodeExecution(e Execution) []byte {
	return wire.Marshal(&storev1.Execution{
		Timestamp: e.TimestampMillis, PlanHash: e.PlanHash, Symbol: e.Symbol, Action: e.Action, Confidence: bits(e.Confidence),
		Status: e.Status, Executed: e.Executed, OrderId: e.OrderID, SizeUsdt: bits(e.OrderSizeUSDT), Error: e.ErrorMessage,
	})
}

func decodeExecution(b []byte) (Execution, error) {
	var m storev1.Execution
	if err := wire.Unmarshal(b, &m); err != nil {
		return Execution{}, damaged("execution", err)
	}
	return Execution{
		TimestampMillis: m.Timestamp, PlanHash: m.PlanHash, Symbol: m.Symbol, Action: m.Action, Confidence: single(m.Confidence),
		Status: m.Status, Executed: m.Executed, OrderID: m.OrderId, OrderSizeUSDT: single(m.SizeUsdt), ErrorMessage: m.Error,
	}, nil
}

func encodeLine(l line) []byte {
	return wire.Marshal(&storev1.PlanLine{Timestamp: l.timestampMillis, Type: l.kind, Source: l.source})
}

func decodeLine(b []byte) (line, error) {
	var m storev1.PlanLine
	if err := wire.Unmarshal(b, &m); err != nil {
		return line{}, damaged("line", err)
	}
	return line{timestampMillis: m.Timestamp, kind: m.Type, source: m.Source}, nil
}

// bits returns the bits of a float, so that every value round-trips exactly.
func bits(value float32) uint64 { return uint64(math.Float32bits(value)) }

func single(bits uint64) float32 { return math.Float32frombits(uint32(bits)) }
