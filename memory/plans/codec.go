package plans

import (
	"maps"
	"math"
	"slices"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// The fields of the stored data (memory/FORMAT.md, keyspace records).
const (
	counterPlans      = 1
	counterExecutions = 2
	counterLines      = 3

	planTimestamp  = 1
	planSymbol     = 2
	planAction     = 3
	planConfidence = 4
	planReasoning  = 5
	planHash       = 6
	planMethod     = 7
	planMetadata   = 8

	metadataKey   = 1
	metadataValue = 2

	executionTimestamp  = 1
	executionPlanHash   = 2
	executionSymbol     = 3
	executionAction     = 4
	executionConfidence = 5
	executionStatus     = 6
	executionExecuted   = 7
	executionOrderID    = 8
	executionOrderSize  = 9
	executionError      = 10

	lineTimestamp = 1
	lineKind      = 2
	lineSource    = 3
)

func (h counters) encode() []byte {
	b := wire.AppendUint(nil, counterPlans, h.plans)
	b = wire.AppendUint(b, counterExecutions, h.executions)
	return wire.AppendUint(b, counterLines, h.lines)
}

// decodeCounters reads a counters; nil is that of an unknown session.
func decodeCounters(b []byte) (h counters, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return counters{}, damaged("counters", err)
		}
		switch f.Number {
		case counterPlans:
			h.plans = f.Value
		case counterExecutions:
			h.executions = f.Value
		case counterLines:
			h.lines = f.Value
		}
	}
	return h, nil
}

func encodePlan(p Plan) []byte {
	b := make([]byte, 0, 64+len(p.Reasoning))
	b = wire.AppendInt(b, planTimestamp, p.TimestampMillis)
	b = wire.AppendText(b, planSymbol, p.Symbol)
	b = wire.AppendText(b, planAction, p.Action)
	b = appendSingle(b, planConfidence, p.Confidence)
	b = wire.AppendText(b, planReasoning, p.Reasoning)
	b = wire.AppendText(b, planHash, p.Hash)
	b = wire.AppendText(b, planMethod, p.Method)
	for _, key := range slices.Sorted(maps.Keys(p.Metadata)) {
		pair := wire.AppendText(nil, metadataKey, key)
		pair = wire.AppendText(pair, metadataValue, p.Metadata[key])
		b = wire.AppendItem(b, planMetadata, pair)
	}
	return b
}

func decodePlan(b []byte) (p Plan, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return Plan{}, damaged("plan", err)
		}
		switch f.Number {
		case planTimestamp:
			p.TimestampMillis = f.Int()
		case planSymbol:
			p.Symbol = string(f.Bytes)
		case planAction:
			p.Action = string(f.Bytes)
		case planConfidence:
			p.Confidence = single(f)
		case planReasoning:
			p.Reasoning = string(f.Bytes)
		case planHash:
			p.Hash = string(f.Bytes)
		case planMethod:
			p.Method = string(f.Bytes)
		case planMetadata:
			if err := p.decodeMetadata(f.Bytes); err != nil {
				return Plan{}, err
			}
		}
	}
	return p, nil
}

func (p *Plan) decodeMetadata(b []byte) error {
	var key, value string
	for f, err := range wire.Fields(b) {
		if err != nil {
			return damaged("metadata of a plan", err)
		}
		switch f.Number {
		case metadataKey:
			key = string(f.Bytes)
		case metadataValue:
			value = string(f.Bytes)
		}
	}
	if p.Metadata == nil {
		p.Metadata = make(map[string]string)
	}
	p.Metadata[key] = value
	return nil
}

func encodeExecution(e Execution) []byte {
	b := make([]byte, 0, 96+len(e.ErrorMessage))
	b = wire.AppendInt(b, executionTimestamp, e.TimestampMillis)
	b = wire.AppendText(b, executionPlanHash, e.PlanHash)
	b = wire.AppendText(b, executionSymbol, e.Symbol)
	b = wire.AppendText(b, executionAction, e.Action)
	b = appendSingle(b, executionConfidence, e.Confidence)
	b = wire.AppendText(b, executionStatus, e.Status)
	if e.Executed {
		b = wire.AppendUint(b, executionExecuted, 1)
	}
	b = wire.AppendText(b, executionOrderID, e.OrderID)
	b = appendSingle(b, executionOrderSize, e.OrderSizeUSDT)
	return wire.AppendText(b, executionError, e.ErrorMessage)
}

func decodeExecution(b []byte) (e Execution, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return Execution{}, damaged("execution", err)
		}
		switch f.Number {
		case executionTimestamp:
			e.TimestampMillis = f.Int()
		case executionPlanHash:
			e.PlanHash = string(f.Bytes)
		case executionSymbol:
			e.Symbol = string(f.Bytes)
		case executionAction:
			e.Action = string(f.Bytes)
		case executionConfidence:
			e.Confidence = single(f)
		case executionStatus:
			e.Status = string(f.Bytes)
		case executionExecuted:
			e.Executed = f.Value != 0
		case executionOrderID:
			e.OrderID = string(f.Bytes)
		case executionOrderSize:
			e.OrderSizeUSDT = single(f)
		case executionError:
			e.ErrorMessage = string(f.Bytes)
		}
	}
	return e, nil
}

func encodeLine(l line) []byte {
	b := wire.AppendInt(nil, lineTimestamp, l.timestampMillis)
	b = wire.AppendText(b, lineKind, l.kind)
	return wire.AppendText(b, lineSource, l.source)
}

func decodeLine(b []byte) (l line, err error) {
	for f, err := range wire.Fields(b) {
		if err != nil {
			return line{}, damaged("line", err)
		}
		switch f.Number {
		case lineTimestamp:
			l.timestampMillis = f.Int()
		case lineKind:
			l.kind = string(f.Bytes)
		case lineSource:
			l.source = string(f.Bytes)
		}
	}
	return l, nil
}

// appendSingle appends the bits of a float, so that each comes back as it was.
func appendSingle(b []byte, number int, value float32) []byte {
	return wire.AppendUint(b, number, uint64(math.Float32bits(value)))
}

func single(f wire.Field) float32 { return math.Float32frombits(uint32(f.Value)) }
