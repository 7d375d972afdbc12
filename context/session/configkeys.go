package session

import (
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Limits of the keys of a Config.
const (
	// MaxKept bounds how many steps, messages or turns a key may name.
	MaxKept = 10_000
	// MaxTriggerTokens bounds the tokens that start a compaction.
	MaxTriggerTokens = 1_000_000
	// MaxSummaryTokens bounds a summary: what is stored with each boundary.
	MaxSummaryTokens = 10_000
	// MaxSummaryTimeout bounds how long a prompt waits for a summary.
	MaxSummaryTimeout = time.Minute
)

func checkKeys(k history.Keys) (field, problem string) {
	for _, f := range []struct {
		name         string
		value, limit int
	}{
		{"style", int(k.Style), int(history.StyleGrouped)},
		{"keep_recent", k.KeepRecent, MaxKept},
		{"trigger_steps", k.TriggerSteps, MaxKept},
		{"trigger_tokens", k.TriggerTokens, MaxTriggerTokens},
		{"tool_results", int(k.Results), int(history.ResultsFull)},
		{"decay.unit", int(k.Zones.Unit), int(history.UnitTurns)},
		{"decay.full", k.Zones.Full, MaxKept},
		{"decay.fold", k.Zones.Fold, MaxKept},
		{"decay.image_turns", k.Zones.ImageTurns, MaxKept},
		{"summary.mode", int(k.Summary.Mode), int(history.SummaryCallback)},
		{"summary.max_tokens", k.Summary.MaxTokens, MaxSummaryTokens},
	} {
		if f.value < 0 || f.value > f.limit {
			return "history." + f.name, fmt.Sprintf("is %d, it must be from 0 to %d", f.value, f.limit)
		}
	}
	switch s := k.Summary; {
	case s.Timeout < 0 || s.Timeout > MaxSummaryTimeout:
		return "history.summary.timeout", fmt.Sprintf("is %s, it must be from 0s to %s", s.Timeout, MaxSummaryTimeout)
	case len(s.Tool) > MaxToolNameBytes || !utf8.ValidString(s.Tool):
		return "history.summary.tool", fmt.Sprintf("is longer than %d bytes or not UTF-8", MaxToolNameBytes)
	case s.Mode == history.SummaryCallback && s.Tool == "":
		return "history.summary.tool", "is required with the mode callback"
	}
	return "", ""
}

// Fields of stored keys.
const (
	fieldKeepRecent = iota + 1
	fieldTriggerSteps
	fieldTriggerTokens
	fieldResults
	fieldZoneUnit
	fieldZoneFull
	fieldZoneFold
	fieldImageTurns
	fieldSummaryMode
	fieldSummaryTokens
	fieldSummaryTimeout
	fieldSummaryTool
	fieldStyle
)

func encodeKeys(k history.Keys) []byte {
	var dst []byte
	dst = wire.AppendUint(dst, fieldKeepRecent, uint64(k.KeepRecent))
	dst = wire.AppendUint(dst, fieldTriggerSteps, uint64(k.TriggerSteps))
	dst = wire.AppendUint(dst, fieldTriggerTokens, uint64(k.TriggerTokens))
	dst = wire.AppendUint(dst, fieldResults, uint64(k.Results))
	dst = wire.AppendUint(dst, fieldZoneUnit, uint64(k.Zones.Unit))
	dst = wire.AppendUint(dst, fieldZoneFull, uint64(k.Zones.Full))
	dst = wire.AppendUint(dst, fieldZoneFold, uint64(k.Zones.Fold))
	dst = wire.AppendUint(dst, fieldImageTurns, uint64(k.Zones.ImageTurns))
	dst = wire.AppendUint(dst, fieldSummaryMode, uint64(k.Summary.Mode))
	dst = wire.AppendUint(dst, fieldSummaryTokens, uint64(k.Summary.MaxTokens))
	dst = wire.AppendUint(dst, fieldSummaryTimeout, uint64(k.Summary.Timeout))
	dst = wire.AppendText(dst, fieldSummaryTool, k.Summary.Tool)
	return wire.AppendUint(dst, fieldStyle, uint64(k.Style))
}

func decodeKeys(value []byte) (k history.Keys, err error) {
	for f, err := range wire.Fields(value) {
		if err != nil {
			return history.Keys{}, err
		}
		switch f.Number {
		case fieldKeepRecent:
			k.KeepRecent = count(f)
		case fieldTriggerSteps:
			k.TriggerSteps = count(f)
		case fieldTriggerTokens:
			k.TriggerTokens = count(f)
		case fieldResults:
			k.Results = history.Results(f.Value)
		case fieldZoneUnit:
			k.Zones.Unit = history.Unit(f.Value)
		case fieldZoneFull:
			k.Zones.Full = count(f)
		case fieldZoneFold:
			k.Zones.Fold = count(f)
		case fieldImageTurns:
			k.Zones.ImageTurns = count(f)
		case fieldSummaryMode:
			k.Summary.Mode = history.SummaryMode(f.Value)
		case fieldSummaryTokens:
			k.Summary.MaxTokens = count(f)
		case fieldSummaryTimeout:
			k.Summary.Timeout = time.Duration(f.Value)
		case fieldSummaryTool:
			k.Summary.Tool = string(f.Bytes)
		case fieldStyle:
			k.Style = history.Style(f.Value)
		}
	}
	return k, nil
}

// Fields of stored rules of pressure.
const (
	fieldThreshold = iota + 1
	fieldRenew
	fieldInclusive
	fieldSameContent
	fieldPreviewChars
	fieldSnipChars
	fieldReactiveChars
	fieldScoreLambda
	fieldResultFactor
	fieldNearness
)

func encodePressure(k window.Keys) []byte {
	var dst []byte
	if k.Thresholds != ([4]float64{}) {
		for _, threshold := range k.Thresholds {
			dst = wire.AppendFixed64(dst, fieldThreshold, math.Float64bits(threshold))
		}
	}
	dst = appendPrice(dst, fieldRenew, k.Renew)
	if k.Inclusive != nil {
		dst = wire.AppendNumber(dst, fieldInclusive, flag(*k.Inclusive))
	}
	if k.SameContent != nil {
		dst = wire.AppendNumber(dst, fieldSameContent, flag(*k.SameContent))
	}
	if k.PreviewChars != nil {
		dst = wire.AppendNumber(dst, fieldPreviewChars, uint64(*k.PreviewChars))
	}
	dst = wire.AppendUint(dst, fieldSnipChars, uint64(k.SnipChars))
	dst = wire.AppendUint(dst, fieldReactiveChars, uint64(k.ReactiveChars))
	dst = appendPrice(dst, fieldScoreLambda, k.ScoreLambda)
	dst = appendPrice(dst, fieldResultFactor, k.ResultFactor)
	return wire.AppendUint(dst, fieldNearness, uint64(k.Nearness))
}

func decodePressure(value []byte) (k window.Keys, err error) {
	n := 0
	for f, err := range wire.Fields(value) {
		if err != nil {
			return window.Keys{}, err
		}
		switch f.Number {
		case fieldThreshold:
			if n < len(k.Thresholds) {
				k.Thresholds[n] = math.Float64frombits(f.Value)
				n++
			}
		case fieldRenew:
			k.Renew = math.Float64frombits(f.Value)
		case fieldInclusive:
			k.Inclusive = new(f.Value != 0)
		case fieldSameContent:
			k.SameContent = new(f.Value != 0)
		case fieldPreviewChars:
			k.PreviewChars = new(count(f))
		case fieldSnipChars:
			k.SnipChars = count(f)
		case fieldReactiveChars:
			k.ReactiveChars = count(f)
		case fieldScoreLambda:
			k.ScoreLambda = math.Float64frombits(f.Value)
		case fieldResultFactor:
			k.ResultFactor = math.Float64frombits(f.Value)
		case fieldNearness:
			k.Nearness = window.Nearness(f.Value)
		}
	}
	if field, _ := k.Check(); field != "" {
		return window.Keys{}, fmt.Errorf("%w: %s", ErrDamaged, field)
	}
	return k, nil
}
