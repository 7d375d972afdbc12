package inject

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// ErrInvalid: an injection of a caller breaks a rule. Such errors are *invalid.Error.
var ErrInvalid = errors.New("inject: invalid input")

// Limits of a caller's injections.
const (
	// MaxInjections bounds those of one prompt.
	MaxInjections = 64
	// MaxNameBytes bounds a name or a tag.
	MaxNameBytes = 64
	// MaxTextBytes bounds the text of one, MaxTotalBytes that of all together.
	MaxTextBytes  = 256 << 10
	MaxTotalBytes = 1 << 20
	// MaxCap bounds a cap, in tokens.
	MaxCap = 10_000_000
)

// Check returns an *invalid.Error that names the first field of a caller's injections
// that breaks a rule, as `injections[2].tag`; nil where all are well.
func Check(all []Injection) error {
	if len(all) > MaxInjections {
		return invalid.Field(ErrInvalid, "injections", "are %d, more than %d", len(all), MaxInjections)
	}
	total := 0
	names := make(map[string]bool, len(all))
	for i := range all {
		in := &all[i]
		field, problem := in.check()
		if problem == "" && names[in.Name] {
			field, problem = "name", fmt.Sprintf("is %q, as that of another one", in.Name)
		}
		if problem != "" {
			return invalid.Field(ErrInvalid, fmt.Sprintf("injections[%d].%s", i, field), "%s", problem)
		}
		names[in.Name] = true
		if total += len(in.Text); total > MaxTotalBytes {
			return invalid.Field(ErrInvalid, "injections", "hold more than %d bytes of text", MaxTotalBytes)
		}
	}
	return nil
}

func (in *Injection) check() (field, problem string) {
	_, builtIn := DefaultCap(in.Name)
	switch {
	case !isName(in.Name):
		return "name", fmt.Sprintf("must be 1 to %d of the characters a-z, 0-9, _ and -, the first a letter", MaxNameBytes)
	case builtIn || in.Name == NameStamps:
		return "name", fmt.Sprintf("is %q, which the server's own injection has", in.Name)
	case in.Phase < System || in.Phase > Runtime:
		return "phase", "is required"
	case in.Cache > Dynamic:
		return "cache", "is no cache class"
	case in.Priority < 0 || in.Priority > MaxPriority:
		return "priority", fmt.Sprintf("must be 0 to %d", MaxPriority)
	case in.MaxTokens < 0 || in.MaxTokens > MaxCap:
		return "max_tokens", fmt.Sprintf("must be 0 to %d", MaxCap)
	case in.Tag != "" && !isName(in.Tag):
		return "xml_tag", fmt.Sprintf("must be at most %d of the characters a-z, 0-9, _ and -, the first a letter", MaxNameBytes)
	case len(in.Text) > MaxTextBytes:
		return "content", fmt.Sprintf("is longer than %d bytes", MaxTextBytes)
	case !utf8.ValidString(in.Text):
		return "content", "is not UTF-8"
	}
	return "", ""
}

// isName tells whether s names an injection or a tag.
func isName(s string) bool {
	for i := range len(s) {
		letter := 'a' <= s[i] && s[i] <= 'z'
		if !letter && (i == 0 || !isNameByte(s[i])) {
			return false
		}
	}
	return s != "" && len(s) <= MaxNameBytes
}

// isNameByte tells whether a byte can go on a lower-case name.
func isNameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || '0' <= b && b <= '9' || b == '_' || b == '-'
}
