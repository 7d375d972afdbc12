package segment

import (
	"encoding/binary"
	"fmt"
)

// EncodeCount packs how many live documents a session has.
func EncodeCount(documents uint64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, Format), documents)
}

// DecodeCount reads what EncodeCount wrote; nil is zero.
func DecodeCount(b []byte) (uint64, error) {
	if b == nil {
		return 0, nil
	}
	p := parser{bytes: b}
	if err := p.format(); err != nil {
		return 0, fmt.Errorf("%w: count of a session", err)
	}
	documents := p.uint()
	if p.bad || !p.done() || documents == 0 || documents > 1<<32 {
		return 0, fmt.Errorf("%w: count of a session", ErrDamaged)
	}
	return documents, nil
}
