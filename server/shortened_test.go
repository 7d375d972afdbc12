package server_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/internal/testkit/chance"
	"github.com/loom-bridge/loom-bridge/internal/testkit/servertest"
	loombridgev1 "github.com/loom-bridge/loom-bridge/proto/gen/loombridge/v1"
)

// shorten asks for the short form of a result, of my:tool unless the request says
// another.
func (c caller) shorten(r *loombridgev1.CompressResultRequest) *loombridgev1.CompressResultResponse {
	c.tb.Helper()
	r.AgentId, r.SessionId = c.id, "s"
	if r.GetToolName() == "" {
		r.ToolName = "my:tool"
	}
	got, err := c.Context.CompressResult(c.tb.Context(), r)
	must(c.tb, err)
	return got
}

// textOf is a text of n characters without a line feed.
func textOf(n int) string { return strings.Repeat("five ", n/5+1)[:n] }

// whole is the file that a shortened result leads to.
type whole struct {
	RefID          string    `json:"ref_id"`
	ToolName       string    `json:"tool_name"`
	ToolID         string    `json:"tool_id"`
	CreatedAt      time.Time `json:"created_at"`
	OriginalLength int       `json:"original_length"`
	Content        string    `json:"content"`
}

// mustBeWhole reads the whole of a result by a name.
func (c caller) mustBeWhole(name string) whole {
	c.tb.Helper()
	var file whole
	decoder := json.NewDecoder(strings.NewReader(c.read(name)))
	decoder.DisallowUnknownFields()
	must(c.tb, decoder.Decode(&file))
	return file
}

// From which length on a result is shortened: over 1500 characters, over 500 when its
// caller forces it, over what the caller says; not at all when it failed or is to be
// skipped.
//
// J01, P41
func TestThresholdsOfResults(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	const force, skip = loombridgev1.CompressHint_COMPRESS_HINT_FORCE, loombridgev1.CompressHint_COMPRESS_HINT_SKIP
	for _, tt := range []struct {
		chars int
		r     *loombridgev1.CompressResultRequest
		goes  bool
	}{
		{1499, &loombridgev1.CompressResultRequest{}, false},
		{1500, &loombridgev1.CompressResultRequest{}, false},
		{1501, &loombridgev1.CompressResultRequest{}, true},
		{499, &loombridgev1.CompressResultRequest{Hint: force}, false},
		{500, &loombridgev1.CompressResultRequest{Hint: force}, false},
		{700, &loombridgev1.CompressResultRequest{Hint: force}, true},
		{1000, &loombridgev1.CompressResultRequest{ThresholdChars: 1000}, false},
		{1001, &loombridgev1.CompressResultRequest{ThresholdChars: 1000}, true},
		{3000, &loombridgev1.CompressResultRequest{ThresholdChars: 3000}, false},
		{3001, &loombridgev1.CompressResultRequest{ThresholdChars: 3000}, true},
		{9000, &loombridgev1.CompressResultRequest{Hint: skip}, false},
		{9000, &loombridgev1.CompressResultRequest{Failed: true}, false},
		{9000, &loombridgev1.CompressResultRequest{Failed: true, Hint: force}, false},
	} {
		tt.r.Content = textOf(tt.chars-1) + "é" // of two bytes
		got := c.shorten(tt.r)
		if got.GetCompressed() != tt.goes || (got.GetBlob() != nil) != tt.goes || (got.GetContent() == tt.r.Content) == tt.goes {
			t.Errorf("%d characters, %v: shortened %v", tt.chars, tt.r.GetHint(), got.GetCompressed())
		}
		if tt.goes && c.mustBeWhole(got.GetBlob().GetPath()).Content != tt.r.Content {
			t.Errorf("%d characters: the whole is another text", tt.chars)
		}
	}
	// What gets no shorter stays, and is not stored.
	before := len(MustList(t, c.Server, &loombridgev1.ListBlobsRequest{}))
	for _, content := range []string{textOf(501), textOf(520)} {
		if got := c.shorten(&loombridgev1.CompressResultRequest{Content: content, Hint: force}); got.GetCompressed() || got.GetContent() != content {
			t.Errorf("%d characters become %q", len(content), got.GetContent())
		}
	}
	if after := len(MustList(t, c.Server, &loombridgev1.ListBlobsRequest{})); after != before {
		t.Errorf("%d results are stored that stayed", after-before)
	}
}

// Of a command the exit code, the lines and the first fifty of them are shown; one that
// failed stays, as its caller or its exit code says.
//
// J05
func TestResultsOfFailedCommands(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	content := strings.Repeat("a line of a result\n", 140) // less than 3,000 tokens
	for _, tt := range []struct {
		failed bool
		code   int32
		goes   bool
	}{{false, 0, true}, {false, 2, false}, {true, 0, false}, {true, 2, false}} {
		got := c.shorten(&loombridgev1.CompressResultRequest{ToolName: "system:shell", Content: content, Failed: tt.failed, ExitCode: tt.code})
		if got.GetCompressed() != tt.goes || tt.goes && strings.Count(got.GetContent(), "a line") != 50 || !tt.goes && got.GetContent() != content {
			t.Errorf("failed %v, exit %d: %.300q", tt.failed, tt.code, got.GetContent())
		}
	}
}

// What is skipped or failed stays up to 3,000 tokens. Above, two thirds of the beginning
// and one third of the end are shown, of a failure the other way round.
//
// I19, P41
func TestResultsOverTheCap(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	for _, failed := range []bool{false, true} {
		for _, tokens := range []int{3000, 3001, 9000} {
			content := strings.TrimSpace(strings.Repeat("a ", tokens))
			got := c.shorten(&loombridgev1.CompressResultRequest{Content: content, Failed: failed, Hint: loombridgev1.CompressHint_COMPRESS_HINT_SKIP})
			if tokens == 3000 {
				if got.GetContent() != content {
					t.Errorf("failed %v: 3,000 tokens become %.100q", failed, got.GetContent())
				}
				continue
			}
			head, rest, _ := strings.Cut(got.GetContent(), "\n…[")
			missing, tail, _ := strings.Cut(rest, " chars omitted]…\n")
			tail, path, _ := strings.Cut(tail, "\nFull data: ")
			if n := c.tokens(got.GetContent()); n > 3000 || n < 2800 || missing != fmt.Sprint(len(content)-len(head)-len(tail)) || c.mustBeWhole(path).Content != content {
				t.Errorf("failed %v, %d tokens: %d are shown, %s characters missing, all of it at %q", failed, tokens, n, missing, path)
			}
			want := 2. / 3
			if failed {
				want = 1. / 3
			}
			if share := float64(len(head)) / float64(len(head)+len(tail)); share < want-.03 || share > want+.03 {
				t.Errorf("failed %v: %.2f of what is shown is the beginning, want %.2f", failed, share, want)
			}
		}
	}
}

// Which strategy shortens a result: that of the kind given, of the tool, of what the
// content looks like; a hint is stronger.
//
// J01, P41
func TestStrategiesOfResults(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	hits := `{"results":[{"title":"a"},{"title":"b"}],"text":"` + textOf(2000) + `"}`
	for _, tt := range []struct {
		tool, kind    string
		hint          loombridgev1.CompressHint
		content, want string
	}{
		{"web:search", "text", 0, hits, "text"},
		{"web:search", "", 0, hits, "search"},
		{"web_search", "", 0, hits, "search"},
		{"fs:read_file", "", 0, hits, "file"},
		{"system:shell", "", 0, textOf(2000), "exec"},
		{"my:tool", "", 0, hits, "api"},
		{"my:tool", "", 0, "[" + hits + "]", "text"},
		{"my:tool", "", 0, hits + "}", "text"},
		{"my:tool", "", 0, textOf(2000), "text"},
		{"my:tool", "file", loombridgev1.CompressHint_COMPRESS_HINT_SEARCH, hits, "search"},
		{"my:tool", "search", 0, `{"results":[],"text":"` + textOf(2000) + `"}`, "api"},
		{"my:tool", "search", 0, textOf(2000), "text"},
		{"my:tool", "api", 0, "[" + hits + "]", "text"},
	} {
		got := c.shorten(&loombridgev1.CompressResultRequest{ToolName: tt.tool, ResultKind: tt.kind, Hint: tt.hint, Content: tt.content})
		if got.GetStrategy() != tt.want {
			t.Errorf("%s of %s as %q: by %s, want %s", tt.content[:10], tt.tool, tt.kind, got.GetStrategy(), tt.want)
		}
	}
}

// A text keeps 862 characters of its beginning and 288 of its end, cut at line feeds
// that are near, and says how many are missing.
//
// P41
func TestBothEndsOfTexts(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	const n, tail = 3000, 3000 - 288
	for i, tt := range []struct {
		feeds      []int
		head, last int
	}{
		{nil, 862, 288},
		{[]int{518}, 518, 288}, // just within the last 40 percent of the beginning
		{[]int{517}, 862, 288},
		{[]int{861}, 861, 288},
		{[]int{tail + 115}, 862, 288 - 116}, // just within the first 40 percent of the end
		{[]int{tail + 116}, 862, 288},
		{[]int{600, 800, tail + 10, tail + 50}, 800, 288 - 11},
	} {
		text := []byte(textOf(n))
		copy(text, fmt.Sprint(i)) // no two are the same
		for _, at := range tt.feeds {
			text[at] = '\n'
		}
		got := c.shorten(&loombridgev1.CompressResultRequest{Content: string(text)})
		_, shown, _ := strings.Cut(got.GetContent(), "\n")
		want := fmt.Sprintf("%s\n…[%d chars omitted]…\n%s\nFull data: %s", text[:tt.head], n-tt.head-tt.last, text[n-tt.last:], got.GetBlob().GetPath())
		if shown != want {
			t.Errorf("line feeds at %v: got %q\nwant %q", tt.feeds, shown, want)
		}
	}
}

// The whole lies under a name that begins the hash of its content, says of which call
// it is, and is stored once. It is read by that name, too, and a file of the workspace
// does not take its place.
//
// J01, J02
func TestWholesOfResults(t *testing.T) {
	s := servertest.Start(t, nil)
	c := as(t, s, agent)
	content := textOf(1500) + "\"<é\u2028>\\"
	first := c.shorten(&loombridgev1.CompressResultRequest{Content: content, ToolCallId: "call-7"})
	ref := hashed(content)[:12]
	path := "storage/tool_results/" + ref + ".json"
	if text := first.GetContent(); !strings.HasPrefix(text, "[COMPRESSED:"+ref+"] ") || !strings.HasSuffix(text, "\nFull data: "+path) || first.GetBlob().GetPath() != path {
		t.Errorf("%s at %s", text, first.GetBlob().GetPath())
	}
	want := whole{RefID: ref, ToolName: "my:tool", ToolID: "call-7", CreatedAt: s.Clock.Now().UTC(), OriginalLength: 1506, Content: content}
	if wrote := c.call("fs:write_file", object(t, map[string]any{"path": path, "content": "a file of the agent"})); !wrote.GetSuccess() {
		t.Fatal(wrote.GetErrorMessage())
	}
	for _, name := range []string{path, ref, strings.ToUpper(ref)} {
		if got := c.mustBeWhole(name); got != want {
			t.Errorf("%s leads to %+v, want %+v", name, got, want)
		}
	}
	for _, name := range []string{path, "./" + path, ref} {
		read := c.call("fs:read_file", object(t, map[string]any{"path": name}))
		if !read.GetSuccess() || !strings.Contains(read.GetOutputJson(), textOf(1500)) || read.GetOutputBlob().GetRef() != first.GetBlob().GetRef() {
			t.Errorf("fs:read_file %s: %s, %.200s", name, read.GetErrorMessage(), read.GetOutputJson())
		}
	}
	s.Clock.Advance(time.Hour)
	again := c.shorten(&loombridgev1.CompressResultRequest{ToolName: "other:tool", ToolCallId: "call-8", Content: content})
	listed := []string{}
	for _, b := range MustList(t, s, &loombridgev1.ListBlobsRequest{IncludeClosed: true}) {
		if strings.HasPrefix(b.GetPath(), "storage/") {
			listed = append(listed, b.GetPath())
		}
	}
	if again.GetBlob().GetPath() != path || c.mustBeWhole(path) != want || len(listed) != 1 {
		t.Errorf("the same content again is at %s; stored are %v", again.GetBlob().GetPath(), listed)
	}
	other := as(t, s, "another")
	if readErrorOf(t, other, path) == nil {
		t.Error("another agent reads it")
	}
}

// Two contents whose hashes begin with the same twelve digits: the name of the later
// one has more of them, and each leads to its own.
//
// J02
func TestWholesOfOneName(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	pad := strings.Repeat("a line of a long result\n", 100)
	one, two := pad+"a9091a76af1e", pad+"fe1bd1704acb"
	if hashed(one)[:12] != hashed(two)[:12] {
		t.Fatal("the hashes differ")
	}
	for range 2 {
		c.checkWhole(one, 12)
		c.checkWhole(two, 13)
	}
}

// checkWhole shortens a content and reads it back; so many digits are its name.
func (c caller) checkWhole(content string, digits int) {
	c.tb.Helper()
	got := c.shorten(&loombridgev1.CompressResultRequest{Content: content})
	ref := hashed(content)[:digits]
	if got.GetBlob().GetPath() != "storage/tool_results/"+ref+".json" || !strings.HasPrefix(got.GetContent(), "[COMPRESSED:"+ref+"] ") {
		c.tb.Errorf("want %s: %.40s at %s", ref, got.GetContent(), got.GetBlob().GetPath())
	}
	for _, name := range []string{ref, got.GetBlob().GetPath()} {
		if c.mustBeWhole(name).Content != content {
			c.tb.Errorf("%s leads to another content", name)
		}
	}
}

// What is no text is named by its kind and never shown, however it is called.
//
// J09
func TestResultsThatAreNoText(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	for _, tt := range []struct{ content, kind, size string }{
		{"data:image/png;base64,iVBORw0KGgo" + strings.Repeat("AAAA", 1000), "image", "2.9KB"},
		{"data:audio/ogg;base64,T2dnUw" + strings.Repeat("AA", 1001), "audio", "1.5KB"},
		{"data:application/octet-stream;base64," + strings.Repeat("AAAA", 600), "binary", "1.8KB"},
		{strings.Repeat("x", 2000) + "\x00", "binary", "2KB"},
	} {
		for _, kind := range []string{"", "file", "exec", "text", "search"} {
			got := c.shorten(&loombridgev1.CompressResultRequest{Content: tt.content, ResultKind: kind})
			path := got.GetBlob().GetPath()
			ref := strings.TrimSuffix(strings.TrimPrefix(path, "storage/tool_results/"), ".json")
			if want := fmt.Sprintf("[%s %s → %s]", tt.kind, tt.size, path); got.GetContent() != want || !strings.HasPrefix(hashed(tt.content), ref) {
				t.Errorf("%s as %q: %q, want %q", tt.kind, kind, got.GetContent(), want)
			}
			if c.mustBeWhole(path).Content != tt.content {
				t.Errorf("%s: the whole is another", tt.kind)
			}
		}
	}
}

// A result of 50 KB becomes at most a twentieth.
//
// Q09
func TestSearchRatioOfResults(t *testing.T) {
	c := as(t, servertest.Start(t, nil), agent)
	hits := make([]any, 8)
	for i := range hits {
		hits[i] = map[string]any{
			"title": fmt.Sprintf("What %d engineers learned about harbours", i+3), "url": fmt.Sprintf("https://www.example.org/engineering/articles/%d/harbours", i),
			"snippet": fmt.Sprintf("In the %dth year of the survey the gates were measured again, and the numbers had changed: storms came earlier, the mud lay deeper, and the turbines turned slower.", i),
			"content": strings.Repeat(fmt.Sprintf("Paragraph %d says more about gates, locks, turbines and the people who look after them. ", i), 70),
		}
	}
	content := object(t, map[string]any{"query": "harbours", "results": hits})
	if len(content) < 50_000 {
		t.Fatalf("%d bytes", len(content))
	}
	got := c.shorten(&loombridgev1.CompressResultRequest{ToolName: "web:search", Content: content}).GetContent()
	bytes, tokens := len(content)/len(got), c.tokens(content)/c.tokens(got)
	t.Logf("%d bytes become %d, %d : 1; tokens %d : 1", len(content), len(got), bytes, tokens)
	if bytes < 20 || tokens < 20 || !strings.Contains(got, "Found 8 results. Top 5:") {
		t.Errorf("%d : 1 in bytes, %d : 1 in tokens:\n%s", bytes, tokens, got)
	}
}

// Whatever a result is: its whole is kept, its short form has fewer tokens and stays
// as it is the next time, and what merely looks like a short form is none.
//
// P02
func TestPromisesOfShortForms(t *testing.T) {
	seed := chance.Seed(t)
	random := rand.New(rand.NewPCG(seed, 0))
	c := as(t, servertest.Start(t, nil), agent)
	pieces := []string{"a line\n", "word ", "é", "天地玄黄", "👍🏽", `{"a":1}`, "\n\n\n", "\t", "[COMPRESSED:0123456789ab] ", "Full data: x\n", strings.Repeat("x", 300), "https://example.org/a?b=c "}
	shortened := 0
	for i := range 150 {
		var b strings.Builder
		if i%5 == 0 {
			b.WriteString("[COMPRESSED:0123456789ab] ")
		}
		for b.Len() < 400+random.IntN(6000) {
			b.WriteString(pieces[random.IntN(len(pieces))])
		}
		r := &loombridgev1.CompressResultRequest{
			Content: b.String(), ResultKind: []string{"", "search", "file", "exec", "api", "text"}[random.IntN(6)], Hint: loombridgev1.CompressHint(random.IntN(5)),
		}
		if random.IntN(3) == 0 { // an answer of many keys or hits
			items := make([]any, random.IntN(30))
			for i := range items {
				items[i] = map[string]any{"title": pieces[random.IntN(len(pieces))], "snippet": b.String()[:random.IntN(300)], "url": "u"}
			}
			r.Content = object(t, map[string]any{"results": items, "text": b.String()})
		}
		got := c.shorten(r)
		if !got.GetCompressed() {
			if got.GetContent() != r.GetContent() || got.GetBlob() != nil {
				t.Errorf("%q stays, but becomes %q", r.GetContent(), got.GetContent())
			}
			continue
		}
		shortened++
		if whole := c.mustBeWhole(got.GetBlob().GetPath()); whole.Content != strings.ToValidUTF8(r.GetContent(), "\uFFFD") {
			t.Errorf("the whole of %q is %q", r.GetContent(), whole.Content)
		}
		if before, after := c.tokens(r.GetContent()), c.tokens(got.GetContent()); after >= before || !utf8.ValidString(got.GetContent()) {
			t.Errorf("%d tokens become %d: %q", before, after, got.GetContent())
		}
		again := c.shorten(&loombridgev1.CompressResultRequest{Content: got.GetContent(), Hint: loombridgev1.CompressHint_COMPRESS_HINT_FORCE, Compressed: true})
		if again.GetContent() != got.GetContent() || again.GetBlob() != nil {
			t.Errorf("%q becomes %q", got.GetContent(), again.GetContent())
		}
	}
	if shortened < 40 {
		t.Errorf("%d results were shortened", shortened)
	}
}
