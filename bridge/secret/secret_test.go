package secret_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/loom-bridge/loom-bridge/bridge/secret"
)

// form is a way in which a text goes over a wire.
type form struct {
	name  string
	write func(text string) string
}

func each(format string) func(string) string {
	return func(text string) string {
		var b strings.Builder
		for i := range len(text) {
			fmt.Fprintf(&b, format, text[i])
		}
		return b.String()
	}
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out[1 : len(out)-1])
}

// wrapped is base64 in lines, as in mails.
func wrapped(text string) string {
	out := base64.StdEncoding.EncodeToString([]byte("a long text in front of it, " + text + " and one behind"))
	var b strings.Builder
	for ; len(out) > 40; out = out[40:] {
		b.WriteString(out[:40] + "\r\n")
	}
	return b.String() + out
}

func forms() []form {
	list := []form{
		{"plain", func(s string) string { return s }},
		{"upper case", strings.ToUpper},
		{"JSON", quoted},
		{"JSON with slashes", func(s string) string { return strings.ReplaceAll(quoted(s), "/", `\/`) }},
		{"JSON in letters", each(`\u%04x`)},
		{"JSON in capital letters", each(`\u%04X`)},
		{"JSON in JSON", func(s string) string { return quoted(each(`\u%04x`)(s)) }},
		{"JavaScript", each(`\x%02x`)},
		{"Rust", each(`\u{%x}`)},
		{"octal", each(`\%03o`)},
		{"query", url.QueryEscape},
		{"path", url.PathEscape},
		{"percent", each("%%%02X")},
		{"small percent", each("%%%02x")},
		{"percent twice", func(s string) string { return url.QueryEscape(each("%%%02X")(s)) }},
		{"HTML", each("&#%d;")},
		{"HTML in hex", each("&#x%x;")},
		{"HTML with zeros", each("&#%07d;")},
		{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
		{"capital hex", func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) }},
		{"hex with colons", func(s string) string { return strings.TrimRight(each("%02x:")(s), ":") }},
		{"hex with spaces", func(s string) string { return strings.TrimRight(each("%02x ")(s), " ") }},
		{"hex with 0x", each("0x%02x, ")},
		{"wrapped base64", wrapped},
		{"base64 in a URL", func(s string) string { return url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(s))) }},
		{"Basic", func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+s)) }},
		{"Basic of a user", func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s+":x")) }},
		{"UTF-16", func(s string) string {
			var b strings.Builder
			for _, u := range utf16.Encode([]rune(s)) {
				b.Write([]byte{byte(u), byte(u >> 8)})
			}
			return b.String()
		}},
		{"letters that nobody sees", func(s string) string { return strings.Join(strings.Split(s, ""), "\u200b") }},
	}
	for _, e := range []struct {
		name string
		*base64.Encoding
	}{{"base64", base64.StdEncoding}, {"base64 for URLs", base64.URLEncoding}, {"raw base64", base64.RawStdEncoding}, {"raw base64 for URLs", base64.RawURLEncoding}} {
		for before := range 3 {
			list = append(list, form{fmt.Sprintf("%s behind %d", e.name, before), func(s string) string {
				return e.EncodeToString([]byte(strings.Repeat("~", before) + s + strings.Repeat("~", before)))
			}})
		}
	}
	return list
}

const alphabet = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/+=.!$&%#@\"'<>{}"

func randomText(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b)
}

// Whatever form a part of a secret has, and wherever a stream of it is cut, nothing of the form
// is left but its ends, and all around it stays.
func TestForms(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	const before, after = "Some text before it: <", ">, and some text behind."
	for _, f := range forms() {
		t.Run(f.name, func(t *testing.T) {
			for range 60 {
				value := randomText(r, 8+r.IntN(50))
				mask := secret.New(map[string]string{"KEY": "Bearer " + value})
				from := r.IntN(len(value) - 7)
				part := value[from : from+8+r.IntN(len(value)-from-7)]
				echo := f.write(part)
				text := before + echo + after
				got := string(mask.Bytes([]byte(text)))
				if len(got) != len(text) || !strings.HasPrefix(got, before[:len(before)-1]) || !strings.HasSuffix(got, after[1:]) {
					t.Fatalf("%q of %q became %q: what stands around it changed", text, value, got)
				}
				if stars := strings.Count(got, "*"); stars < len(echo)*3/4 && !strings.Contains(f.name, "ase64") && !strings.HasPrefix(f.name, "Basic") || stars < 8 {
					t.Fatalf("%q (a part of %q) became %q", text, value, got)
				}
				if again := string(mask.Bytes([]byte(got))); again != got {
					t.Fatalf("%q became %q and then %q", text, got, again)
				}
				streams(t, mask, text, got, r)
			}
		})
	}
}

func streams(t *testing.T, mask *secret.Mask, text, want string, r *rand.Rand) {
	t.Helper()
	for _, from := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.HalfReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
		if got, err := io.ReadAll(mask.Reader(from)); err != nil || string(got) != want {
			t.Fatalf("%q as a stream became %q, want %q, %v", text, got, want, err)
		}
	}
	var out bytes.Buffer
	w := mask.Writer(&out)
	for left := text; left != ""; {
		n := min(len(left), 1+r.IntN(20))
		if _, err := w.Write([]byte(left[:n])); err != nil {
			t.Fatal(err)
		}
		left = left[n:]
	}
	if err := w.Close(); err != nil || out.String() != want {
		t.Fatalf("%q as it was written became %q, want %q, %v", text, out.String(), want, err)
	}
}

// What is no secret goes through a stream at once.
func TestStreamGoesOn(t *testing.T) {
	mask := secret.New(map[string]string{"KEY": "Bearer S3cr-7t/alpha.Z9q"})
	var out bytes.Buffer
	w := mask.Writer(&out)
	want := ""
	for _, line := range []string{"Password: ", "done.\n", "data: {\"a\":1}\n\n", "a line of text\n", "100%, \n"} {
		want += line
		if _, err := w.Write([]byte(line)); err != nil || out.String() != want {
			t.Errorf("after %q %q has come, %v", line, out.String(), err)
		}
	}
}

// Parts of a value that stand in other texts, too, are left alone there.
func TestOrdinaryText(t *testing.T) {
	mask := secret.New(map[string]string{
		"A": "Bearer tok-9f8e7d6c5b", "B": "https://hooks.example.com/services/T000/B000/a1b2c3d4e5f6a7b8c9d0", "C": "postgres://anna_of_sales:pa55w0rd!x@localhost:5432/production",
		"D": `{"type":"service_account","private_key":"-----BEGIN PRIVATE KEY-----\nMIIabc123def456\n-----END PRIVATE KEY-----"}`,
		"E": "host=localhost dbname=production password=corr3ct-h0rse", "F": "live-production-77ab", "G": "Basic " + base64.StdEncoding.EncodeToString([]byte("anna:oh-so-s3cret")),
	})
	for _, text := range []string{
		"Bearer of bad news", "https://hooks.example.com/services/x", "localhost:5432 in production", `{"type":"service_account"}`, "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----",
		"dbname=production", "the production of text", "saved by anna_of_sales", "--------------------", "Basic Authentication",
	} {
		if got := mask.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	for _, part := range []string{
		"tok-9f8e7d6c5b", "8e7d6c5b", "a1b2c3d4e5f6", "pa55w0rd!x", "MIIabc123def456", "corr3ct-h0rse", "oh-so-s3cret", "anna:oh-so-s3cret", "ction-77ab",
	} {
		if got := mask.Text("x " + part + " y"); strings.Trim(got, "*xy ") != "" {
			t.Errorf("%q became %q", part, got)
		}
	}
}

// JSON stays JSON, names and numbers included.
func TestJSON(t *testing.T) {
	mask := secret.New(map[string]string{"PIN": "8675309867", "KEY": `a"b\c,d:e1`})
	for _, text := range []string{`{"a":86753098670}`, `[1,8675309867.5,"8675309867"]`, `{"8675309867":{"x":"\u0038\u003675309867"}}`, `{"k":"a\"b\\c,d:e1"}`} {
		got := mask.JSON([]byte(text))
		if !json.Valid(got) || bytes.Contains(got, []byte("75309")) || !bytes.Contains(got, []byte("********")) {
			t.Errorf("%s became %s", text, got)
		}
	}
	whole := []byte(`{"a": 12345678, "b": [ "x" ] }`)
	if got := mask.JSON(whole); string(got) != string(whole) {
		t.Errorf("%s became %s", whole, got)
	}
	if got := mask.Value(map[string]any{"n": json.Number("8675309867"), "l": []any{"8675309867"}}); fmt.Sprint(got) != "map[l:[**********] n:**********]" {
		t.Errorf("got %v", got)
	}
}

// A person sees all but the value itself.
func TestNamed(t *testing.T) {
	mask := secret.New(map[string]string{"API_KEY": "S3cr-7t/alpha", "LONG": "S3cr-7t/alpha and more"})
	for text, want := range map[string]string{
		"curl -H S3cr-7t/alpha; rm -rf /":    "curl -H <secret API_KEY>; rm -rf /",
		"S3cr-7t/alpha and more S3cr-7t/alp": "<secret LONG> S3cr-7t/alp",
	} {
		if got := mask.Named(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

// A tenant's values are looked for in its own texts alone, the operator's in all, and those
// that were taken out no more.
func TestSet(t *testing.T) {
	var s secret.Set
	if s.For("a") != nil || (*secret.Set)(nil).For("a") != nil {
		t.Error("a mask of nothing")
	}
	s.Put("", "web ", map[string]string{"KEY": "operator-k3y"})
	s.Put("a", "mcp one ", map[string]string{"KEY": "tenants-k3y-1"})
	const text = "operator-k3y tenants-k3y-1"
	for tenant, want := range map[string]string{"a": "************ *************", "b": "************ tenants-k3y-1"} {
		if got := s.For(tenant).Text(text); got != want {
			t.Errorf("of %s: %q, want %q", tenant, got, want)
		}
	}
	if got := s.All().Text(text); got != "************ *************" {
		t.Errorf("of all: %q", got)
	}
	s.Put("a", "mcp one ", nil)
	if got := s.For("a").Text(text); got != "************ tenants-k3y-1" {
		t.Errorf("taken out: %q", got)
	}
}

// Of the variables and headers of a server those are secrets whose names or forms say nothing
// else.
func TestLikely(t *testing.T) {
	for name, value := range map[string]string{
		"API_KEY": "production", "GITHUB_PAT": "abcdefgh", "Authorization": "Bearer abcdefgh", "X-Custom": "zz-19-ab-77", "HOOK": "https://h.example.com/a1b2c3d4e5f6a7b8c9d0",
		"DB": "postgres://u:pw-12345@h/db", "OTHER": "two words9",
	} {
		if !secret.Likely(name, value) {
			t.Errorf("%s=%s is none", name, value)
		}
	}
	for name, value := range map[string]string{
		"PATH": "/usr/bin:/bin", "NODE_ENV": "production", "LANG": "en_US.UTF-8", "DATA_DIR": "somewhere-1", "ANY": "/home/anna/x", "WORD": "production", "AT": "2025-06-18",
		"Content-Type": "application/json", "URL": "https://api.example.com/v1/x", "SHORT": "abc",
	} {
		if secret.Likely(name, value) {
			t.Errorf("%s=%s is one", name, value)
		}
	}
}

func FuzzStream(f *testing.F) {
	f.Add("x S3cr-7t/alpha", uint8(3))
	f.Add(`&#83;3cr\u002d7t%2Falpha`, uint8(1))
	mask := secret.New(map[string]string{"KEY": "S3cr-7t/alpha"})
	f.Fuzz(func(t *testing.T, text string, size uint8) {
		got, err := io.ReadAll(mask.Reader(&parts{text, int(size)%9 + 1}))
		if err != nil || len(got) != len(text) || strings.Contains(string(got), "S3cr-7t/") {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	})
}

type parts struct {
	text string
	n    int
}

func (p *parts) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(p.n, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}

func BenchmarkBytes(b *testing.B) {
	mask := secret.New(map[string]string{"KEY": "Bearer S3cr-7t/alpha.Z9q.abcdefghijkl"})
	text := bytes.Repeat([]byte("2026-01-02 12:00:00 INFO request 12345 of /path/to/a/thing took 17 ms\n"), 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		mask.Bytes(text)
	}
}
