package kv

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf8"
)

// OwnerKind says what an owner id names. The bytes are part of the on-disk
// format.
type OwnerKind byte

// The owner kinds.
const (
	OwnerAgent  OwnerKind = 'a' // one agent
	OwnerSpace  OwnerKind = 's' // shared memory with grants
	OwnerSystem OwnerKind = 'y' // the server's own work lists and leases
	OwnerTopic  OwnerKind = 't' // one event topic
	OwnerUser   OwnerKind = 'u' // one person, across agents
)

// Limits of a scope's parts, in bytes.
const (
	MaxTenantBytes = 128
	MaxOwnerBytes  = 256
)

// terminator ends a scope's text parts. It can't occur inside one.
const terminator = 0x00

// Scope is whose data a key holds. It is comparable and has no invalid zero
// parts: use Validate on anything that came from outside.
type Scope struct {
	Tenant string
	Kind   OwnerKind
	Owner  string
}

// AgentScope is the scope of an agent's own data.
func AgentScope(tenant, agent string) Scope { return Scope{tenant, OwnerAgent, agent} }

// Validate returns an error (ErrBadScope) unless tenant and owner are
// non-empty UTF-8 within their limits and without NUL, and the kind is known.
func (s Scope) Validate() error {
	if err := checkScopeText("tenant", s.Tenant, MaxTenantBytes); err != nil {
		return err
	}
	if err := checkScopeText("owner", s.Owner, MaxOwnerBytes); err != nil {
		return err
	}
	if !s.Kind.valid() {
		return fmt.Errorf("%w: unknown owner kind %q", ErrBadScope, byte(s.Kind))
	}
	return nil
}

func checkScopeText(what, text string, limit int) error {
	switch {
	case text == "":
		return fmt.Errorf("%w: empty %s", ErrBadScope, what)
	case len(text) > limit:
		return fmt.Errorf("%w: %s of %d bytes exceeds %d", ErrBadScope, what, len(text), limit)
	case strings.IndexByte(text, terminator) >= 0 || !utf8.ValidString(text):
		return fmt.Errorf("%w: %s holds NUL or is not UTF-8", ErrBadScope, what)
	}
	return nil
}

func (k OwnerKind) valid() bool {
	switch k {
	case OwnerAgent, OwnerSpace, OwnerSystem, OwnerTopic, OwnerUser:
		return true
	}
	return false
}

// String returns "tenant/kind/owner", for logs and errors.
func (s Scope) String() string {
	return fmt.Sprintf("%s/%c/%s", s.Tenant, s.Kind, s.Owner)
}

// AppendPrefix appends the bytes every key of the scope begins with:
// tenant 00 kind owner 00. No scope's prefix is a prefix of another's.
func (s Scope) AppendPrefix(dst []byte) []byte {
	dst = append(dst, s.Tenant...)
	dst = append(dst, terminator, byte(s.Kind))
	dst = append(dst, s.Owner...)
	return append(dst, terminator)
}

// Key returns a new key of the scope: its prefix, then tag, then the parts as
// they are. The tag distinguishes the kinds of entries in a keyspace; zero is
// reserved for engines.
func (s Scope) Key(tag byte, parts ...[]byte) []byte {
	size := len(s.Tenant) + len(s.Owner) + 4
	for _, p := range parts {
		size += len(p)
	}
	key := append(s.AppendPrefix(make([]byte, 0, size)), tag)
	for _, p := range parts {
		key = append(key, p...)
	}
	return key
}

// SplitKey takes a key apart into its scope and the rest, which begins with
// the tag and aliases key.
func SplitKey(key []byte) (Scope, []byte, error) {
	tenant, rest, ok := bytes.Cut(key, []byte{terminator})
	if !ok || len(rest) == 0 {
		return Scope{}, nil, fmt.Errorf("%w: key has no tenant", ErrBadScope)
	}
	owner, tail, ok := bytes.Cut(rest[1:], []byte{terminator})
	if !ok {
		return Scope{}, nil, fmt.Errorf("%w: key has no owner", ErrBadScope)
	}
	s := Scope{string(tenant), OwnerKind(rest[0]), string(owner)}
	if err := s.Validate(); err != nil {
		return Scope{}, nil, err
	}
	return s, tail, nil
}

// Ref is one scope in one keyspace: what a sequence belongs to.
type Ref struct {
	Keyspace Keyspace
	Scope    Scope
}

// String returns "keyspace:scope".
func (r Ref) String() string { return r.Keyspace.String() + ":" + r.Scope.String() }

// SequenceKey is the reserved key under which an engine keeps the sequence of
// a scope in a keyspace.
func SequenceKey(s Scope) []byte { return s.Key(reservedTag) }

// reservedTag is the tag of keys that belong to the engine.
const reservedTag = 0x00

// IsReserved reports whether key belongs to the engine.
func IsReserved(key []byte) bool {
	_, rest, err := SplitKey(key)
	return err == nil && len(rest) > 0 && rest[0] == reservedTag
}

// AppendEscaped appends text so that it ends unmistakably and sorts as the
// text does: 00 becomes 00 FF, the end is 00 01. Use it for key parts of
// variable length that something follows.
func AppendEscaped(dst []byte, text string) []byte {
	for i := range len(text) {
		if dst = append(dst, text[i]); text[i] == 0x00 {
			dst = append(dst, 0xff)
		}
	}
	return append(dst, 0x00, 0x01)
}

// CutEscaped reads what AppendEscaped wrote and returns the text and the rest.
func CutEscaped(key []byte) (text string, rest []byte, err error) {
	var out []byte
	for i := 0; i+1 < len(key); i++ {
		if key[i] != 0x00 {
			out = append(out, key[i])
			continue
		}
		switch key[i+1] {
		case 0x01:
			return string(out), key[i+2:], nil
		case 0xff:
			out = append(out, 0x00)
			i++
		default:
			return "", nil, ErrBadKey
		}
	}
	return "", nil, ErrBadKey
}

// After returns the first key behind every key that begins with prefix, or nil
// when there is none.
func After(prefix []byte) []byte {
	end := bytes.Clone(prefix)
	for len(end) > 0 {
		if last := len(end) - 1; end[last] < 0xff {
			end[last]++
			return end
		}
		end = end[:len(end)-1]
	}
	return nil
}
