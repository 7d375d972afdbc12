package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// maxValue bounds the searched part of one value.
const maxValue = 64 << 10

var (
	// scheme is a word in front of a secret: "Bearer x", "token=x".
	scheme = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]{0,30})(?:[ \t]+|[ \t]*[=:][ \t]*)(\S+)$`)
	// pair is a setting of a list such as "host=x password=y".
	pair = regexp.MustCompile(`(?:^|[;\s])\s*([A-Za-z][A-Za-z _-]{0,30}?)\s*=\s*([^;\s]+)`)
)

// partsOf are the parts of a value that are secret: what stands around them in many values, as
// the word Bearer, the host of a URL or the names in a JSON document, is in other texts, too.
func partsOf(value string) (parts []string) {
	value = strings.TrimSpace(value[:min(len(value), maxValue)])
	if len(value) < MinBytes {
		return nil
	}
	defer func() {
		parts = slices.DeleteFunc(parts, func(p string) bool { return len(p) < MinBytes })
		if len(parts) == 0 && !strings.Contains(value, "://") {
			parts = []string{value}
		}
	}()
	if found, ok := partsOfJSON(value); ok {
		return found
	}
	if strings.Contains(value, "\n") {
		for line := range strings.Lines(value) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") { // that of a PEM file
				parts = append(parts, partsOf(line)...)
			}
		}
		return parts
	}
	if u, err := url.Parse(value); err == nil && u.Scheme != "" && u.Host != "" {
		return partsOfURL(u)
	}
	if found := pair.FindAllStringSubmatch(value, -1); len(found) > 1 {
		for _, p := range found {
			if secretName(p[1]) {
				parts = append(parts, p[2])
			}
		}
		return parts
	}
	if m := scheme.FindStringSubmatch(value); m != nil {
		parts = append(parts, m[2])
		if plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(m[2], "=")); err == nil && strings.EqualFold(m[1], "Basic") {
			user, password, _ := strings.Cut(string(plain), ":")
			parts = append(parts, string(plain), user, password)
		}
		return parts
	}
	if user, password, ok := strings.Cut(value, ":"); ok {
		parts = append(parts, user, password)
	}
	return append(parts, value)
}

func partsOfJSON(value string) (parts []string, ok bool) {
	if value[0] != '{' && value[0] != '[' {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader([]byte(value)))
	var decoded any
	if d.Decode(&decoded) != nil {
		return nil, false
	}
	var walk func(name string, v any)
	walk = func(name string, v any) {
		switch v := v.(type) {
		case string:
			if Likely(name, v) {
				parts = append(parts, partsOf(v)...)
			}
		case map[string]any:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				walk(name, v[name])
			}
		case []any:
			for _, one := range v {
				walk(name, one)
			}
		}
	}
	walk("", decoded)
	return parts, true
}

func partsOfURL(u *url.URL) (parts []string) {
	if u.User != nil {
		password, _ := u.User.Password()
		parts = append(parts, password)
		if name := u.User.Username(); password == "" || random(name) { // else it is who somebody is
			parts = append(parts, name)
		}
	}
	for segment := range strings.SplitSeq(u.Path, "/") {
		if random(segment) {
			parts = append(parts, segment)
		}
	}
	for name, values := range u.Query() {
		for _, v := range values {
			if secretName(name) || random(v) {
				parts = append(parts, v)
			}
		}
	}
	return parts
}

// Likely reports whether the value of a variable, a header or a field is a secret: it is, unless
// its name or its form says that it is none.
func Likely(name, value string) bool {
	switch {
	case len(value) < MinBytes:
		return false
	case secretName(name):
		return true
	case ordinaryName(name):
		return false
	}
	u, err := url.Parse(value)
	switch {
	case err == nil && u.Scheme != "" && u.Host != "":
		return len(partsOfURL(u)) > 0
	case strings.HasPrefix(value, "/") || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~/"):
		return false // a path
	}
	return !plainWord(value) && strings.ContainsFunc(value, func(r rune) bool { return r > '9' }) // no number, date or version
}

// Certain is Likely for what is a secret by its name, or looks as if a machine had chosen it,
// such as an argument of a program or the address of a server.
func Certain(name, value string) bool {
	if u, err := url.Parse(value); err == nil && u.Scheme != "" && u.Host != "" {
		return len(partsOfURL(u)) > 0
	}
	return len(value) >= MinBytes && (secretName(name) || random(value) && !strings.Contains(value, "/"))
}

// secretWords are in the names of secrets, in lower case and without _ and -.
var secretWords = []string{"key", "token", "secret", "passw", "pwd", "passphrase", "auth", "cred", "cookie", "signature", "session", "private", "jwt", "bearer", "canary", "pat"}

func secretName(name string) bool {
	name = strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
	return slices.ContainsFunc(secretWords, func(word string) bool {
		if word == "pat" { // of GITHUB_PAT, not of PATH
			return strings.HasSuffix(name, word)
		}
		return strings.Contains(name, word)
	})
}

var (
	// ordinaryNames are names of variables and headers without secrets, in lower case.
	ordinaryNames = []string{
		"path", "home", "user", "username", "logname", "shell", "term", "pwd", "lang", "language", "tz", "editor", "pager", "tmpdir", "display", "hostname", "debug",
		"accept", "accept-encoding", "accept-language", "cache-control", "connection", "content-type", "host", "origin", "referer", "user-agent", "mcp-protocol-version",
	}
	// ordinaryEnds are the last words of such names.
	ordinaryEnds = []string{
		"dir", "directory", "file", "folder", "path", "root", "env", "environment", "level", "mode", "host", "port", "region", "zone", "locale", "encoding",
		"version", "model", "options", "opts", "flags", "timeout", "format", "type",
	}
)

func ordinaryName(name string) bool {
	name = strings.ToLower(name)
	last := name[strings.LastIndexAny(name, "_-")+1:]
	return strings.HasPrefix(name, "lc_") || slices.Contains(ordinaryNames, name) || slices.Contains(ordinaryEnds, last)
}

// randomRun is how many letters and digits in a row, of both, are not written by hand.
const randomRun = 16

// random reports whether a text looks as if a machine had chosen it.
func random(text string) bool {
	for run := range strings.FieldsFuncSeq(text, func(r rune) bool { return r > 0x7f || !alphanumeric(byte(r)) }) {
		if len(run) >= randomRun && strings.ContainsAny(run, "0123456789") && strings.ContainsFunc(run, func(r rune) bool { return r > '9' }) {
			return true
		}
	}
	return false
}

func alphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z'
}

// longWord is more letters than a word has.
const longWord = 15

// plainWord reports whether a text is an ordinary word: letters alone, in one case but for the
// first.
func plainWord(text string) bool {
	if len(text) >= longWord || len(text) < 2 {
		return false
	}
	for i := range len(text) {
		if c := lower(text[i]); c < 'a' || c > 'z' || i > 1 && (text[i] == c) != (text[i-1] == lower(text[i-1])) {
			return false
		}
	}
	return text[1] == lower(text[1]) || text[0] != lower(text[0])
}

// words are the ordinary words of a part.
type words []span

// wordsOf returns the words of a part that also contains other text.
func wordsOf(part string) (found words) {
	for from := 0; from < len(part); {
		to := from
		for to < len(part) && alphanumeric(part[to]) {
			to++
		}
		if plainWord(part[from:to]) {
			found = append(found, span{from, to})
		}
		from = to + 1
	}
	if len(found) == 1 && found[0] == (span{0, len(part)}) {
		return nil
	}
	return found
}

func (w words) hold(from, to int) bool {
	return slices.ContainsFunc(w, func(s span) bool { return s.from <= from && to <= s.to })
}

// few reports whether a text has at most two different letters, as a line of dashes.
func few(text string) bool {
	first := text[0]
	rest := strings.Trim(text, string(first))
	return rest == "" || strings.Trim(text, string(first)+string(rest[0])) == "" && strings.Count(text, string(first))+strings.Count(text, string(rest[0])) == len(text)
}
