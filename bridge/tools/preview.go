package tools

import "context"

// MaxPreviewBytes bounds what a person is shown of one call. Nobody reads more, and nothing is
// left out of it: a call with more is refused.
const MaxPreviewBytes = 256 << 10

// TooLong is the refusal of a call of which a person would have to read too much.
func TooLong(what string, size int64) *Error {
	return Errorf(TooLarge, "Permission denied: too long to show: %s has %d bytes, and a person who approves a call must see all of it, at most %d bytes; make it smaller, do it in several calls, or ask the operator to allow it without approval",
		what, size, MaxPreviewBytes)
}

// PreviewPart is something that a call will use, whole, as a person sees it before it is allowed.
type PreviewPart struct {
	// Name says what it is, such as "command" or "file scripts/build.sh".
	Name string
	// Content is all of it, byte for byte.
	Content []byte
}

// Preview says what a call would use in addition to its arguments: what it would start, the files
// that it would run, where its paths lead. It changes nothing. An *Error says that the call
// would fail, or that it can't be shown.
type Preview func(ctx context.Context, in Input) ([]PreviewPart, error)

// PartNamed returns the content of a part; false if there is no such part.
func PartNamed(parts []PreviewPart, name string) ([]byte, bool) {
	for _, p := range parts {
		if p.Name == name {
			return p.Content, true
		}
	}
	return nil, false
}
