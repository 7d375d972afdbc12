package step

import (
	"maps"
	"strings"
)

// results reads the hits of a search.
func (r *Reducer) results(c Call) reading {
	rd := reading{}
	hits, ok := c.Result.Output["results"].([]any)
	if !ok {
		hits, ok = c.Result.Value.([]any)
	}
	rd.size.items = int64(len(hits))
	if count, known := wholeNumber(c.Result.Output["count"]); !ok && known {
		rd.size.items = count
	}
	rd.figure("count", rd.size.items)
	rd.asJSON(&c.Result)
	return rd
}

// asJSON shows a result as JSON, whose size is the result's.
func (rd *reading) asJSON(result *Result) {
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
func (r *Reducer) page(c Call) reading {
	url, _ := c.Args["url"].(string)
	status, _ := wholeNumber(c.Result.Output["status"])
	b, rest := pageText(&c.Result)
	rd := reading{words: map[string]string{"site": headBytes(withoutScheme(url), MaxPathBytes)}}
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
func (rd *reading) jsonLine(value any) string {
	value, found := withoutBytes(value)
	rd.found(found)
	return string(SpacedJSON(value))
}
