package tokens_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"

	"github.com/loom-bridge/loom-bridge/context/tokens"
)

// models has one model for each encoding.
var models = map[tokens.Encoding]string{tokens.O200K: "gpt-4o", tokens.CL100K: "gpt-4"}

func MustCounter(tb testing.TB, opts *tokens.Options) *tokens.Counter {
	tb.Helper()
	c, err := tokens.New(opts)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func MustCount(tb testing.TB, c *tokens.Counter, model, text string) tokens.Count {
	tb.Helper()
	n, err := c.Count(model, text)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// The library itself, loaded once for all tests.
var (
	oracleO200K  = sync.OnceValues(func() (*tiktoken.Tiktoken, error) { return tiktoken.GetEncoding(string(tokens.O200K)) })
	oracleCL100K = sync.OnceValues(func() (*tiktoken.Tiktoken, error) { return tiktoken.GetEncoding(string(tokens.CL100K)) })
)

// MustOracle is the library itself, for whole texts.
func MustOracle(tb testing.TB, encoding tokens.Encoding) *tiktoken.Tiktoken {
	tb.Helper()
	// A count makes the library load from memory instead of the network.
	MustCount(tb, MustCounter(tb, nil), models[encoding], "load")
	load := oracleO200K
	if encoding == tokens.CL100K {
		load = oracleCL100K
	}
	oracle, err := load()
	if err != nil {
		tb.Fatal(err)
	}
	return oracle
}

var texts = map[string]string{
	"empty":       "",
	"word":        "hello",
	"prose":       "The quick brown fox jumps over the lazy dog. It's 12:30, isn't it?\n",
	"code":        "func main() {\n\tfmt.Println(\"a\\tb\")\n\t// comment ===== \n}\r\n\r\n",
	"json":        `{"path":"README.md","lines":[1,22,333,4444],"ok":true,"ratio":-1.5e-9}`,
	"han":         "你好，世界。天地玄黄宇宙洪荒",
	"kana":        "ひらがなとカタカナ",
	"hangul":      "안녕하세요 세계",
	"thai":        "สวัสดีชาวโลก",
	"hindi":       "नमस्ते दुनिया",
	"arabic":      "مرحبا بالعالم ١٢٣",
	"emoji":       "👩‍👩‍👧‍👦 🇩🇪 👍🏽!!",
	"combining":   "e\u0301a\u0308 !\u0301!\u0301",
	"spaces":      "a  b   c    \n\n   d \t e\u00a0\u2003f",
	"special":     "<|endoftext|> <|fim_prefix|> <|endofprompt|>",
	"invalid":     "a\xff\xfe\x80b \xc3(",
	"controls":    "a\x00b\x01\x7f\u0085\u2028c",
	"long digits": strings.Repeat("1234567890", 1000),
	"camel":       "getHTTPResponseCodeFromXMLParserURLs",
}

// The count is the tokenizer's own.
func TestCountAgreesWithTokenizer(t *testing.T) {
	for encoding, model := range models {
		oracle := MustOracle(t, encoding)
		c := MustCounter(t, nil)
		for name, text := range texts {
			t.Run(string(encoding)+"/"+name, func(t *testing.T) {
				want := tokens.Count{Tokens: len(oracle.EncodeOrdinary(text)), Encoding: encoding, Exact: true}
				for range 2 { // counted, then remembered
					if got := MustCount(t, c, model, text); got != want {
						t.Errorf("got %+v, want %+v", got, want)
					}
				}
			})
		}
	}
}

// Long texts are cut where the tokenizer splits, so their counts are exact.
func TestCountOfLongTextIsExact(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(texts)) { // the same text every time
		if name != "long digits" {
			parts = append(parts, texts[name])
		}
	}
	var long strings.Builder
	for long.Len() < 300<<10 {
		long.WriteString(parts[r.IntN(len(parts))])
		long.WriteString([]string{"", " ", "\n", "\n/", "  \n", "\t"}[r.IntN(6)])
	}
	// The longest run that is counted whole, so no letter may stand before it.
	long.WriteString("\n" + strings.Repeat("x", tokens.MaxRunBytes))
	for encoding, model := range models {
		want := len(MustOracle(t, encoding).EncodeOrdinary(long.String()))
		got := MustCount(t, MustCounter(t, nil), model, long.String())
		if got.Tokens != want || !got.Exact {
			t.Errorf("%s: got %+v, want %d exact", encoding, got, want)
		}
	}
}

// runs are texts of one size that the tokenizer can't split, or splits badly.
func runs(size int) map[string]string {
	r := rand.New(rand.NewPCG(3, 4))
	random := func(alphabet string, word int) string {
		letters := []rune(alphabet)
		var b strings.Builder
		for n := 1; b.Len() < size; n++ {
			b.WriteRune(letters[r.IntN(len(letters))])
			if word > 0 && n%word == 0 {
				b.WriteByte(' ')
			}
		}
		return b.String()[:size]
	}
	lower := "abcdefghijklmnopqrstuvwxyz"
	return map[string]string{
		"one letter":      strings.Repeat("a", size),
		"letters":         random(lower, 0),
		"capitals":        strings.Repeat("A", size),
		"mixed case":      random(lower+strings.ToUpper(lower), 0),
		"spaces":          strings.Repeat(" ", size),
		"newlines":        strings.Repeat("\n", size),
		"spaces, letter":  strings.Repeat(" ", size-1) + "a",
		"one symbol":      strings.Repeat("=", size),
		"symbols":         random("!#$%&()*+-=@/", 0),
		"digits":          random("0123456789", 0),
		"han":             random("天地玄黄宇宙洪荒日月盈昃", 0),
		"emoji":           random("👍🎉🔥", 0),
		"marks":           random("\u0301\u0302!", 0),
		"invalid":         strings.Repeat("\x80", size),
		"longest words":   random(lower, tokens.MaxRunBytes),
		"base64":          random(lower+strings.ToUpper(lower)+"0123456789+/", 0),
		"letter by digit": strings.Repeat("a1", size/2),
	}
}

// The work for a run grows with its length, not with the square of it: per
// byte, a run that is 16 times as long must not take four times as long.
func TestLongRunsAreLinear(t *testing.T) {
	const short, long = 8 << 10, 128 << 10
	for encoding, model := range models {
		MustCount(t, MustCounter(t, nil), model, "load")
		longRuns := runs(long)
		for name, text := range runs(short) {
			fast, slow := cpuTime(t, model, text, 8), cpuTime(t, model, longRuns[name], 1)
			t.Logf("%-11s %-15s %v per MiB", encoding, name, (slow * (1 << 20) / long).Round(time.Millisecond))
			if slow/long > 4*fast/short+time.Microsecond {
				t.Errorf("%s, %s: %d bytes took %v, %d bytes %v", encoding, name, short, fast, long, slow)
			}
		}
	}
}

// cpuTime is the processor's time for a count, the mean of some: other
// programs on the machine don't spoil it.
func cpuTime(tb testing.TB, model, text string, times int) time.Duration {
	tb.Helper()
	used := func() time.Duration {
		var usage syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
			tb.Fatal(err)
		}
		return time.Duration(usage.Utime.Nano())
	}
	started := used()
	for range times {
		MustCount(tb, MustCounter(tb, nil), model, text)
	}
	return (used() - started) / time.Duration(times)
}

func TestRunsAroundTheLimit(t *testing.T) {
	c := MustCounter(t, nil)
	oracle := MustOracle(t, tokens.O200K)
	for _, tt := range []struct {
		size  int
		exact bool
	}{
		{tokens.MaxRunBytes - 1, true},
		{tokens.MaxRunBytes, true},
		{tokens.MaxRunBytes + 1, false},
	} {
		text := "start " + strings.Repeat("ab", tt.size)[:tt.size] + " end"
		got := MustCount(t, c, "gpt-4o", text)
		if got.Exact != tt.exact {
			t.Errorf("run of %d bytes: exact %v, want %v", tt.size, got.Exact, tt.exact)
		}
		want := len(oracle.EncodeOrdinary(text))
		if tt.exact && got.Tokens != want {
			t.Errorf("run of %d bytes: %d tokens, want %d", tt.size, got.Tokens, want)
		}
		if off := got.Tokens - want; off < -want/20 || off > want/20 {
			t.Errorf("run of %d bytes: %d tokens, want %d within 5 %%", tt.size, got.Tokens, want)
		}
	}
}

func TestEnds(t *testing.T) {
	c := MustCounter(t, nil)
	text := strings.Repeat("Zeile eins mit Wörtern, 漢字 und 👍.\n", 200)
	total := MustCount(t, c, "gpt-4o", text).Tokens
	for range 2 { // worked out, then remembered
		first, last, err := c.Ends("gpt-4o", text, 200, 100)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) || !utf8.ValidString(first) || !utf8.ValidString(last) {
			t.Fatalf("ends are no ends: %q … %q", first, last)
		}
		for name, got := range map[string]struct {
			text string
			want int
		}{"first": {first, 200}, "last": {last, 100}} {
			n := MustCount(t, c, "gpt-4o", got.text).Tokens
			if n < got.want-3 || n > got.want+3 {
				t.Errorf("%s has %d tokens, want about %d", name, n, got.want)
			}
		}
	}
	first, last, err := c.Ends("gpt-4o", text, total, 0)
	if err != nil || first != text || last != "" {
		t.Errorf("a text that fits came back as %d and %d bytes, %v", len(first), len(last), err)
	}
	if first, last, err = c.Ends("gpt-4o", text, 0, 0); err != nil || first != "" || last != "" {
		t.Errorf("no tokens are %q and %q, %v", first, last, err)
	}
}

func TestTooLarge(t *testing.T) {
	c := MustCounter(t, nil)
	_, err := c.Count("gpt-4o", strings.Repeat("a", tokens.MaxTextBytes+1))
	if !errors.Is(err, tokens.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
	if _, err := tokens.New(&tokens.Options{MemoEntries: -1}); err == nil {
		t.Error("a negative memo was accepted")
	}
}

// A small memo forgets, and counts right all the same.
func TestConcurrentCountsWithSmallMemo(t *testing.T) {
	c := MustCounter(t, &tokens.Options{MemoEntries: 4})
	oracle := MustOracle(t, tokens.O200K)
	want := make(map[string]int)
	for i := range 40 {
		text := strings.Repeat(fmt.Sprintf("text number %d; ", i), 10)
		want[text] = len(oracle.EncodeOrdinary(text))
	}
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for text, n := range want {
				if got, err := c.Count("gpt-4o", text); err != nil || got.Tokens != n {
					t.Errorf("got %+v, %v, want %d", got, err, n)
				}
			}
		})
	}
	group.Wait()
}

func TestEncodingFor(t *testing.T) {
	for _, tt := range []struct {
		model    string
		encoding tokens.Encoding
		exact    bool
	}{
		{"", tokens.O200K, true},
		{"gpt-4o", tokens.O200K, true},
		{"gpt-4o-mini-2024-07-18", tokens.O200K, true},
		{"openai/gpt-4.1-nano", tokens.O200K, true},
		{"ft:gpt-4o:acme::1", tokens.O200K, true},
		{"o1", tokens.O200K, true},
		{"o3-mini", tokens.O200K, true},
		{"GPT-5", tokens.O200K, true},
		{"gpt-5.1-codex", tokens.O200K, true},
		{"gpt-4", tokens.CL100K, true},
		{"gpt-4-32k", tokens.CL100K, true},
		{"gpt-3.5-turbo", tokens.CL100K, true},
		{"gpt-4.7", tokens.O200K, false},
		{"o10", tokens.O200K, false},
		{"claude-sonnet-5", tokens.O200K, false},
		{"anthropic/claude", tokens.O200K, false},
		{"llama-3", tokens.O200K, false},
	} {
		encoding, exact := tokens.EncodingFor(tt.model)
		if encoding != tt.encoding || exact != tt.exact {
			t.Errorf("%q: got %s, %v, want %s, %v", tt.model, encoding, exact, tt.encoding, tt.exact)
		}
	}
	got := MustCount(t, MustCounter(t, nil), "claude-sonnet-5", "hello")
	if got.Exact || got.Tokens != 1 {
		t.Errorf("a model of unknown vocabulary was counted as %+v", got)
	}
}

// A text that was counted before must not be counted again.
func BenchmarkCountRemembered(b *testing.B) {
	c := MustCounter(b, nil)
	text := strings.Repeat(texts["prose"], 1000)
	MustCount(b, c, "gpt-4o", text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		MustCount(b, c, "gpt-4o", text)
	}
}

func BenchmarkCount(b *testing.B) {
	MustCount(b, MustCounter(b, nil), "gpt-4o", "load")
	text := strings.Repeat(texts["prose"]+texts["code"]+texts["json"], 300)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		MustCount(b, MustCounter(b, nil), "gpt-4o", text)
	}
}

// BenchmarkCountRuns is the cost of the texts that are worst to count.
func BenchmarkCountRuns(b *testing.B) {
	for name, text := range runs(1 << 20) {
		b.Run(name, func(b *testing.B) {
			MustCount(b, MustCounter(b, nil), "gpt-4o", "load")
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				MustCount(b, MustCounter(b, nil), "gpt-4o", text)
			}
		})
	}
}

func FuzzCount(f *testing.F) {
	for _, text := range texts {
		f.Add(text, uint8(3))
	}
	f.Add("\u0301 \u0301a", uint8(200))
	f.Add("\xe0000", uint8(170))
	oracle := MustOracle(f, tokens.O200K)
	old := MustOracle(f, tokens.CL100K)
	c := MustCounter(f, nil)
	f.Fuzz(func(t *testing.T, text string, times uint8) {
		text = strings.Repeat(text, int(times)+1)
		if len(text) > 1<<16 {
			return
		}
		if got := MustCount(t, c, "gpt-4o", text); got.Exact && got.Tokens != len(oracle.EncodeOrdinary(text)) {
			t.Errorf("o200k: got %d", got.Tokens)
		}
		if got := MustCount(t, c, "gpt-4", text); got.Exact && got.Tokens != len(old.EncodeOrdinary(text)) {
			t.Errorf("cl100k: got %d", got.Tokens)
		}
		first, last, err := c.Ends("gpt-4o", text, int(times), int(times)/2)
		if err != nil || !strings.HasPrefix(text, first) || !strings.HasSuffix(text[len(first):], last) {
			t.Errorf("ends %q and %q, %v", first, last, err)
		}
	})
}
