package compress

import (
	"strings"
	"unicode/utf8"

	"github.com/loom-bridge/loom-bridge/context/excerpt"
	"github.com/loom-bridge/loom-bridge/context/text"
)

// capped cuts the middle out of what is over the limit of tokens. Two thirds of
// what stays are the beginning; of a failure they are the end, where failures
// say what happened. What is no text is named.
func (c *Compressor) capped(whole Compressed, j *job) Compressed {
	if !c.over(whole.Text) {
		return whole
	}
	if !j.isText() {
		return c.shorter(whole, j.stub(), Stub)
	}
	// Parts counted by themselves may have some tokens more or less than within
	// the whole, so the room is corrected by what comes out.
	limit := c.opts.ResultTokens
	room := limit - c.count(capFrame(j))
	for room > 0 {
		text := c.ends(whole.Text, room, j)
		over := c.count(text) - limit
		if over <= 0 {
			return c.shorter(whole, text, Cap)
		}
		room -= over
	}
	return c.shorter(whole, strings.TrimPrefix(capFrame(j), "\n"), Cap)
}

// over reports whether a text is over the limit of tokens.
func (c *Compressor) over(text string) bool {
	limit := c.opts.ResultTokens
	// A token has at least one byte.
	return limit >= 0 && len(text) > limit && c.count(text) > limit
}

// capFrame is what stands next to the two ends.
func capFrame(j *job) string { return omitted(j.chars) + "\n" + dataLine(&j.Result) }

// ends keeps about room tokens of both ends together.
func (c *Compressor) ends(body string, room int, j *job) string {
	head, tail := excerpt.Halves(room, j.failed)
	first := excerpt.Head(body, c.fit(len(body), head, func(n int) string { return text.Head(body, n) }))
	rest := body[len(first):]
	last := excerpt.Tail(rest, c.fit(len(rest), tail, func(n int) string { return text.Tail(rest, n) }))
	missing := utf8.RuneCountInString(rest[:len(rest)-len(last)])
	return first + omitted(missing) + last + "\n" + dataLine(&j.Result)
}

// The search for a part with so many tokens.
const (
	// tokenBytes is how many bytes of usual text a token has.
	tokenBytes = 4
	// fitShare is how near it comes: within a part in so many.
	fitShare = 32
)

// fit returns the length in bytes, up to size, of the longest part that it finds
// with at most limit tokens. part returns at most n bytes of the text. Parts are counted a dozen times, and none is much longer than
// twice what fits, so that the work does not grow with the text.
func (c *Compressor) fit(size, limit int, part func(n int) string) int {
	low, high := 0, min(size, limit*tokenBytes)
	for {
		text := part(high)
		if c.count(text) > limit {
			break
		}
		low = len(text)
		if high == size {
			return low
		}
		high = min(size, 2*high+1)
	}
	for high-low > low/fitShare+1 {
		middle := low + (high-low)/2
		text := part(middle)
		if len(text) <= low || c.count(text) > limit {
			high = middle
			continue
		}
		low = len(text)
	}
	return low
}
