package compress_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/blob"
	"github.com/loom-bridge/loom-bridge/context/compress"
)

func TestThreshold(t *testing.T) {
	// J01, P41
	c := MustCompressor(t, nil)
	multi := strings.Repeat("é", 1) // two bytes, one character
	tests := []struct {
		name   string
		chars  int
		change func(*compress.Result)
		want   bool
	}{
		{"1499", 1499, nil, false},
		{"1500 stays", 1500, nil, false},
		{"1501 goes", 1501, nil, true},
		{"forced: 499", 499, func(r *compress.Result) { r.Hint = compress.HintForce }, false},
		{"forced: 500 stays", 500, func(r *compress.Result) { r.Hint = compress.HintForce }, false},
		{"forced: 700 goes", 700, func(r *compress.Result) { r.Hint = compress.HintForce }, true},
		{"the caller's own: 1000 stays", 1000, func(r *compress.Result) { r.Threshold = 1000 }, false},
		{"the caller's own: 1001 goes", 1001, func(r *compress.Result) { r.Threshold = 1000 }, true},
		{"the caller's own may be higher", 3000, func(r *compress.Result) { r.Threshold = 3000 }, false},
		{"skipped", 9000, func(r *compress.Result) { r.Hint = compress.HintSkip }, false},
		{"failed", 9000, func(r *compress.Result) { r.Failed = true }, false},
		{"failed and forced", 9000, func(r *compress.Result) { r.Failed, r.Hint = true, compress.HintForce }, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := result(words(tt.chars-1) + multi)
			if tt.change != nil {
				tt.change(&r)
			}
			got := c.Compress(r)
			if got.IsCompressed != tt.want || got.IsCompressed == (got.Text == r.Content) || got.Chars != tt.chars {
				t.Errorf("shortened %v, want %v; %d chars, %.80q", got.IsCompressed, tt.want, got.Chars, got.Text)
			}
			if (got.Strategy == compress.None) == tt.want {
				t.Errorf("strategy %q", got.Strategy)
			}
		})
	}
}

func TestTextKeepsBothEnds(t *testing.T) {
	// P41
	c := MustCompressor(t, nil)
	feeds := func(n int, at ...int) string {
		text := []byte(words(n))
		for _, i := range at {
			text[i] = '\n'
		}
		return string(text)
	}
	const n, tail = 3000, 3000 - 288
	tests := []struct {
		name, text string
		head, last int // what is shown of both ends
	}{
		{"no line feed", feeds(n), 862, 288},
		{"just within the last 40 percent of the head", feeds(n, 518), 518, 288},
		{"just before them", feeds(n, 517), 862, 288},
		{"at its very end", feeds(n, 861), 861, 288},
		{"just within the first 40 percent of the tail", feeds(n, tail+115), 862, 288 - 116},
		{"just behind them", feeds(n, tail+116), 862, 288},
		{"the last of the head, the first of the tail", feeds(n, 600, 800, tail+10, tail+50), 800, 288 - 11},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := c.Compress(result(tt.text))
			_, text, _ := strings.Cut(got.Text, "\n")
			want := fmt.Sprintf("%s\n…[%d chars omitted]…\n%s\nFull data: %s",
				tt.text[:tt.head], n-tt.head-tt.last, tt.text[n-tt.last:], testPath)
			if text != want {
				t.Errorf("got %q\nwant %q", text, want)
			}
		})
	}
}

func TestStrategyIsChosen(t *testing.T) {
	// J01
	object := `{"results":[{"title":"a"},{"title":"b"}],"text":"` + words(2000) + `"}`
	tests := []struct {
		name    string
		tool    string
		kind    compress.Strategy
		hint    compress.Hint
		content string
		want    compress.Strategy
	}{
		{"by kind", "web:search", compress.Text, 0, object, compress.Text},
		{"by name", "web:search", "", 0, object, compress.Search},
		{"by name, written otherwise", "web_search", "", 0, object, compress.Search},
		{"by name, though the kind is unknown", "fs:read_file", "odd", 0, object, compress.File},
		{"a command", "system:shell", "", 0, words(2000), compress.Exec},
		{"a JSON object", "my:tool", "", 0, object, compress.API},
		{"a JSON array", "my:tool", "", 0, "[" + object + "]", compress.Text},
		{"text", "my:tool", "", 0, words(2000), compress.Text},
		{"no JSON after all", "my:tool", "", 0, object + "}", compress.Text},
		{"the hint is stronger", "my:tool", compress.File, compress.HintSearch, object, compress.Search},
		{"a search without hits is an object", "", compress.Search, 0, `{"results":[],"text":"` + words(2000) + `"}`, compress.API},
		{"a search without JSON is text", "", compress.Search, 0, words(2000), compress.Text},
		{"an array is no object", "", compress.API, 0, "[" + object + "]", compress.Text},
	}
	c := MustCompressor(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := result(tt.content)
			r.Tool, r.Kind, r.Hint = tt.tool, tt.kind, tt.hint
			if got := c.Compress(r); got.Strategy != tt.want {
				t.Errorf("got %q, want %q", got.Strategy, tt.want)
			}
		})
	}
}

func TestAdaptiveThreshold(t *testing.T) {
	// J08
	for _, tt := range []struct {
		pressure float64
		want     int
	}{
		{0, 3000},
		{0.5, 1500},
		{0.9, 500},
		{1, 500},
		{0.83, 510},
		{0.8334, 500},
		{0.33333, 2000},
		{-1, 3000},
		{7, 500},
		{math.NaN(), 3000},
		{math.Inf(1), 500},
		{math.Inf(-1), 3000},
	} {
		if got := compress.AdaptiveThreshold(tt.pressure); got != tt.want {
			t.Errorf("pressure %v: got %d, want %d", tt.pressure, got, tt.want)
		}
	}
	fixed, adaptive := MustCompressor(t, nil), MustCompressor(t, &compress.Options{Adaptive: true})
	r := result(words(1000))
	r.Pressure = 0.75
	if fixed.Compress(r).IsCompressed || !adaptive.Compress(r).IsCompressed {
		t.Error("only an adaptive threshold follows the pressure")
	}
	r.Pressure, r.Content = 0, words(2500)
	if !fixed.Compress(r).IsCompressed || adaptive.Compress(r).IsCompressed {
		t.Error("an empty window leaves room for more")
	}
}

func TestCap(t *testing.T) {
	count := MustCount(t)
	c := compress.New(count, nil)
	long := strings.Repeat("the quick brown fox jumps over the lazy dog\n", 2000)
	for _, tt := range []struct {
		name   string
		change func(*compress.Result)
		share  float64 // of the beginning in what is shown
	}{
		{"skipped", func(r *compress.Result) { r.Hint = compress.HintSkip }, 2. / 3},
		{"failed", func(r *compress.Result) { r.Failed = true }, 1. / 3},
		{"a command that failed", func(r *compress.Result) { r.Kind, r.ExitCode = compress.Exec, 1 }, 1. / 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := result(long)
			tt.change(&r)
			got := c.Compress(r)
			first, rest, ok := strings.Cut(got.Text, "\n…[")
			number, last, ok2 := strings.Cut(rest, " chars omitted]…\n")
			last, ok3 := strings.CutSuffix(last, "\nFull data: "+testPath)
			if !ok || !ok2 || !ok3 || got.Strategy != compress.Cap || !got.IsCompressed {
				t.Fatalf("%s: %.200q … %.200q", got.Strategy, got.Text, got.Text[len(got.Text)-200:])
			}
			if !strings.HasPrefix(long, first) || !strings.HasSuffix(long, last) || number != fmt.Sprint(len(long)-len(first)-len(last)) {
				t.Errorf("%d and %d bytes with %s between them are not the whole", len(first), len(last), number)
			}
			if n := count(got.Text); n > 3000 || n < 2900 {
				t.Errorf("%d tokens", n)
			}
			if share := float64(len(first)) / float64(len(first)+len(last)); math.Abs(share-tt.share) > 0.02 {
				t.Errorf("%.2f of it are the beginning, want %.2f", share, tt.share)
			}
		})
	}
	t.Run("at the limit", func(t *testing.T) {
		r := result(strings.Repeat(" word", 3000))
		r.Hint = compress.HintSkip
		if got := c.Compress(r); got.IsCompressed {
			t.Errorf("%d tokens were cut", count(r.Content))
		}
		r.Content += " word"
		if got := c.Compress(r); !got.IsCompressed {
			t.Errorf("%d tokens were not cut", count(r.Content))
		}
	})
	t.Run("no limit", func(t *testing.T) {
		r := result(long)
		r.Hint = compress.HintSkip
		if got := compress.New(count, &compress.Options{ResultTokens: -1}).Compress(r); got.IsCompressed {
			t.Error("it was cut")
		}
	})
}

// However tokens lie in a text, what is left of it is within the limit.
func TestCapIsALimit(t *testing.T) {
	count := MustCount(t)
	for name, text := range map[string]string{
		"spaces":         strings.Repeat(" ", 300_000) + strings.Repeat("x\n", 20_000) + strings.Repeat(" ", 300_000),
		"dense ends":     strings.Repeat("Ѭ", 5000) + strings.Repeat(" ", 100_000) + strings.Repeat("𐍈", 5000),
		"one character":  strings.Repeat("a", 200_000),
		"long path":      strings.Repeat("word ", 5000),
		"han":            strings.Repeat("天地玄黄宇宙洪荒", 3000),
		"emoji families": strings.Repeat("👩‍👩‍👧‍👦", 2000),
	} {
		t.Run(name, func(t *testing.T) {
			for _, limit := range []int{1, 40, 100, 3000} {
				r := result(text)
				r.Hint = compress.HintSkip
				got := compress.New(count, &compress.Options{ResultTokens: limit}).Compress(r)
				n := count(got.Text)
				if !utf8.ValidString(got.Text) || !got.IsCompressed || n > max(limit, 40) {
					t.Errorf("limit %d: %d tokens, shortened %v", limit, n, got.IsCompressed)
				}
				if limit == 3000 && n < 2000 && name != "spaces" {
					t.Errorf("limit %d: only %d tokens are left", limit, n)
				}
			}
		})
	}
}

func TestWhatIsNoTextIsNamed(t *testing.T) {
	// J09
	c := MustCompressor(t, nil)
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00\xfe", 3000)
	for _, tt := range []struct {
		name, content, kind, want string
		hint                      compress.Hint
		failed                    bool
	}{
		{"image", png, blob.KindImage, "[image 5.9KB → " + testPath + "]", 0, false},
		{"image, skipped", png, blob.KindImage, "[image 5.9KB → " + testPath + "]", compress.HintSkip, false},
		{"image, failed", png, blob.KindImage, "[image 5.9KB → " + testPath + "]", 0, true},
		{"audio", "ID3" + strings.Repeat("\xff", 2000), blob.KindAudio, "[audio 2KB → " + testPath + "]", 0, false},
		{"binary", strings.Repeat("x", 2000) + "\x00", blob.KindBinary, "[binary 2KB → " + testPath + "]", 0, false},
		{"no UTF-8", strings.Repeat("x", 2000) + "\xc3", blob.KindBinary, "[binary 2KB → " + testPath + "]", 0, false},
		{"image as a URL", "data:image/png;base64," + strings.Repeat("AAAA", 1024), blob.KindImage, "[image 3KB → " + testPath + "]", 0, false},
		{"PDF as a URL", "data:application/pdf;base64," + strings.Repeat("AAAA", 1024) + "==", blob.KindBinary, "[binary 3KB → " + testPath + "]", 0, false},
	} {
		r := result(tt.content)
		r.Hint, r.Failed, r.Kind = tt.hint, tt.failed, compress.Search
		got := c.Compress(r)
		if got.Text != tt.want || got.ContentKind != tt.kind || got.Strategy != compress.Stub {
			t.Errorf("%s: %s %s %.200q", tt.name, got.ContentKind, got.Strategy, got.Text)
		}
	}
	for _, text := range []string{
		"data:image/png;base64,AAAA AAAA is how it begins. " + words(2000), "data:text/plain;base64," + strings.Repeat("AAAA", 1024),
		"data:," + words(2000), "data:" + words(2000) + ";base64,AAAA",
	} {
		if got := c.Compress(result(text)); got.ContentKind != blob.KindText || got.Strategy != compress.Text {
			t.Errorf("%.40s is taken for %s", text, got.ContentKind)
		}
	}
	r := result(words(2000))
	r.Kind = compress.Exec
	if got := c.Compress(r).ContentKind; got != blob.KindLog {
		t.Errorf("output of a command is %s", got)
	}
	if got := c.Compress(result(`{"a":"` + words(2000) + `"}`)).ContentKind; got != blob.KindJSON {
		t.Errorf("JSON is %s", got)
	}
}

// A search with long pages becomes a twentieth of itself, or less.
func TestSearchRatio(t *testing.T) {
	// Q09, J07
	count := MustCount(t)
	type hit struct {
		Title   string `json:"title"`
		URL     string `json:"url"`
		Snippet string `json:"snippet"`
		Content string `json:"content"`
	}
	var hits []hit
	for i := range 8 {
		hits = append(hits, hit{
			fmt.Sprintf("What %d engineers learned about harbours", i+3),
			fmt.Sprintf("https://www.example.org/engineering/articles/%d/harbours", i),
			fmt.Sprintf("In the %dth year of the survey the gates were measured again, and the numbers had changed: "+
				"storms came earlier, the mud lay deeper, and the turbines turned slower than anybody had thought.", i),
			strings.Repeat(fmt.Sprintf("Paragraph %d says more about gates, locks, turbines and the people who look after them. ", i), 70),
		})
	}
	text, err := json.Marshal(map[string]any{"query": "harbours", "results": hits})
	if err != nil || len(text) < 50<<10 {
		t.Fatalf("%d bytes, %v", len(text), err)
	}
	r := result(string(text))
	r.Tool = "web:search"
	got := compress.New(count, nil).Compress(r)
	if !strings.HasPrefix(got.Text, "[COMPRESSED:"+testRef+"] Found 8 results. Top 5:\n") {
		t.Errorf("begins %.80q", got.Text)
	}
	bytes, tokens := len(text)/len(got.Text), count(string(text))/count(got.Text)
	t.Logf("%d bytes become %d, %d : 1; %d tokens become %d, %d : 1",
		len(text), len(got.Text), bytes, count(string(text)), count(got.Text), tokens)
	if bytes < 20 || tokens < 20 {
		t.Errorf("ratio %d : 1 in bytes, %d : 1 in tokens; want 20 : 1", bytes, tokens)
	}
}
