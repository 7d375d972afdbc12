package audit

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// secretNames are what names of arguments that hold secrets have in them, without _ and -.
var secretNames = []string{
	"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "authorization",
	"credential", "cookie", "bearer", "signature",
}

// secretTexts are the forms that secrets of well-known services have, wherever they stand:
// keys of the OpenAI and Anthropic kind, of GitHub, GitLab, Slack, AWS and Google, JSON web
// tokens, private keys in PEM, passwords in URLs and words behind Bearer, Basic or a name
// that is a secret's.
var secretTexts = regexp.MustCompile(strings.Join([]string{
	`\bsk-[A-Za-z0-9_\-]{16,}`,
	`\bgh[pousr]_[A-Za-z0-9]{20,}`,
	`\bgithub_pat_[A-Za-z0-9_]{20,}`,
	`\bglpat-[A-Za-z0-9_\-]{16,}`,
	`\bxox[abeoprs]-[A-Za-z0-9\-]{10,}`,
	`\b(?:AKIA|ASIA)[A-Z0-9]{16}\b`,
	`\bAIza[A-Za-z0-9_\-]{30,}`,
	`\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*`,
	`-----BEGIN [A-Z ]*PRIVATE KEY-----(?s:.*?)(?:-----END [A-Z ]*PRIVATE KEY-----|$)`,
	`(?i:\b(?:bearer|basic)\s+)[A-Za-z0-9+/=_.\-]{8,}`,
	`[a-z][a-z0-9+.\-]*://[^\s/:@]*:[^\s/@]+@`,
	`(?i:[a-z0-9_\-]*(?:password|passwd|passphrase|secret|token|api[_-]?key|access[_-]?key|credential)[a-z0-9_\-]*\s*[=:]\s*)["']?[^\s"'&,;]{4,}`,
}, "|"))

// maxScanned bounds the text of one value that is searched for secrets; what is behind it
// is cut, so that nothing unsearched is kept.
const maxScanned = 1 << 10

// Safe returns reduced arguments, a JSON object, as a record may hold them: with what looks
// like a secret left out, and at most MaxArgsBytes. A secret of no known form under a name
// that does not say so is kept.
func Safe(args json.RawMessage) json.RawMessage {
	if len(args) <= len("{}") || args[0] != '{' {
		return nil
	}
	if plain(args) {
		return args
	}
	values, err := decodeObject(args)
	if err != nil {
		return nil
	}
	safe := safeObject(values)
	if out := text.CanonicalJSON(safe); len(out) <= MaxArgsBytes {
		return out
	}
	return keysOf(safe)
}

// plain tells whether arguments can be kept as they are: short, and without anything
// that a secret, or its name, would have.
func plain(args json.RawMessage) bool {
	if len(args) > maxScanned {
		return false
	}
	low := strings.ToLower(string(args))
	names := squeeze(low)
	return !slices.ContainsFunc(secretNames, func(name string) bool { return strings.Contains(names, name) }) &&
		!slices.ContainsFunc(secretSigns, func(sign string) bool { return strings.Contains(low, sign) })
}

// secretSigns are in every text that secretTexts finds, unless a name of secretNames is, in
// lower case. Text with a backslash is not as it looks.
var secretSigns = []string{
	`\`, "sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "akia", "asia", "aiza", "eyj",
	"private key", "bearer", "basic", "@",
}

func decodeObject(args json.RawMessage) (map[string]any, error) {
	var values map[string]any
	d := json.NewDecoder(strings.NewReader(string(args)))
	d.UseNumber()
	return values, d.Decode(&values)
}

// squeeze is a name, or a text, in lower case and without _ and -.
func squeeze(s string) string {
	return joints.Replace(strings.ToLower(s))
}

var joints = strings.NewReplacer("_", "", "-", "")

func safeObject(values map[string]any) map[string]any {
	out := make(map[string]any, len(values))
	for key, value := range values {
		low := squeeze(key)
		if slices.ContainsFunc(secretNames, func(name string) bool { return strings.Contains(low, name) }) {
			value = redacted
		} else {
			value = safeValue(value)
		}
		out[safeText(key)] = value
	}
	return out
}

func safeValue(value any) any {
	switch v := value.(type) {
	case string:
		return safeText(v)
	case map[string]any:
		return safeObject(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = safeValue(v[i])
			// Arguments of commands: what follows an option such as --token.
			if before, ok := item(v, i-1); ok && strings.HasPrefix(before, "-") && !strings.Contains(before, "=") &&
				slices.ContainsFunc(secretNames, func(name string) bool { return strings.Contains(squeeze(before), name) }) {
				out[i] = redacted
			}
		}
		return out
	}
	return value
}

// item is the text at a place of a list.
func item(list []any, i int) (string, bool) {
	if i < 0 {
		return "", false
	}
	s, ok := list[i].(string)
	return s, ok
}

func safeText(s string) string {
	cut := text.Head(s, maxScanned)
	return secretTexts.ReplaceAllString(cut, redacted)
}

// keysOf keeps the names of arguments that are too long.
func keysOf(values map[string]any) json.RawMessage {
	names := make([]string, 0, len(values))
	size := 0
	for name := range values {
		if size += len(name) + 16; size > MaxArgsBytes {
			break
		}
		names = append(names, name)
	}
	slices.Sort(names)
	out := make(map[string]any, len(names))
	for _, name := range names {
		out[name] = "[too long]"
	}
	return text.CanonicalJSON(out)
}
