package compress

import (
	"cmp"
	"math"
	"unicode/utf8"
)

// Lengths, in characters (code points).
const (
	// DefaultThreshold is the length that stays as it is.
	DefaultThreshold = 1500
	// ForcedThreshold is that of HintForce, and the least that an adaptive
	// threshold becomes.
	ForcedThreshold = 500
	// MaxAdaptive is the most that an adaptive threshold becomes.
	MaxAdaptive = 3000
)

// DefaultResultTokens is the size, in tokens, up to which a result is not compressed.
const DefaultResultTokens = 3000

// The sizes of the strategies: how many hits of a search, lines of a file and lines of a
// command's output are shown, and how many characters of each, and of a JSON object.
const (
	searchItems, searchChars = 5, 2000
	fileLines, fileChars     = 10, 1000
	execLines, execChars     = 50, 1500
	apiChars                 = 1000
)

// Hint says what to do with a result.
type Hint uint8

// The hints.
const (
	// HintNormal compresses what is over the threshold. The zero value.
	HintNormal Hint = iota
	// HintSkip only cuts what is over the limit of tokens.
	HintSkip
	// HintForce compresses what is over ForcedThreshold, or over the threshold
	// where that is lower.
	HintForce
	// HintSearch takes the result for that of a search.
	HintSearch
)

// Strategy is how a result was compressed.
type Strategy string

// The strategies. The first five are also the kinds of Result.Kind.
const (
	// Search shows the titles and snippets of the first hits.
	Search Strategy = "search"
	// File shows the first lines of a file.
	File Strategy = "file"
	// Exec shows the first lines that a command printed.
	Exec Strategy = "exec"
	// API shows the keys of a JSON object, and the values that are short.
	API Strategy = "api"
	// Text shows the beginning and the end.
	Text Strategy = "text"
	// Stub names what is no text.
	Stub Strategy = "stub"
	// Cap cuts the middle out of what is over the limit of tokens.
	Cap Strategy = "cap"
	// None: the result stays as it is.
	None Strategy = ""
)

// Kinds returns the strategies that a caller may choose.
func Kinds() []Strategy { return []Strategy{Search, File, Exec, API, Text} }

// Options adjusts a Compressor. Nil and zero fields mean the defaults.
type Options struct {
	// Adaptive takes AdaptiveThreshold of the result's pressure in place of
	// DefaultThreshold. Default false.
	Adaptive bool
	// ResultTokens is the size up to which a result is not compressed. Default
	// DefaultResultTokens; negative is no bound.
	ResultTokens int
}

// Compressor compresses results. It has no state; all methods are safe for
// concurrent use if the counter is.
type Compressor struct {
	count func(text string) int
	opts  Options
}

// New returns a compressor that counts tokens with count.
func New(count func(text string) int, opts *Options) *Compressor {
	c := &Compressor{count: count}
	if opts != nil {
		c.opts = *opts
	}
	c.opts.ResultTokens = cmp.Or(c.opts.ResultTokens, DefaultResultTokens)
	return c
}

// Result is the result of one tool call.
type Result struct {
	// Content is the result: text, or JSON as text.
	Content string
	// Tool is the tool's name, such as "web:search".
	Tool string
	// Kind chooses the strategy: one of Kinds. Default, and for anything else:
	// by the tool's name, else by what the content looks like.
	Kind Strategy
	// Hint says what to do. Default HintNormal.
	Hint Hint
	// Failed says that the tool failed: its text is not compressed.
	Failed bool
	// Threshold is the length that stays as it is, in characters. Default that
	// of the compressor.
	Threshold int
	// Pressure is how full the window is, from 0 to 1, for an adaptive threshold.
	Pressure float64
	// Path is the file that a result of kind File shows. Default unknown.
	Path string
	// ExitCode is that of a result of kind Exec. Anything but 0 is a failure.
	ExitCode int
	// Ref names the whole, and RefPath is the path where it can be read. Both are
	// required: the short form shows them.
	Ref, RefPath string
	// IsCompressed says that the content is the text of a Compressed that was
	// compressed. It is returned as it is.
	IsCompressed bool
}

// Compressed is what a prompt shows of a result.
type Compressed struct {
	// Text is the short form, or the content as it came.
	Text string
	// IsCompressed says that the text is not the whole. It marks the text: give it
	// back in Result.IsCompressed when the text may come here again.
	IsCompressed bool
	// Strategy is how it was compressed, None when it was not.
	Strategy Strategy
	// ContentKind is what the content is, in the words of package blob: text,
	// json, log, image, audio or binary. Empty for results compressed by older versions.
	ContentKind string
	// Chars is the length of the content in characters.
	Chars int
}

// AdaptiveThreshold is the threshold, in characters, for a window that is so
// full: the fuller, the shorter. What is no number counts as empty.
func AdaptiveThreshold(pressure float64) int {
	if math.IsNaN(pressure) {
		pressure = 0
	}
	free := math.Round(MaxAdaptive * (1 - min(max(pressure, 0), 1)))
	return min(max(int(free), ForcedThreshold), MaxAdaptive)
}

// Compress compresses a result where its rules say so and it gets shorter.
func (c *Compressor) Compress(r Result) Compressed {
	whole := Compressed{Text: r.Content, Chars: utf8.RuneCountInString(r.Content)}
	if r.IsCompressed {
		whole.IsCompressed = true
		return whole
	}
	j := newJob(r, whole.Chars)
	whole.ContentKind = j.kind
	if j.Hint == HintSkip || j.failed || j.chars <= c.threshold(&r) {
		return c.capped(whole, j)
	}
	if !j.isText() {
		return c.shorter(whole, j.stub(), Stub)
	}
	text, strategy := c.apply(j)
	short := c.shorter(whole, text, strategy)
	if !short.IsCompressed || c.over(short.Text) {
		return c.capped(whole, j)
	}
	return short
}

// threshold is the length that stays as it is.
func (c *Compressor) threshold(r *Result) int {
	threshold := DefaultThreshold
	if c.opts.Adaptive {
		threshold = AdaptiveThreshold(r.Pressure)
	}
	if r.Threshold > 0 {
		threshold = r.Threshold
	}
	if r.Hint == HintForce {
		threshold = min(threshold, ForcedThreshold)
	}
	return threshold
}

// shorter takes a short form if it is one.
func (c *Compressor) shorter(whole Compressed, text string, strategy Strategy) Compressed {
	if text == "" || utf8.RuneCountInString(text) > whole.Chars || c.count(text) >= c.count(whole.Text) {
		return whole
	}
	whole.Text, whole.Strategy, whole.IsCompressed = text, strategy, true
	return whole
}

// apply makes the short form by the strategy that fits, or, where the content
// is not what it was taken for, as text.
func (c *Compressor) apply(j *job) (string, Strategy) {
	f := frameOf(&j.Result)
	var body []string
	switch j.strategy {
	case Search:
		body = c.search(j, f)
	case File:
		body = c.file(j, f)
	case Exec:
		body = c.exec(j, f)
	}
	strategy := j.strategy
	if body == nil && strategy != Text {
		body, strategy = c.api(j, f), API
	}
	if body == nil {
		return f.around(plain(j.Content, j.chars, c.threshold(&j.Result))), Text
	}
	return f.around(body), strategy
}
