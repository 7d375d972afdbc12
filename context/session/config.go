package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/context/window"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// The policies of a session's history.
const (
	// PolicyLedger folds what is old in batches, when that pays.
	PolicyLedger = "ledger"
	// PolicyAppendOnly never folds, and shows every result whole.
	PolicyAppendOnly = "append_only"
	// PolicyPreset goes by the fixed rules of Config.Preset.
	PolicyPreset = "preset"
)

// Limits of a Config.
const (
	// MaxModelBytes bounds a model's name.
	MaxModelBytes = 128
	// MaxPresetBytes bounds a preset's name, which stands in stored state.
	MaxPresetBytes = 64
)

// Config is how the prompts of a session are made. A zero field means the
// server's default.
type Config struct {
	// Policy is PolicyLedger, PolicyAppendOnly or PolicyPreset.
	Policy string
	// Preset is a name that history.Named knows. It goes with PolicyPreset only.
	Preset string
	// Literal lets a preset's boundary move with every step instead of in
	// batches; nil means the default.
	Literal *bool
	// Prices are those of the model; all zero means the default. Input is
	// positive otherwise.
	Prices history.Prices
	// ExpectedTurns is how many more turns the session will have.
	ExpectedTurns int
	// ResultTokens bounds what a prompt shows of one unfolded result.
	ResultTokens int
	// Model is the model for calls that name none, at most MaxModelBytes.
	Model string
	// MaxTokens is the budget of a prompt for calls that give none.
	MaxTokens int
	// Keys beat the rules of the preset, whichever that is.
	Keys history.Keys
	// Pressure are the rules of the levels of pressure, whichever preset they are of.
	Pressure window.Keys
	// Prompt says what prompts are made of; nil means the default. It is never changed.
	Prompt *settings.Prompt
}

// Over returns base with the fields that c sets. A preset goes with its policy:
// one that c sets brings PolicyPreset along, and another policy of c leaves
// base's preset behind.
func (c Config) Over(base Config) Config {
	if c.Preset != "" {
		c.Policy = cmp.Or(c.Policy, PolicyPreset)
	}
	if c.Policy != "" && c.Policy != PolicyPreset {
		base.Preset = ""
	}
	return Config{
		Policy:        cmp.Or(c.Policy, base.Policy),
		Preset:        cmp.Or(c.Preset, base.Preset),
		Literal:       cmp.Or(c.Literal, base.Literal),
		Prices:        cmp.Or(c.Prices, base.Prices),
		ExpectedTurns: cmp.Or(c.ExpectedTurns, base.ExpectedTurns),
		ResultTokens:  cmp.Or(c.ResultTokens, base.ResultTokens),
		Model:         cmp.Or(c.Model, base.Model),
		MaxTokens:     cmp.Or(c.MaxTokens, base.MaxTokens),
		Keys:          c.Keys.Over(base.Keys),
		Pressure:      c.Pressure.Over(base.Pressure),
		Prompt:        promptOver(c.Prompt, base.Prompt),
	}
}

func promptOver(own, base *settings.Prompt) *settings.Prompt {
	if own == nil || base == nil {
		return cmp.Or(own, base)
	}
	both := own.Over(*base)
	return &both
}

// Check returns an *invalid.Error that names the first field that breaks a rule,
// or nil. Configure calls it; call it on settings that are for one call only.
func (c Config) Check() error {
	field, problem := c.check()
	switch {
	case problem != "":
		return invalid.Field(ErrInvalid, field, "%s", problem)
	case c.Prompt != nil:
		return c.Prompt.Check("prompt")
	}
	return nil
}

func (c Config) check() (field, problem string) {
	_, known := history.Named(c.Preset)
	switch {
	case c.Policy != "" && c.Policy != PolicyLedger && c.Policy != PolicyAppendOnly && c.Policy != PolicyPreset:
		return "history.policy", "is not a policy; give ledger, append_only or preset"
	case c.Preset != "" && !known:
		return "history.preset", "is not a preset; give " + history.Names()
	case c.Preset != "" && c.Policy != "" && c.Policy != PolicyPreset:
		return "history.preset", "needs the policy preset, or none"
	case c.Policy == PolicyPreset && c.Preset == "":
		return "history.preset", "is required with the policy preset"
	case !validPrices(c.Prices):
		return "history.prices", "must be numbers from 0 up, and that of input positive"
	case !isCount(c.ExpectedTurns):
		return "history.expected_steps", "is negative or too large"
	case !isCount(c.ResultTokens):
		return "history.max_result_tokens", "is negative or too large"
	case len(c.Model) > MaxModelBytes || !utf8.ValidString(c.Model):
		return "model", fmt.Sprintf("is longer than %d bytes or not UTF-8", MaxModelBytes)
	case !isCount(c.MaxTokens):
		return "max_tokens", "is negative or too large"
	}
	if field, problem := c.Pressure.Check(); problem != "" {
		return "history.pressure." + field, problem
	}
	return checkKeys(c.Keys)
}

func isCount(n int) bool { return n >= 0 && n <= maxCount }

func validPrices(p history.Prices) bool {
	for _, price := range []float64{p.Input, p.CachedInput, p.CacheWrite} {
		if !(price >= 0) || math.IsInf(price, 1) {
			return false
		}
	}
	return p.Input > 0 || p == history.Prices{}
}

// Config returns the session's settings, laid over Options.Defaults.
func (l *Log) Config(ctx context.Context, scope kv.Scope, session string) (Config, error) {
	session, err := scoped(scope, session)
	if err != nil {
		return Config{}, err
	}
	values, err := kv.Current(ctx, l.engine).Get(ctx, kv.Log, configKey(scope, session))
	if err != nil {
		return Config{}, fmt.Errorf("session: read settings: %w", err)
	}
	c, err := decodeConfig(values[0])
	return c.Over(l.defaults), err
}

// Configure gives the session the settings that change makes of those it has,
// and returns them, laid over Options.Defaults. change must be pure, because it may be called more than
// once; its error ends the call as it is. A request id makes the call safe to
// repeat: the same id and content again give the first answer and change
// nothing, other content is kv.ErrRequestReused. content is what the caller was
// asked to do, in any form. Settings that break a rule are an *invalid.Error.
func (l *Log) Configure(ctx context.Context, scope kv.Scope, session string, change func(Config) (Config, error), requestID string, content []byte) (Config, error) {
	session, err := sessionID(session)
	if err != nil {
		return Config{}, err
	}
	key := configKey(scope, session)
	var settings Config
	err = l.once(ctx, scope, requestID, requestDigest("configure", session, content), func(ctx context.Context, tx *kv.Tx) ([]byte, error) {
		values, err := tx.Get(ctx, kv.Log, key)
		if err != nil {
			return nil, err
		}
		before, err := decodeConfig(values[0])
		if err != nil {
			return nil, err
		}
		after, err := change(before)
		if err == nil {
			err = after.Check()
		}
		if err != nil {
			return nil, err
		}
		value := encodeConfig(after)
		tx.Put(kv.Log, key, value)
		return value, nil
	}, func(answer []byte) error {
		settings, err = decodeConfig(answer)
		return err
	})
	if err != nil {
		return Config{}, fmt.Errorf("session: configure: %w", err)
	}
	return settings.Over(l.defaults), nil
}

// once commits what stage writes and gives its answer to read. When the request
// was answered before, read gets that answer and nothing is staged.
func (l *Log) once(ctx context.Context, scope kv.Scope, requestID string, digest [32]byte, stage func(context.Context, *kv.Tx) ([]byte, error), read func(answer []byte) error) error {
	return l.writer.Do(ctx, kv.Request{Refs: []kv.Ref{l.Ref(scope)}, Stage: func(ctx context.Context, tx *kv.Tx) error {
		answer, replayed, err := kv.LookupOnce(ctx, tx, l.Ref(scope), requestID, digest)
		if err != nil {
			return err
		}
		if !replayed {
			if answer, err = stage(ctx, tx); err != nil {
				return err
			}
			kv.StageOnce(tx, l.Ref(scope), requestID, digest, answer, l.now())
		}
		return read(answer)
	}})
}

// requestDigest tells requests with the same id apart.
func requestDigest(method, session string, content []byte) [32]byte {
	return sha256.Sum256(append(kv.AppendEscaped(kv.AppendEscaped(nil, method), session), content...))
}

// Fields of stored settings.
const (
	fieldPolicy = iota + 1
	fieldPreset
	fieldLiteral
	fieldInputPrice
	fieldCachedPrice
	fieldWritePrice
	fieldExpectedTurns
	fieldResultTokens
	fieldModel
	fieldMaxTokens
	fieldPrompt
	fieldKeys
	fieldPressure
)

func encodeConfig(c Config) []byte {
	dst := wire.AppendText(nil, fieldPolicy, c.Policy)
	dst = wire.AppendText(dst, fieldPreset, c.Preset)
	if c.Literal != nil {
		dst = wire.AppendNumber(dst, fieldLiteral, flag(*c.Literal))
	}
	dst = appendPrice(dst, fieldInputPrice, c.Prices.Input)
	dst = appendPrice(dst, fieldCachedPrice, c.Prices.CachedInput)
	dst = appendPrice(dst, fieldWritePrice, c.Prices.CacheWrite)
	dst = wire.AppendUint(dst, fieldExpectedTurns, uint64(c.ExpectedTurns))
	dst = wire.AppendUint(dst, fieldResultTokens, uint64(c.ResultTokens))
	dst = wire.AppendText(dst, fieldModel, c.Model)
	dst = wire.AppendUint(dst, fieldMaxTokens, uint64(c.MaxTokens))
	dst = wire.AppendText(dst, fieldPrompt, settings.Encode(c.Prompt))
	if c.Keys != (history.Keys{}) {
		dst = wire.AppendItem(dst, fieldKeys, encodeKeys(c.Keys))
	}
	if c.Pressure != (window.Keys{}) {
		dst = wire.AppendItem(dst, fieldPressure, encodePressure(c.Pressure))
	}
	return dst
}

func appendPrice(dst []byte, field int, price float64) []byte {
	if price == 0 {
		return dst
	}
	return wire.AppendFixed64(dst, field, math.Float64bits(price))
}

func decodeConfig(value []byte) (Config, error) {
	var c Config
	for f, err := range wire.Fields(value) {
		if err != nil {
			return Config{}, damaged(err)
		}
		switch f.Number {
		case fieldPrompt:
			c.Prompt, err = settings.Decode(f.Bytes)
		case fieldKeys:
			c.Keys, err = decodeKeys(f.Bytes)
		case fieldPressure:
			c.Pressure, err = decodePressure(f.Bytes)
		default:
			c.set(f)
		}
		if err != nil {
			return Config{}, damaged(err)
		}
	}
	return c, nil
}

func (c *Config) set(f wire.Field) {
	switch f.Number {
	case fieldPolicy:
		c.Policy = string(f.Bytes)
	case fieldPreset:
		c.Preset = string(f.Bytes)
	case fieldLiteral:
		literal := f.Value != 0
		c.Literal = &literal
	case fieldInputPrice:
		c.Prices.Input = math.Float64frombits(f.Value)
	case fieldCachedPrice:
		c.Prices.CachedInput = math.Float64frombits(f.Value)
	case fieldWritePrice:
		c.Prices.CacheWrite = math.Float64frombits(f.Value)
	case fieldExpectedTurns:
		c.ExpectedTurns = count(f)
	case fieldResultTokens:
		c.ResultTokens = count(f)
	case fieldModel:
		c.Model = string(f.Bytes)
	case fieldMaxTokens:
		c.MaxTokens = count(f)
	}
}

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
