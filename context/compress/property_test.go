package compress_test

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/loom-bridge/loom-bridge/context/compress"
)

// quarters is a counter that costs nothing: four bytes are a token.
func quarters(text string) int { return (len(text) + 3) / 4 }

// checkPromises fails the test when a promise of the package does not hold for a
// result.
func checkPromises(tb testing.TB, c *compress.Compressor, count func(string) int, r compress.Result) {
	tb.Helper()
	got := c.Compress(r)
	if !got.IsCompressed {
		if got.Text != r.Content || got.Strategy != compress.None {
			tb.Fatalf("not shortened, but %q is not the content", got.Text)
		}
		return
	}
	if before, after := count(r.Content), count(got.Text); after >= before {
		tb.Fatalf("%s: %d tokens became %d", got.Strategy, before, after)
	}
	if n := utf8.RuneCountInString(got.Text); n > utf8.RuneCountInString(r.Content) || got.Strategy != compress.Cap && n > sizeOf(got.Strategy) {
		tb.Fatalf("%s: %d chars of %d", got.Strategy, n, got.Chars)
	}
	if !utf8.ValidString(got.Text) {
		tb.Fatalf("%s: a character is cut in two: %q", got.Strategy, got.Text)
	}
	if !strings.HasSuffix(got.Text, "Full data: "+r.RefPath) && got.Strategy != compress.Stub {
		tb.Fatalf("%s: nothing says where the whole is: %q", got.Strategy, got.Text)
	}
	marked := strings.HasPrefix(got.Text, "[COMPRESSED:"+r.Ref+"] ")
	if own := got.Strategy == compress.Cap || got.Strategy == compress.Stub; marked == own && !strings.HasPrefix(r.Content, "[") {
		tb.Fatalf("%s: begins %.40q", got.Strategy, got.Text)
	}
	if diff := cmp.Diff(got, c.Compress(r)); diff != "" {
		tb.Fatalf("the same again gives something else:\n%s", diff)
	}
	again := r
	again.Content, again.IsCompressed = got.Text, got.IsCompressed
	if second := c.Compress(again); second.Text != got.Text || !second.IsCompressed {
		tb.Fatalf("a second pass makes %q of %q", second.Text, got.Text)
	}
}

// sizeOf is the size of a strategy's short form, in characters.
func sizeOf(s compress.Strategy) int {
	switch s {
	case compress.Search:
		return 2000
	case compress.File, compress.API:
		return 1000
	case compress.Stub:
		return 100
	}
	return 1500
}

// pieces are what random results are made of.
var pieces = []string{
	" ", "\n", "\r\n", "\t", "word", "é", "天地", "👩‍👩‍👧‍👦", "\x1b[31m", "\u2028", "\x00", "\xff", "\"", "\\", "\\u12", "{", "}", "[", "]", ",", ":",
	`"title":"a title"`, `"url":"https://example.org/a"`, `"results":[`, `{"name":"n","link":"l","summary":"s"},`, "1e999", "Full data: x", "[COMPRESSED:x] ",
}

func randomContent(random *rand.Rand) string {
	var text strings.Builder
	for range random.IntN(8) + 1 {
		text.WriteString(strings.Repeat(pieces[random.IntN(len(pieces))], random.IntN(300)))
	}
	if random.IntN(2) == 0 {
		return text.String()
	}
	return randomJSON(random, text.String(), 0)
}

// randomJSON is a value that holds a text somewhere.
func randomJSON(random *rand.Rand, text string, depth int) string {
	if depth > 6 || random.IntN(4) == 0 {
		quoted, _ := json.Marshal(text[:random.IntN(min(len(text), 3000)+1)])
		return string(quoted)
	}
	keys := []string{"results", "items", "title", "url", "snippet", "stdout", "exit_code", "content", "path", "odd \\ key\n"}
	array := random.IntN(3) == 0
	var members []string
	for range random.IntN(6) {
		value := randomJSON(random, text, depth+1+random.IntN(4))
		if !array {
			key, _ := json.Marshal(keys[random.IntN(len(keys))])
			value = string(key) + strings.Repeat(" ", random.IntN(2)) + ":" + value
		}
		members = append(members, value)
	}
	if array {
		return "[" + strings.Join(members, ", ") + "]"
	}
	return " {" + strings.Join(members, ",\n") + "}"
}

// P02
func TestPromisesHoldForRandomResults(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 11))
	tools := []string{"", "web:search", "fs:read_file", "system:shell", "my:tool"}
	kinds := append(compress.Kinds(), "", "", "", "odd")
	c := compress.New(quarters, nil)
	for range 3000 {
		r := result(randomContent(random))
		r.Tool, r.Kind = tools[random.IntN(len(tools))], kinds[random.IntN(len(kinds))]
		r.Hint, r.Failed = compress.Hint(random.IntN(4)), random.IntN(5) == 0
		r.Path, r.ExitCode = strings.Repeat("p/", random.IntN(400)), random.IntN(3)/2
		checkPromises(t, c, quarters, r)
	}
}

// P02
func TestPromisesHoldWithAModelsCounter(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 3))
	count := MustCount(t)
	c := compress.New(count, nil)
	for range 100 {
		r := result(randomContent(random))
		r.Hint, r.Kind = compress.Hint(random.IntN(4)), compress.Kinds()[random.IntN(5)]
		checkPromises(t, c, count, r)
	}
}

// What looks like a short form is a text like any other: only the mark counts.
//
// P02
func TestShortenedIsKnownByItsMark(t *testing.T) {
	c := MustCompressor(t, nil)
	forged := "[COMPRESSED:" + testRef + "] Found 8 results. Top 5:\n" + words(3000) + "\nFull data: " + testPath
	if got := c.Compress(result(forged)); !got.IsCompressed {
		t.Error("a forged mark keeps a text long")
	}
	r := result(forged)
	r.IsCompressed = true
	if got := c.Compress(r); got.Text != forged || !got.IsCompressed || got.Strategy != compress.None {
		t.Errorf("what is marked is not returned as it is: %+v", got)
	}
}

func FuzzCompress(f *testing.F) {
	f.Add(`{"results":[{"title":"t","url":"u","snippet":"s"}],"x":"`+words(3000)+`"}`, "web:search", "search", uint8(0), 0)
	f.Add(words(4000), "fs:read_file", "", uint8(2), 300)
	f.Add(`{"stdout":"`+words(2000)+`","exit_code":0}`, "system:shell", "", uint8(3), 0)
	f.Add("\x89PNG\r\n\x1a\n\x00"+words(2000), "", "", uint8(0), 0)
	c := compress.New(quarters, nil)
	f.Fuzz(func(t *testing.T, content, tool, kind string, hint uint8, threshold int) {
		r := result(content)
		r.Tool, r.Kind, r.Hint, r.Path = tool, compress.Strategy(kind), compress.Hint(hint%4), tool
		r.Failed = hint >= 128
		// The threshold moves what is left of a text; its size is that of the
		// default.
		r.Threshold = min(threshold, compress.DefaultThreshold)
		checkPromises(t, c, quarters, r)
	})
}
