package mesh

import (
	"bytes"
	"encoding/gob"
	"fmt"
)

// Encode returns a value as bridges send it to each other: its exported fields. It panics on a
// type that gob has no form for.
func Encode(v any) []byte {
	var b bytes.Buffer
	if err := gob.NewEncoder(&b).Encode(v); err != nil {
		panic(fmt.Errorf("mesh: encode: %w", err))
	}
	return b.Bytes()
}

// Decode reads what Encode wrote. It is for what came in a frame, so from a holder of the
// secret: gob bounds what it allocates by the size of a message and no further.
func Decode[T any](b []byte) (v T, err error) {
	if err := gob.NewDecoder(bytes.NewReader(b)).Decode(&v); err != nil {
		return v, fmt.Errorf("mesh: decode: %w", err)
	}
	return v, nil
}
