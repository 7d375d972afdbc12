package text

import "unsafe"

// OfBytes returns bytes as a text that shares their memory. They must not be changed any more.
func OfBytes(data []byte) string {
	return unsafe.String(unsafe.SliceData(data), len(data)) //nolint:gosec // a result of a megabyte would be copied five times
}

// Bytes returns the bytes of a text, which share its memory and must not be changed. They are
// never nil.
func Bytes(s string) []byte {
	if s == "" {
		return []byte{}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s)) //nolint:gosec // as above
}
