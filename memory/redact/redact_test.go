package redact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/loom-bridge/loom-bridge/memory/redact"
)

// pem is a block of a key that opens nothing.
var pem = "-----BEGIN RSA PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("MIIEow7x", 8)+"\n", 20) + "-----END RSA PRIVATE KEY-----"

// secrets are texts with one secret each, by the name of its pattern: what stands before it,
// the secret, and what stands behind it.
var secrets = [][4]string{
	{"aws_access_key", "key ", "AKIAIOSFODNN7EXAMPLE", "."},
	{"github_token", "use ", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", " here"},
	{"github_token", "(", "github_pat_11ABCDEFG0123456789_abcdefghijklmnop", ")"},
	{"github_token", "\x1b[01;31m", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "\x1b[m"},
	{"aws_access_key", "\x1b[K", "AKIAIOSFODNN7EXAMPLE", "\x1b[0m"},
	{"gitlab_token", "x ", "glpat-abcdefghij1234567890", ""},
	{"slack_token", "to ", "xoxb-123456789012-abcdefGHIJK", "!"},
	{"slack_token", "https://", "hooks.slack.com/services/T00000000/B00000000/abcdefghijkl", " is it"},
	{"stripe_key", "s=", "sk_live_abcdefghijklmnop1234", ";"},
	{"openai_key", "the ", "sk-proj-abcdefghijklmnopqrstuvwx1234", ","},
	{"anthropic_key", "the ", "sk-ant-api03-abcdefghijklmnopqrst", ","},
	{"google_key", "", "AIzaSyA1234567890abcdefghijklmnopqrstuv", ""},
	{"huggingface_token", "", "hf_abcdefghijklmnopqrstuvwxyzABCDEFGH", ""},
	{"npm_token", "", "npm_abcdefghijklmnopqrstuvwxyzABCDEFGH12", ""},
	{"jwt", "t: ", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U", " ok"},
	{"private_key", "Here:\n", pem, "\nBye"},
	{"private_key", "> ", strings.ReplaceAll(pem, "\n", "\n> "), "\n> Bye"},
	{"private_key", "7\t", strings.ReplaceAll(pem, "\n", "\n  8\t"), "\n  9\tBye"},
	{"private_key", `["`, strings.ReplaceAll(pem, "\n", `", "`), `", "Bye"]`},
	{"private_key", "<pre>", strings.ReplaceAll(pem, "\n", "<br>"), "</pre>"},
	{"private_key", "cut off: ", "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat("QUJDREVG", 8) + "\nQUJD", "\nBye now"},
	{"url_password", "postgres://bob:", "s3cr3t", "@db:5432/x"},
	{"url_password", "postgres://bob:", "p@ss@w0rd", "@db:5432/x"},
	{"password", `{\"password\": \"`, "hunter2", `\"}`},
	{"password", `password = """`, "hunter2", `"""`},
	{"password", `password='"`, "hunter2", `"'`},
	{"authorization", "Authorization: Bearer ", "abcdef1234567890abcdef", "\n"},
	{"authorization", "Authorization: Basic ", "Ym9iOnMzY3IzdA==", " x"},
	{"password", "password=", "hunter2", " and on"},
	{"password", "DB_PASSWORD: '", "correct horse 7 battery", "' # x"},
	{"password", "{\"api_key\": \"", "Zx81kQpLmW", "\"}"},
	{"password", "run --token ", "a1b2c3d4e5", " now"},
	{"password", "client_secret => \"", "QwErTyUiOpAsDf", "\""},
	{"password", "aws_secret_access_key = ", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "\n"},
	{"sendgrid_key", "use ", "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", "."},
	{"twilio_key", "sid=", "SK0123456789abcdef0123456789abcdef", " ok"},
	{"telegram_token", "https://api.telegram.org/bot", "110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw1", "/getMe"},
	{"pypi_token", "", "pypi-AgEIcHlwaS5vcmcCJDU0ZmE1YmRmLWRhYjItNGVmMy05ZGVmLWQyZjA1YjA0", " up"},
	{"vault_token", "X-Vault: ", "hvs.CAESIJlWh0aZkN1b2T3c4D5e6F7g8H9i0J1k2L3m4N", "\n"},
	{"digitalocean_token", "", "dop_v1_" + strings.Repeat("0123456789abcdef", 4), ""},
	{"service_token", "on ", "shpat_0123456789abcdef0123456789abcdef", ","},
	{"service_token", "on ", "dapi0123456789abcdef0123456789abcdef", ","},
	{"service_token", "on ", "glsa_abcdefghijklmnopqrstuvwxyz012345_a1b2c3d4", ","},
	{"service_token", "on ", "figd_abcdefghijklmnopqrstuvwxyz0123456789abcd", ","},
	{"service_token", "on ", "gsk_abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGHIJKLMN", ","},
	{"service_token", "https://", "discord.com/api/webhooks/123456789012345678/abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", " is it"},
	{"github_token", "x", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", " here"},
	{"gitlab_token", "token1", "glpat-abcdefghij1234567890", " here"},
	{"aws_access_key", "x", "AKIAIOSFODNN7EXAM42E", "."},
	{"google_key", "keyIs", "AIzaSyA1234567890abcdefghijklmnopqrstuv", ""},
	{"github_token", "use ", "ghp_abcdefghij\u200bklmnopqrstuvwxyz\u20600123456789", " here"},
	{"github_token", "use ", "g\u00adhp_abcdefghijklmnopqrstuvwxyz0123456789", " here"},
	{"password", "pass\ufeffword=", "hunt\u200der2", " and on"},
	{"command_password", "curl -u ann:", "s3cretpw", " https://a.example"},
	{"command_password", "curl -sS --user 'ann:", "correct horse", "' https://a.example"},
	{"command_password", "curl -uann:", "hunter2", " https://a.example"},
	{"command_password", "curl -x p:80 --proxy-user ann:", "hunter2", " https://a.example"},
	{"command_password", "mysql -h db -u root -p", "hunter2", " shop"},
	{"command_password", "mysqldump -p'", "hun ter2", "' shop"},
	{"command_password", "sshpass -p ", "hunter2", " ssh a@b"},
	{"command_password", "redis-cli -h db -a ", "hunter2", " ping"},
	{"command_password", "docker login -u ann -p ", "hunter2", " registry"},
	{"command_password", "machine a.example login ann password ", "hunter", "\nmachine b"},
	{"command_password", "machine a.example\n  login ann\n  password ", "hunter", "\n"},
	{"command_password", "default login ann password ", "hunter", "\n"},
	{"email", "write to ", "ann.b+c@mail.example.org", "."},
	{"credit_card", "card ", "4111 1111 1111 1111", " till"},
	{"ticket", "see ", "TCK-123456", ":"},
}

func all(tb testing.TB) *redact.Redactor {
	tb.Helper()
	own, err := redact.ParseOwn(`ticket=\bTCK-[0-9]{6}\b`)
	must(tb, err)
	r, err := redact.New([]string{redact.Secrets, redact.Personal}, []redact.Own{own})
	must(tb, err)
	return r
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// Each form of a secret is found in plain text, in JSON, in escaped JSON and within JSON
// that stands in JSON, and nothing beside it is changed.
func TestSecrets(t *testing.T) {
	r := all(t)
	for _, s := range secrets {
		plain, want := s[1]+s[2]+s[3], s[1]+"[redacted:"+s[0]+"]"+s[3]
		var counts redact.Counts
		got := r.Text(plain, &counts)
		if got != want || counts[s[0]] != 1 || len(counts) != 1 {
			t.Errorf("%s: %q became %q, %v", s[0], plain, got, counts)
		}
		if again := r.Text(got, nil); again != got {
			t.Errorf("%s: again: %q became %q", s[0], got, again)
		}
		for range 2 {
			quoted, err := json.Marshal(map[string]string{"x": plain})
			must(t, err)
			checkJSON(t, r, s, string(quoted), want)
			if strings.Contains(plain, "=>") { // JSON writes > as an escape
				break
			}
			plain, want = string(quoted), marshal(t, want)
		}
		var escaped strings.Builder
		for _, c := range s[1] + s[2] + s[3] {
			fmt.Fprintf(&escaped, `\u%04x`, c)
		}
		checkJSON(t, r, s, `{"x":"`+escaped.String()+`"}`, s[1]+"[redacted:"+s[0]+"]"+s[3])
	}
}

func marshal(t *testing.T, text string) string {
	t.Helper()
	quoted, err := json.Marshal(map[string]string{"x": text})
	must(t, err)
	return string(quoted)
}

func checkJSON(t *testing.T, r *redact.Redactor, s [4]string, text, want string) {
	t.Helper()
	var got struct{ X string }
	if err := json.Unmarshal([]byte(r.Text(text, nil)), &got); err != nil || got.X != want {
		t.Errorf("%s in JSON: %s became %q, want %q: %v", s[0], text, got.X, want, err)
	}
}

// A header that carries nothing but credentials is a secret whatever stands in it, once.
func TestCredentialHeaders(t *testing.T) {
	r := all(t)
	for _, name := range []string{"Authorization", "proxy-authorization", "cookie", "Set-Cookie"} {
		counts := make(redact.Counts)
		once := r.Named(name, "sid 31d4", &counts)
		if twice := r.Named(name, once, &counts); once != "[redacted:authorization]" || twice != once || counts[redact.Authorization] != 1 {
			t.Errorf("%s became %q and %q, counted %v", name, once, twice, counts)
		}
	}
	if got := r.Named("authorization", "Bearer abcdef1234567890abcdef", nil); got != "Bearer [redacted:authorization]" {
		t.Errorf("with its scheme: %q", got)
	}
	if got := r.Named("cookies", "sid 31d4", nil) + r.Named("cookie", "", nil); got != "sid 31d4" {
		t.Errorf("another name: %q", got)
	}
}

// What only looks a little like a secret stays.
func TestNoSecrets(t *testing.T) {
	r := all(t)
	for _, text := range []string{
		"", "The password is on the desk", "password: string", "token = next_token()", "tokens: 12345", "max_tokens=4096", `"token_type":"bearer4711"`,
		"sk-learn-and-other-names-of-things", "sk-1", "task-ghp_short", "the bearer of this letter, 12", "basic research, 2024-01-02", "eyJub3Q.a.b",
		"https://example.org:8080/a@b", "http://user@host/", "AKIAIOSFODNN7EXAMPLEX1", "xAKIAIOSFODNN7EXAMPLE", "password=${DB_PASSWORD}", "secret=<your secret 1>",
		"-----BEGIN CERTIFICATE-----\nMIIE\n-----END CERTIFICATE-----", "-----BEGIN PRIVATE KEY----- begins a key", "a@b", "@user", "x@y.1",
		"curl -u $USER:$PASS https://a.example", "ls -u a:bcdef", "mysql -p shop", "mysql -u root -p", "cp -p a b", "sort -u a:bcde", "tar -pxf a", "log in with login and password authentication",
		"the machine has a login, password and more", "redis -a b", "grep -a x", "SG.short.one", "SKU0123456789", "door_v1_x", "dapi is a word", "secret_garden and others", "re_start the thing now, 1 2 3", "key-value stores, 2024",
		"12345678:AAA", "rust_crates cio", "hvs. is short", "API-first design of 2024", "docker run -p 8080:80 image", "docker login registry", "curl -U x https://a", "r8_ and r9_", "ico-systems", "phone -p 5",
		"zwj: \U0001F468\u200d\U0001F469\u200d\U0001F467, soft\u00adhyphen", strings.Repeat("A", 40) + strings.Repeat("QUJDREVGghp_R0hJSktMTU5PUFFSU1RVVldY", 20),
		"4111 1111 1111 1112", "1234567890123456", "step_1234567890", "the password: correct", "password == x9y8z7w6", `password="" user="bob 7x"`, `{\"password\": \"\", \"n\": \"x7y8z9\"}`, "https://a.example/x:1@b@c", "token://abc123def", "secret_name=x1y2z3w4", `C:\new\table`,
	} {
		if got := r.Text(text, nil); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	var none *redact.Redactor
	if text := secrets[0][2]; none.Text(text, nil) != text || none.Value(text, nil) != text || none.Totals() != nil {
		t.Error("the nil Redactor does something")
	}
}

// A stream becomes what its whole text becomes, wherever its chunks end.
func TestStream(t *testing.T) {
	r := all(t)
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		var text strings.Builder
		for text.Len() < random.IntN(400<<10) {
			s := secrets[random.IntN(len(secrets))]
			part := strings.Repeat("line after line \n", random.IntN(3000)) + s[1] + s[2] + s[3] + " "
			if random.IntN(3) == 0 {
				quoted, err := json.Marshal(part)
				must(t, err)
				part = string(quoted) + " "
			}
			text.WriteString(part)
		}
		var whole, streamed redact.Counts
		want := r.Text(text.String(), &whole)
		var from io.Reader = strings.NewReader(text.String())
		switch round % 3 {
		case 0:
			from = iotest.HalfReader(from)
		case 1:
			from = &pieces{text.String(), random}
		}
		got, err := io.ReadAll(r.Reader(from, &streamed))
		must(t, err)
		if string(got) != want || fmt.Sprint(whole) != fmt.Sprint(streamed) {
			t.Fatalf("round %d: the stream of %d bytes differs: %v and %v", round, text.Len(), whole, streamed)
		}
		for _, s := range secrets {
			if strings.Contains(want, s[2]) && len(s[2]) > 12 {
				t.Fatalf("round %d: %s is there", round, s[0])
			}
		}
	}
}

// pieces is a text that comes in pieces of any size.
type pieces struct {
	rest   string
	random *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(b[:min(len(b), 1+p.random.IntN(5000))], p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// A secret is found at every place about the end of what is looked through at once.
func TestStreamBoundary(t *testing.T) {
	r := all(t)
	const block = 64 << 10
	for at := block - 1400; at < block+40; at += 31 {
		text := strings.Repeat("x ", at/2) + pem + " AKIAIOSFODNN7EXAMPLE " + strings.Repeat("y ", 40<<10)
		got, err := io.ReadAll(r.Reader(strings.NewReader(text), nil))
		must(t, err)
		if string(got) != r.Text(text, nil) || bytes.Contains(got, []byte("MIIE")) || bytes.Contains(got, []byte("AKIA")) {
			t.Fatalf("at %d", at)
		}
	}
	escaped := strings.Repeat(`\u0041`, 200<<10) + ` \u0041KIAIOSFODNN7EXAMPLE`
	got, err := io.ReadAll(r.Reader(strings.NewReader(escaped), nil))
	must(t, err)
	if !bytes.HasSuffix(got, []byte(" [redacted:aws_access_key]")) {
		t.Errorf("behind escapes: %q", got[len(got)-40:])
	}
	failing := r.Reader(io.MultiReader(strings.NewReader("AKIAIOSFODNN7EXAMPLE"), iotest.ErrReader(io.ErrUnexpectedEOF)), nil)
	if got, err := io.ReadAll(failing); !errors.Is(err, io.ErrUnexpectedEOF) || string(got) != "[redacted:aws_access_key]" {
		t.Errorf("a stream that fails: %q, %v", got, err)
	}
}

// Bytes that are no text lose keys, and not what looks like a name by chance.
func TestStreamOfBytes(t *testing.T) {
	text := "\x00\x01 ghp_abcdefghijklmnopqrstuvwxyz0123456789 \xff a@example.org password=hunter2"
	got, err := io.ReadAll(all(t).Reader(strings.NewReader(text), nil))
	must(t, err)
	if string(got) != "\x00\x01 [redacted:github_token] \xff a@example.org password=hunter2" {
		t.Errorf("became %q", got)
	}
}

// Values under a name that says it are secrets, and names are looked through as well.
func TestValue(t *testing.T) {
	r := all(t)
	var counts redact.Counts
	in := map[string]any{
		"db": map[string]any{"password": "hunter2", "port": json.Number("12345678901234567890")}, "plain": "text",
		"AKIAIOSFODNN7EXAMPLE": true, "list": []any{"x", "see TCK-123456"},
	}
	before := fmt.Sprint(in)
	out := r.Value(in, &counts)
	if got := fmt.Sprint(out); got != "map[[redacted:aws_access_key]:true db:map[password:[redacted:password] port:12345678901234567890] list:[x see [redacted:ticket]] plain:text]" {
		t.Errorf("became %s", got)
	}
	if fmt.Sprint(in) != before || counts["password"] != 1 || counts["ticket"] != 1 || counts["aws_access_key"] != 1 {
		t.Errorf("counts %v, and the value is %v", counts, in)
	}
	if totals := r.Totals(); totals["ticket"] != 1 || totals["email"] != 0 {
		t.Errorf("totals %v", totals)
	}
}

func TestRefusedPatterns(t *testing.T) {
	for _, text := range []string{"x", "=a", "a b=c", "x=[", "x=a*", "x=.+", "x=" + strings.Repeat("a", 2000), strings.Repeat("a", 65) + "=a"} {
		if _, err := redact.ParseOwn(text); err == nil {
			t.Errorf("%.80q was taken", text)
		}
	}
	own, err := redact.ParseOwn("jwt=abc")
	must(t, err)
	if _, err := redact.New(nil, []redact.Own{own}); err == nil {
		t.Error("the name of another pattern was taken")
	}
	if _, err := redact.New([]string{"secret"}, nil); err == nil {
		t.Error("an unknown name was taken")
	}
	if r, err := redact.New(nil, nil); r != nil || err != nil {
		t.Errorf("no pattern gives %v, %v", r, err)
	}
}

// Text made to be slow takes no longer than a multiple of other text.
func TestHostile(t *testing.T) {
	r := all(t)
	for _, part := range []string{
		"eyJ", "eyJ-", "sk-", "-----BEGIN PRIVATE KEY-----", "password=", "password=password", "bearer ", "basic ", "://a:", "://", "a@", "@", "4 ", "4", "AKIA", "xox", `\u0041`, `\`, "token ", "--token ", "secret_",
	} {
		text := strings.Repeat(part, (1<<20)/len(part))
		began := time.Now()
		r.Text(text, nil)
		if took := time.Since(began); took > time.Minute/2 {
			t.Errorf("%d bytes of %q took %s", len(text), part, took)
		}
	}
}

func FuzzRedact(f *testing.F) {
	for _, s := range secrets {
		f.Add(s[1] + s[2] + s[3])
	}
	r := all(f)
	f.Fuzz(func(t *testing.T, text string) {
		out := r.Text(text, nil)
		if json.Valid([]byte(text)) != json.Valid([]byte(out)) && json.Valid([]byte(text)) {
			t.Fatalf("%q was JSON and became %q", text, out)
		}
		streamed, err := io.ReadAll(r.Reader(iotest.OneByteReader(strings.NewReader(text)), nil))
		must(t, err)
		if !bytes.ContainsRune([]byte(text), 0) && string(streamed) != out {
			t.Fatalf("the stream is %q, the text %q", streamed, out)
		}
	})
}

func BenchmarkText(b *testing.B) {
	r, err := redact.New([]string{redact.Secrets}, nil)
	must(b, err)
	for _, size := range []int{1 << 10, 1 << 20} {
		text := strings.Repeat("The quick brown fox: https://example.org/path?x=1, jumps over 13 lazy dogs.\n", size/70)[:size]
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			b.SetBytes(int64(size))
			for b.Loop() {
				r.Text(text, nil)
			}
		})
	}
}
