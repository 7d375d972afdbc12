package audit

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// redacted stands where a secret was.
const redacted = "[redacted]"

// secretNames are what names of arguments that hold secrets have in them, without _ and -.
var secretNames = []string{
	"password", "passwd", "passphrase", "secret", "token", "apikey", "accesskey", "privatekey", "authorization",
	"credential", "cookie", "bearer", "signature",
}

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

// plain reports whether arguments can be kept as they are: short, and without anything
// that a secret, or its name, would have.
func plain(args json.RawMessage) bool {
	if len(args) > maxScanned {
		return false
	}
	whole := string(args)
	names := squeeze(whole)
	return !slices.ContainsFunc(secretNames, func(name string) bool { return strings.Contains(names, name) }) &&
		!strings.Contains(whole, `\`) && redact.Eager().Text(whole, nil) == whole
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
		out[SafeText(key)] = value
	}
	return out
}

func safeValue(value any) any {
	switch v := value.(type) {
	case string:
		return SafeText(v)
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

// SafeText is the beginning of a text as a record may hold it, with what looks like a secret left out.
func SafeText(s string) string {
	cut := text.Head(s, maxScanned)
	return redact.Eager().Text(cut, nil)
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
