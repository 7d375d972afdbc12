package session

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/settings"
	"github.com/loom-bridge/loom-bridge/memory/kv/wire"
)

// Settings that an earlier server stored are read without the rules that are fixed now.
func TestStoredRulesArePassedOver(t *testing.T) {
	value := encodeConfig(Config{Policy: PolicyPreset, Preset: "three_phase", MaxTokens: 7})
	value = wire.AppendText(value, 11, []byte(`{"layout":"react","working_position":"end","sources":{"errors":3},"limits":{"total":9,"profile":"react_8k"},"cache":{"session_ttl":5}}`))
	for _, number := range []int{12, 13} {
		value = wire.AppendItem(value, number, wire.AppendUint(nil, 6, 9))
	}
	got, err := decodeConfig(value)
	want := Config{
		Policy: PolicyPreset, Preset: "three_phase", MaxTokens: 7,
		Prompt: &settings.Prompt{Layout: settings.ReAct, Limits: settings.Limits{Total: 9}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}
