package settings

import (
	"encoding/json"
	"fmt"
)

// Encode is the settings as they are stored: JSON, so that later versions may add fields
// and earlier ones pass over them.
func Encode(p *Prompt) []byte {
	if p == nil {
		return nil
	}
	// Everything in it can be written as JSON once it was checked.
	out, _ := json.Marshal(p)
	return out
}

// Decode reads what Encode wrote; nil for nothing.
func Decode(value []byte) (*Prompt, error) {
	if len(value) == 0 {
		return nil, nil
	}
	p := new(Prompt)
	if err := json.Unmarshal(value, p); err != nil {
		return nil, fmt.Errorf("settings: decode: %w", err)
	}
	return p, nil
}
