package egress

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/bridge/secret"
)

// Limits of the value of a secret. A shorter one could not be distinguished from other text in
// answers.
const (
	MinSecretBytes = secret.MinBytes
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

// secretsFor returns the secrets of the rules that allow a request.
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

// maskOf finds the values of secrets in answers.
func maskOf(secrets []sealed) *secret.Mask {
	values := map[string]string{}
	for _, s := range secrets {
		values["secret "+s.Env+" "+s.Header] = s.Value
	}
	return secret.New(values)
}

// maskHeader puts stars in the place of the values in a header; a field whose name holds one
// is left out.
func maskHeader(h http.Header, by *secret.Mask) {
	for name, values := range h {
		if by.In(name) {
			delete(h, name)
			continue
		}
		for i, v := range values {
			values[i] = by.Text(v)
		}
	}
}

// maskedBody is a body without the values.
type maskedBody struct {
	io.Reader
	io.Closer
}
