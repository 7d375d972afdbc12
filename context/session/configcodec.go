package session

import (
	"math"

	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

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
	return wire.AppendUint(dst, fieldMaxTokens, uint64(c.MaxTokens))
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
		c.set(f)
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
