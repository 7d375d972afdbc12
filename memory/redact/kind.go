package redact

import (
	"encoding/base64"
	"math"
	"slices"
	"strings"

	"github.com/loom-bridge/loom-bridge/memory/kv/invalid"
)

// Names of groups of patterns, and of one that also goes by the name of a field.
const (
	// Secrets are all built-in patterns of keys, tokens and passwords.
	Secrets = "secrets"
	// Personal are e-mail addresses and credit card numbers.
	Personal = "personal"
	// Authorization is what stands behind Bearer or Basic, and a header that carries nothing
	// but credentials.
	Authorization = "authorization"
	// Password is what stands behind password=, token: and the like, and looks random.
	Password = "password"
)

// kind is a built-in pattern.
type kind struct {
	name, group string
	// begins are the three bytes, in any case, that stand at the place about which match is
	// asked. Or there is a single one.
	begins []string
	// textOnly patterns are not looked for in bytes that are no text: they would be found by
	// chance.
	textOnly bool
	// match reports whether there is a secret about the place i, which is where.
	match func(r *Redactor, text string, i int) (start, end int, ok bool)
}

// credentialHeaders carry nothing but credentials (RFC 9110, 11.6 and RFC 6265).
var credentialHeaders = []string{"authorization", "proxy-authorization", "cookie", "set-cookie"}

// kinds are all built-in patterns. Of two that match at one place the first one counts.
var kinds = []kind{
	{name: "anthropic_key", group: Secrets, begins: []string{"sk-"}, match: prefixed("sk-ant-", 20, dashed)},
	{name: "openai_key", group: Secrets, begins: []string{"sk-"}, match: openAIKey},
	{name: "stripe_key", group: Secrets, begins: []string{"sk_", "rk_", "whs"}, match: anyOf(
		prefixed("sk_live_", 16, word), prefixed("sk_test_", 16, word), prefixed("rk_live_", 16, word), prefixed("rk_test_", 16, word),
		prefixed("whsec_", 16, base64Text))},
	{name: "github_token", group: Secrets, begins: []string{"ghp", "gho", "ghu", "ghs", "ghr", "git"}, match: anyOf(
		prefixed("ghp_", 20, word), prefixed("gho_", 20, word), prefixed("ghu_", 20, word), prefixed("ghs_", 20, word), prefixed("ghr_", 20, word),
		prefixed("github_pat_", 20, word))},
	{name: "gitlab_token", group: Secrets, begins: []string{"glp"}, match: prefixed("glpat-", 16, dashed)},
	{name: "slack_token", group: Secrets, begins: []string{"xox", "xap", "hoo"}, match: anyOf(slackToken, prefixed("xapp-", 10, dashed),
		prefixed("hooks.slack.com/services/", 20, func(b byte) bool { return word(b) || b == '/' }))},
	{name: "aws_access_key", group: Secrets, begins: []string{"AKI", "ASI", "ABI", "ACC"}, match: awsKey},
	{name: "google_key", group: Secrets, begins: []string{"AIz"}, match: prefixed("AIza", 30, dashed)},
	{name: "huggingface_token", group: Secrets, begins: []string{"hf_"}, match: prefixed("hf_", 30, word)},
	{name: "npm_token", group: Secrets, begins: []string{"npm"}, match: prefixed("npm_", 30, word)},
	{name: "jwt", group: Secrets, begins: []string{"eyJ"}, match: webToken},
	{name: "sendgrid_key", group: Secrets, begins: []string{"SG."}, match: sendgridKey},
	{name: "twilio_key", group: Secrets, begins: twilioBegins(), match: twilioKey},
	{name: "telegram_token", group: Secrets, begins: []string{":AA"}, match: telegramToken},
	{name: "pypi_token", group: Secrets, begins: []string{"pyp"}, match: anyOf(prefixed("pypi-AgE", 50, dashed))},
	{name: "vault_token", group: Secrets, begins: []string{"hvs", "hvb", "hvr"}, match: anyOf(
		prefixed("hvs.", 24, dashed), prefixed("hvb.", 24, dashed), prefixed("hvr.", 24, dashed))},
	{name: "digitalocean_token", group: Secrets, begins: []string{"dop", "doo", "dor"}, match: anyOf(
		prefixed("dop_v1_", 64, hexadecimal), prefixed("doo_v1_", 64, hexadecimal), prefixed("dor_v1_", 64, hexadecimal))},
	{name: "service_token", group: Secrets, begins: serviceBegins(), match: serviceToken},
	{name: "private_key", group: Secrets, begins: []string{"---"}, match: privateKey},
	{name: "url_password", group: Secrets, begins: []string{"://"}, textOnly: true, match: urlPassword},
	{name: Authorization, group: Secrets, begins: []string{"bea", "bas"}, textOnly: true, match: authorization},
	{
		name: "command_password", group: Secrets, begins: []string{" -u", "\t-u", "\"-u", "'-u", "--u", "--p", " -p", "\t-p", " -a", " -w", "pas"}, textOnly: true,
		match: anyOf(userOption, shortOption, netrcPassword),
	},
	{name: Password, group: Secrets, begins: []string{"pas", "pwd", "sec", "tok", "api", "acc", "pri", "cre"}, textOnly: true, match: assignment},
	{name: "email", group: Personal, begins: []string{"@"}, textOnly: true, match: email},
	{name: "credit_card", group: Personal, begins: []string{"4"}, textOnly: true, match: creditCard},
}

// chosen are the patterns of some names and groups.
func chosen(names []string) ([]kind, error) {
	for _, name := range names {
		if !slices.ContainsFunc(kinds, func(k kind) bool { return name == k.name || name == k.group }) {
			return nil, invalid.Field(ErrInvalid, "redact", "%q is not one of %s", name, strings.Join(Names(), ", "))
		}
	}
	var out []kind
	for _, k := range kinds {
		if slices.Contains(names, k.name) || slices.Contains(names, k.group) {
			out = append(out, k)
		}
	}
	return out, nil
}

// Names are the names of all groups and built-in patterns.
func Names() []string {
	names := []string{Secrets, Personal}
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

func isDigit(b byte) bool      { return b >= '0' && b <= '9' }
func isUpper(b byte) bool      { return b >= 'A' && b <= 'Z' }
func isLower(b byte) bool      { return b >= 'a' && b <= 'z' }
func alphanumeric(b byte) bool { return isDigit(b) || isUpper(b) || isLower(b) }
func word(b byte) bool         { return alphanumeric(b) || b == '_' }
func dashed(b byte) bool       { return word(b) || b == '-' }
func base64Text(b byte) bool {
	return dashed(b) || b == '+' || b == '/' || b == '=' || b == '.' || b == '~'
}
func space(b byte) bool { return b == ' ' || b == '\t' || b == '\n' || b == '\r' }

// run is where a run of bytes of a class, at most so many, ends.
func run(text string, at, most int, class func(byte) bool) int {
	end := min(len(text), at+most)
	for at < end && class(text[at]) {
		at++
	}
	return at
}

// begins reports whether nothing that belongs to a longer word stands before a place.
func begins(text string, i int) bool {
	return i == 0 || !alphanumeric(text[i-1]) || endsInColour(text[:i])
}

// maxGlued bounds the letters that a token may stick to: what is longer is data, in which
// a prefix stands by chance.
const maxGlued = 24

// stands reports whether a token may begin at a place: behind nothing that belongs to a longer
// word, or glued to a short one, as in xghp_….
func stands(text string, i int) (free, may bool) {
	if begins(text, i) {
		return true, true
	}
	start := i
	for start > 0 && i-start <= maxGlued && base64Text(text[start-1]) {
		start--
	}
	return false, i-start <= maxGlued
}

// random reports whether a token that is glued to a word looks like one.
func random(token string) bool {
	digits, letters := 0, 0
	for _, b := range []byte(token) {
		if isDigit(b) {
			digits++
		} else if alphanumeric(b) {
			letters++
		}
	}
	return digits >= 2 && letters >= 8 && len(token) >= 20
}

// endsInColour reports whether a text ends with a sequence by which terminals set colours and
// such (ECMA-48, 5.4), whose last character is a letter.
func endsInColour(text string) bool {
	const longest = 32
	i := len(text) - 1
	for i > 0 && len(text)-i < longest && strings.IndexByte("0123456789;:", text[i-1]) >= 0 {
		i--
	}
	return strings.HasSuffix(text[:i], "\x1b[")
}

type matcher = func(r *Redactor, text string, i int) (start, end int, ok bool)

// prefixed is a fixed prefix and at least so many more bytes of a class.
func prefixed(prefix string, least int, class func(byte) bool) matcher {
	return func(_ *Redactor, text string, i int) (int, int, bool) {
		if !strings.HasPrefix(text[i:], prefix) {
			return 0, 0, false
		}
		free, may := stands(text, i)
		if !may {
			return 0, 0, false
		}
		end := run(text, i+len(prefix), MaxSecretBytes-len(prefix), class)
		return i, end, end-i-len(prefix) >= least && (free || random(text[i:end]))
	}
}

func anyOf(matchers ...matcher) matcher {
	return func(r *Redactor, text string, i int) (int, int, bool) {
		for _, m := range matchers {
			if start, end, ok := m(r, text, i); ok {
				return start, end, true
			}
		}
		return 0, 0, false
	}
}

// openAIKey is a key of OpenAI's kind, which many others use. A word with hyphens that
// begins like one has no digit.
func openAIKey(r *Redactor, text string, i int) (int, int, bool) {
	if _, may := stands(text, i); !may || i > 0 && text[i-1] == '-' {
		return 0, 0, false
	}
	start, end, ok := prefixed("sk-", 16, dashed)(r, text, i)
	if ok && i > 0 && dashed(text[i-1]) { // such as desk-, task-: only what has no parts is random
		_, long, _ := prefixed("sk-", 32, alphanumeric)(r, text, i)
		named := strings.HasPrefix(text[i:], "sk-proj-") || strings.HasPrefix(text[i:], "sk-svcacct-") || strings.HasPrefix(text[i:], "sk-or-v1-")
		ok = ok && (long == end || named) && end-i >= 40 && random(text[i:end])
	}
	return start, end, ok && (r.eager || strings.ContainsAny(text[start:end], "0123456789"))
}

func slackToken(_ *Redactor, text string, i int) (int, int, bool) {
	free, may := stands(text, i)
	if !may || len(text) < i+5 || !strings.HasPrefix(text[i:], "xox") || strings.IndexByte("abceoprs", text[i+3]) < 0 {
		return 0, 0, false
	}
	at := i + 4
	if text[at] == '.' { // xoxe.xoxp-
		at += 5
	}
	if at >= len(text) || text[at] != '-' {
		return 0, 0, false
	}
	end := run(text, at, MaxSecretBytes-16, dashed)
	return i, end, end-at >= 10 && (free || random(text[i:end]))
}

func awsKey(_ *Redactor, text string, i int) (int, int, bool) {
	free, may := stands(text, i)
	if !may || len(text) < i+20 || !slices.Contains([]string{"AKIA", "ASIA", "ABIA", "ACCA"}, text[i:i+4]) {
		return 0, 0, false
	}
	end := run(text, i, 21, func(b byte) bool { return isDigit(b) || isUpper(b) })
	return i, end, end == i+20 && (end == len(text) || !alphanumeric(text[end])) && (free || random(text[i:end]))
}

// webToken is a JSON web token: header, content and signature, which may be empty.
func webToken(_ *Redactor, text string, i int) (int, int, bool) {
	free, may := stands(text, i)
	if !may || i > 0 && dashed(text[i-1]) && !alphanumeric(text[i-1]) || !strings.HasPrefix(text[i:], "eyJ") {
		return 0, 0, false
	}
	at, end := i, 0
	for part := range 3 {
		end = run(text, at, MaxSecretBytes-(at-i)-2, dashed)
		if part < 2 && (end-at < 8 || end >= len(text) || text[end] != '.') {
			return 0, 0, false
		}
		at = end + 1
	}
	return i, end, free || random(text[i:end])
}

// privateKey is a block of PEM. One without an end is redacted as far as lines of base64 go.
func privateKey(_ *Redactor, text string, i int) (int, int, bool) {
	const begin, dashes = "-----BEGIN ", "-----"
	if !strings.HasPrefix(text[i:], begin) {
		return 0, 0, false
	}
	label := run(text, i+len(begin), 64, func(b byte) bool { return isUpper(b) || isDigit(b) || b == ' ' })
	if !strings.Contains(text[i:label], "PRIVATE KEY") || !strings.HasPrefix(text[label:], dashes) {
		return 0, 0, false
	}
	body := label + len(dashes)
	rest := text[body:min(len(text), i+MaxSecretBytes)]
	if at := strings.Index(rest, dashes); at >= 0 && strings.HasPrefix(rest[at:], "-----END ") && (!strings.ContainsAny(rest[:at], `"'<>{}`) || mostlyBase64(rest[:at])) {
		end := body + at + len("-----END ")
		if last := strings.Index(text[end:min(len(text), end+80)], dashes); last >= 0 {
			end += last + len(dashes)
		}
		return i, min(end, i+MaxSecretBytes), true
	}
	const line = 40 // bytes that a line of base64 has at least, but for the last
	at := body
	for {
		next := run(text, at, 64, space)
		end := run(text, next, i+MaxSecretBytes-next, func(b byte) bool { return base64Text(b) && b != '-' && b != '.' && b != '~' })
		if end-next < line && (at == body || end == next) {
			return i, at, at > body
		}
		if at = end; end-next < line {
			return i, at, true
		}
	}
}

// mostlyBase64 reports whether a text is base64 in a frame: lines that are quoted, numbered,
// or strings of a list.
func mostlyBase64(text string) bool {
	const least = 20 // bytes of a run that is no word
	inRuns, all := 0, 0
	for at := 0; at < len(text); {
		end := run(text, at, len(text)-at, func(b byte) bool { return alphanumeric(b) || b == '+' || b == '/' || b == '=' })
		if end-at >= least {
			inRuns += end - at
		}
		if end == at {
			end++
		}
		all += len(strings.TrimSpace(text[at:end]))
		at = end
	}
	return 3*inRuns > 2*all
}

// urlPassword is the password of a URL.
func urlPassword(_ *Redactor, text string, i int) (int, int, bool) {
	if i == 0 || !alphanumeric(text[i-1]) || !strings.HasPrefix(text[i:], "://") {
		return 0, 0, false
	}
	user := run(text, i+3, 256, func(b byte) bool { return b > ' ' && strings.IndexByte(`/:@"'<>?#`+"`", b) < 0 })
	if user >= len(text) || text[user] != ':' {
		return 0, 0, false
	}
	const longest = 1024
	part := func(b byte) bool { return b > ' ' && strings.IndexByte(`/@"'<>`+"`", b) < 0 }
	end := run(text, user+1, longest, part)
	for end < len(text) && text[end] == '@' { // one may stand in the password, too
		next := run(text, end+1, longest, part)
		if next >= len(text) || text[next] != '@' || next-user > longest {
			break
		}
		end = next
	}
	return user + 1, end, end > user+1 && end < len(text) && text[end] == '@' && text[user+1] != '['
}

// authorization is what stands behind Bearer or Basic.
func authorization(r *Redactor, text string, i int) (int, int, bool) {
	if !begins(text, i) {
		return 0, 0, false
	}
	at := i
	basic := hasFold(text[i:], "basic")
	switch {
	case basic:
		at += len("basic")
	case hasFold(text[i:], "bearer"):
		at += len("bearer")
	default:
		return 0, 0, false
	}
	start := run(text, at, 16, func(b byte) bool { return b == ' ' || b == '\t' })
	end := run(text, start, MaxSecretBytes-64, base64Text)
	for end > start && text[end-1] == '.' { // the end of a sentence
		end--
	}
	token := text[start:end]
	switch {
	case start == at:
		return 0, 0, false
	case r.eager:
		return start, end, len(token) >= 8
	case basic:
		plain, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(token, "="))
		return start, end, err == nil && len(token) >= 8 && slices.Contains(plain, ':')
	}
	return start, end, len(token) >= 16 && strings.ContainsAny(token, "0123456789")
}

// secretWords are what names of secrets have in them.
var secretWords = []string{
	"password", "passwd", "passphrase", "pwd", "secret", "token", "apikey", "api_key", "api-key", "accesskey", "access_key", "access-key",
	"privatekey", "private_key", "private-key", "credentials", "credential",
}

// otherEnds are ends of names with such a word in them whose values are no secrets.
var otherEnds = []string{
	"file", "path", "url", "uri", "id", "ids", "name", "type", "ttl", "expiry", "expires", "count", "length", "limit", "size", "model", "prefix", "format", "version", "time", "at",
}

// wordAt is the length of the secret's word that stands at a place; zero without one.
func wordAt(text string, i int) int {
	for _, w := range secretWords {
		if hasFold(text[i:], w) {
			return len(w)
		}
	}
	return 0
}

// nameEnd is where a name that has a secret's word up to a place ends, if that is one of a
// secret.
func nameEnd(text string, at int) (int, bool) {
	end := run(text, at, 33, dashed)
	rest := strings.ToLower(text[at:end])
	switch {
	case end-at > 32, strings.HasPrefix(rest, "s") || rest != "" && isLower(text[at]):
		return 0, false
	case rest == "":
		return end, true
	}
	last := strings.FieldsFunc(rest, func(c rune) bool { return c == '_' || c == '-' })
	return end, len(last) == 0 || !slices.Contains(otherEnds, last[len(last)-1])
}

// secretName reports whether a name is one of a secret.
func secretName(name string) bool {
	if len(name) > 128 {
		return false
	}
	for i := range len(name) {
		if n := wordAt(name, i); n > 0 {
			if end, ok := nameEnd(name, i+n); ok && end == len(name) {
				return true
			}
		}
	}
	return false
}

// assignment is the value behind a name that says that it is a secret.
func assignment(r *Redactor, text string, i int) (int, int, bool) {
	size := wordAt(text, i)
	if size == 0 {
		return 0, 0, false
	}
	at, ok := nameEnd(text, i+size)
	if !ok {
		return 0, 0, false
	}
	blank := func(b byte) bool { return b == ' ' || b == '\t' || b == 0 }
	sign := run(text, run(text, at, 4, func(b byte) bool { return strings.IndexByte("\"'`]\\", b) >= 0 }), 8, blank)
	var value int
	switch rest := text[sign:]; {
	case strings.HasPrefix(rest, "=>"), strings.HasPrefix(rest, ":="):
		value = sign + 2
	case strings.HasPrefix(rest, "=") && !strings.HasPrefix(rest, "=="), strings.HasPrefix(rest, ":") && !strings.HasPrefix(rest, "://"):
		value = sign + 1
	case sign == at+1 && option(text, i): // --password xyz
		value = sign
	default:
		return 0, 0, false
	}
	value = run(text, value, 8, blank)
	if value >= len(text) {
		return 0, 0, false
	}
	if start := unquoted(text, value); start > value {
		quote := text[start-1]
		end := run(text, start, 1024, func(b byte) bool { return b != quote && b != '\n' && b != '\r' })
		closed := end < len(text)
		for end > start && text[end-1] == '\\' {
			end--
		}
		return start, end, closed && r.plausible(text[start:end], true)
	}
	end := run(text, value, 1024, func(b byte) bool { return b > ' ' && strings.IndexByte("\"'`,;&|<>(){}[]", b) < 0 })
	if end < len(text) && text[end] == '(' {
		return 0, 0, false
	}
	return value, end, r.plausible(text[value:end], false)
}

// unquoted is where a value begins behind its quotes: one, that may be escaped, three of a
// kind, or one within another; the place itself without any.
func unquoted(text string, at int) int {
	isQuote := func(i int) bool { return i < len(text) && strings.IndexByte("\"'`", text[i]) >= 0 }
	backslash := func(b byte) bool { return b == '\\' }
	i := run(text, at, 3, backslash)
	if !isQuote(i) {
		return at
	}
	quote := text[i]
	switch inner := run(text, i+1, 3, backslash); {
	case strings.HasPrefix(text[i+1:], string([]byte{quote, quote})):
		return i + 3
	case isQuote(inner) && (inner > i+1 || text[inner] != quote):
		return inner + 1
	}
	return i + 1
}

// option reports whether the name about a place is one of a command's options.
func option(text string, i int) bool {
	for n := 0; n < 32 && i > 0 && dashed(text[i-1]); n++ {
		i--
	}
	return i < len(text) && text[i] == '-'
}

// plausible reports whether a value looks random enough for a secret: by its characters and
// their entropy.
func (r *Redactor) plausible(value string, quoted bool) bool {
	if r.eager {
		return len(value) >= 4 && !strings.HasPrefix(value, "[redacted")
	}
	const least, mixed = 6, 12 // bytes of a secret, and of one of letters alone
	if len(value) < least || len(value) > 1024 || strings.IndexByte("$<%{[*", value[0]) >= 0 || strings.Contains(value, "${") {
		return false
	}
	var counts [256]int
	var upper, lower, digits, signs int
	for i := range len(value) {
		b := value[i]
		counts[b]++
		switch {
		case isUpper(b):
			upper++
		case isLower(b):
			lower++
		case isDigit(b):
			digits++
		case strings.IndexByte("!@#$%^*+~?=", b) >= 0:
			signs++
		}
	}
	entropy := 0.0
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(value))
			entropy -= p * math.Log2(p)
		}
	}
	letters := upper + lower
	switch {
	case entropy < 2.2, strings.Contains(value, "[redacted"), strings.Contains(value, "***"), letters == 0:
		return false
	case digits > 0, signs > 0:
		return true
	}
	return quoted && upper > 0 && lower > 0 && len(value) >= mixed && strings.IndexByte(value, ' ') < 0 && entropy >= 3
}

// hasFold reports whether a text begins with a word, whatever the case.
func hasFold(text, prefix string) bool {
	return len(text) >= len(prefix) && strings.EqualFold(text[:len(prefix)], prefix)
}

// email is an e-mail address about its @.
func email(_ *Redactor, text string, i int) (int, int, bool) {
	if text[i] != '@' {
		return 0, 0, false
	}
	start := i
	for start > 0 && i-start < 64 && (alphanumeric(text[start-1]) || strings.IndexByte("._%+-", text[start-1]) >= 0) {
		start--
	}
	end := run(text, i+1, 255, func(b byte) bool { return alphanumeric(b) || b == '-' || b == '.' })
	for end > i && (text[end-1] == '.' || text[end-1] == '-') {
		end--
	}
	dot := strings.LastIndexByte(text[i:end], '.')
	if start == i || dot < 2 || end-i-dot < 3 {
		return 0, 0, false
	}
	return start, end, !strings.ContainsAny(text[i+dot+1:end], "0123456789")
}

// creditCard is a number of 13 to 19 digits, in groups or not, that Luhn's check holds for.
func creditCard(_ *Redactor, text string, i int) (int, int, bool) {
	if i > 0 && (alphanumeric(text[i-1]) || text[i-1] == '.') || text[i] < '2' || text[i] > '6' {
		return 0, 0, false
	}
	var digits [20]byte
	n, end := 0, i
	for at := i; at < len(text) && n < len(digits); at++ {
		if isDigit(text[at]) {
			digits[n], n, end = text[at]-'0', n+1, at+1
			continue
		}
		if text[at] != ' ' && text[at] != '-' || at+1 >= len(text) || !isDigit(text[at+1]) {
			break
		}
	}
	if n < 13 || n > 19 || end < len(text) && alphanumeric(text[end]) {
		return 0, 0, false
	}
	sum := 0
	for k := range n {
		d := int(digits[n-1-k])
		if k%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return i, end, sum%10 == 0
}
