package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/history"
	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv"
	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
	storev1 "github.com/loom-bridge/loom-bridge/proto/gen/store/v1"
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
	// Prices are the prices of the model; all zero means the default. Input is positive
	// otherwise.
	Prices history.Prices
	// ExpectedTurns is how many more turns the session will have.
	ExpectedTurns int
	// ResultTokens bounds what a prompt shows of one unfolded result.
	ResultTokens int
	// Model is the model for calls that name none, at most MaxModelBytes.
	Model string
	// MaxTokens is the budget of a prompt for calls that give none.
	MaxTokens int
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
		return "history.preset", "needs the policy preset or no policy"
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
	return "", ""
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
	value, err := kv.GetOnce(ctx, l.engine, kv.Log, configKey(scope, session))
	if err != nil {
		return Config{}, fmt.Errorf("session: read settings: %w", err)
	}
	c, err := decodeConfig(value)
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
		given := storedConfig(after)
		given.Time = wire.Micros(l.now())
		value := wire.Marshal(given)
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

// requestDigest distinguishes requests with the same id.
func requestDigest(method, session string, content []byte) [32]byte {
	return sha256.Sum256(append(kv.AppendEscaped(kv.AppendEscaped(nil, method), session), content...))
}

func encodeConfig(c Config) []byte { return wire.Marshal(storedConfig(c)) }

func storedConfig(c Config) *storev1.SessionSettings {
	return &storev1.SessionSettings{
		Policy: c.Policy, Preset: c.Preset, Literal: c.Literal,
		// No price is a negative zero.
		Price: c.Prices.Input + 0, CachedPrice: c.Prices.CachedInput + 0, WritePrice: c.Prices.CacheWrite + 0,
		ExpectedTurns: uint64(c.ExpectedTurns), ResultTokens: uint64(c.ResultTokens), Model: c.Model, Budget: uint64(c.MaxTokens),
		Prompt: settings.Encode(c.Prompt),
	}
}

func decodeConfig(value []byte) (Config, error) {
	var m storev1.SessionSettings
	if err := wire.Unmarshal(value, &m); err != nil {
		return Config{}, damaged(err)
	}
	prompt, err := settings.Decode(m.Prompt)
	if err != nil {
		return Config{}, damaged(err)
	}
	return Config{
		Policy: m.Policy, Preset: m.Preset, Literal: m.Literal,
		Prices:        history.Prices{Input: m.Price, CachedInput: m.CachedPrice, CacheWrite: m.WritePrice},
		ExpectedTurns: count(m.ExpectedTurns), ResultTokens: count(m.ResultTokens), Model: m.Model, MaxTokens: count(m.Budget),
		Prompt: prompt,
	}, nil
}
