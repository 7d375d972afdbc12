package step

import (
	"maps"
	"strings"

	"github.com/loom-bridge/loom-bridge/context/text"
)

// results reads the hits of a search.
func (r *Reducer) results(c Call) finding {
	rd := finding{}
	hits, _ := hitsOf(&c.Result)
	rd.size.items = hits
	rd.figure("count", hits)
	rd.asJSON(&c.Result)
	return rd
}

// search reads the result of a search as it comes, and counts its hits.
func (r *Reducer) search(c Call) finding {
	rd := r.anything(c)
	if hits, ok := hitsOf(&c.Result); ok {
		rd.figure("count", hits)
	}
	return rd
}

// hitsOf returns the number of hits of a search: the length of its list, which may be the
// whole result, else the number that it states. It is false if there is neither.
func hitsOf(result *Result) (int64, bool) {
	for _, key := range []string{"results", "items", "hits", "matches", keyOutput} {
		if hits, ok := result.Output[key].([]any); ok {
			return int64(len(hits)), true
		}
	}
	if hits, ok := result.Value.([]any); ok {
		return int64(len(hits)), true
	}
	return wholeNumber(result.Output["count"])
}

// hasHits reports whether a result says how many hits a search has.
func hasHits(result *Result) bool {
	_, ok := hitsOf(result)
	return ok
}

// hasStatus reports whether a result says how a page was answered.
func hasStatus(result *Result) bool {
	_, ok := wholeNumber(result.Output["status"])
	return ok
}

// asJSON shows a result as JSON, whose size is the result's.
func (rd *finding) asJSON(result *Result) {
	switch {
	case emptyResult(result):
		return
	case result.onlyBody():
		rd.body(result)
		rd.printed = false
	default:
		rd.size.bytes = int64(len(rd.jsonText(result)))
		rd.showJSON(resultValue(result))
	}
	rd.figure("size", rd.size.bytes)
}

// page reads a page of the web: its text, then its links.
func (r *Reducer) page(c Call) finding {
	url, _ := c.Args["url"].(string)
	status, _ := wholeNumber(c.Result.Output["status"])
	b, rest := pageText(&c.Result)
	rd := finding{words: map[string]string{"site": text.Head(withoutScheme(url), MaxPathBytes)}}
	rd.size = size{bytes: b.size, text: b.text}
	rd.figure("size", b.size)
	rd.figure("status", status)
	if c.Result.BodyKey != "" {
		rd.text = &heldText{ext: "txt"}
	}
	rd.shown = shown{text: b.text, tail: b.tail, size: b.size}
	links := rest["links"]
	delete(rest, "links")
	if len(rest) > 0 {
		rd.shown = rd.shown.below(rd.jsonLine(rest))
	}
	if links != nil {
		rd.shown = rd.shown.above("links: " + rd.jsonLine(links))
	}
	return rd
}

// pageText takes the text out of a page.
func pageText(result *Result) (body, map[string]any) {
	rest := maps.Clone(result.Output)
	if rest == nil {
		rest = map[string]any{}
	}
	delete(rest, result.BodyKey)
	if result.BodyKey != "" {
		return fileBody(result), rest
	}
	text, ok := result.Value.(string)
	if !ok {
		text, _ = rest["text"].(string)
		delete(rest, "text")
	}
	return unhashed(text), rest
}

func withoutScheme(url string) string {
	if _, after, found := strings.Cut(url, "://"); found {
		return after
	}
	return url
}

// jsonLine is a value as a line of JSON, without the bytes that it holds.
func (rd *finding) jsonLine(value any) string {
	value, found := withoutBytes(value)
	rd.found(found)
	return string(text.SpacedJSON(value))
}
