package compress

import (
	"fmt"

	"github.com/loom-bridge/loom-bridge/context/blob"
)

// What is shown of one hit at most, in characters.
const (
	titleChars   = 150
	linkChars    = 300
	snippetChars = 200
)

// search shows the first hits, or nil when none are found or fit. The first line
// has the number of all.
func (c *Compressor) search(j *job, f frame) []string {
	hits, ok := hitsOf(j)
	found := size(hits)
	if !ok || found == 0 {
		return nil
	}
	most := min(found, searchItems)
	l := lines{room: f.room(searchChars)}
	l.add(topLine(found, most))
	shown := 0
	for _, hit := range members(hits) {
		if shown == most || !l.add(hitText(shown+1, hit)) {
			break
		}
		shown++
	}
	if shown == 0 {
		return nil
	}
	l.all[0] = topLine(found, shown) // it has no more digits than before
	return l.all
}

func topLine(found, shown int) string {
	return fmt.Sprintf("Found %d results. Top %d:", found, shown)
}

// hitsOf finds the array of hits.
func hitsOf(j *job) (string, bool) {
	if j.kind != blob.KindJSON {
		return "", false
	}
	if isArray(j.Content) {
		return j.Content, true
	}
	for _, key := range []string{"results", "items"} {
		if hits, ok := field(j.Content, key); ok && isArray(hits) {
			return hits, true
		}
	}
	return "", false
}

// hitText is a hit on one line or two.
func hitText(number int, hit string) string {
	title := hitField(hit, titleChars, "title", "name")
	link := hitField(hit, linkChars, "url", "link")
	snippet := hitField(hit, snippetChars, "snippet", "abstract", "summary")
	if title == "" && link == "" && snippet == "" {
		title = scalar(hit, snippetChars)
	}
	line := fmt.Sprintf("%d. %s", number, title)
	switch {
	case title == "":
		line += link
	case link != "":
		line += "  " + link
	}
	if snippet != "" {
		line += "\n   " + snippet
	}
	return line
}

// hitField is the first of some members of a hit that says something.
func hitField(hit string, n int, keys ...string) string {
	for _, key := range keys {
		if value, ok := field(hit, key); ok {
			if text, ok := textOf(value); ok {
				if line := oneLine(text, n); line != "" {
					return line
				}
			}
		}
	}
	return ""
}

// Titles returns how many hits the result of a search has, and the titles of the
// first ones that have one, at most most of them, each on one line. Nothing where the
// content is no such result.
func Titles(content string, most int) (found int, titles []string) {
	j := newJob(Result{Content: content, Kind: Search}, 0)
	hits, ok := hitsOf(j)
	if !ok {
		return 0, nil
	}
	for _, hit := range members(hits) {
		found++
		if len(titles) < most {
			if title := hitField(hit, titleChars, "title", "name"); title != "" {
				titles = append(titles, title)
			}
		}
	}
	return found, titles
}
