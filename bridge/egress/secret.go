package egress

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// Limits of the value of a secret. A shorter one could not be told from other text in
// answers.
const (
	MinSecretBytes = 8
	MaxSecretBytes = 16 << 10
)

// placeholderPrefix begins every placeholder.
const placeholderPrefix = "loomkey-"

// sealed is a secret of a session.
type sealed struct {
	Secret
	placeholder string
}

func seal(policy Policy) []sealed {
	var out []sealed
	for _, r := range policy.Rules {
		if r.Secret == nil || slices.ContainsFunc(out, func(s sealed) bool { return s.Secret == *r.Secret }) {
			continue
		}
		out = append(out, sealed{*r.Secret, placeholderPrefix + rand.Text()})
	}
	return out
}

// secretsFor are those of the rules that allow a request.
func (s *Session) secretsFor(rules []Rule) []sealed {
	var out []sealed
	for _, have := range s.secrets {
		if slices.ContainsFunc(rules, func(r Rule) bool { return r.Secret != nil && *r.Secret == have.Secret }) {
			out = append(out, have)
		}
	}
	return out
}

// inject puts values in the place of placeholders, in the header of each alone.
func inject(h http.Header, secrets []sealed) {
	for _, s := range secrets {
		if s.Value == "" {
			continue
		}
		values := h[http.CanonicalHeaderKey(s.Header)]
		for i, v := range values {
			values[i] = s.reveal(v)
		}
	}
}

// reveal puts the value in the place of the placeholder, also in the user and password of
// Basic authentication (RFC 7617).
func (s *sealed) reveal(v string) string {
	if scheme, token, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Basic") {
		if plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(token)); err == nil && bytes.Contains(plain, []byte(s.placeholder)) {
			return scheme + " " + base64.StdEncoding.EncodeToString(bytes.ReplaceAll(plain, []byte(s.placeholder), []byte(s.Value)))
		}
	}
	return strings.ReplaceAll(v, s.placeholder, s.Value)
}

// echoes are the forms in which an answer may hold the values: as they are, as a header had
// them, and as JSON, URLs, hexadecimal digits and base64 write them, also within a longer text.
func echoes(sent http.Header, secrets []sealed) [][]byte {
	var out [][]byte
	add := func(text string) {
		if len(text) >= MinSecretBytes && !slices.ContainsFunc(out, func(b []byte) bool { return string(b) == text }) {
			out = append(out, []byte(text))
		}
	}
	for _, s := range secrets {
		if s.Value == "" {
			continue
		}
		add(s.Value)
		if quoted, err := json.Marshal(s.Value); err == nil {
			add(string(quoted[1 : len(quoted)-1]))
			add(strings.ReplaceAll(string(quoted[1:len(quoted)-1]), "/", `\/`))
		}
		for _, escaped := range []string{url.QueryEscape(s.Value), url.PathEscape(s.Value)} {
			add(escaped)
			add(lowerEscapes(escaped))
		}
		add(hex.EncodeToString([]byte(s.Value)))
		add(strings.ToUpper(hex.EncodeToString([]byte(s.Value))))
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			for before := range 3 {
				add(within(encoding, before, s.Value))
			}
		}
		for _, v := range sent.Values(s.Header) {
			if scheme, token, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "Basic") {
				add(strings.TrimRight(token, "="))
			}
		}
	}
	// The longest first: a shorter one may be a part of it.
	slices.SortStableFunc(out, func(a, b []byte) int { return len(b) - len(a) })
	return out
}

// within is what base64 always has of a value that stands behind so many bytes more than a
// multiple of three: characters that hold bits of its neighbours are left out.
func within(encoding *base64.Encoding, before int, value string) string {
	text := encoding.EncodeToString(append(make([]byte, before), value...))
	return text[(before*8+5)/6 : (before+len(value))*8/6]
}

// lowerEscapes writes the digits of a URL's escapes in lower case.
func lowerEscapes(text string) string {
	out := []byte(text)
	for i := 0; i+2 < len(out); i++ {
		if out[i] == '%' {
			copy(out[i+1:i+3], bytes.ToLower(out[i+1:i+3]))
		}
	}
	return string(out)
}

// mask puts stars in the place of the patterns. The length stays.
func mask(text []byte, patterns [][]byte) {
	for _, p := range patterns {
		for at := 0; ; {
			i := bytes.Index(text[at:], p)
			if i < 0 {
				break
			}
			at += i
			for range p {
				text[at] = '*'
				at++
			}
		}
	}
}

func maskHeader(h http.Header, patterns [][]byte) {
	if len(patterns) == 0 {
		return
	}
	for name, values := range h {
		if b := []byte(name); masked(b, patterns) {
			delete(h, name)
			continue
		}
		for i, v := range values {
			b := []byte(v)
			mask(b, patterns)
			values[i] = string(b)
		}
	}
}

// masked tells whether a name holds a pattern, in any case.
func masked(name []byte, patterns [][]byte) bool {
	lower := bytes.ToLower(name)
	return slices.ContainsFunc(patterns, func(p []byte) bool { return bytes.Contains(lower, bytes.ToLower(p)) })
}

// masker is a body without the patterns. What may be the beginning of one waits for the
// bytes behind it; everything else is passed on as it comes.
type masker struct {
	from     io.ReadCloser
	patterns [][]byte
	buffer   []byte // clean bytes, then those that wait
	clean    int
	err      error
}

func newMasker(from io.ReadCloser, patterns [][]byte) io.ReadCloser {
	if len(patterns) == 0 {
		return from
	}
	return &masker{from: from, patterns: patterns}
}

const maskBlock = 32 << 10

// Read gives more of the body.
func (m *masker) Read(p []byte) (int, error) {
	for m.clean == 0 && m.err == nil {
		start := len(m.buffer)
		m.buffer = slices.Grow(m.buffer, maskBlock)[:start+maskBlock]
		n, err := m.from.Read(m.buffer[start:])
		m.buffer, m.err = m.buffer[:start+n], err
		mask(m.buffer, m.patterns)
		m.clean = len(m.buffer)
		if err == nil {
			m.clean -= m.waiting()
		}
	}
	n := copy(p, m.buffer[:m.clean])
	m.buffer, m.clean = append(m.buffer[:0], m.buffer[n:]...), m.clean-n
	if n == 0 && m.clean == 0 && m.err != nil {
		return 0, m.err
	}
	return n, nil
}

// waiting is the length of the longest end of the buffer with which a pattern begins.
func (m *masker) waiting() int {
	longest := 0
	for _, p := range m.patterns {
		for n := min(len(p)-1, len(m.buffer)); n > longest; n-- {
			if bytes.HasSuffix(m.buffer, p[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// Close closes the body.
func (m *masker) Close() error { return m.from.Close() }
